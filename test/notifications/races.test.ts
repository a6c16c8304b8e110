import t from 'tap'
import type { SessionEventOf } from '../../schemas/events.js'
import { silentLogger } from '../../src/lib/logger.js'
import { answerAll } from '../../src/notifications/bulk-answers.js'
import { UNLIMITED } from '../../src/principal.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { native } from '../fixtures/parked.js'
import { rounds } from '../fixtures/rounds.js'
import type { Script } from '../fixtures/scripted-engine.js'

const RACES = rounds(60, 1_000)

/** A generator of its own, so that a race that was lost can be run again. */
function randomFrom(seed: number) {
  let state = seed
  return (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
}

t.test(`${RACES} races for an answer: exactly one wins each, and is told`, async (t) => {
  const { registry, gateway, engine, clock } = await buildGateway(t, { script: native })
  const { inbox } = gateway.notifications
  const resolved: ({ sessionId: string } & SessionEventOf<'permission_resolved'>)[] = []
  registry.on('session_event', ({ sessionId, event }) => {
    if (event.type === 'permission_resolved') resolved.push({ sessionId, ...event })
  })
  const faults: string[] = []
  for (let race = 0; race < RACES; race++) {
    const random = randomFrom(race)
    const isParked = random(2) === 0
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'x', approvalTimeoutMs: isParked ? 0 : 1_000 })
    // the last one that was built may be a session's of an earlier race, which wakes
    const runner = engine.runners.find(({ context }) => context.sessionId === id)!
    await until(() => runner.sent.length === 1)
    void runner.host.requestPermission({ toolName: 'Write', toolUseId: 't', input: {} })
    if (isParked) await until(() => registry.here(id)?.status === 'parked')
    const [item] = inbox.page({ sessionId: id }, UNLIMITED).items
    const requestId = item!.request.id
    const whose = { sessionId: id, requestId }
    const won: string[] = []
    const runners = [
      async () => {
        const answers = [
          { ...whose, behavior: 'allow' },
          { ...whose, behavior: 'deny' },
        ]
        const results = await answerAll(answers, UNLIMITED, { registry, logger: silentLogger })
        for (const result of results) if (result.resolved) won.push('inbox')
      },
      () => registry.resolvePermission(id, requestId, { behavior: 'deny' }, UNLIMITED).then(() => won.push('rest')),
      () =>
        registry
          .resolvePermission(id, requestId, { behavior: 'allow' }, UNLIMITED, { channel: 'link' })
          .then(() => won.push('link')),
      () => clock.advance(1_000),
      ...(random(2) === 0 ? [() => registry.close(id, 'client')] : []),
    ]
    const order = runners.map((run) => ({ run, at: random(1_000), after: random(4) })).sort((a, b) => a.at - b.at)
    const under = order.map(async ({ run, after }) => {
      for (let turn = 0; turn < after; turn++) await new Promise(setImmediate)
      await run()
    })
    // time stands still from here on: were it moved turn by turn, it would outrun an engine that is being started
    let isOver = false
    void Promise.allSettled(under).then(() => {
      isOver = true
    })
    await until(() => isOver, `the end of race ${race}`)
    const told = () => resolved.filter((event) => event.requestId === requestId)
    // one that is removed while nothing serves it takes its request with it
    const isRemoved = () => registry.here(id) === undefined
    await until(() => told().length > 0 || isRemoved(), `an end of race ${race}`)
    if (told().length > 1) faults.push(`race ${race} was told ${told().length} times`)
    if (won.length > 1) faults.push(`race ${race} was won by ${won}`)
    const { channel } = told()[0]?.by ?? {}
    // the answer of a session that is removed before it could tell it is told as its end
    const isAnswered = channel === 'inbox' || channel === 'rest' || channel === 'link'
    const isTold = isRemoved()
      ? !isAnswered || won.length === 1
      : isAnswered === (won.length === 1) || channel === 'policy'
    if (!isTold) faults.push(`race ${race} was won by ${won} and told as ${channel}`)
    if (isAnswered && won.length === 1 && won[0] !== channel) faults.push(`race ${race}: ${won} and ${channel}`)
    if (inbox.page({ sessionId: id }, UNLIMITED).items.length > 0) faults.push(`race ${race} still waits`)
    await registry.close(id, 'client').catch(() => {})
  }
  t.same(faults, [])
  t.same(inbox.count(UNLIMITED), { permissions: 0, questions: 0 })
})

t.test(
  'an answer that is given while its engine does not start is told once, by whom it was, when one does',
  async (t) => {
    let hangs = true
    const start: Script['start'] = (runner) => {
      runner.init()
      return hangs && runner.context.restore ? new Promise<void>(() => {}) : undefined
    }
    const { registry, gateway, engine, clock } = await buildGateway(t, { script: { ...native, start } })
    const { inbox } = gateway.notifications
    const told: string[] = []
    registry.on('session_event', ({ event }) => {
      if (event.type === 'permission_resolved') told.push(`${event.behavior} by ${event.by?.channel}`)
    })
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'x', approvalTimeoutMs: 0 })
    await until(() => engine.last.sent.length === 1)
    void engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 't', input: {} })
    await until(() => registry.here(id)?.status === 'parked')
    const requestId = inbox.page({}, UNLIMITED).items[0]!.request.id
    const answers = [{ sessionId: id, requestId, behavior: 'allow' as const }]
    const given = answerAll(answers, UNLIMITED, { registry, logger: silentLogger })
    await until(() => engine.runners.length === 2)
    await clock.advance(5_000)
    t.match(await given, [{ resolved: true }], 'whoever answers is not kept waiting')
    t.same(inbox.count(UNLIMITED), { permissions: 0, questions: 0 })
    await t.rejects(registry.resolvePermission(id, requestId, { behavior: 'deny' }, UNLIMITED), {
      code: 'SG_ERR_PERMISSION_NOT_FOUND',
    })
    t.same(told, [])
    await clock.advance(115_000)
    await until(() => registry.here(id)?.status === 'parked', 'a start that is given up')
    hangs = false
    await clock.advance(1_000)
    await until(() => told.length > 0)
    t.same(told, ['allow by inbox'])
  },
)
