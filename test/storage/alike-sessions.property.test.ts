import fc from 'fast-check'
import t from 'tap'
import type { SessionStatus } from '../../schemas/sessions.js'
import {
  isTerminal,
  type JournaledState,
  type RestStatus,
  type SessionJournal,
} from '../../src/sessions/kept/journal.js'
import type { News } from '../../src/sessions/kept/news.js'
import { sampleInfo } from '../../src/sessions/kept/sample-info.js'
import {
  type Asking,
  areAlike,
  asking,
  IDS,
  id,
  limit,
  maybe,
  NOW,
  one,
  PROFILES,
  ROUNDS,
  some,
  time,
} from '../fixtures/alike.js'

/** The last number of each session, by its id. */
type Own = Map<string, number>

const ask = asking<SessionJournal, Own>

const STATUSES: SessionStatus[] = ['idle', 'running', 'parked', 'closed', 'failed']
const REST: RestStatus[] = ['idle', 'parked', 'closed', 'failed']
const ENGINES = ['provider', 'cli'] as const
const NEWS: News[] = [
  { key: 't1', type: 'title', title: 'one' },
  { key: 't2', type: 'title', title: 'two' },
  { key: 'removal', type: 'removal', reason: 'client' },
]
const KEYS = NEWS.map(({ key }) => key)

const write = fc.record({
  id,
  status: one(STATUSES),
  isAtRest: fc.boolean(),
  waitsFor: fc.subarray([1, 2, 3]),
  settled: fc.subarray([4, 5]),
  lastActivityAt: one([NOW - 1, NOW]),
  wakesAt: time,
  engine: one(ENGINES),
  profile: one(PROFILES),
  count: fc.nat(3),
  hasSnapshot: fc.boolean(),
  taken: fc.subarray(KEYS),
})

const asked: fc.Arbitrary<Asking<SessionJournal, Own>> = fc.oneof(
  write.map((given) =>
    ask(`write ${JSON.stringify(given)}`, async (journal, own) => {
      const { id, status, isAtRest, waitsFor, settled, lastActivityAt, wakesAt, engine, profile } = given
      const { count, hasSnapshot, taken } = given
      const known = await journal.get(id)
      if (known && isTerminal(known.state.info)) return 'over'
      const isNew = !known
      const from = isNew ? 0 : own.get(id)!
      own.set(id, from + count)
      const events = Array.from({ length: count }, (_, at) => ({
        seq: from + at + 1,
        json: `{"seq":${from + at + 1}}`,
      }))
      const state: JournaledState = {
        info: { ...sampleInfo(id, status), profile, engine, lastActivityAt },
        settled: settled.map((number) => `${id}${number}`),
        executions: waitsFor.map((number) => ({ executionId: `${id}${number}`, toolName: 'x' })),
        order: 1 + IDS.indexOf(id),
      }
      const rests = isAtRest && (status === 'idle' || status === 'parked') ? status : undefined
      await journal.write({
        id,
        ...(isNew && { origin: { profile, generation: 'g', config: { cwd: '/' }, epoch: 'e', oldestSeq: 1 } }),
        ...{ state, events, reservedSeq: from + count, taken },
        ...(rests && { asleep: { status: rests, wakesAt, sdkSessionId: `of ${id}` } }),
        ...(hasSnapshot && { snapshot: { engine: 'x', state: [count] } }),
      })
    }),
  ),
  fc
    .tuple(id, fc.subarray(NEWS, { minLength: 1 }))
    .map(([id, news]) => ask(`deposit ${id} ${news.map(({ key }) => key)}`, (journal) => journal.deposit(id, news))),
  fc
    .tuple(id, fc.subarray(KEYS))
    .map(([id, taken]) =>
      ask(`take ${id} ${taken}`, async (journal) =>
        (await journal.get(id)) ? journal.write({ id, taken }) : 'not there',
      ),
    ),
  id.map((id) => ask(`get ${id}`, (journal) => journal.get(id))),
  fc
    .tuple(id, fc.nat(5), fc.nat(8), one([1, 30, 1_000]))
    .map(([id, after, until, bytes]) =>
      ask(`read ${id} ${after} to ${until}, ${bytes} bytes`, async (journal) =>
        (await journal.read(id, after, until, bytes)).map(({ seq, json }) => [seq, String(json)]),
      ),
    ),
  id.map((id) => ask(`remove ${id}`, (journal) => journal.remove(id))),
  fc.constant(ask('list', (journal) => journal.list())),
  fc.constant(ask('awake', (journal) => journal.awake!())),
  fc.constant(ask('restTotals', (journal) => journal.restTotals!())),
  fc.tuple(maybe(one(REST)), maybe(one(ENGINES)), some(PROFILES), limit).map(([status, engine, profiles, limit]) =>
    ask(`atRest ${status} ${engine} of ${profiles}, ${limit} a page`, async (journal) => {
      // those with news are in memory, whoever pages
      const found: unknown[] = []
      let before: number | undefined
      do {
        const page = await journal.atRest!({ status, engine, profiles, before, limit })
        found.push(...page.sessions.map(({ news: _known, ...session }) => session))
        before = page.next
      } while (before !== undefined)
      return found
    }),
  ),
  // of those that ended at one time any may come first
  limit.map((limit) =>
    ask(`endedFirst ${limit}`, async (journal) => (await journal.endedFirst!(limit)).map(({ endedAt }) => endedAt)),
  ),
  fc
    .tuple(limit, maybe(fc.record({ id, wakesAt: one([NOW - 1_000, NOW]) })))
    .map(([limit, after]) =>
      ask(`dueFirst ${limit} after ${JSON.stringify(after)}`, (journal) => journal.dueFirst!(limit, after)),
    ),
  fc
    .tuple(id, one([1, 3, 4, 9]))
    .map(([id, number]) => `${id}${number}`)
    .map((executionId) => ask(`sessionOf ${executionId}`, (journal) => journal.sessionOf!(executionId))),
  id.map((id) => ask(`continues ${id}`, (journal) => journal.continues!(`of ${id}`))),
)

t.test(`memory and SQLite answer alike to ${ROUNDS} lives of sessions`, (t) =>
  areAlike(t, {
    seam: ({ journal }) => journal,
    asked,
    clear: async (journal) => {
      for (const id of IDS) await journal.remove(id)
    },
  }),
)
