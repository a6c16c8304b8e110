import { createClient, GatewayError, refusalOf, UNREACHABLE } from '../../client/index.js'
import { attendance } from './state/attended.js'
import { noteDate } from './state/clock.js'
import { texts } from './texts.js'

/** Where the API is: what the page that the gateway serves says of itself, against the page's own address. */
export const apiBase = new URL(
  document.querySelector<HTMLMetaElement>('meta[name="gateway-base"]')?.content ?? '..',
  document.baseURI,
).href.replace(/\/+$/, '')

let onAsk = (): (() => void) => () => {}
/** @param listener called with every request · @returns what is called when its answer says that nobody is signed in, or not any more */
export const whenSignedOut = (listener: () => () => void): void => {
  onAsk = listener
}

const watchedFetch = async (url: string, init?: RequestInit): Promise<Response> => {
  const onSignedOut = onAsk()
  const askedAt = Date.now()
  const response = await fetch(url, { ...init, headers: { ...init?.headers, ...attendance() } })
  noteDate(response.headers, askedAt)
  // a refusal of what stands between, such as a proxy that asks for a sign-in of its own, says nothing of the one here
  if (response.status === 401 && (await refusalOf(response.clone())).code !== UNREACHABLE) onSignedOut()
  return response
}

/** The gateway. Who asks is in a cookie that no script can read. */
export const client = createClient({ baseUrl: apiBase, fetch: watchedFetch })

interface Call {
  query?: Record<string, string | number | undefined>
  body?: unknown
  signal?: AbortSignal
  /** What is to come. Default: JSON. */
  accept?: string
}

/** Refusals of a moment, and how often and how long at most what only reads waits for it to pass. */
const PASSING = new Set([429, 503])
const MAX_TRIES = 3
const MAX_WAIT_MS = 30_000
/** A connection that says nothing for longer is taken for dead: an answer that comes slowly is none. */
const SILENCE_MS = 60_000

/**
 * What the client has no method for: one request, and the same errors.
 * @param path below the API's base: `/usage`
 */
export async function answered<T>(
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  { query = {}, body, signal, accept = 'application/json' }: Call,
  read: (response: Response) => Promise<T>,
): Promise<T> {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value))
  // not its size, which browsers of 2022 do not tell: every part of a log would be its first
  const asked = search.toString()
  const init: RequestInit = {
    method,
    credentials: 'same-origin',
    // one that is followed takes a token to wherever it points
    redirect: 'manual',
    headers: { accept, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  }
  for (let tries = 1; ; tries++) {
    const answer = await inTime(signal, async (signal, heard) => {
      const response = await watchedFetch(`${apiBase}${path}${asked && `?${asked}`}`, { ...init, signal })
      return response.ok
        ? { content: await read(listening(response, heard)) }
        : { response, refusal: await told(response) }
    })
    if ('content' in answer) return answer.content
    const { response, refusal } = answer
    const seconds = Number(response.headers.get('retry-after') ?? 1)
    const waitMs = Number.isFinite(seconds) ? Math.max(0, seconds * 1000) : 1000
    if (method !== 'GET' || !PASSING.has(response.status) || tries === MAX_TRIES || waitMs > MAX_WAIT_MS) throw refusal
    await new Promise((resolve) => setTimeout(resolve, waitMs))
    signal?.throwIfAborted()
  }
}

/** What it answers, whose parts are told of as they come. */
function listening({ body, headers }: Response, heard: () => void): Response {
  const transform = (part: Uint8Array, to: TransformStreamDefaultController<Uint8Array>): void => {
    heard()
    to.enqueue(part)
  }
  // without its status: of a 204 Chromium has a body, and takes none
  return new Response(body?.pipeThrough(new TransformStream({ transform })), { headers })
}

/** An answer and the reading of it. @param ask calls `heard` with each part · @throws GatewayError when none comes */
async function inTime<T>(
  signal: AbortSignal | undefined,
  ask: (signal: AbortSignal, heard: () => void) => Promise<T>,
): Promise<T> {
  const aborter = new AbortController()
  const giveUp = (): void => aborter.abort()
  signal?.throwIfAborted()
  signal?.addEventListener('abort', giveUp)
  let timer = setTimeout(giveUp, SILENCE_MS)
  const heard = (): void => {
    clearTimeout(timer)
    timer = setTimeout(giveUp, SILENCE_MS)
  }
  try {
    return await ask(aborter.signal, heard)
  } catch (cause) {
    signal?.throwIfAborted()
    throw cause instanceof GatewayError
      ? cause
      : new GatewayError(texts.shell.noAnswer, { status: 0, code: UNREACHABLE, cause })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', giveUp)
  }
}

async function told(response: Response): Promise<GatewayError> {
  const refusal = await refusalOf(response)
  const { status, code, retryAfterMs } = refusal
  return code === UNREACHABLE && response.type !== 'opaqueredirect'
    ? new GatewayError(texts.shell.strangeAnswer(status), { status, code, retryAfterMs })
    : refusal
}

/** The JSON of its answer; undefined when there is none. */
export const request = <T>(method: 'GET' | 'POST' | 'DELETE', path: string, call: Call = {}): Promise<T> =>
  answered(method, path, call, async (response) => {
    const text = await response.text()
    try {
      return (text ? JSON.parse(text) : undefined) as T
    } catch (cause) {
      throw strange(cause)
    }
  })

/** An answer of success that no gateway gives. */
export const strange = (cause?: unknown): GatewayError =>
  new GatewayError(texts.shell.strangeAnswer(200), { status: 200, code: UNREACHABLE, cause })

/** Of any failure, one sentence for a person, or two: when to try again is said where it is known. */
export function sentenceOf(error: unknown): string {
  if (!(error instanceof GatewayError)) return error instanceof Error ? error.message : String(error)
  const seconds = Math.ceil((error.retryAfterMs ?? 0) / 1000)
  return seconds > 1 ? `${error.detail} ${texts.shell.tryAgainIn(seconds)}` : error.detail
}
