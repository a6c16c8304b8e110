import fc from 'fast-check'
import t from 'tap'
import { NodeLives, type NodeSetting } from '../fixtures/lives/node-lives.js'
import { NODE_STEPS, type Step, steps, take } from '../fixtures/lives/steps.js'
import { rounds } from '../fixtures/rounds.js'
import { hasPostgres } from '../storage/postgres-world.js'

/** Another run: FUZZ_SEED=…; one life again, as a failure names it: FUZZ_PATH=… with that seed. */
const SEED = Number(process.env.FUZZ_SEED ?? 20260101)
const PATH = process.env.FUZZ_PATH
const LIVES = rounds(10, 160)

const setting: fc.Arbitrary<NodeSetting> = fc.record({
  idleReleaseMs: fc.constantFrom(undefined, 0),
  maxConcurrency: fc.constantFrom(1, 3),
})

/** Lives it, lets it calm down, and says what is wrong with what is left. */
async function live(setting: NodeSetting, path: readonly Step[]): Promise<string[]> {
  const lives = await NodeLives.begin(t, setting)
  await take(lives, NODE_STEPS, path)
  await lives.calmDown()
  const faults = await lives.faults()
  await lives.end()
  return faults
}

if (hasPostgres())
  t.test(`${LIVES} lives of nodes on one PostgreSQL`, () =>
    fc.assert(
      fc.asyncProperty(setting, steps(NODE_STEPS), async (setting, path) => {
        const faults = await live(setting, path)
        if (faults.length > 0) throw new Error(faults.join('; '))
      }),
      // nodes take real time: a shorter way to a failure is looked for by whoever looks into it
      { numRuns: LIVES, seed: SEED, endOnFailure: true, ...(PATH !== undefined && { path: PATH }) },
    ),
  )
