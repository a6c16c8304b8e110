import t, { type Test } from 'tap'
import type { JobInfo } from '../../schemas/jobs.js'
import type { QueueAdapter } from '../../src/jobs/adapter.js'
import { createMemoryDeliveryOutbox } from '../../src/storage/memory/delivery-outbox.js'
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js'
import type { DeliveryOutbox } from '../../src/webhooks/outbox.js'
import { until } from '../fixtures/build.js'
import { FakeSessions, jobRequest, jobWorld, settle } from '../fixtures/job-world.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'

const never = () => new Promise<never>(() => {})

/** What a disk holds, processes on it one after the other, and the receiver of every job's webhook. */
async function disk(t: Test) {
  const sink = await WebhookSink.start(t)
  const clock = new VirtualClock()
  const adapter = createMemoryQueueAdapter({ now: () => clock.now() })
  const outbox = createMemoryDeliveryOutbox()
  const start = async (own: { adapter?: Partial<QueueAdapter>; outbox?: Partial<DeliveryOutbox> } = {}) => {
    const world = await jobWorld(t, {
      ...{ clock, sessions: new FakeSessions(clock), adapter: { ...adapter, ...own.adapter } },
      outbox: { ...outbox, ...own.outbox },
    })
    const run = async () => {
      const job = await world.queue.submit(jobRequest({ webhook: { url: sink.url, progress: 'completion' } }))
      await until(() => sink.types.includes('job_started'), 'the start')
      return job
    }
    return { ...world, run }
  }
  const completed = () => sink.received.filter(({ body }) => body.type === 'job_completed')
  const kept = async () => (await outbox.list()).map(({ delivery }) => (delivery as { type: string }).type)
  const idle = () => until(async () => (await outbox.list()).length === 0, 'an empty outbox')
  return { sink, clock, adapter, outbox, start, completed, kept, idle }
}

t.test('a process that dies between storing the end of a job and telling it: the next one tells it', async (t) => {
  const { adapter, outbox, start, completed, kept, idle } = await disk(t)
  const stored = async (...given: Parameters<NonNullable<QueueAdapter['settle']>>) => {
    await adapter.settle?.(...given)
    return never()
  }
  const first = await start({ adapter: { settle: stored } })
  const { id } = await first.run()
  first.sessions.last.complete()
  await until(async () => (await adapter.get(id))?.info.status === 'succeeded')
  await settle()
  t.same([completed().length, await kept()], [0, ['job_completed']], 'it is not sent before that is known')
  const [left] = await outbox.list()
  const second = await start()
  await idle()
  t.match(completed(), [{ headers: { 'webhook-id': left?.id }, body: { id: left?.id, job: { status: 'succeeded' } } }])
  t.same(completed()[0]?.body.job, await second.job({ id } as JobInfo))
  t.match(await second.queue.deliveries(id), [{ id: left?.id, status: 204 }, { type: 'job_started' }])
  await start()
  await settle()
  t.equal(completed().length, 1)
})

t.test('a process that dies before either is stored, or with the event alone: the job is told of once', async (t) => {
  for (const outboxToo of [true, false]) {
    const { outbox, adapter, start, completed, idle } = await disk(t)
    let dead = false
    const add: DeliveryOutbox['add'] = (given) => (dead && !outboxToo ? never() : outbox.add(given))
    let asked = false
    const settles = () => {
      asked = true
      return never()
    }
    const first = await start({ adapter: { settle: settles }, outbox: { add } })
    const { id } = await first.run()
    await idle()
    dead = true
    first.sessions.last.complete()
    await until(() => asked)
    t.equal((await outbox.list()).length, outboxToo ? 1 : 0)
    t.match((await adapter.get(id))?.info, { status: 'running' })
    await start()
    await until(() => completed().length === 1)
    await idle()
    const error = 'The gateway stopped during the run.'
    t.match(completed(), [{ body: { job: { status: 'failed', error } } }])
  }
})

t.test('a process that dies before it hears that the webhook was told: told again, under the same id', async (t) => {
  const { outbox, start, completed, kept, idle } = await disk(t)
  let dead = false
  const remove: DeliveryOutbox['remove'] = (...given) => (dead ? never() : outbox.remove(...given))
  const first = await start({ outbox: { remove } })
  await first.run()
  await idle()
  dead = true
  first.sessions.last.complete()
  await until(() => completed().length === 1 && first.deliverer.pending === 0)
  t.same(await kept(), ['job_completed'])
  await start()
  await idle()
  t.equal(completed().length, 2)
  t.equal(new Set(completed().map(({ headers }) => headers['webhook-id'])).size, 1)
})

t.test('the events that a job went through are kept in order, and come before what recovery tells', async (t) => {
  const { sink, start, kept, idle } = await disk(t)
  const first = await start()
  await first.run()
  await idle()
  sink.answer = () => {}
  first.sessions.last.park()
  await until(() => sink.types.includes('job_parked'))
  first.sessions.last.wake()
  await until(async () => (await kept()).length === 2)
  sink.received.length = 0
  sink.answer = undefined
  await start()
  await idle()
  t.same(sink.types, ['job_parked', 'job_resumed', 'job_completed'])
  t.match(sink.received[0]?.body, { executionId: 'exec-1', job: { status: 'parked', parkedExecutionId: 'exec-1' } })
  t.match(sink.received[1]?.body, { executionId: 'exec-1', job: { status: 'running', parkedExecutionId: undefined } })
})

t.test('an end that came too late is told nobody, and leaves nothing behind', async (t) => {
  const { adapter, start, completed, idle, outbox } = await disk(t)
  const first = await start()
  const job = await first.run()
  await idle()
  await adapter.update(job.id, { status: 'canceled', finishedAt: 1 })
  first.sessions.last.complete()
  await until(async () => (await first.queue.stats()).running === 0)
  await settle()
  t.same([completed(), await outbox.list(), first.told(job)], [[], [], ['submitted', 'started']])
})

t.test('while the end cannot be written, it is told nobody and not kept; then it is told once', async (t) => {
  const { adapter, clock, start, completed, kept, idle } = await disk(t)
  let fails = 3
  const settles: QueueAdapter['settle'] = async (...given) => {
    if (fails-- > 0) throw new Error('no space left on device')
    return adapter.settle!(...given)
  }
  const first = await start({ adapter: { settle: settles } })
  const job = await first.run()
  await idle()
  first.sessions.last.complete()
  await until(() => fails === 2)
  await settle()
  t.same([await kept(), completed()], [[], []])
  await clock.advance(3_500)
  await until(() => completed().length === 1)
  await idle()
  t.same(first.told(job), ['submitted', 'started', 'completed'])
})

t.test('the cancel of a waiting job is kept with its event as well', async (t) => {
  const { adapter, start, completed, kept, idle, sink } = await disk(t)
  const stored: QueueAdapter['update'] = async (...given) => {
    await adapter.update(...given)
    return never()
  }
  const first = await start({ adapter: { update: stored } })
  const runAt = first.clock.now() + 60_000
  const { id } = await first.queue.submit(jobRequest({ webhook: { url: sink.url }, runAt }))
  void first.queue.cancel(id)
  await until(async () => (await adapter.get(id))?.info.status === 'canceled')
  t.same([completed(), await kept()], [[], ['job_completed']])
  await start()
  await idle()
  t.match(completed(), [{ body: { job: { id, status: 'canceled' } } }])
})

t.test('every change of a job and its event are asked for in one turn of the event loop', async (t) => {
  const { adapter, outbox, start, idle } = await disk(t)
  const turns: string[][] = []
  let turn: string[] | undefined
  const note = (asked: string) => {
    if (!turn) {
      turn = []
      turns.push(turn)
      setImmediate(() => {
        turn = undefined
      })
    }
    turn.push(asked)
  }
  const first = await start({
    adapter: {
      update: (id, patch, expected) => {
        note(`update ${patch.status ?? 'start'}`)
        return adapter.update(id, patch, expected)
      },
      settle: (id, patch, charge, expected) => {
        note(`settle ${patch.status}`)
        return adapter.settle!(id, patch, charge, expected)
      },
    },
    outbox: {
      add: (kept) => {
        note((kept.delivery as { type: string }).type)
        return outbox.add(kept)
      },
    },
  })
  await first.run()
  const session = first.sessions.last
  session.park()
  await settle()
  session.wake()
  await settle()
  session.complete()
  await idle()
  const together = (type: string) => turns.find((asked) => asked.includes(type))
  t.ok(together('job_parked')?.includes('update parked'))
  t.ok(together('job_resumed')?.includes('update running'))
  t.ok(together('job_completed')?.includes('settle succeeded'))
})
