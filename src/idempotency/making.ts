import { toError } from '../errors.js'
import type { Clock } from '../lib/clock.js'
import { KeyedLock } from '../lib/keyed-lock.js'
import type { Logger } from '../lib/logger.js'
import { type Patience, type Persistence, patiently, persistently } from '../lib/patience.js'
import { isUnreadable } from '../storage/storage.js'
import type { IdempotencyStore, KeptKey, KeyState, Made, StoredAnswer } from './store.js'

/** A key as its request has taken it. */
export interface TakenKey {
  key: string
  fingerprint: string
  /** Of the request: what it makes is found under it. */
  path: string
  /** Milliseconds for which the request has waited for the storage by then. */
  waitedMs: number
}

/** Takes a key; one that is taken only after its request was refused is free again. @throws SG_ERR_STORE_UNAVAILABLE */
export const takeKey = (
  store: IdempotencyStore,
  clock: Clock,
  { key, fingerprint, patience }: Pick<TakenKey, 'key' | 'fingerprint'> & { patience: Patience },
): Promise<KeyState> =>
  patiently(
    clock,
    async (isRefused) => {
      const known = await store.begin(key, fingerprint)
      if (known.state === 'new' && isRefused()) await store.release(key)
      return known
    },
    { patience },
  )

/** The key as it is kept with what its request makes. */
export const keptWith = ({ key, fingerprint, path }: TakenKey, kind: Made['kind'], id: string): KeptKey => ({
  ...{ key, fingerprint },
  made: { kind, id, location: kind === 'answer' ? path : `${path}/${id}` },
})

/** A store in which a key becomes free, or answered, in the end, however long the storage takes nothing. */
export function settling(store: IdempotencyStore, persistence: Persistence): IdempotencyStore {
  /** What the storage still has to do with keys, the last of each. */
  const due = new Map<string, () => Promise<void>>()
  /** One thing is done with a key after the other: freed while it is asked for, it would be told to be taken and not be so. */
  const lock = new KeyedLock()
  const settleDue = async (key: string) => {
    const settle = due.get(key)
    await settle?.()
    if (due.get(key) === settle) due.delete(key)
  }
  const settleAtLast = async (key: string, settle: () => Promise<void>) => {
    due.set(key, settle)
    const inTurn = () => lock.run(key, () => settleDue(key))
    await inTurn().catch(() => void persistently(inTurn, persistence))
  }
  const ours: Pick<IdempotencyStore, 'begin' | 'complete' | 'release'> = {
    begin: (key: string, fingerprint: string) =>
      lock.run(key, async () => {
        // its request may come again before the storage was asked once more
        await settleDue(key)
        return store.begin(key, fingerprint)
      }),
    complete: (key: string, answer: StoredAnswer) => settleAtLast(key, () => store.complete(key, answer)),
    release: (key: string) => settleAtLast(key, () => store.release(key)),
  }
  // not assigned: the store may be frozen
  return Object.create(store, Object.getOwnPropertyDescriptors(ours)) as IdempotencyStore
}

/**
 * Answers the keys whose requests the end of an earlier process left unanswered from what they had made, as it is now; those whose
 * making did not come about are free again.
 * @param keys only those; default: all
 * @param find what was made; undefined when it is not there. One that cannot be read it throws: that key stays taken
 */
export async function answerLeft(
  store: IdempotencyStore,
  find: (made: Made) => object | undefined | Promise<object | undefined>,
  { keys, logger }: { keys?: readonly string[]; logger: Logger },
): Promise<void> {
  if (keys?.length === 0) return
  const onUnreadable = (err: Error) => logger.error({ err }, 'a key stays taken')
  for (const { key, made } of (await store.left?.(keys, onUnreadable)) ?? []) {
    try {
      const thing = await find(made)
      await (thing ? store.complete(key, answerOf(made, thing)) : store.release(key))
    } catch (error) {
      // it is there, and goes on once its text is mended: nobody makes it a second time
      if (!isUnreadable(error) && !isUnreadable((error as Error | undefined)?.cause)) throw error
      onUnreadable(toError(error))
    }
  }
}

const answerOf = ({ kind, location }: Made, thing: object): StoredAnswer => ({
  status: kind === 'answer' ? 200 : 201,
  headers: { 'content-type': 'application/json; charset=utf-8', ...(kind !== 'answer' && { location }) },
  body: JSON.stringify(thing),
})
