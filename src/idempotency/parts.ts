import { GatewayError, toError } from '../errors.js'
import type { Clock } from '../lib/clock.js'
import type { Logger } from '../lib/logger.js'
import { PATIENCE_MS, Patience } from '../lib/patience.js'
import { within } from '../lib/within.js'
import { type TakenKey, takeKey } from './making.js'
import { fingerprintOf } from './scope.js'
import type { IdempotencyStore, StoredAnswer } from './store.js'

export interface PartsOptions {
  store: IdempotencyStore
  clock: Clock
  logger: Logger
}

/** Does a part of what a request asks for. @throws a refusal of it alone */
export type DoPart = (part: unknown, work: (takenKey?: TakenKey) => Promise<unknown>) => Promise<void>

const DONE: StoredAnswer = { status: 200, headers: { 'content-type': 'application/json' }, body: '{}' }

/**
 * Several things that one request with a key asks for, each done once, whatever ends the request between two of them: each is kept under a
 * key of its own, together with what it makes.
 * @param whole the key of the request, and its path
 */
export function inParts(whole: Pick<TakenKey, 'key' | 'path'>, { store, clock, logger }: PartsOptions): DoPart {
  /** What this request has found done, or did. */
  const done = new Set<string>()
  return async (part, work) => {
    const key = fingerprintOf([whole.key, part])
    // the same once more in one request is what it is without a key
    if (done.has(key)) {
      await work()
      return
    }
    const patience = new Patience(clock)
    const { state } = await takeKey(store, clock, { key, fingerprint: key, patience })
    if (state === 'answered') {
      done.add(key)
      return
    }
    // an earlier request may be at it still, at a node that was given up on
    if (state !== 'new') throw new GatewayError('SG_ERR_IDEMPOTENCY_IN_FLIGHT')
    const remember = (asked: Promise<void>) =>
      within(patience.leftMs, asked, { clock }).catch((error) =>
        logger.error({ err: toError(error) }, 'what became of a part of a request with a key could not be remembered'),
      )
    try {
      await work({ key, fingerprint: key, path: whole.path, waitedMs: PATIENCE_MS - patience.leftMs })
    } catch (error) {
      await remember(store.release(key))
      throw error
    }
    done.add(key)
    await remember(store.complete(key, DONE))
  }
}
