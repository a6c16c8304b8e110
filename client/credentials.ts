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
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** @throws TypeError for what no request can carry, such as a letter that is not of Latin-1: whoever follows would try it for ever */
export function checkHeaders(headers: Record<string, string> = {}): void {
  for (const [name, value] of Object.entries(headers))
    try {
      new Headers([[name, value]])
    } catch (cause) {
      // its value may be a secret
      throw new TypeError(`The header ${name} has a character that cannot be sent.`, { cause })
    }
}

/** Who the client is, and what is done when the gateway no longer believes it. */
export class Credentials {
  readonly #getToken: CredentialOptions['getToken']
  readonly #headers: Record<string, string> = {}
  readonly #socketsHaveHeaders: boolean
  #token: string | undefined
  #asking: Promise<string> | undefined

  /** @throws TypeError */
  constructor({ token, headers = {}, getToken }: CredentialOptions, socketsHaveHeaders: boolean) {
    checkHeaders({ ...headers, ...(token !== undefined && bearer(token)) })
    this.#socketsHaveHeaders = socketsHaveHeaders
    this.#getToken = getToken
    this.#token = token
    for (const [name, value] of Object.entries(headers)) {
      const given = name.toLowerCase() === 'authorization' && BEARER.exec(value)?.[1]
      if (given) this.#token ??= given
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
    return { ...this.#headers, ...(token !== undefined && bearer(token)) }
  }

  /** Asks for another token than the one that was turned down; false when there is none. */
  async renew(rejected: string | undefined): Promise<boolean> {
    if (!this.#getToken || rejected === undefined) return false
    if (this.#token === rejected) await this.#ask({ rejected })
    return this.#token !== rejected
  }

  async #answerTo(asked: { rejected?: string }): Promise<string> {
    try {
      const token = await this.#getToken!(asked)
      checkHeaders(bearer(token))
      return token
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
