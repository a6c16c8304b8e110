import t, { type Test } from 'tap'
import { DailyBudget } from '../../src/jobs/budgets.js'
import { newJob } from '../../src/jobs/job.js'
import { SharedQueue } from '../../src/jobs/shared-queue.js'
import { UNLIMITED } from '../../src/principal.js'
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js'
import { jobRequest } from '../fixtures/job-world.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const HOUR_MS = 60 * 60 * 1000

function build(t: Test) {
  const clock = new VirtualClock()
  const memory = createMemoryQueueAdapter()
  const hooks = { whileCounted: async () => {} }
  const counts = () => hooks.whileCounted().then(() => memory.counts!())
  const adapter = { ...memory, counts, async *owned() {} }
  const budget = new DailyBudget({ limit: undefined, clock, adapter, onRollover() {} })
  t.teardown(() => budget.stop())
  const cluster = { n: 1, state: 'serving', nodes: () => [], on: () => () => {}, nudge() {} } as const
  const places = { placeOfJob: async () => undefined, placeOfSession: async () => undefined }
  const queue = new SharedQueue({ cluster: { ...cluster, ...places }, adapter, clock, budget, home: undefined })
  let jobs = 0
  const submitElsewhere = () => {
    const given = { id: `${++jobs}`, now: clock.now(), profile: 'p', generation: 'g', cwd: '/' }
    return adapter.add({ info: newJob(jobRequest(), given), request: jobRequest() })
  }
  return { queue, clock, submitElsewhere, hooks }
}

t.test('a clock that is set back does not make old counts new, and keeps nobody waiting', async (t) => {
  const { queue, clock, submitElsewhere, hooks } = build(t)
  const queued = async () => {
    await queue.recount()
    return queue.queued
  }
  await submitElsewhere()
  t.equal(await queued(), 1)
  await submitElsewhere()
  t.equal(await queued(), 1, 'it is known for a while')
  clock.set(-HOUR_MS)
  t.equal(await queued(), 2)

  await submitElsewhere()
  queue.changed()
  clock.set(-HOUR_MS)
  t.match(await queue.visibleTo(UNLIMITED), { queued: 3 })

  await submitElsewhere()
  queue.changed()
  hooks.whileCounted = async () => {
    hooks.whileCounted = async () => {}
    clock.set(-HOUR_MS)
  }
  t.match(await queue.visibleTo(UNLIMITED), { queued: 4 })
})
