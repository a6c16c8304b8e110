import { type Credentials, checkHeaders } from './credentials.js'
import { GatewayError, refusalOf, strange, UNREACHABLE, unreachable } from './errors.js'
import { backoffMs, type Platform, sleep, stopIfAborted, unlessAborted } from './platform.js'

/** A value that is left out when it is undefined. */
export type Query = { readonly [name: string]: string | number | boolean | undefined }

export interface Call {
  query?: Query | undefined
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal | undefined
  /** Whether doing it twice is doing it once. GET always is. */
  repeatable?: boolean
  /** A field that the answer of a gateway has. */
  has?: string
}

type Opening = Pick<Call, 'query' | 'headers' | 'signal'> & {
  /** The body, as it is sent. */
  content?: string | undefined
}

const MAX_TRIES = 5
/** Longer than this nobody is made to wait unasked; the error says how long it would have been. */
export const MAX_WAIT_MS = 30_000
/** So long may an answer take to begin, and each part of it; a connection that says nothing for longer is taken for dead. */
const TIMEOUT_MS = 60_000
/** Refusals of a moment: nothing was done, and soon it may be. */
const PASSING = new Set([429, 503])
const CONNECTION = new Set([408, 502, 504])
const IN_FLIGHT = 'SG_ERR_IDEMPOTENCY_IN_FLIGHT'

/** Reads an answer; one that may take long calls `heard` at every sign of life. */
type Reading<T> = (response: Response, heard: () => void) => Promise<T>

/** Requests to one gateway: who asks, what may be tried again, and what a refusal says. */
export class Http {
  readonly baseUrl: string
  readonly platform: Platform
  readonly credentials: Credentials

  /** @throws TypeError for what could never be asked, or followers would try it for ever */
  constructor(baseUrl: string, platform: Platform, credentials: Credentials) {
    const { protocol, username, password } = parsed(baseUrl) ?? {}
    if (!/^https?:$/.test(protocol ?? '') || username || password)
      throw new TypeError(
        'baseUrl is the address of a gateway with its base path, as in http://127.0.0.1:8787/v1, and without credentials.',
      )
    this.baseUrl = baseUrl.replace(/\/+$/, '')
    this.platform = platform
    this.credentials = credentials
  }

  url(path: string, query: Query = {}): string {
    const search = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value))
    // not its size, which browsers of 2022 do not tell: every filter, and the cursor of every page, would be left out
    const text = search.toString()
    return `${this.baseUrl}${path}${text && `?${text}`}`
  }

  socketUrl(path: string, query?: Query): string {
    return parsed(this.url(path, query))!.href.replace(/^http/, 'ws')
  }

  /** The JSON of the answer; undefined when it has none. @throws GatewayError also when it lacks what the call says that it has */
  async json<T>(method: string, path: string, call: Call = {}): Promise<T> {
    const { body } = await this.exchange(method, path, call, readJson)
    if (call.has !== undefined && !(call.has in Object(body))) throw strange('something else')
    return body as T
  }

  /** One request and the reading of its answer, tried again where that is safe. @throws TypeError for what cannot be sent */
  async exchange<T>(
    method: string,
    path: string,
    call: Call,
    read: Reading<T>,
  ): Promise<{ body: T; headers: Headers }> {
    const { platform } = this
    // by itself, or it would be taken for a gateway that does not answer
    const content = JSON.stringify(call.body)
    checkHeaders(call.headers)
    checkPath(path)
    const repeatable = call.repeatable ?? method === 'GET'
    const started = platform.now()
    for (let tries = 1, renewed = false; ; tries++) {
      const token = await unlessAborted(this.credentials.token(), call.signal)
      const error = await this.#once(method, path, { ...call, content }, read).catch((thrown: unknown) => {
        stopIfAborted(call.signal)
        if (thrown instanceof GatewayError) return thrown
        // cut off, or of a server that is no gateway
        return thrown instanceof SyntaxError
          ? strange('no JSON', 0, thrown)
          : unreachable(`No answer from ${this.baseUrl}.`, thrown)
      })
      if (!(error instanceof GatewayError)) return error
      if (error.status === 401 && !renewed && (await unlessAborted(this.credentials.renew(token), call.signal))) {
        renewed = true
        continue
      }
      const waitMs = Math.max(backoffMs(platform, tries - 1), error.retryAfterMs ?? 0)
      // the request is with the gateway: if its node was lost with it, its key is free once that is known to be dead
      const isUnderWay = error.code === IN_FLIGHT && platform.now() - started <= MAX_WAIT_MS
      if (!mayPass(error, repeatable) || (tries === MAX_TRIES && !isUnderWay) || waitMs > MAX_WAIT_MS) throw error
      if (isUnderWay) tries--
      await sleep(platform, waitMs, call.signal)
    }
  }

  async #once<T>(method: string, path: string, call: Opening, read: Reading<T>) {
    const { response, heard, done } = await this.open(method, path, call)
    try {
      return { body: await read(response, heard), headers: response.headers }
    } finally {
      done()
    }
  }

  /**
   * Opens an answer, which the caller reads.
   * @returns `heard` begins the time limit anew, `untimed` ends it, `done` lets go of the signal too · @throws GatewayError for every status but 2xx
   */
  async open(method: string, path: string, { query, content, headers, signal }: Opening) {
    const { platform } = this
    const aborter = new AbortController()
    const onAbort = () => aborter.abort(signal?.reason)
    stopIfAborted(signal)
    signal?.addEventListener('abort', onAbort)
    const begin = () =>
      platform.after(TIMEOUT_MS, () => aborter.abort(unreachable(`${this.baseUrl} did not answer in time.`)))
    let end = begin()
    const untimed = () => end()
    const heard = () => {
      end()
      end = begin()
    }
    const done = () => {
      untimed()
      signal?.removeEventListener('abort', onAbort)
    }
    try {
      const response = await platform.fetch(this.url(path, query), {
        method,
        headers: {
          ...(await this.credentials.headers()),
          ...(content !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(content !== undefined && { body: content }),
        // one that is followed takes headers and body to wherever it points, or asks there for something else than was asked
        redirect: 'manual',
        signal: aborter.signal,
      })
      heard()
      if (!response.ok) throw await refusalOf(response, platform.now())
      return { response, heard, untimed, done }
    } catch (error) {
      done()
      throw error
    }
  }
}

/** In a page, as its links are. */
function parsed(url: string): URL | undefined {
  const page = (globalThis as { location?: { href: string } }).location?.href
  try {
    return new URL(url, page)
  } catch {
    return undefined
  }
}

/** @throws TypeError for what a URL takes for another place: `../../s2/files/a.md`, given as a file of one session, is one of another */
function checkPath(path: string): void {
  if (path.split('/').some((part) => part === '.' || part === '..'))
    throw new TypeError('An id, a name or a path that has the part . or .. cannot be asked for.')
}

/** An empty body is undefined; one that is cut off rejects. */
export async function readJson(response: Response, heard: () => void): Promise<unknown> {
  let text = ''
  // a fetch of the host's own may have no stream, or one of another kind, as node-fetch and React Native do
  if (!hasStream(response)) text = await response.text()
  else for await (const part of textOf(response, heard)) text += part
  return text ? JSON.parse(text) : undefined
}

export const hasStream = ({ body }: Response): boolean => typeof body?.getReader === 'function'

/** As it comes, however long it takes, while some of it comes. A polyfilled stream can be read, and not piped through what the platform has. */
async function* partsOf({ body }: Response, heard: () => void): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const reader = body!.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    heard()
    yield value
  }
}

export async function* textOf(response: Response, heard: () => void): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  for await (const part of partsOf(response, heard)) yield decoder.decode(part, { stream: true })
  yield decoder.decode()
}

export async function readBlob(response: Response, heard: () => void): Promise<Blob> {
  if (!hasStream(response)) return response.blob()
  const parts: Uint8Array<ArrayBuffer>[] = []
  for await (const part of partsOf(response, heard)) parts.push(part)
  return new Blob(parts, { type: response.headers.get('content-type') ?? '' })
}

/** Whether the same request may fare better a moment later, and asking again is safe. */
export function mayPass({ status, code }: GatewayError, repeatable: boolean): boolean {
  if (PASSING.has(status)) return repeatable || code.startsWith('SG_ERR_')
  // a node had passed it on: as where the connection to it breaks
  if (code === 'SG_ERR_NODE_LOST') return repeatable
  if (code === UNREACHABLE) return repeatable && (status === 0 || CONNECTION.has(status))
  return code === IN_FLIGHT
}
