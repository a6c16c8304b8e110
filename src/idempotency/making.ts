import type { IdempotencyStore, KeptKey, Made, StoredAnswer } from './store.js'

/** A key as its request has taken it. */
export interface TakenKey {
  key: string
  fingerprint: string
  /** Of the request: what it makes is found under it. */
  path: string
}

/** The key as it is kept with what its request makes. */
export const keptWith = ({ key, fingerprint, path }: TakenKey, kind: Made['kind'], id: string): KeptKey => ({
  ...{ key, fingerprint },
  made: { kind, id, location: kind === 'answer' ? path : `${path}/${id}` },
})

/**
 * Answers the keys whose requests the end of an earlier process left unanswered from what they had made, as it is now; those whose
 * making did not come about are free again.
 * @param find what was made; undefined when it is not there
 */
export async function answerLeft(
  store: IdempotencyStore,
  find: (made: Made) => object | undefined | Promise<object | undefined>,
): Promise<void> {
  for (const { key, made } of (await store.left?.()) ?? []) {
    const thing = await find(made)
    await (thing ? store.complete(key, answerOf(made, thing)) : store.release(key))
  }
}

const answerOf = ({ kind, location }: Made, thing: object): StoredAnswer => ({
  status: kind === 'answer' ? 200 : 201,
  headers: { 'content-type': 'application/json; charset=utf-8', ...(kind !== 'answer' && { location }) },
  body: JSON.stringify(thing),
})
