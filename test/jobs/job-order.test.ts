import t from 'tap'
import type { JobEvent, JobEventType, JobStatus } from '../../schemas/jobs.js'
import { JobOrder } from '../../src/jobs/job-order.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const STATUS: Record<JobEventType, JobStatus> = {
  job_submitted: 'queued',
  job_started: 'running',
  job_progress: 'running',
  job_parked: 'parked',
  job_resumed: 'running',
  job_retrying: 'queued',
  job_completed: 'succeeded',
}

function order() {
  const clock = new VirtualClock()
  const told: string[] = []
  const jobs = new JobOrder(clock, ({ type, job: { attempt } }) => void told.push(`${type.slice(4)} ${attempt}`))
  const happensAt = (node: number, type: JobEventType, attempt = 1, more: object = {}) =>
    jobs.take(
      { type, ts: 1000, job: { id: 'j', createdAt: 1000, status: STATUS[type], attempt, ...more } } as JobEvent,
      node,
    )
  const happens = (type: JobEventType, attempt?: number, more?: object) => happensAt(1, type, attempt, more)
  return { clock, told, happens, happensAt, jobs }
}

t.test('what one node does before another is told before it, whichever is heard first', async (t) => {
  const { told, happens } = order()
  happens('job_started')
  happens('job_progress')
  t.same(told, [], 'it is waited for who took it in')
  happens('job_submitted')
  t.same(told.splice(0), ['submitted 1', 'started 1', 'progress 1'])
  happens('job_started', 2)
  happens('job_retrying', 2)
  t.same(told.splice(0), ['retrying 2', 'started 2'])
  happens('job_resumed', 2)
  happens('job_completed', 2)
  happens('job_parked', 2)
  t.same(told.splice(0), ['parked 2', 'resumed 2', 'completed 2'])
})

t.test('one that is canceled elsewhere as it is taken in ends last', async (t) => {
  const { told, happens } = order()
  happens('job_completed', 1, { status: 'canceled' })
  happens('job_submitted')
  t.same(told, ['submitted 1', 'completed 1'])
})

t.test('what is missing is given up, and told no more when it comes after all', async (t) => {
  const { clock, told, happens } = order()
  happens('job_started')
  happens('job_progress')
  await clock.advance(500)
  t.same(told.splice(0), ['started 1', 'progress 1'])
  happens('job_submitted')
  t.same(told, [], 'it would take the job back')
  happens('job_completed')
  happens('job_progress')
  t.same(told, ['completed 1'], 'and nothing comes after the end')
})

t.test('of what began before somebody listened nothing is waited for', async (t) => {
  const { told, happens } = order()
  happens('job_progress', 1, { startedAt: 1 })
  happens('job_retrying', 2, { startedAt: 1 })
  t.same(told.splice(0), ['progress 1', 'retrying 2'])
  const other = order()
  other.happens('job_resumed')
  t.same(other.told, ['resumed 1'])
})

t.test('of what waited before somebody listened nothing is waited for either', async (t) => {
  const { told, happens } = order()
  happens('job_started', 1, { createdAt: 500 })
  happens('job_completed')
  t.same(told.splice(0), ['started 1', 'completed 1'])
  const retried = order()
  retried.happens('job_started', 2, { createdAt: 500 })
  t.same(retried.told, ['started 2'])
  const canceled = order()
  canceled.happens('job_completed', 1, { status: 'canceled', createdAt: 500 })
  t.same(canceled.told, ['completed 1'])
})

t.test('a park that is told after it was given up does not take the job back, and the next one is told', async (t) => {
  const { clock, told, happensAt } = order()
  happensAt(1, 'job_submitted')
  happensAt(1, 'job_started')
  happensAt(2, 'job_resumed')
  await clock.advance(500)
  happensAt(2, 'job_progress')
  t.same(told.splice(0), ['submitted 1', 'started 1', 'resumed 1', 'progress 1'])
  happensAt(1, 'job_parked')
  t.same(told, [])
  happensAt(2, 'job_parked')
  happensAt(1, 'job_resumed')
  happensAt(1, 'job_parked')
  t.same(told.splice(0), ['parked 1', 'resumed 1', 'parked 1'])
  const unknown = order()
  unknown.happensAt(2, 'job_resumed')
  unknown.happensAt(1, 'job_parked')
  t.same(unknown.told, ['resumed 1'], 'nor where nothing else was heard of it')
})

t.test('a node whose clock is behind tells of what it takes in before another one has begun it', async (t) => {
  const { clock, told, happens, jobs } = order()
  jobs.begin()
  await clock.advance(30_000)
  const behind = { createdAt: 1000 - 29_000 }
  happens('job_started', 1, behind)
  t.same(told, [], 'it was taken in since somebody listens, by whichever clock')
  happens('job_submitted', 1, behind)
  t.same(told.splice(0), ['submitted 1', 'started 1'])
  happens('job_started', 1, { id: 'old', createdAt: 1000 - 30_500 })
  t.same(told, ['started 1'])
})

t.test('one that is begun once more at the same attempt is not held up', async (t) => {
  const { told, happens } = order()
  happens('job_submitted')
  happens('job_started')
  happens('job_started')
  t.same(told, ['submitted 1', 'started 1', 'started 1'])
})

t.test('nothing is told to those who have gone', async (t) => {
  const { clock, told, happens, jobs } = order()
  happens('job_started')
  jobs.clear()
  await clock.advance(500)
  t.same(told, [])
})
