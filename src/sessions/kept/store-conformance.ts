import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import type { ConformanceCase } from '../../lib/conformance.js'
import { sampleInfo } from './sample-info.js'
import type { ParkedSessionRecord, SessionStore } from './store.js'

/** One thing that every SessionStore does. */
export type SessionStoreCase = ConformanceCase<SessionStore>

const record = (id: string, changes: Partial<ParkedSessionRecord> = {}): ParkedSessionRecord => ({
  id,
  info: {
    ...sampleInfo(id, 'parked'),
    parked: { since: 1_760_000_001_000, executions: [{ executionId: `${id}-e`, toolName: 'deploy' }] },
  },
  profile: 'assistant',
  generation: 'b3f0c1d2-0000-4000-8000-000000000000',
  config: { cwd: '/srv/work', prompt: 'line\nline\u2028line', meta: { a: [] } },
  snapshot: {
    engine: 'provider',
    state: { messages: [{ role: 'user' }], turn: null },
    files: { 'a/ü.md': 'Z3LDvG4=' },
  },
  executions: [{ executionId: `${id}-e`, toolName: 'deploy', expiresAt: 1_760_000_900_000 }],
  results: [{ executionId: `${id}-r`, result: { status: 'ok', output: { type: 'json', value: { deep: [1, null] } } } }],
  permissions: [{ id: 'p', toolName: 'Write', toolUseId: '__proto__', input: { path: 'x' } }],
  decisions: [{ toolUseId: 'constructor', requestId: 'q', decision: { behavior: 'deny', message: 'no' } }],
  hasNews: true,
  settled: [`${id}-r`],
  log: { epoch: 'epoch', oldestSeq: 3, events: '{"seq":3}\n{"seq":7}' },
  parkedAt: 1_760_000_001_000,
  ...changes,
})

/** With everything that a record can have; a field that is not here does not compile. */
const full = (id: string): Required<ParkedSessionRecord> => ({
  ...record(id),
  order: 1_760_000_000_001,
  asked: { p: { seq: 5, since: 1_760_000_000_500, order: 12 } },
  interrupted: true,
  firstPrompt: 'line\nline',
  engineTitle: 'as the engine calls it',
  toldHistory: true,
  chosen: { model: null, permissionMode: 'plan', ahead: { model: null } },
  before: { numTurns: 2, cost: 0.125 },
  createdBy: 'ann',
  askedBy: 'bob',
  turnUsage: { inputTokens: 5, outputTokens: 6, cacheCreationTokens: 7, cacheReadTokens: 8 },
  used: { inputTokens: 1, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 },
  removal: 'client',
  queued: [{ text: '', commandId: `${id}-c`, askedBy: 'bob' }, { text: 'later' }],
  messageIds: ['', `${id}-c`],
  isBetweenTurns: true,
  isHeld: true,
})

const ids = async (store: SessionStore) => (await store.list()).map(({ id }) => id).sort()

/** Ids that a store which makes names of them could stumble over. */
const AWKWARD_IDS = [
  ...['../../etc/passwd', 'a/b', '..', 'CON', '__proto__', 'UPPER', 'upper', 'x'.repeat(300)],
  ...['\u00c9', 'E\u0301'],
]

/** For authors of session stores: run every case on a new, empty store. The bundled stores run the same ones. */
export const sessionStoreConformance: readonly SessionStoreCase[] = [
  {
    name: 'is empty at first, and knows no session',
    async run(store) {
      assert.deepEqual(await store.list(), [])
      assert.equal(await store.get('nobody'), undefined)
      await store.delete('nobody')
    },
  },
  {
    name: 'keeps every field as it was',
    async run(store, reopen) {
      const saved = record('one')
      await store.save(saved)
      assert.deepEqual(await store.get('one'), record('one'))
      assert.deepEqual(await store.list(), [record('one')])
      await store.save(full('one'))
      assert.deepEqual(await store.get('one'), full('one'))
      assert.deepEqual(await store.list(), [full('one')])
      const seen = reopen ? await reopen() : store
      assert.deepEqual(await seen.get('one'), full('one'))
      await seen.save(record('one'))
      assert.deepEqual(await seen.get('one'), record('one'), 'what is left out is not there any more')
    },
  },
  {
    name: 'replaces a record as a whole',
    async run(store, reopen) {
      await store.save(record('one', { queued: [{ text: 'later' }], interrupted: true }))
      await store.save(record('one', { hasNews: false, results: [] }))
      const expected = record('one', { hasNews: false, results: [] })
      assert.deepEqual(await store.get('one'), expected)
      assert.equal((await store.list()).length, 1)
      if (reopen) assert.deepEqual(await (await reopen()).list(), [expected])
    },
  },
  {
    name: 'deletes a record for good, and only that one',
    async run(store, reopen) {
      await Promise.all(['one', 'two', 'three'].map((id) => store.save(record(id))))
      await store.delete('two')
      await store.delete('two')
      assert.deepEqual(await ids(store), ['one', 'three'])
      assert.equal(await store.get('two'), undefined)
      if (reopen) assert.deepEqual(await ids(await reopen()), ['one', 'three'])
    },
  },
  {
    name: 'is not affected by what happens to records that it took or gave',
    async run(store) {
      const mine = record('one')
      await store.save(mine)
      mine.settled.push('changed')
      mine.info.title = 'changed'
      const theirs = await store.get('one')
      theirs!.settled.push('changed')
      for (const listed of await store.list()) listed.executions.length = 0
      assert.deepEqual(await store.get('one'), record('one'))
    },
  },
  {
    name: 'tells ids apart, whatever they are made of',
    async run(store, reopen) {
      await Promise.all(AWKWARD_IDS.map((id) => store.save(record(id))))
      for (const id of AWKWARD_IDS) assert.equal((await store.get(id))?.id, id)
      assert.deepEqual(await ids(store), [...AWKWARD_IDS].sort())
      const seen = reopen ? await reopen() : store
      assert.deepEqual(await ids(seen), [...AWKWARD_IDS].sort())
      await seen.delete('UPPER')
      assert.deepEqual(await ids(seen), AWKWARD_IDS.filter((id) => id !== 'UPPER').sort())
    },
  },
  {
    name: 'keeps a large record whole',
    async run(store, reopen) {
      const long = 'ü'.repeat(1_000_000)
      const large = record('large', {
        snapshot: { engine: 'provider', state: { messages: [long] }, files: { 'a.bin': 'QUJD'.repeat(100_000) } },
        log: { epoch: 'epoch', oldestSeq: 1, events: JSON.stringify({ seq: 1, text: long }) },
      })
      await store.save(large)
      const kept = await (reopen ? await reopen() : store).get('large')
      // not deepEqual: it would say in megabytes what differs
      assert.ok(isDeepStrictEqual(kept, large), 'a large record came back changed')
    },
  },
  {
    name: 'takes many records at once, and many changes of one in their order',
    async run(store, reopen) {
      const many = Array.from({ length: 150 }, (_, index) => record(`s${index}`))
      await Promise.all(many.map((one) => store.save(one)))
      assert.equal((await store.list()).length, 150)
      for (let turn = 0; turn < 20; turn++) await store.save(record('s0', { parkedAt: turn }))
      assert.equal((await store.get('s0'))?.parkedAt, 19)
      if (reopen) assert.equal((await (await reopen()).list()).length, 150)
    },
  },
]
