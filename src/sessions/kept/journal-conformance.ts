import assert from 'node:assert/strict'
import type { ConformanceCase } from '../../lib/conformance.js'
import { atRestConformance } from './at-rest-conformance.js'
import type { JournaledEvent, JournaledOrigin, JournaledState, MidTurn, ReadEvent, SessionJournal } from './journal.js'
import type { News } from './news.js'
import { sampleInfo } from './sample-info.js'

/** One thing that every SessionJournal does. */
export type SessionJournalCase = ConformanceCase<SessionJournal>

/** As the states below, with everything that there can be; a field that is not here does not compile. */
const ORIGIN: Required<JournaledOrigin> = {
  profile: 'assistant',
  generation: 'b3f0c1d2-0000-4000-8000-000000000000',
  config: { cwd: '/srv/work', prompt: 'line\nline\u2028line', meta: { a: [], nested: [{ deep: null }] } },
  epoch: 'e1',
  createdBy: 'ann',
  oldestSeq: 1,
}

const stateOf = (id: string, changes: Partial<JournaledState> = {}): JournaledState => ({
  info: sampleInfo(id, 'idle'),
  ...changes,
})

const FULL_MID_TURN: Required<MidTurn> = {
  since: 1_760_000_000_000,
  waits: ['e', 'p'],
  used: { inputTokens: 1, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 },
  results: [{ executionId: 'r', result: { status: 'ok', output: { type: 'json', value: { deep: [1, null] } } } }],
  decisions: [{ toolUseId: 'constructor', requestId: 'q', decision: { behavior: 'deny', message: 'no' }, told: true }],
  interrupted: true,
  due: true,
  endedSoon: 2,
  isHeld: true,
}

const FULL_STATE: Required<JournaledState> = {
  ...stateOf('one'),
  order: 1_760_000_000_001,
  home: 'node-1',
  hostTitle: 'given',
  firstPrompt: 'first',
  engineTitle: 'as the engine calls it',
  toldHistory: true,
  inTurn: true,
  askedBy: 'bob',
  queued: [{ text: 'later', commandId: 'c9', askedBy: 'bob' }],
  permissions: [{ id: 'p', toolName: 'Write', toolUseId: '__proto__', input: { path: 'x' } }],
  asked: { p: { seq: 5, since: 1_760_000_000_500, order: 12 } },
  executions: [{ executionId: 'e', toolName: 'deploy', expiresAt: 1_760_000_900_000 }],
  settled: ['r'],
  chosen: { model: null, permissionMode: 'plan', ahead: { model: null } },
  before: { numTurns: 2, cost: 0.125 },
  delivered: [{ path: 'report.md', contents: 'Z3LDvG4=', modifiedAt: 8 }],
  turnUsage: { inputTokens: 5, outputTokens: 6, cacheCreationTokens: 7, cacheReadTokens: 8 },
  isStale: true,
  messageIds: ['c1', 'c2'],
  midTurn: FULL_MID_TURN,
}

const SNAPSHOT = {
  engine: 'provider' as const,
  state: { turn: null },
  files: { 'a/ü.md': 'Z3LDvG4=' },
  filesModifiedAt: { 'a/ü.md': 1_700_000_000_000 },
  logged: { throughSeq: 1, waiting: [{ text: 'später', commandId: 'c1', askedBy: 'ada' }] },
}

const event = (seq: number, text = 'x'): JournaledEvent => ({
  seq,
  json: `{"seq":${seq},"text":${JSON.stringify(text)}}`,
})
const eventsTo = (last: number, first = 1): JournaledEvent[] =>
  Array.from({ length: last - first + 1 }, (_, index) => event(first + index))

const create = (journal: SessionJournal, id: string, events: readonly JournaledEvent[] = []) =>
  journal.write({ id, origin: ORIGIN, state: stateOf(id), events })

const title = (key: string, text: string): News => ({ key, type: 'title', title: text })
const newsIn = async (journal: SessionJournal, id: string) => (await journal.get(id))?.news

const MUCH = 1_000_000
const textsOf = (events: readonly ReadEvent[]): JournaledEvent[] =>
  events.map(({ seq, json }) => ({ seq, json: String(json) }))
const readAll = async (journal: SessionJournal, id: string) =>
  textsOf(await journal.read(id, 0, Number.MAX_SAFE_INTEGER, MUCH))
const seqs = (events: readonly ReadEvent[]) => events.map(({ seq }) => seq)
const ids = async (journal: SessionJournal) => (await journal.list()).map(({ id }) => id)

const AWKWARD_IDS = [
  ...['../../etc/passwd', '..', '__proto__', 'constructor', 'UPPER', 'upper', 'x'.repeat(300), "'; --", '0', '%'],
  ...['\u00c9', 'E\u0301'],
]

/** For authors of session journals: run every case on a new, empty journal. The bundled journals run the same ones. */
export const sessionJournalConformance: readonly SessionJournalCase[] = [
  {
    name: 'is empty at first, and knows no session',
    async run(journal) {
      assert.deepEqual(await journal.list(), [])
      assert.equal(await journal.get('nobody'), undefined)
      assert.deepEqual(await readAll(journal, 'nobody'), [])
      await journal.remove('nobody')
    },
  },
  {
    name: 'keeps every field as it was',
    async run(journal, reopen) {
      const write = { id: 'one', origin: ORIGIN, state: FULL_STATE, snapshot: SNAPSHOT, reservedSeq: 64 }
      await journal.write({ ...write, events: [event(1)] })
      const listed = {
        id: 'one',
        profile: ORIGIN.profile,
        generation: ORIGIN.generation,
        state: FULL_STATE,
        reservedSeq: 64,
        lastSeq: 1,
      }
      for (const seen of [journal, await reopen?.()]) {
        if (!seen) continue
        const { position, ...kept } = (await seen.get('one'))!
        assert.deepEqual(kept, { ...listed, ...ORIGIN, snapshot: SNAPSHOT })
        assert.deepEqual(await seen.list(), [position === undefined ? listed : { ...listed, position }])
      }
    },
  },
  {
    name: 'takes the first write of a session with origin and state, and no origin after it',
    async run(journal) {
      await assert.rejects(journal.write({ id: 'one', events: [event(1)] }))
      await assert.rejects(journal.write({ id: 'one', state: stateOf('one') }))
      await assert.rejects(journal.write({ id: 'one', origin: ORIGIN }))
      assert.deepEqual(await journal.list(), [])
      await create(journal, 'one', [event(1)])
      await assert.rejects(create(journal, 'one', [event(2)]))
      assert.deepEqual(await readAll(journal, 'one'), [event(1)])
    },
  },
  {
    name: 'replaces state and snapshot as a whole, and leaves what a write does not name',
    async run(journal, reopen) {
      await journal.write({ id: 'one', origin: ORIGIN, state: FULL_STATE, snapshot: SNAPSHOT })
      await journal.write({ id: 'one', events: [event(1)] })
      assert.deepEqual((await journal.get('one'))?.state, FULL_STATE)
      await journal.write({ id: 'one', state: stateOf('one') })
      assert.deepEqual((await journal.get('one'))?.snapshot, SNAPSHOT)
      const snapshot = { ...SNAPSHOT, files: {} }
      await journal.write({ id: 'one', snapshot })
      const whole = await (reopen ? await reopen() : journal).get('one')
      assert.deepEqual([whole?.state, whole?.snapshot], [stateOf('one'), snapshot])
    },
  },
  {
    name: 'has no snapshot where none was written',
    async run(journal) {
      await create(journal, 'one')
      assert.ok(!('snapshot' in (await journal.get('one'))!))
    },
  },
  {
    name: 'never lowers the reserved number, never says one that an event has passed, and says the newest event',
    async run(journal, reopen) {
      const reserved = async (seen: SessionJournal) => [
        (await seen.get('one'))?.reservedSeq,
        (await seen.list())[0]?.reservedSeq,
        (await seen.get('one'))?.lastSeq,
        (await seen.list())[0]?.lastSeq,
      ]
      await create(journal, 'one')
      assert.deepEqual(await reserved(journal), [0, 0, 0, 0])
      await journal.write({ id: 'one', reservedSeq: 64 })
      await journal.write({ id: 'one', reservedSeq: 10, events: [event(3)] })
      assert.deepEqual(await reserved(journal), [64, 64, 3, 3])
      await journal.write({ id: 'one', events: [event(70), event(80)] })
      assert.deepEqual(await reserved(reopen ? await reopen() : journal), [80, 80, 80, 80])
    },
  },
  {
    name: 'keeps news in the order in which they came, once per key, until a write takes them',
    async run(journal, reopen) {
      await create(journal, 'one')
      await create(journal, 'two')
      assert.ok(!('news' in (await journal.get('one'))!))
      assert.equal(await journal.deposit('one', [title('b', 'first'), title('a', 'second')]), true)
      assert.equal(await journal.deposit('one', [title('b', 'again'), title('c', 'third')]), true)
      const all = [title('b', 'first'), title('a', 'second'), title('c', 'third')]
      for (const seen of [journal, await reopen?.()]) {
        if (!seen) continue
        assert.deepEqual(await newsIn(seen, 'one'), all)
        assert.deepEqual(
          (await seen.list()).map(({ news }) => news),
          [all, undefined],
        )
      }
      const now = reopen ? await reopen() : journal
      await now.write({ id: 'one', events: [event(1)], taken: ['a', 'b', 'nobody knows it'] })
      assert.deepEqual(await newsIn(now, 'one'), [title('c', 'third')])
      assert.equal(await now.deposit('one', [title('a', 'anew')]), true)
      assert.deepEqual(await newsIn(now, 'one'), [title('c', 'third'), title('a', 'anew')])
    },
  },
  {
    name: 'takes no news with a write that it refuses, and none for a session that is not there',
    async run(journal, reopen) {
      await create(journal, 'one', [event(5)])
      await journal.deposit('one', [title('a', 'kept')])
      await assert.rejects(journal.write({ id: 'one', events: [event(4)], taken: ['a'] }))
      assert.equal(await journal.deposit('nobody', [title('a', 'lost')]), false)
      const seen = reopen ? await reopen() : journal
      assert.deepEqual(await newsIn(seen, 'one'), [title('a', 'kept')])
      await seen.remove('one')
      assert.equal(await seen.deposit('one', [title('b', 'late')]), false)
      await create(seen, 'one')
      assert.equal(await newsIn(seen, 'one'), undefined)
    },
  },
  {
    name: 'gives events back as the text they were, gaps in their numbers and all',
    async run(journal, reopen) {
      const events = [event(1, 'Zwölf "Boxkämpfer"\n\u2028 🥊'), event(2, ''), event(5, '\u0000'), event(9)]
      await create(journal, 'one', events.slice(0, 2))
      await journal.write({ id: 'one', events: events.slice(2) })
      for (const seen of [journal, await reopen?.()]) {
        if (!seen) continue
        assert.deepEqual(await readAll(seen, 'one'), events)
        assert.deepEqual(seqs(await seen.read('one', 1, 5, MUCH)), [2, 5])
        assert.deepEqual(seqs(await seen.read('one', 3, 8, MUCH)), [5])
        assert.deepEqual(seqs(await seen.read('one', 9, 100, MUCH)), [])
        assert.deepEqual(seqs(await seen.read('one', 5, 5, MUCH)), [])
      }
    },
  },
  {
    name: 'reads in pages of about so many bytes, of at least one event',
    async run(journal) {
      const events = [1, 2, 3, 4, 5, 6].map((seq) => event(seq, 'x'.repeat(1_000)))
      await create(journal, 'one', events)
      assert.deepEqual(seqs(await journal.read('one', 0, 6, 1)), [1])
      const page = await journal.read('one', 1, 6, 3_000)
      assert.ok(page.length >= 2 && page.length <= 4, `${page.length} of 1 KB in 3 KB`)
      const seen: JournaledEvent[] = []
      for (let after = 0; after < 6; after = seen.at(-1)!.seq) {
        const next = textsOf(await journal.read('one', after, 6, 2_500))
        // or this would never end
        assert.ok(next[0] && next[0].seq > after, `no event behind ${after}`)
        seen.push(...next)
      }
      assert.deepEqual(seen, events)
    },
  },
  {
    name: 'reads events of all sizes and scripts whole, the large among the small',
    async run(journal) {
      const texts = ['', 'é', '界'.repeat(300), '🥊'.repeat(20_000), 'x'.repeat(700_000), '\u001e,', 'x'.repeat(5_000)]
      const events = Array.from({ length: 1_500 }, (_, at) =>
        event(at * 2 + 1, at % 250 < 7 ? texts[at % 250] : `${at}`),
      )
      await create(journal, 'one', events)
      for (const maxBytes of [10_000, 200_000, 2_000_000]) {
        const seen: JournaledEvent[] = []
        for (let after = 0; after < 2_999; after = seen.at(-1)!.seq) {
          const [read, beside] = await Promise.all([
            journal.read('one', after, 3_000, maxBytes),
            journal.read('one', after, 3_000, maxBytes),
          ])
          const page = textsOf(read)
          assert.ok(page[0] && page[0].seq > after, `no event behind ${after}`)
          read.release?.()
          assert.deepEqual(textsOf(beside), page, 'one that was let go is not another')
          const bytes = page.reduce((sum, { json }) => sum + Buffer.byteLength(json), 0)
          assert.ok(page.length === 1 || (page.length > 1 && bytes <= maxBytes * 4), `${bytes} of ${maxBytes}`)
          seen.push(...page)
        }
        assert.deepEqual(seen, events)
      }
    },
  },
  {
    name: 'refuses a write whose events do not rise, as a whole',
    async run(journal) {
      await create(journal, 'one', [event(5)])
      for (const events of [[event(5)], [event(4)], [event(6), event(6)], [event(7), event(6)]])
        await assert.rejects(
          journal.write({ id: 'one', state: FULL_STATE, snapshot: SNAPSHOT, reservedSeq: 99, events }),
        )
      const whole = await journal.get('one')
      assert.deepEqual([whole?.state, whole?.snapshot, whole?.reservedSeq], [stateOf('one'), undefined, 5])
      assert.deepEqual(seqs(await readAll(journal, 'one')), [5])
    },
  },
  {
    name: 'removes a session with all it had, and only that one',
    async run(journal, reopen) {
      for (const id of ['one', 'two', 'three']) await create(journal, id, eventsTo(5_000))
      await journal.write({ id: 'two', snapshot: SNAPSHOT })
      await journal.remove('two')
      await journal.remove('two')
      for (const seen of [journal, await reopen?.()]) {
        if (!seen) continue
        assert.deepEqual(await ids(seen), ['one', 'three'])
        assert.equal(await seen.get('two'), undefined)
        assert.deepEqual(await readAll(seen, 'two'), [])
        assert.equal((await readAll(seen, 'three')).length, 5_000)
      }
    },
  },
  {
    name: 'knows nothing of a removed session when its id is used again, or written late',
    async run(journal, reopen) {
      await journal.write({ id: 'one', origin: ORIGIN, state: FULL_STATE, snapshot: SNAPSHOT, events: eventsTo(3_000) })
      await journal.remove('one')
      await assert.rejects(journal.write({ id: 'one', events: [event(3_001)] }))
      assert.deepEqual(await journal.list(), [])
      await create(journal, 'one', [event(2)])
      for (const seen of [journal, await reopen?.()]) {
        if (!seen) continue
        assert.deepEqual(await readAll(seen, 'one'), [event(2)])
        assert.ok(!('snapshot' in (await seen.get('one'))!))
      }
    },
  },
  {
    name: 'lists in the order of first writes',
    async run(journal, reopen) {
      for (const id of ['b', 'c', 'a']) await create(journal, id)
      await journal.write({ id: 'b', state: stateOf('b', { hostTitle: 'x' }) })
      await journal.remove('c')
      await create(journal, 'c')
      assert.deepEqual(await ids(reopen ? await reopen() : journal), ['b', 'a', 'c'])
    },
  },
  {
    name: 'does what is asked for in one turn in that order',
    async run(journal) {
      const [, before, , after, , gone] = await Promise.all([
        create(journal, 'one', [event(1)]),
        readAll(journal, 'one'),
        journal.write({ id: 'one', events: [event(2)] }),
        readAll(journal, 'one'),
        journal.remove('one'),
        readAll(journal, 'one'),
      ])
      assert.deepEqual([seqs(before), seqs(after), seqs(gone)], [[1], [1, 2], []])
    },
  },
  {
    name: 'takes many writes at once, and what is wrong with one hurts no other',
    async run(journal, reopen) {
      const many = Array.from({ length: 200 }, (_, index) => `s${index}`)
      await Promise.all(many.map((id) => create(journal, id, [event(1)])))
      const writes = many.map((id, index) => journal.write({ id, events: [event(index % 10 === 3 ? 1 : 2)] }))
      const outcomes = await Promise.allSettled(writes)
      assert.equal(outcomes.filter(({ status }) => status === 'rejected').length, 20)
      const seen = reopen ? await reopen() : journal
      for (const [index, id] of many.entries())
        assert.deepEqual(seqs(await readAll(seen, id)), index % 10 === 3 ? [1] : [1, 2])
    },
  },
  {
    name: 'is not affected by what happens to what it took or gave',
    async run(journal) {
      const state = stateOf('one', { settled: ['r'] })
      const events = [event(1)]
      await journal.write({ id: 'one', origin: structuredClone(ORIGIN), state, events })
      state.info.title = 'changed'
      events[0]!.json = 'changed'
      const [given] = await journal.list()
      given!.state.info.title = 'changed'
      const [read] = await journal.read('one', 0, 1, MUCH)
      read!.json = 'changed'
      const news = [title('a', 'as it was')]
      await journal.deposit('one', news)
      for (const one of [...news, (await newsIn(journal, 'one'))![0]!]) Object.assign(one, { title: 'changed' })
      assert.deepEqual(await newsIn(journal, 'one'), [title('a', 'as it was')])
      assert.deepEqual((await journal.get('one'))?.state, stateOf('one', { settled: ['r'] }))
      assert.deepEqual(await readAll(journal, 'one'), [event(1)])
    },
  },
  {
    name: 'tells ids apart, whatever they are made of',
    async run(journal, reopen) {
      await Promise.all(AWKWARD_IDS.map((id, index) => create(journal, id, [event(index + 1)])))
      const seen = reopen ? await reopen() : journal
      assert.deepEqual(await ids(seen), AWKWARD_IDS)
      for (const [index, id] of AWKWARD_IDS.entries()) assert.deepEqual(seqs(await readAll(seen, id)), [index + 1])
    },
  },
  ...atRestConformance,
]
