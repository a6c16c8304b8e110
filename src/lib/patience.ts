import { GatewayError, isOf, toError } from '../errors.js'
import { type Backoff, delayAfter } from './backoff.js'
import type { Clock } from './clock.js'
import type { KeyedLock } from './keyed-lock.js'
import type { Logger } from './logger.js'
import { within } from './within.js'

/** Whoever asks for something that has to be kept is refused when that takes longer. Milliseconds. */
export const PATIENCE_MS = 8_000

/** How long somebody goes on waiting for the storage, over all that is asked of it for them. */
export class Patience {
  readonly #clock: Pick<Clock, 'steady'>
  /** By the steady clock: setting the other one makes nobody wait for longer, or turns away who has just come. */
  #since: number
  readonly #forMs: number

  /** @param waitedMs for which they have waited for it already */
  constructor(clock: Pick<Clock, 'steady'>, waitedMs = 0) {
    this.#clock = clock
    this.#since = clock.steady()
    this.#forMs = Math.max(0, PATIENCE_MS - waitedMs)
  }

  get leftMs(): number {
    return Math.max(0, this.#forMs - (this.#clock.steady() - this.#since))
  }

  /** Waits for what is not the storage's, which takes nothing of it. */
  async apart<T>(work: Promise<T>): Promise<T> {
    const from = this.#clock.steady()
    try {
      return await work
    } finally {
      this.#since += this.#clock.steady() - from
    }
  }
}

const RETRY: Backoff = { firstMs: 500, longestMs: 30_000 }

/** To a host that does not wait for the start, which would come again in vain; and to whoever comes when the gateway has ended. */
const NOT_OPEN =
  'The storage is not open, so nothing was done: it is open from the start of the gateway to its end. A host awaits listen(), or ready(), before this.'
const isClosed = (cause: unknown): boolean =>
  isOf(Error, cause) && (cause as { code?: unknown }).code === 'STORAGE_CLOSED'

/** Whether somebody was refused since the storage is not open. */
export const isNotOpen = (error: unknown): boolean => isOf(GatewayError, error) && isClosed(error.cause)

/** To the caller "come again", with the cause for the log. */
export const unavailable = (cause?: unknown): GatewayError =>
  new GatewayError('SG_ERR_STORE_UNAVAILABLE', { cause, ...(isClosed(cause) && { detail: NOT_OPEN }) })

/** A refusal as it is; of anything else that a storage answers, the cause is for the log. */
export const asUnavailable = (error: unknown): GatewayError => (isOf(GatewayError, error) ? error : unavailable(error))

/** Of what is only read: nothing comes of it later. @throws SG_ERR_STORE_UNAVAILABLE */
export const tooLate = (): never => {
  throw unavailable()
}

/** What the storage answers to somebody who does not wait for ever. @throws SG_ERR_STORE_UNAVAILABLE */
export async function readInTime<T>(clock: Pick<Clock, 'after'>, read: () => Promise<T>): Promise<T> {
  try {
    return await within(PATIENCE_MS, read(), { clock, onLate: tooLate })
  } catch (error) {
    throw asUnavailable(error)
  }
}

/** To the caller of what the storage was given and does not answer: only the end of the process can make it true. */
export const overdue = (): GatewayError =>
  new GatewayError('SG_ERR_STORE_UNAVAILABLE', {
    detail:
      'The storage does not answer. What it still keeps of this is taken back, unless the gateway ends before that. Try again shortly.',
  })

interface PatientOptions<T> {
  /** Told when they are refused, with what is still under way. */
  onLate?: (working: Promise<T>) => void
  /** What is left of theirs; default: they come right now. */
  patience?: Patience | undefined
}

/**
 * Does something that has to be kept for somebody who does not wait for ever.
 * @param work takes back what it has done when they were refused meanwhile: they were told that nothing was
 * @throws SG_ERR_STORE_UNAVAILABLE when it takes too long
 */
export function patiently<T>(
  clock: Pick<Clock, 'after'>,
  work: (isRefused: () => boolean) => Promise<T>,
  { onLate, patience }: PatientOptions<T> = {},
): Promise<T> {
  const leftMs = patience ? patience.leftMs : PATIENCE_MS
  if (leftMs === 0) return Promise.reject(overdue())
  let refused = false
  const working = work(() => refused)
  const late = (): never => {
    refused = true
    onLate?.(working)
    throw overdue()
  }
  return within(leftMs, working, { clock, onLate: late })
}

/** As `patiently`, in turn with what else is done under a key, and not at all when they were refused before that. */
export function patientlyInTurn<T>(
  clock: Pick<Clock, 'after'>,
  { lock, key = '' }: { lock: KeyedLock; key?: string },
  work: (isRefused: () => boolean) => Promise<T>,
  options?: PatientOptions<T>,
): Promise<T> {
  const inTurn = (isRefused: () => boolean) =>
    lock.run(key, () => {
      if (isRefused()) throw overdue()
      return work(isRefused)
    })
  return patiently(clock, inTurn, options)
}

/** How a write is repeated. */
export interface Persistence {
  logger: Logger
  /** As `Clock.after`, or sooner: as soon as the storage takes something again. */
  retryAfter: Clock['after']
  /** When it is aborted, it is tried once more, and then left. Default: never. */
  signal?: AbortSignal
}

/** Writes until it works. */
export async function persistently<T>(
  write: () => T | Promise<T>,
  { logger, retryAfter, signal }: Persistence,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await write()
    } catch (error) {
      if (signal?.aborted) throw error
      const retryInMs = delayAfter(tries, RETRY)
      logger.error({ err: toError(error), retryInMs }, 'something could not be kept; it is tried again')
      await new Promise<void>((resolve) => {
        const go = () => {
          timer.cancel()
          signal?.removeEventListener('abort', go)
          resolve()
        }
        const timer = retryAfter(retryInMs, go)
        signal?.addEventListener('abort', go)
      })
    }
  }
}
