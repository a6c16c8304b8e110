import assert from 'node:assert/strict'
import type { ConformanceCase } from '../../lib/conformance.js'
import type { AtRestQuery, JournaledState, SessionJournal, SessionsAtRest } from './journal.js'

const ALL = { limit: 100 }
const NONE = { closed: 0, failed: 0, idle: 0, parked: 0, lastOrder: 0 }

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
const found = async (journal: SessionsAtRest, query: Partial<AtRestQuery> = {}) =>
  idsOf((await journal.atRest({ ...ALL, ...query })).sessions)

/** Cases of journals that give sessions which have ended to whoever asks for them; the others have nothing to show. */
export const atRestConformance: readonly ConformanceCase<SessionJournal>[] = ofThoseThatHaveThem([
  {
    name: 'leaves out what has ended when it is asked for the others, unless it has news',
    async run(journal, reopen) {
      await make(journal, 'a', 1, { status: 'closed' })
      await make(journal, 'b', 2)
      await make(journal, 'c', 3, { status: 'failed' })
      await make(journal, 'd', 4)
      await journal.deposit('c', [{ key: 'removal', type: 'removal', reason: 'client' }])
      const seen = await reopen()
      assert.deepEqual(idsOf(await seen.awake()), ['b', 'c', 'd'])
      const { sessions } = await seen.atRest(ALL)
      assert.deepEqual(idsOf(sessions), ['a'], 'whose removal was decided is on its way out')
      const listed = await seen.list()
      assert.deepEqual(sessions, [listed.find(({ id }) => id === 'a')])
      assert.equal(sessions[0]!.lastSeq, 3)
      assert.deepEqual(await seen.restTotals(), { ...NONE, closed: 1, lastOrder: 3 })
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
        const { sessions, next } = await seen.atRest({ before, limit: 2 })
        walked.push(...idsOf(sessions))
        before = next
      }
      assert.deepEqual(walked, ['f', 'e', 'd', 'b', 'a'])
      await seen.remove('e')
      assert.deepEqual(await found(seen, { limit: 2 }), ['f', 'd'])
      assert.deepEqual(await seen.restTotals(), { ...NONE, closed: 3, failed: 1, lastOrder: 60 })
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
    name: 'knows whose an execution is, of two the first, for as long as the session is there',
    async run(journal, reopen) {
      const executions = [{ executionId: 'waited for', toolName: 'deploy' }]
      await make(journal, 'a', 1, { status: 'closed', state: { settled: ['one', 'two'], executions } })
      await make(journal, 'b', 2, { state: { settled: ['three'] } })
      await make(journal, 'c', 3, { state: { settled: ['one', 'three', 'four'] } })
      await journal.write({ id: 'b', state: stateOf('b', 2, { state: { settled: ['three', 'five'] } }) })
      const seen = await reopen()
      const ids = ['one', 'two', 'waited for', 'three', 'four', 'five', 'none']
      const owners = async () => Promise.all(ids.map((id) => seen.sessionOf(id)))
      assert.deepEqual(await owners(), ['a', 'a', 'a', 'b', 'c', 'b', undefined])
      await seen.remove('a')
      await seen.remove('b')
      const [one, ...others] = await owners()
      assert.ok(one === undefined || one === 'c')
      assert.deepEqual(others.slice(0, 2), [undefined, undefined])
      await seen.write({ id: 'c', state: stateOf('c', 3, { state: { settled: ['two'] } }) })
      assert.equal(await seen.sessionOf('two'), 'c')
      await seen.deposit('c', [{ key: 'removal', type: 'removal', reason: 'client' }])
      await make(seen, 'd', 4, { state: { settled: ['two'] } })
      assert.equal(await seen.sessionOf('two'), 'd', 'of one that is on its way out it is free')
      await seen.remove('c')
      assert.equal(await seen.sessionOf('two'), 'd')
    },
  },
  {
    name: 'gives what sleeps with what has ended, until it is awake again or has news',
    async run(journal, reopen) {
      await make(journal, 'a', 1, { status: 'closed' })
      for (const [id, order, status] of [
        ['b', 2, 'idle'],
        ['c', 3, 'parked'],
        ['d', 4, 'idle'],
        ['e', 5, 'parked'],
      ] as const) {
        await make(journal, id, order, { engine: order > 3 ? 'provider' : 'cli' })
        await journal.write({
          id,
          state: stateOf(id, order, { engine: order > 3 ? 'provider' : 'cli', state: { firstPrompt: 'x' } }),
          asleep: { status },
        })
      }
      await journal.deposit('e', [{ key: 'interrupt', type: 'interrupt' }])
      await make(journal, 'f', 6)
      let seen = await reopen()
      assert.deepEqual(idsOf(await seen.awake()), ['e', 'f'])
      assert.deepEqual(await found(seen), ['e', 'd', 'c', 'b', 'a'])
      assert.deepEqual(await found(seen, { status: 'idle' }), ['d', 'b'])
      assert.deepEqual(await found(seen, { status: 'parked', engine: 'cli' }), ['c'])
      assert.deepEqual(await found(seen, { status: 'parked', profiles: ['one'] }), ['e', 'c'])
      assert.deepEqual(await found(seen, { limit: 2, before: 5 }), ['d', 'c'])
      assert.deepEqual(await seen.restTotals(), { ...NONE, closed: 1, idle: 2, parked: 1, lastOrder: 5 })
      assert.deepEqual(await seen.endedFirst(9), [{ id: 'a', endedAt: 1 }])
      const { sessions } = await seen.atRest({ ...ALL, status: 'idle' })
      assert.deepEqual(
        [...sessions, (await seen.get('a'))!, (await seen.get('f'))!].map(({ sleeps }) => sleeps),
        [true, true, undefined, undefined],
      )
      await seen.write({ id: 'c', state: stateOf('c', 3, { state: { inTurn: true } }) })
      await seen.write({ id: 'd', events: [{ seq: 1, json: '{}' }] })
      await seen.remove('b')
      seen = await reopen()
      assert.deepEqual(idsOf(await seen.awake()), ['c', 'e', 'f'])
      assert.deepEqual(await found(seen), ['e', 'd', 'a'])
    },
  },
  {
    name: 'gives what sleeps by when it wakes, and knows what it goes on from',
    async run(journal, reopen) {
      const asleep = async (id: string, wakesAt: number | undefined, sdkSessionId?: string) => {
        await make(journal, id, 1)
        const state = stateOf(id, 1, { state: { firstPrompt: 'x' } })
        await journal.write({ id, state, asleep: { status: 'parked', wakesAt, sdkSessionId } })
      }
      await asleep('c', 200)
      await asleep('b', 200, 'its own')
      await asleep('a', 300)
      await asleep('never', undefined)
      await asleep('d', 100)
      await journal.write({ id: 'd', state: stateOf('d', 1, { state: { inTurn: true } }) })
      const seen = await reopen()
      const [b, c, a] = [
        { id: 'b', wakesAt: 200 },
        { id: 'c', wakesAt: 200 },
        { id: 'a', wakesAt: 300 },
      ]
      assert.deepEqual(await seen.dueFirst(9), [b, c, a])
      assert.deepEqual(await seen.dueFirst(2), [b, c])
      assert.deepEqual(await seen.dueFirst(2, b), [c, a])
      assert.deepEqual(await seen.dueFirst(2, a), [])
      assert.deepEqual([await seen.continues('its own'), await seen.continues('another')], [true, false])
      await seen.remove('b')
      assert.equal(await seen.continues('its own'), false)
      const state = stateOf('c', 1, { state: { firstPrompt: 'x' } })
      await seen.write({ id: 'c', state, asleep: { status: 'parked', sdkSessionId: 'of c' } })
      assert.equal(await seen.continues('of c'), true)
      await seen.write({ id: 'c', state: stateOf('c', 1, { state: { inTurn: true } }) })
      assert.equal(await seen.continues('of c'), false, 'it is awake')
    },
  },
])

type Journal = SessionJournal & SessionsAtRest

function ofThoseThatHaveThem(
  cases: readonly { name: string; run(journal: Journal, reopen: () => Promise<Journal>): Promise<void> }[],
): typeof atRestConformance {
  return cases.map(({ name, run }) => ({
    name: `${name}, when it offers that`,
    async run(journal, reopen) {
      const reopened = async () => ((await reopen?.()) ?? journal) as Journal
      if (journal.atRest) await run(journal as Journal, reopened)
    },
  }))
}
