import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import type { SessionEventOf } from '../../schemas/events.js'
import { providerEngine } from '../../src/engines/provider/index.js'
import type { SessionEventTold } from '../../src/sessions/registry-options.js'
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { FakeSessions, jobRequest, jobWorld, settle } from '../fixtures/job-world.js'
import { buildJournaled } from '../fixtures/journaled.js'
import { script, startModelEndpoint } from '../fixtures/model-endpoint.js'
import { NO_USAGE } from '../fixtures/scripted-engine.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

type JobWorld = Awaited<ReturnType<typeof jobWorld>>

t.test('no model call and no tool follows the call that used too much, however long the storage takes', async (t) => {
  const model = await startModelEndpoint(t)
  const provider = { id: 'anthropic', baseUrl: model.url, model: 'fake-claude' }
  const { gateway, journal } = await buildJournaled(t, {
    queue: {},
    profiles: [{ name: 'fake', engine: 'provider', provider }],
    createEngineRunner: providerEngine({ env: { ANTHROPIC_API_KEY: 'sk-dummy' } }),
  })
  const list = { tools: [{ tool: 'fs_list', input: {} }] }
  const prompt = script(list, list, list, list, { text: 'Done.' })
  // each call uses 1550
  const { id } = await gateway.queue!.submit({ session: { cwd: SOME_CWD, prompt }, maxTokens: 2000 })
  await model.request(1)
  journal.hold()
  await until(async () => (await gateway.registry.list())[0]?.status === 'idle', 'the end of the turn')
  t.equal(model.requests.length, 2)
  journal.release()
  await until(async () => (await gateway.queue!.get(id))?.status === 'failed', 'the end of the job')
  const job = await gateway.queue!.get(id)
  t.match(job, { error: 'The run used more than 2000 tokens.', usage: { tokens: 3100 } })
  t.equal(job?.result?.subtype, 'interrupted')
})

/** A job of at most 100 tokens, of which a call has used 60 that is durable, and told. */
async function halfUsed({ queue, sessions }: Pick<JobWorld, 'queue' | 'sessions'>) {
  const told: SessionEventTold[] = []
  sessions.follow('session_event', (one) => told.push(one))
  const submitted = await queue.submit(jobRequest({ maxTokens: 100, attempts: 3 }))
  await settle()
  sessions.last.say('before', 60)
  await settle()
  return { submitted, told: told.at(-1)! }
}

const later = (told: SessionEventTold, tokens: number, by = 100): SessionEventTold => {
  const event = told.event as SessionEventOf<'assistant_message'> & { seq: number; ts: number }
  const usage = { ...NO_USAGE, outputTokens: tokens }
  return { ...told, event: { ...event, seq: event.seq + by, message: { ...event.message, usage } } }
}

const turnOver = (told: SessionEventTold, tokens: number): SessionEventTold => {
  const usage = { ...NO_USAGE, outputTokens: tokens }
  const result = { subtype: 'interrupted', isError: false, durationMs: 1, numTurns: 1, totalCostUsd: 0 } as const
  return { ...told, event: { type: 'turn_completed', ...result, usage, seq: told.event.seq + 100, ts: told.event.ts } }
}

t.test('a call that counts already does not count again with those that are not durable yet', async (t) => {
  const { queue, sessions } = await jobWorld(t)
  const { told } = await halfUsed({ queue, sessions })
  queue.onCallCounted(told.sessionId, [told])
  queue.onCallCounted(told.sessionId, [told, later(told, 40)])
  t.equal(sessions.last.interrupts.length, 0, 'exactly what it may use')
  queue.onCallCounted(told.sessionId, [told, later(told, 41)])
  queue.onCallCounted(told.sessionId, [told, later(told, 90)])
  t.equal(sessions.last.interrupts.length, 1)
})

t.test(
  'what a run has used counts for the job and the day also when it is over before the storage has that',
  async (t) => {
    for (const last of ['a call', 'a turn', 'a cancel'] as const) {
      const { queue, sessions, clock, job } = await jobWorld(t, { killGraceMs: 300 })
      const { submitted, told } = await halfUsed({ queue, sessions })
      queue.onCallCounted(told.sessionId, [told, later(told, last === 'a call' ? 90 : 30)])
      if (last === 'a turn') {
        queue.onCallCounted(told.sessionId, [told, later(told, 41)])
        queue.onTurnOver(told.sessionId, [told, turnOver(told, 150)])
      }
      if (last === 'a cancel') await queue.cancel(submitted.id)
      else await clock.advance(300)
      await settle()
      const tokens = last === 'a cancel' ? 90 : 150
      t.match(await job(submitted), { status: last === 'a cancel' ? 'canceled' : 'queued', usage: { tokens } }, last)
      t.equal((await queue.stats()).dailyTokensUsed, tokens, last)
    }
  },
)

t.test('nor does it after a restart, of a job that was parked meanwhile', async (t) => {
  const clock = new VirtualClock()
  const adapter = createMemoryQueueAdapter({ now: () => clock.now() })
  const first = await jobWorld(t, { clock, adapter })
  const { submitted, told: before } = await halfUsed(first)
  first.sessions.last.park('exec-7')
  await settle()
  await first.queue.drain()
  const left = new FakeSessions(clock)
  left.adopt(first.sessions.last.info)
  const { queue, sessions, job } = await jobWorld(t, { clock, adapter, sessions: left })
  t.match(await job(submitted), { status: 'parked', usage: { tokens: 60 } })
  sessions.last.wake()
  await settle()
  queue.onCallCounted(sessions.last.info.id, [before, later(before, 40)])
  t.equal(sessions.last.interrupts.length, 0)
  queue.onCallCounted(sessions.last.info.id, [before, later(before, 41)])
  t.equal(sessions.last.interrupts.length, 1)
  await settle()
  t.match(await job(submitted), { status: 'queued', attempt: 2 })
})

t.test('of a run that is parked nothing is held that it said', async (t) => {
  const { queue, sessions, job } = await jobWorld(t)
  const { submitted, told } = await halfUsed({ queue, sessions })
  const counted = () => {
    const one = later(told, 10, 1)
    queue.onCallCounted(told.sessionId, [one])
    return new WeakRef(one)
  }
  const held = counted()
  sessions.last.say('after', 10)
  sessions.last.park()
  await settle()
  t.match(await job(submitted), { status: 'parked', usage: { tokens: 70 } })
  await new Promise(setImmediate)
  collectGarbage()
  t.equal(held.deref(), undefined)
})

t.test('usage that is told with each call and once more at the end of the turn counts once', async (t) => {
  const { queue, sessions, job } = await jobWorld(t)
  const { told, submitted } = await halfUsed({ queue, sessions })
  queue.onCallCounted(told.sessionId, [later(told, 40, 1)])
  sessions.last.say('after', 40)
  sessions.last.complete({ tokens: 100 })
  await settle()
  t.match(await job(submitted), { status: 'succeeded', usage: { tokens: 100 } })
})

t.test('a run that was over its limit and was interrupted before a restart says so', async (t) => {
  const { queue, sessions, job } = await jobWorld(t)
  const { submitted } = await halfUsed({ queue, sessions })
  sessions.last.complete({ tokens: 101, subtype: 'interrupted' })
  await settle()
  t.match(await job(submitted), { error: 'The run used more than 100 tokens.' })
})
