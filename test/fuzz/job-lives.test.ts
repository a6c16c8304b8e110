import fc from 'fast-check'
import t from 'tap'
import { JobLives, type JobSetting } from '../fixtures/lives/job-lives.js'
import { JOB_STEPS, type Step, steps, take } from '../fixtures/lives/steps.js'
import { rounds } from '../fixtures/rounds.js'

/** Another run: FUZZ_SEED=…; one queue again, as a failure names it: FUZZ_PATH=… with that seed. */
const SEED = Number(process.env.FUZZ_SEED ?? 20260101)
const PATH = process.env.FUZZ_PATH
const QUEUES = rounds(100, 2_000)

const setting = (isDurable: boolean, hasHostsQueue: boolean): fc.Arbitrary<JobSetting> =>
  fc.record({
    ...{ isDurable: fc.constant(isDurable), hasHostsQueue: fc.constant(hasHostsQueue) },
    maxConcurrency: fc.constantFrom(1, 2, 50),
    maxJobDurationMs: fc.constantFrom(undefined, undefined, 5_000),
    maxParkedDurationMs: fc.constantFrom(undefined, undefined, 5_000),
    idleReleaseMs: fc.constantFrom(undefined, 0),
    dailyTokenLimit: fc.constantFrom(undefined, undefined, 30),
    maxSessions: fc.constantFrom(undefined, undefined, 2),
    isHostBroken: fc.boolean(),
  })

/** Lives it, lets it calm down, and says what is wrong with what is left. */
async function live(setting: JobSetting, path: readonly Step[]): Promise<string[]> {
  const lives = await JobLives.begin(setting)
  await lives.submit(1)
  await take(lives, JOB_STEPS, path)
  await lives.calmDown()
  const faults = await lives.faults()
  const { processes } = lives
  await processes.end()
  const { pendingTimers } = processes.clock
  if (pendingTimers > 0) faults.push(`${pendingTimers} timers go on after the end`)
  return faults
}

const queues = (isDurable: boolean, without: readonly string[] = [], hasHostsQueue = false) =>
  fc.assert(
    fc.asyncProperty(setting(isDurable, hasHostsQueue), steps(JOB_STEPS, without), async (setting, path) => {
      const faults = await live(setting, path)
      if (faults.length > 0) throw new Error(faults.join('; '))
    }),
    { numRuns: QUEUES, seed: SEED, ...(PATH !== undefined && { path: PATH, endOnFailure: true }) },
  )

t.test(`${QUEUES} queues whose jobs are kept`, () => queues(true))

t.test(`${QUEUES} queues whose jobs are not kept`, () =>
  queues(false, ['kill', 'stop', 'holdWrites', 'fillDisk', 'heal']),
)

t.test(`${QUEUES} queues whose jobs a host keeps`, () => queues(true, [], true))
