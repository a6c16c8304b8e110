import t from 'tap'
import type { JobEvent, QueueFrame, QueueStats } from '../../schemas/jobs.js'
import type { JobQueue } from '../../src/jobs/queue.js'
import { QueueFeed } from '../../src/jobs/queue-feed.js'
import type { RelayListener } from '../../src/jobs/queue-relay.js'
import { UNLIMITED } from '../../src/principal.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const turns = () => new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)))

/** A queue that says how it stands when it is let. */
function slowQueue() {
  const listeners = new Map<string, (told: object) => void>()
  const asked: { answer(queued: number): void; fail(): void }[] = []
  const stats = () =>
    new Promise<QueueStats>((resolve, reject) => {
      asked.push({
        answer: (queued) =>
          resolve({ maxConcurrency: 1, queued, running: 0, parked: 0, paused: false, dailyTokensUsed: 0 }),
        fail: () => reject(new Error('no answer')),
      })
    })
  const on = (event: string, listener: (told: object) => void) => {
    listeners.set(event, listener)
    return () => {}
  }
  const feed = new QueueFeed({ stats, on } as unknown as JobQueue)
  const frames: QueueFrame[] = []
  let left = false
  const sink = {
    send: (frame: string) => void frames.push(JSON.parse(frame)),
    leave: () => {
      left = true
    },
  }
  const attach = () => feed.attach(sink, UNLIMITED)
  const happens = (type: string) => listeners.get('job_event')!({ event: { type, job: { id: 'j', profile: 'p' } } })
  return { asked, frames, attach, happens, hasLeft: () => left }
}

t.test('how things stand comes first, and again when they changed while that was asked for', async (t) => {
  const { asked, frames, attach, happens } = slowQueue()
  attach()
  happens('job_submitted')
  await turns()
  t.same(frames, [], 'not before the first frame')
  t.equal(asked.length, 1, 'one question at a time')
  asked[0]!.answer(0)
  await turns()
  t.match(frames, [{ type: 'queue_attached', stats: { queued: 0 } }])
  asked[1]!.answer(1)
  await turns()
  t.match(frames.slice(1), [{ type: 'queue_stats', stats: { queued: 1 } }])
  happens('job_started')
  happens('job_completed')
  await turns()
  t.match(frames.slice(2), [{ type: 'job_event' }, { type: 'job_event' }])
  t.equal(asked.length, 3, 'asked once for what happened in one go')
  asked[2]!.answer(1)
  await turns()
  t.equal(frames.length, 4, 'what did not change is not told again')
})

t.test('who cannot be told how things stand is asked to come back; who has gone is told nothing', async (t) => {
  const one = slowQueue()
  one.attach()
  one.asked[0]!.fail()
  await turns()
  t.ok(one.hasLeft())
  t.same(one.frames, [])

  const other = slowQueue()
  other.attach().detach()
  other.asked[0]!.answer(0)
  await turns()
  t.same(other.frames, [])
})

t.test(
  'a job that one node takes in and another one begins is told as begun last, whichever is heard first',
  async (t) => {
    let here: ((told: { event: JobEvent }) => void) | undefined
    let there: RelayListener | undefined
    const stats = { maxConcurrency: 1, queued: 0, running: 0, parked: 0, paused: false, dailyTokensUsed: 0 }
    const queue = {
      stats: async () => stats,
      on(event: string, listener: NonNullable<typeof here>) {
        if (event === 'job_event') here = listener
      },
      changedElsewhere() {},
    }
    const relay = {
      start: (listener: RelayListener) => {
        there = listener
      },
      stop() {},
    }
    const feed = new QueueFeed(queue as unknown as JobQueue, { relay, clock: new VirtualClock() })
    const statuses: string[] = []
    const send = (text: string) => {
      const frame = JSON.parse(text) as QueueFrame
      if (frame.type === 'job_event') statuses.push(frame.event.job.status)
    }
    feed.attach({ send, leave() {} }, UNLIMITED)
    await turns()
    const event = (type: string, status: string) =>
      ({ type, job: { id: 'j', profile: 'p', attempt: 1, status } }) as JobEvent
    here!({ event: event('job_started', 'running') })
    there!.onEvent(event('job_submitted', 'queued'), 1)
    t.same(statuses, ['queued', 'running'], 'who goes by what was told last shows it as running')
  },
)
