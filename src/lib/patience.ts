import { GatewayError, toError } from '../errors.js'
import { type Backoff, delayAfter } from './backoff.js'
import type { Clock } from './clock.js'
import type { Logger } from './logger.js'
import { within } from './within.js'

/** Whoever asks for something that has to be kept is refused when that takes longer. Milliseconds. */
export const PATIENCE_MS = 8_000
const RETRY: Backoff = { firstMs: 500, longestMs: 30_000 }

/** To the caller "come again", with the cause for the log. */
export const unavailable = (cause?: unknown): GatewayError =>
  new GatewayError('SG_ERR_STORE_UNAVAILABLE', { cause, retryAfterS: 5 })

/** The same of what the storage was given and does not answer: only the end of the process can make it true. */
export const overdue = (): GatewayError =>
  new GatewayError('SG_ERR_STORE_UNAVAILABLE', {
    detail:
      'The storage does not answer. What it still keeps of this is taken back, unless the gateway ends before that. Try again shortly.',
    retryAfterS: 5,
  })

/**
 * Does something that has to be kept for somebody who does not wait for ever.
 * @param work takes back what it has done when they were refused meanwhile: they were told that nothing was
 * @param onLate told when they are refused, with what is still under way
 * @throws SG_ERR_STORE_UNAVAILABLE when it takes too long
 */
export function patiently<T>(
  clock: Pick<Clock, 'after'>,
  work: (isRefused: () => boolean) => Promise<T>,
  onLate?: (working: Promise<T>) => void,
): Promise<T> {
  let refused = false
  const working = work(() => refused)
  const late = (): never => {
    refused = true
    onLate?.(working)
    throw overdue()
  }
  return within(PATIENCE_MS, working, { clock, onLate: late })
}

/** How a write is repeated. */
export interface Persistence {
  logger: Logger
  /** As `Clock.after`, or sooner: as soon as the storage takes something again. */
  retryAfter: Clock['after']
}

/** Writes until it works. */
export async function persistently<T>(write: () => T | Promise<T>, { logger, retryAfter }: Persistence): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await write()
    } catch (error) {
      const retryInMs = delayAfter(tries, RETRY)
      logger.error({ err: toError(error), retryInMs }, 'something could not be kept; it is tried again')
      await new Promise<void>((resolve) => retryAfter(retryInMs, resolve))
    }
  }
}
