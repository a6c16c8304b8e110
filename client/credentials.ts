import { unreachable } from './errors.js'

export interface CredentialOptions {
  /** A bearer token. */
  token?: string | undefined
  /** Sent with every request. A browser's sockets cannot carry them (but for a bearer token): sessions are then followed without. */
  headers?: Record<string, string> | undefined
  /** Where bearer tokens come from. Asked once, and again, with the one that was turned down, when the gateway no longer takes it. */
  getToken?: ((asked: { rejected?: string }) => string | Promise<string>) | undefined
}

const BEARER = /^bearer +(\S+)$/i

/** Who the client is, and what is done when the gateway no longer believes it. */
export class Credentials {
  readonly #getToken: CredentialOptions['getToken']
  readonly #headers: Record<string, string> = {}
  readonly #socketsHaveHeaders: boolean
  #token: string | undefined
  #asking: Promise<string> | undefined

  constructor({ token, headers = {}, getToken }: CredentialOptions, socketsHaveHeaders: boolean) {
    this.#socketsHaveHeaders = socketsHaveHeaders
    this.#getToken = getToken
    this.#token = token
    for (const [name, value] of Object.entries(headers)) {
      const bearer = name.toLowerCase() === 'authorization' && BEARER.exec(value)?.[1]
      if (bearer) this.#token ??= bearer
      else this.#headers[name.toLowerCase()] = value
    }
  }

  /** Whether a socket of this platform can say who the client is: by a bearer token, or not at all. */
  get fitSockets(): boolean {
    return this.#socketsHaveHeaders || Object.keys(this.#headers).length === 0
  }

  async token(): Promise<string | undefined> {
    if (this.#token === undefined && this.#getToken) await this.#ask({})
    return this.#token
  }

  async headers(): Promise<Record<string, string>> {
    const token = await this.token()
    return { ...this.#headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) }
  }

  /** Asks for another token than the one that was turned down; false when there is none. */
  async renew(rejected: string | undefined): Promise<boolean> {
    if (!this.#getToken || rejected === undefined) return false
    if (this.#token === rejected) await this.#ask({ rejected })
    return this.#token !== rejected
  }

  async #answerTo(asked: { rejected?: string }): Promise<string> {
    try {
      return await this.#getToken!(asked)
    } catch (cause) {
      throw unreachable('There are no credentials.', cause)
    }
  }

  /** One question at a time, whoever asks. */
  async #ask(asked: { rejected?: string }): Promise<void> {
    this.#asking ??= this.#answerTo(asked).finally(() => {
      this.#asking = undefined
    })
    this.#token = await this.#asking
  }
}
