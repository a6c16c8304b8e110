import { errors, request } from 'undici'
import { hasCode } from '../errors.js'
import { onceAborted } from '../lib/aborted.js'
import type { Clock } from '../lib/clock.js'
import type { WebhookTarget } from './target.js'

/** For a whole attempt, from the name's lookup to the end of the answer. */
const ATTEMPT_MS = 15_000
/** Of an answer's body at most that much is read, and nothing of it is looked at. */
const MAX_ANSWER_BYTES = 64 * 1024

/** Classes of failure; the receiver's own words are in none. */
export type PostError = 'blocked' | 'dns' | 'connect' | 'timeout' | 'status' | 'stopped' | 'unwritten'

export interface PostOutcome {
  status?: number
  /** Absent: delivered. */
  error?: PostError
  /** What `Retry-After` asks for, in milliseconds from now. */
  retryAfterMs?: number
}

/** How an attempt went, and when: what it waited for before is not its own. */
export interface Tried extends PostOutcome {
  at: number
  durationMs: number
}

/** @param work one attempt */
export async function timed(clock: Clock, work: () => PostOutcome | Promise<PostOutcome>): Promise<Tried> {
  const at = clock.now()
  const since = clock.steady()
  const outcome = await work()
  return { ...outcome, at, durationMs: Math.round(clock.steady() - since) }
}

/**
 * One attempt to deliver. Never rejects; a redirect is a failure like any status that is not 2xx.
 * @param stop ends the attempt early
 */
export async function post(
  { url, headers, guard }: WebhookTarget,
  given: { body: Buffer; headers: Record<string, string> },
  clock: Clock,
  stop: AbortSignal,
): Promise<PostOutcome> {
  const abort = new AbortController()
  const forget = onceAborted(stop, () => abort.abort())
  const timer = clock.after(ATTEMPT_MS, () => abort.abort(), 'always')
  try {
    const {
      statusCode,
      headers: answer,
      body,
    } = await request(guard.checkUrl(url), {
      method: 'POST',
      // undici hands a header given twice in different spelling on twice
      headers: {
        'content-type': 'application/json',
        'user-agent': 'session-gateway',
        ...lowerCased(headers),
        ...given.headers,
      },
      body: given.body,
      dispatcher: guard.dispatcher,
      signal: abort.signal,
    })
    // an answer that does not end costs its connection and time, not the delivery
    await body.dump({ limit: MAX_ANSWER_BYTES, signal: abort.signal }).catch(() => body.destroy())
    if (statusCode >= 200 && statusCode < 300) return { status: statusCode }
    const retryAfterMs = retryAfter(answer['retry-after'], clock.now())
    return { status: statusCode, error: 'status', ...(retryAfterMs !== undefined && { retryAfterMs }) }
  } catch (error) {
    if (stop.aborted) return { error: 'stopped' }
    return { error: abort.signal.aborted ? 'timeout' : errorClass(error) }
  } finally {
    timer.cancel()
    forget()
  }
}

const lowerCased = (headers: Readonly<Record<string, string>> = {}) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

function errorClass(error: unknown): PostError {
  if (hasCode(error, 'SG_ERR_EGRESS_BLOCKED')) return 'blocked'
  if (error instanceof errors.ConnectTimeoutError || error instanceof errors.HeadersTimeoutError) return 'timeout'
  const { code, syscall } = error as NodeJS.ErrnoException
  return syscall === 'getaddrinfo' || code === 'ENOTFOUND' || code === 'EAI_AGAIN' ? 'dns' : 'connect'
}

/** Seconds or an HTTP date. */
function retryAfter(header: string | string[] | undefined, now: number): number | undefined {
  const text = typeof header === 'string' ? header.trim() : undefined
  if (!text) return undefined
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}
