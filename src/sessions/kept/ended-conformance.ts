import assert from 'node:assert/strict'
import type { ConformanceCase } from '../../lib/conformance.js'
import type { EndedQuery, EndedSessions, JournaledState, SessionJournal } from './journal.js'

const ALL = { limit: 100 }

interface Made {
  profile?: string
  engine?: 'cli' | 'provider'
  status?: 'idle' | 'closed' | 'failed'
  at?: number
  state?: Partial<JournaledState>
}

function stateOf(id: string, order: number, { profile = 'one', engine = 'cli', status = 'idle', at, state }: Made) {
  const usage = { inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 }
  return {
    order,
    info: {
      ...{ id, profile, engine, status, title: id, cwd: '/srv/work', createdAt: order, lastActivityAt: at ?? order },
      ...{ lastSeq: 0, pendingPermissions: 0, attachedClients: 0, numTurns: 0, cost: 0, usage },
    },
    ...state,
  } satisfies JournaledState
}

/** Writes a session down and, when it is to have ended, its end. */
async function make(journal: SessionJournal, id: string, order: number, made: Made = {}): Promise<void> {
  const { profile = 'one', status = 'idle' } = made
  const origin = { profile, generation: 'g1', config: { cwd: '/srv/work' }, epoch: 'e1' }
  await journal.write({ id, origin, state: stateOf(id, order, { ...made, status: 'idle' }) })
  if (status !== 'idle') await journal.write({ id, state: stateOf(id, order, made), events: [{ seq: 3, json: '{}' }] })
}

const idsOf = (sessions: readonly { id: string }[]) => sessions.map(({ id }) => id)
const found = async (journal: EndedSessions, query: Partial<EndedQuery> = {}) =>
  idsOf((await journal.ended({ ...ALL, ...query })).sessions)

/** Cases of journals that give sessions which have ended to whoever asks for them; the others have nothing to show. */
export const endedSessionsConformance: readonly ConformanceCase<SessionJournal>[] = ofThoseThatHaveThem([
  {
    name: 'leaves out what has ended when it is asked for the others, unless it has news',
    async run(journal, reopen) {
      await make(journal, 'a', 1, { status: 'closed' })
      await make(journal, 'b', 2)
      await make(journal, 'c', 3, { status: 'failed' })
      await make(journal, 'd', 4)
      await journal.deposit('c', [{ key: 'removal', type: 'removal', reason: 'client' }])
      const seen = await reopen()
      assert.deepEqual(idsOf(await seen.unended()), ['b', 'c', 'd'])
      const { sessions } = await seen.ended(ALL)
      assert.deepEqual(idsOf(sessions), ['a'], 'whose removal was decided is on its way out')
      const listed = await seen.list()
      assert.deepEqual(sessions, [listed.find(({ id }) => id === 'a')])
      assert.equal(sessions[0]!.lastSeq, 3)
      assert.deepEqual(await seen.endedTotals(), { count: 1, lastOrder: 3 })
    },
  },
  {
    name: 'gives what has ended by its order, in pages, by status, engine and profile',
    async run(journal, reopen) {
      const [closed, failed] = ['closed', 'failed'] as const
      await make(journal, 'f', 60, { status: closed, profile: 'two' })
      await make(journal, 'a', 10, { status: closed })
      await make(journal, 'e', 50, { status: failed, engine: 'provider' })
      await make(journal, 'b', 20, { status: failed, profile: 'two' })
      await make(journal, 'd', 40, { status: closed, engine: 'provider', profile: 'three' })
      await make(journal, 'c', 30)
      const seen = await reopen()
      assert.deepEqual(await found(seen), ['f', 'e', 'd', 'b', 'a'])
      assert.deepEqual(await found(seen, { before: 50 }), ['d', 'b', 'a'])
      assert.deepEqual(await found(seen, { status: 'failed' }), ['e', 'b'])
      assert.deepEqual(await found(seen, { engine: 'provider' }), ['e', 'd'])
      assert.deepEqual(await found(seen, { profiles: ['two', 'three', 'none'] }), ['f', 'd', 'b'])
      assert.deepEqual(await found(seen, { profiles: ['two'], status: 'closed', engine: 'cli' }), ['f'])
      assert.deepEqual(await found(seen, { profiles: [] }), [])
      const walked: string[] = []
      for (let before: number | undefined = 61; before !== undefined; ) {
        const { sessions, next } = await seen.ended({ before, limit: 2 })
        walked.push(...idsOf(sessions))
        before = next
      }
      assert.deepEqual(walked, ['f', 'e', 'd', 'b', 'a'])
      await seen.remove('e')
      assert.deepEqual(await found(seen, { limit: 2 }), ['f', 'd'])
      assert.deepEqual(await seen.endedTotals(), { count: 4, lastOrder: 60 })
    },
  },
  {
    name: 'gives first what was the first to end, and goes by what was written last',
    async run(journal, reopen) {
      await make(journal, 'a', 1, { status: 'closed', at: 300 })
      await make(journal, 'b', 2, { status: 'failed', at: 100 })
      await make(journal, 'c', 3, { status: 'closed', at: 200 })
      await make(journal, 'd', 4)
      await journal.write({ id: 'b', state: stateOf('b', 2, { status: 'failed', at: 400 }) })
      const seen = await reopen()
      assert.deepEqual(await seen.endedFirst(2), [
        { id: 'c', endedAt: 200 },
        { id: 'a', endedAt: 300 },
      ])
      assert.deepEqual(await found(seen), ['c', 'b', 'a'])
    },
  },
  {
    name: 'knows the executions of what has ended',
    async run(journal, reopen) {
      const executions = [{ executionId: 'cut off', toolName: 'deploy' }]
      await make(journal, 'a', 1, { status: 'closed', state: { settled: ['one', 'two'], executions } })
      await make(journal, 'b', 2, { status: 'closed' })
      await make(journal, 'c', 3, { state: { settled: ['of one that goes on'] } })
      await make(journal, 'd', 4, { status: 'closed', state: { settled: ['of one that is on its way out'] } })
      await journal.deposit('d', [{ key: 'removal', type: 'removal', reason: 'client' }])
      const seen = await reopen()
      const known = (await seen.endedExecutions()).map(({ id, executionIds }) => [id, [...executionIds].sort()])
      assert.deepEqual(known, [['a', ['cut off', 'one', 'two']]])
      await seen.remove('a')
      assert.deepEqual(await seen.endedExecutions(), [])
    },
  },
])

type Journal = SessionJournal & EndedSessions

function ofThoseThatHaveThem(
  cases: readonly { name: string; run(journal: Journal, reopen: () => Promise<Journal>): Promise<void> }[],
): typeof endedSessionsConformance {
  return cases.map(({ name, run }) => ({
    name: `${name}, when it offers that`,
    async run(journal, reopen) {
      const reopened = async () => ((await reopen?.()) ?? journal) as Journal
      if (journal.ended) await run(journal as Journal, reopened)
    },
  }))
}
