import t, { type Test } from 'tap'
import type { JobEvent } from '../../schemas/jobs.js'
import { isTerminal } from '../../src/jobs/job.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { buildGateway, SOME_CWD, until as untilReached } from '../fixtures/build.js'
import { bury, mortal } from '../fixtures/mortal-storage.js'
import { ok } from '../fixtures/parked.js'
import { isLong } from '../fixtures/rounds.js'
import type { Script } from '../fixtures/scripted-engine.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'

type World = Awaited<ReturnType<typeof buildGateway>>
type Name = 'retried' | 'parked' | 'held' | 'later'

/** What a caller was told, by the time the process ended. */
interface Told {
  submitted: Map<Name, string>
  canceled: Set<Name>
}

/** Its first turn fails, of all processes together; `parked` waits for a result, `held` for its end. */
function scripted(): Script {
  let failed = false
  return {
    capabilities: { parking: 'native' },
    send(runner, text) {
      if (text === 'held') return
      // a storage that died under it refuses in the end
      if (text === 'parked') return runner.defer(`${runner.context.sessionId}-e`).catch(() => {})
      if (failed) runner.complete()
      else runner.complete({ subtype: 'error_during_execution', isError: true })
      failed = true
    },
    settle: (runner) => runner.complete(),
  }
}

const executionOf = (sessionId: string | undefined) => `${sessionId}-e`

/** One job is tried twice, one waits for a result, one is canceled as it runs, and one before it may. */
async function live({ gateway, clock }: World, told: Told, url: string, isDead: () => boolean): Promise<void> {
  const queue = gateway.queue!
  const until = async (condition: () => unknown) => {
    await untilReached(async () => isDead() || (await condition()))
    if (isDead()) throw new Error('Its process is dead.')
  }
  const submit = async (name: Name, runAt?: number) => {
    const webhook = { url, progress: 'completion' as const }
    const session = { cwd: SOME_CWD, prompt: name }
    const request = { session, webhook, attempts: 9, retryDelayMs: 0, ...(runAt !== undefined && { runAt }) }
    const { id } = await queue.submit(request)
    told.submitted.set(name, id)
    return id
  }
  const at = (id: string, status: string) => until(async () => (await queue.get(id))?.status === status)
  const cancel = async (name: Name, id: string) => {
    await queue.cancel(id)
    told.canceled.add(name)
  }
  await at(await submit('retried'), 'succeeded')
  const parked = await submit('parked')
  await at(parked, 'parked')
  await gateway.executions.submit(executionOf((await queue.get(parked))?.sessionId), ok)
  await at(parked, 'succeeded')
  const held = await submit('held')
  await at(held, 'running')
  await cancel('held', held)
  await cancel('later', await submit('later', clock.now() + 60_000))
  await until(() => gateway.deliverer.pending === 0)
}

/** The next process brings every job to its end. */
async function finish({ gateway }: World, told: Told): Promise<void> {
  const queue = gateway.queue!
  const idsOf = (name: Name) => told.submitted.get(name) ?? []
  for (const id of [idsOf('held'), idsOf('later')].flat()) await queue.cancel(id)
  await untilReached(async () => {
    const { items } = await queue.page({})
    for (const { status, sessionId } of items)
      if (status === 'parked') await gateway.executions.submit(executionOf(sessionId), ok).catch(() => {})
    return items.filter((job) => ['retried', 'parked'].includes(job.prompt)).every(({ status }) => isTerminal(status))
  }, 'the end of every job')
}

async function dieAt(t: Test, sink: WebhookSink, last: number, isDone: boolean): Promise<number> {
  const storage = createMemoryStorage()
  const parts = ['journal', 'queue', 'outbox'] as const
  const { view, dead, operations } = mortal(storage, { last, isDone, parts })
  const script = scripted()
  const first = await buildGateway(t, { storage: view, script, queue: {} })
  const told: Told = { submitted: new Map(), canceled: new Set() }
  let isDead = false
  const life = live(first, told, sink.url, () => isDead)
  // a life that the end of its process cut off says nothing any more
  life.catch(() => {})
  await Promise.race([life, dead])
  isDead = true
  await bury(first.gateway, first.clock)

  const at = `${isDone ? 'after' : 'before'} write ${last}`
  const next = await buildGateway(t, { storage, script, queue: {}, clock: first.clock })
  await finish(next, told)
  await untilReached(async () => (await storage.outbox.list()).length === 0, `${at}: an empty outbox`)
  const { items } = await next.gateway.queue!.page({})
  for (const [name, id] of told.submitted) {
    const job = items.find((one) => one.id === id)
    const isCanceled = name === 'held' || name === 'later'
    t.equal(job?.status, isCanceled ? 'canceled' : 'succeeded', `${at}: ${name} came to its end: ${job?.error}`)
  }
  for (const job of items.filter(({ status }) => isTerminal(status))) {
    const events = eventsOf(sink, job.id)
    const types = events.map(({ type, job: { attempt } }) => `${type.slice(4)} ${attempt}`)
    t.same(
      types,
      storyOf(types, job.attempt, Number.isFinite(last)),
      `${at}: ${job.prompt} is told of once, and in order`,
    )
    t.equal(types.at(-1), `completed ${job.attempt}`, `${at}: to the end`)
    t.same(events.at(-1)?.job, job, `${at}: which is the one that is stored`)
    const started = events.find(({ type, job: { attempt } }) => type === 'job_started' && attempt === job.attempt)
    // one that was canceled before its session was there has none
    const hasSession = job.status !== 'canceled' || job.sessionId !== undefined
    if (started && hasSession) t.equal(started.job.sessionId, job.sessionId, `${at}: with the session that it has`)
  }
  await next.gateway.close()
  sink.received.length = 0
  return operations()
}

/** What the webhook was told, in the order of the first time; what is told again has the same id and says the same. */
function eventsOf({ received }: WebhookSink, jobId: string): JobEvent[] {
  const byId = new Map<string, JobEvent>()
  for (const { body } of received) if (body.job.id === jobId && !byId.has(body.id)) byId.set(body.id, body)
  return [...byId.values()]
}

/**
 * What is told of a job with so many attempts, of what may be told of it. That it was resumed may be written when its process dies, and
 * that its session woke not yet: then it is parked once more, until the next process has woken it.
 */
function storyOf(types: readonly string[], attempts: number, hasDied: boolean): string[] {
  const isTold = (type: string) => types.includes(type)
  return Array.from({ length: attempts }, (_, index) => index + 1).flatMap((attempt) => {
    const end = attempt === attempts ? `completed ${attempt}` : `retrying ${attempt + 1}`
    const waits = [`parked ${attempt}`, `resumed ${attempt}`].filter(isTold)
    const isParkedAgain = hasDied && types.indexOf(waits[0]!) !== types.lastIndexOf(waits[0]!)
    return [...[`started ${attempt}`].filter(isTold), ...waits, ...(isParkedAgain ? waits : []), end]
  })
}

t.test('whenever the process dies, a job comes to its end, and each event of it is told once', async (t) => {
  const sink = await WebhookSink.start(t)
  const total = await dieAt(t, sink, Number.POSITIVE_INFINITY, true)
  t.ok(total > 30, `${total} writes`)
  for (let last = 1; last <= total; last++)
    for (const isDone of isLong ? [true, false] : [true]) await dieAt(t, sink, last, isDone)
})
