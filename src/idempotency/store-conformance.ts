import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { type IdempotencyStore, REMEMBERED_MS, type StoredAnswer } from './store.js'

/** An idempotency store under test, and its time. */
export interface IdempotencyStoreWorld {
  store: IdempotencyStore
  /** Lets so many milliseconds pass for the store. */
  pass(ms: number): void
  /** For stores that outlast their process: gives the same one as a new process would see it. */
  reopen?(): IdempotencyStore | Promise<IdempotencyStore>
}

/** One thing that every IdempotencyStore does. */
export interface IdempotencyStoreCase {
  name: string
  /** @throws AssertionError */
  run(world: IdempotencyStoreWorld): Promise<void>
}

const ANSWER: StoredAnswer = {
  status: 201,
  headers: { 'content-type': 'application/json', location: '/v1/sessions/1' },
  body: '{"text":"Zwölf \\"Boxkämpfer\\"\u2028 🥊"}',
}

/** For authors of idempotency stores: run every case on a new, empty store. The bundled stores run the same ones. */
export const idempotencyStoreConformance: readonly IdempotencyStoreCase[] = [
  {
    name: 'gives a free key to the first request, and says so to those that come meanwhile',
    async run({ store }) {
      const states = await Promise.all(Array.from({ length: 10 }, () => store.begin('k', 'f')))
      assert.deepEqual(
        states.map(({ state }) => state),
        ['new', ...Array(9).fill('in_flight')],
      )
    },
  },
  {
    name: 'remembers the answer as it was',
    async run({ store, reopen }) {
      await store.begin('k', 'f')
      await store.complete('k', ANSWER)
      assert.deepEqual(await store.begin('k', 'f'), { state: 'answered', answer: ANSWER })
      const seen = reopen ? await reopen() : store
      assert.deepEqual(await seen.begin('k', 'f'), { state: 'answered', answer: ANSWER })
      const long = { status: 200, headers: {}, body: 'ü'.repeat(100_000) }
      await seen.begin('long', 'f')
      await seen.complete('long', long)
      const [answered, before] = [await seen.begin('long', 'f'), await seen.begin('k', 'f')]
      // not deepEqual: it would say in megabytes what differs
      assert.ok(isDeepStrictEqual(answered, { state: 'answered', answer: long }), 'a long answer came back changed')
      assert.deepEqual(before, { state: 'answered', answer: ANSWER })
    },
  },
  {
    name: 'answers and frees the key that is named, and no other',
    async run({ store, reopen }) {
      for (const key of ['answered', 'released', 'open', 'OPEN', 'Released']) await store.begin(key, 'f')
      await store.complete('answered', ANSWER)
      await store.release('released')
      for (const key of ['open', 'OPEN', 'Released'])
        assert.deepEqual(await store.begin(key, 'f'), { state: 'in_flight' }, key)
      assert.equal((await (reopen ? await reopen() : store).begin('answered', 'f')).state, 'answered')
    },
  },
  {
    name: 'is not affected by what happens to what it took or gave',
    async run({ store }) {
      const mine = structuredClone(ANSWER)
      await store.begin('k', 'f')
      await store.complete('k', mine)
      Object.assign(mine.headers, { location: 'changed' })
      const theirs = await store.begin('k', 'f')
      assert.deepEqual(theirs, { state: 'answered', answer: ANSWER })
      if (theirs.state === 'answered') Object.assign(theirs.answer.headers, { location: 'changed' })
      assert.deepEqual(await store.begin('k', 'f'), { state: 'answered', answer: ANSWER })
    },
  },
  {
    name: 'says when the key was used for another request, answered or not',
    async run({ store }) {
      await store.begin('k', 'f')
      assert.deepEqual(await store.begin('k', 'g'), { state: 'mismatch' })
      await store.complete('k', ANSWER)
      assert.deepEqual(await store.begin('k', 'g'), { state: 'mismatch' })
      assert.equal((await store.begin('k', 'f')).state, 'answered')
    },
  },
  {
    name: 'frees a key that is released, for any request',
    async run({ store, reopen }) {
      await store.begin('k', 'f')
      await store.release('k')
      await store.release('unknown')
      assert.deepEqual(await (reopen ? await reopen() : store).begin('k', 'g'), { state: 'new' })
    },
  },
  {
    name: 'tells keys apart, whatever they are made of',
    async run({ store }) {
      for (const key of ['a', 'A', 'a ', '__proto__', 'constructor', "';--", '\u00c9', 'E\u0301', 'x'.repeat(300)])
        assert.deepEqual(await store.begin(key, 'f'), { state: 'new' }, key)
    },
  },
  {
    name: 'does nothing when a key is answered that nobody holds',
    async run({ store }) {
      await store.complete('k', ANSWER)
      assert.deepEqual(await store.begin('k', 'f'), { state: 'new' })
    },
  },
  {
    name: 'remembers for a day and no longer',
    async run({ store, pass }) {
      for (const key of ['old', 'open']) await store.begin(key, 'f')
      await store.complete('old', ANSWER)
      pass(REMEMBERED_MS - 1_000)
      assert.equal((await store.begin('old', 'f')).state, 'answered')
      await store.begin('young', 'f')
      await store.complete('young', ANSWER)
      pass(1_000)
      assert.deepEqual(await store.begin('old', 'g'), { state: 'new' })
      assert.deepEqual(await store.begin('open', 'g'), { state: 'new' })
      assert.equal((await store.begin('young', 'f')).state, 'answered')
    },
  },
  {
    name: 'frees keys that a crash left unanswered, when it outlasts one',
    async run({ store, reopen }) {
      if (!reopen) return
      await store.begin('open', 'f')
      await store.begin('done', 'f')
      await store.complete('done', ANSWER)
      const after = await reopen()
      assert.deepEqual(await after.begin('open', 'g'), { state: 'new' })
      assert.equal((await after.begin('done', 'f')).state, 'answered')
    },
  },
]
