import fc from 'fast-check'
import t from 'tap'
import { KeyedLives, type KeyedSetting } from '../fixtures/lives/keyed-lives.js'
import { KEYED_STEPS, type Step, steps, take } from '../fixtures/lives/steps.js'
import { rounds } from '../fixtures/rounds.js'

/** Another run: FUZZ_SEED=…; one life again, as a failure names it: FUZZ_PATH=… with that seed. */
const SEED = Number(process.env.FUZZ_SEED ?? 20260101)
const PATH = process.env.FUZZ_PATH
const LIVES = rounds(50, 1_000)

const setting: fc.Arbitrary<KeyedSetting> = fc.record({
  maxSessions: fc.constantFrom(undefined, undefined, 2),
  maxConcurrency: fc.constantFrom(1, 50),
})

/** Lives it, lets it calm down, and says what is wrong with what is left. */
async function live(setting: KeyedSetting, path: readonly Step[]): Promise<string[]> {
  const lives = await KeyedLives.begin(setting)
  await take(lives, KEYED_STEPS, path)
  await lives.calmDown()
  const faults = await lives.faults()
  await lives.processes.end()
  return faults
}

t.test(`${LIVES} lives of what is asked for under keys`, () =>
  fc.assert(
    fc.asyncProperty(setting, steps(KEYED_STEPS), async (setting, path) => {
      const faults = await live(setting, path)
      if (faults.length > 0) throw new Error(faults.join('; '))
    }),
    { numRuns: LIVES, seed: SEED, ...(PATH !== undefined && { path: PATH, endOnFailure: true }) },
  ),
)
