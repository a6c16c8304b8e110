import fc from 'fast-check'
import t from 'tap'
import type { JobEvent, JobInfo } from '../../schemas/jobs.js'
import type { QueueAdapter } from '../../src/jobs/adapter.js'
import { isTerminal } from '../../src/jobs/job.js'
import { utcDay } from '../../src/lib/utc-day.js'
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js'
import { type FakeSession, jobRequest, jobWorld, settle } from '../fixtures/job-world.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

type Step =
  | { do: 'submit'; attempts: number; runInMs: number; priority: number }
  | { do: 'cancel' | 'complete' | 'fail' | 'error' | 'close' | 'remove' | 'park' | 'wake' | 'say'; which: number }
  | { do: 'advance'; ms: number }
  | { do: 'pause'; turns: number }

const which = fc.nat(9)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('submit' as const),
      attempts: fc.integer({ min: 1, max: 3 }),
      runInMs: fc.constantFrom(0, 0, 50),
      priority: fc.integer({ min: -1, max: 1 }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom('cancel', 'complete', 'complete', 'fail', 'error', 'close', 'remove', 'park', 'wake', 'say'),
      which,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(1, 50, 500) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('pause' as const), turns: fc.integer({ min: 1, max: 4 }) }) },
)

/** An adapter whose every answer takes some turns, before it takes effect and after it. @param together it claims several at once */
function slow(adapter: QueueAdapter, delays: number[], together: boolean): QueueAdapter {
  let next = 0
  const turns = async () => {
    for (let left = delays[next++ % delays.length] ?? 0; left > 0; left--) await new Promise(setImmediate)
  }
  const delayed =
    <A extends unknown[], R>(method: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      await turns()
      const result = await method(...args)
      await turns()
      return result
    }
  const { add, claimNext, claim, get, list, update, prune, addDailyTokens, dailyTokens, settle } = adapter
  return {
    add: delayed(add),
    claimNext: delayed(claimNext),
    ...(together && { claim: delayed(claim!) }),
    get: delayed(get),
    list: delayed(list),
    update: delayed(update),
    prune: delayed(prune),
    addDailyTokens: delayed(addDailyTokens),
    dailyTokens: delayed(dailyTokens),
    settle: delayed(settle!),
  }
}

const NEXT: Record<string, string[]> = {
  job_submitted: ['job_started', 'job_completed'],
  job_started: ['job_parked', 'job_retrying', 'job_completed'],
  job_parked: ['job_resumed', 'job_retrying', 'job_completed'],
  job_resumed: ['job_parked', 'job_retrying', 'job_completed'],
  job_retrying: ['job_started', 'job_completed'],
  job_completed: [],
}

/** The one legal story of a job: it begins with its submission, each event may follow the one before, and the last is its end. */
function assertStory(job: JobInfo, events: JobEvent[]): void {
  const story = events.filter(({ type }) => type !== 'job_progress').map(({ type }) => type)
  if (story[0] !== 'job_submitted') throw new Error(`begins with ${story}`)
  for (const [index, type] of story.slice(1).entries())
    if (!NEXT[story[index]!]!.includes(type)) throw new Error(`${type} after ${story[index]} in ${story}`)
  if (events.at(-1)?.type !== 'job_completed') throw new Error(`ends with ${events.at(-1)?.type}`)
  const { status } = events.at(-1)!.job
  if (status !== job.status || !isTerminal(status)) throw new Error(`told ${status}, is ${job.status}`)
  if (story.filter((type) => type === 'job_started').length > job.maxAttempts) throw new Error(`too often: ${story}`)
}

t.test('whatever races, every job has one story and one end, and everything adds up', async (t) => {
  const delays = fc.array(fc.nat(3), { minLength: 1, maxLength: 20 })
  const property = fc.asyncProperty(
    fc.array(step, { minLength: 5, maxLength: 60 }),
    delays,
    fc.integer({ min: 1, max: 3 }),
    fc.boolean(),
    async (steps, delays, maxConcurrency, together) => {
      const clock = new VirtualClock()
      const memory = createMemoryQueueAdapter({ now: () => clock.now() })
      const world = await jobWorld(t, { clock, adapter: slow(memory, delays, together), maxConcurrency })
      const { queue, sessions, events } = world
      sessions.onInterrupt = () => {}
      const submitted: string[] = []
      const waiting: Promise<unknown>[] = []
      let most = 0
      let resumes = 0
      const live = () => sessions.all.filter((session) => !session.ended)
      const at = <T>(list: T[], index: number): T | undefined => list[index % Math.max(1, list.length)]

      const perform = async (one: Step) => {
        switch (one.do) {
          case 'submit': {
            const runAt = clock.now() + one.runInMs
            const request = jobRequest({ attempts: one.attempts, retryDelayMs: 10, priority: one.priority, runAt })
            waiting.push(queue.submit(request).then(({ id }) => submitted.push(id)))
            return
          }
          case 'cancel': {
            const id = at(submitted, one.which)
            if (id !== undefined) waiting.push(queue.cancel(id))
            return
          }
          case 'advance':
            return clock.advance(one.ms)
          case 'pause':
            return settle(one.turns)
          default: {
            const session = at(live(), one.which)
            if (!session) return
            if (one.do === 'park' && session.info.status === 'running') session.park()
            else if (one.do === 'wake' && session.info.status === 'parked') {
              resumes++
              session.wake()
            } else if (session.info.status === 'running') actOn(session, one.do)
            else if (one.do === 'close') session.end('client')
            else if (one.do === 'remove') sessions.remove(session.info.id)
          }
        }
      }
      const actOn = (session: FakeSession, what: string) => {
        if (what === 'complete') session.complete({ tokens: 3 })
        else if (what === 'fail') session.complete({ isError: true, tokens: 2 })
        else if (what === 'error') session.fail('died')
        else if (what === 'say') session.say('hm', 1)
        else if (what === 'close') session.end('client')
        else if (what === 'remove') sessions.remove(session.info.id)
      }

      for (const one of steps) {
        await perform(one)
        const { running } = await queue.stats()
        most = Math.max(most, running)
      }
      for (let round = 0; round < 400; round++) {
        for (const session of live()) {
          if (session.info.status === 'parked') session.wake()
          else if (session.info.status === 'running') session.complete({ tokens: 1 })
        }
        await clock.advance(50)
        await settle(2)
        const { queued, running, parked } = await queue.stats()
        if (queued + running + parked === 0 && waiting.length >= submitted.length && round > 20) break
      }
      await Promise.all(waiting)
      if (most > maxConcurrency + resumes) throw new Error(`${most} ran at once`)
      const jobs = (await memory.list()).map(({ info }) => info)
      for (const job of jobs)
        assertStory(
          job,
          events.filter((event) => event.job.id === job.id),
        )
      if (jobs.length !== submitted.length) throw new Error('a job was lost')
      const { queued, running, parked, dailyTokensUsed } = await queue.stats()
      if (queued !== 0 || running !== 0 || parked !== 0) throw new Error(JSON.stringify(await queue.stats()))
      const tokens = jobs.reduce((sum, { usage }) => sum + usage.tokens, 0)
      const charged = await memory.dailyTokens(utcDay(clock.now()))
      if (tokens !== charged || tokens !== dailyTokensUsed) throw new Error(`${tokens} used, ${charged} charged`)
      queue.drain()
    },
  )
  await fc.assert(property, { numRuns: 150 })
})

t.test('order and one end per job under load', async (t) => {
  const { queue, sessions, events } = await jobWorld(t, { maxConcurrency: 50 })
  sessions.onCreate = (session) => {
    setImmediate(() => {
      session.say('x', 1)
      session.complete({ tokens: 1, isError: sessions.all.length % 7 === 0 })
    })
  }
  const count = 3_000
  const jobs = await Promise.all(Array.from({ length: count }, () => queue.submit(jobRequest())))
  while ((await queue.stats()).queued + (await queue.stats()).running > 0) await settle(1)
  await settle()
  const byJob = new Map<string, JobEvent[]>()
  for (const event of events) byJob.set(event.job.id, [...(byJob.get(event.job.id) ?? []), event])
  t.equal(byJob.size, count)
  for (const { id } of jobs) assertStory((await queue.get(id))!, byJob.get(id)!)
  const started = events.filter(({ type }) => type === 'job_started').map(({ job }) => job.id)
  t.same(
    started,
    jobs.map(({ id }) => id),
    'in the order of their submission',
  )
  t.equal((await queue.stats()).dailyTokensUsed, count)
})
