import t from 'tap'
import type { SessionInfo, SessionNotification } from '../../client/index.js'
import { withLast } from '../../console/src/model/last-told.js'
import { type Listed, withEarlier, withTold } from '../../console/src/model/session-list.js'

const session = (id: string, createdAt: number, lastSeq = 1) => ({ id, createdAt, lastSeq }) as SessionInfo
const listed = (...all: SessionInfo[]): Listed => new Map(all.map((one) => [one.id, one]))
const idsOf = (all: Listed) => [...all.keys()].join('')

t.test('a session that is told of is put where its time belongs, before those of the same moment', async (t) => {
  const before = listed(session('d', 3), session('c', 2), session('a', 1))
  t.equal(idsOf(withTold(before, session('b', 2))), 'dbca')
  t.equal(idsOf(withTold(before, session('e', 4))), 'edca')
  t.equal(idsOf(withTold(before, session('0', 0))), 'dca0')
  t.equal(idsOf(withTold(before, session('c', 2, 5))), 'dca', 'one that is known stays where it was')
})

t.test('an earlier page comes after the one before it, and in front of what was told of by chance', async (t) => {
  const before = listed(session('d', 4), session('c', 3), session('a', 1, 7))
  const page = [session('b', 2), session('a', 1)]
  const all = withEarlier(before, page, new Set(['d', 'c']))
  t.equal(idsOf(all), 'dcba')
  t.equal(all.get('a')?.lastSeq, 7, 'what is known of it is newer')
  const chance = listed(session('d', 4), session('c', 3), session('0', 0))
  t.equal(idsOf(withEarlier(chance, page, new Set(['d', 'c']))), 'dcba0')
})

t.test('what was told last is known of each session, and not of all that ever were', async (t) => {
  const told = (sessionId: string, ts: number) =>
    ({ sessionId, ts, preview: `${sessionId} at ${ts}` }) as SessionNotification
  const texts = (all: ReadonlyMap<string, SessionNotification>) => [...all.values()].map(({ preview }) => preview)
  let all: ReadonlyMap<string, SessionNotification> = new Map()
  for (const [id, ts] of [
    ['a', 1],
    ['b', 2],
    ['a', 3],
    ['a', 2],
  ] as const)
    all = withLast(all, told(id, ts), 2)
  t.strictSame(texts(all), ['b at 2', 'a at 3'])
  t.strictSame(texts(withLast(all, told('c', 4), 2)), ['a at 3', 'c at 4'])
})
