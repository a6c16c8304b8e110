import fc from 'fast-check'
import t from 'tap'
import { UNLIMITED } from '../../src/principal.js'
import { EARLIER, Life, type Setting } from '../fixtures/lives/life.js'
import { faultsOf } from '../fixtures/lives/oracle.js'
import { SESSION_STEPS, type Step, steps, take } from '../fixtures/lives/steps.js'
import { rounds } from '../fixtures/rounds.js'
import { turns } from '../fixtures/turns.js'

/** Another run: FUZZ_SEED=…; one life again, as a failure names it: FUZZ_PATH=… with that seed. */
const SEED = Number(process.env.FUZZ_SEED ?? 20260101)
const PATH = process.env.FUZZ_PATH
const LIVES = rounds(100, 2_000)

const ENDINGS = [...[undefined, undefined, undefined, undefined], ...(['close', 'remove', 'fail'] as const)]

const setting = (isDurable: boolean): fc.Arbitrary<Setting> =>
  fc.record({
    isDurable: fc.constant(isDurable),
    idleReleaseMs: fc.constantFrom(undefined, 0, 500),
    parkDelayMs: fc.constantFrom(0, 100),
    maxEvents: fc.constantFrom(undefined, 20),
    approvalTimeoutMs: fc.constantFrom(0, 0, 2_000),
    prompt: fc.constantFrom('begin', 'begin', 'begin', undefined),
    ending: fc.constantFrom(...ENDINGS),
    retentionMs: fc.constantFrom(undefined, undefined, 0, 5_000),
    resumes: fc.constantFrom(undefined, undefined, 'resume', 'fork'),
    isHostBroken: fc.boolean(),
  })

/** What goes on by itself until it waits, and is kept. */
const PLAIN: Setting = {
  ...{ isDurable: true, idleReleaseMs: undefined, parkDelayMs: 0, maxEvents: undefined },
  ...{ approvalTimeoutMs: 0, prompt: 'begin' },
}
const path = (...names: string[]): Step[] => names.map((what) => ({ what, choice: 0, patience: 0 }))

/** Lives that ended badly once. */
const KNOWN: [Setting, Step[]][] = [
  // a result was kept, and not the dispatch that it was for
  [PLAIN, path('holdWrites', 'askTwice', 'defer', 'result', 'answer', 'kill')],
  // a result could not be kept, for what an engine had waited for that was gone by then
  [PLAIN, path('takeOwnTurn', 'defer', 'wait', 'fillDisk', 'result', 'interrupt', 'beSpent', 'failTurn', 'message')],
  // one that was looked at just before the end was to be let go of after it
  [{ ...PLAIN, ending: 'close' }, [{ what: 'pass', choice: 3, patience: 0 }, ...path('attach')]],
]

/** The same of those whose parks alone are kept. */
const KNOWN_PARKS: [Setting, Step[]][] = [
  // it was parked, as the process ended, before the interrupt that was under way had told anything, and its numbers were given twice
  [{ ...PLAIN, isDurable: false }, path('askTwice', 'interrupt', 'follow', 'stop')],
  // it was renamed as its engine was built, and parked again, as the process ended, as it had been before
  [{ ...PLAIN, isDurable: false }, path('ask', 'interrupt', 'stop', 'rename', 'stop')],
]

/** Lives it, lets it calm down, and says what is wrong with what is left. */
async function live(setting: Setting, path: readonly Step[]): Promise<string[]> {
  const life = await Life.begin(setting)
  await take(life, SESSION_STEPS, path)
  const ended = life.end(setting.ending)
  let info = await life.calmDown()
  const { processes } = life
  const { faults } = processes.world
  await ended
  if (life.isRemoved) {
    faults.push(...(await life.left()))
    await processes.stop()
    if (info || (await life.info())) faults.push('was removed, and is there')
    await processes.end()
    return faults
  }
  if (info?.status === 'idle') {
    await life.send({ type: 'user_message', text: 'the last one' })
    info = await life.calmDown()
    if (!life.confirmed.some((one) => 'message' in one && one.message === 'the last one'))
      faults.push('took no message any more')
  }
  const isOver = !info || info.status === 'closed' || info.status === 'failed'
  if (setting.retentionMs !== undefined && isOver && life.host.hasHeardEnd) {
    // a clock that was set back has to come there once more
    await processes.clock.advance(info ? info.lastActivityAt + setting.retentionMs - processes.clock.now() : 0)
    await turns(20)
    info = await life.info()
    if (info) faults.push(`stays although its time is over: ${info.status}`)
    faults.push(...(await life.left()))
    await processes.end()
    return faults
  }
  if (!info) {
    // what is only parked in a store is not there after a stop between its parks
    if (setting.isDurable && !life.isClosed && !life.isEnding) faults.push('is gone')
    return faults
  }
  if (!['idle', 'closed', 'failed'].includes(info.status)) faults.push(`stays ${info.status} (${info.statusDetail})`)
  if (processes.gateway.notifications.inbox.count(UNLIMITED).permissions > 0) faults.push('stays in the inbox')
  const told = await life.told()
  if (told) {
    faults.push(...faultsOf(info, told, life.promised, setting.isDurable))
    for (const follower of life.followers) faults.push(...follower.faultsAgainst(told.attached, told.events))
    if (setting.isDurable) faults.push(...life.host.faultsAgainst(told.events))
  }
  if (setting.resumes === 'resume' && (await life.registry.isContinued(EARLIER)) === isOver)
    faults.push(`${EARLIER} counts as ${isOver ? 'gone on with' : 'free'}`)
  if (life.isNamed && !life.titles.has(info.title)) faults.push(`is named ${info.title}, not ${[...life.titles]}`)
  await turns(1)
  await processes.end()
  const { pendingTimers } = processes.clock
  if (pendingTimers > 0) faults.push(`${pendingTimers} timers go on after the end`)
  return faults
}

const lives = (isDurable: boolean, without: readonly string[] = [], examples: [Setting, Step[]][] = []) =>
  fc.assert(
    fc.asyncProperty(setting(isDurable), steps(SESSION_STEPS, without), async (setting, path) => {
      const faults = await live(setting, path)
      if (faults.length > 0) throw new Error(faults.join('; '))
    }),
    { numRuns: LIVES, seed: SEED, examples, ...(PATH !== undefined && { path: PATH, endOnFailure: true }) },
  )

t.test(`${LIVES} lives of a session that is kept`, () => lives(true, [], KNOWN))

t.test(`${LIVES} lives of a session whose parks alone are kept`, () =>
  lives(false, ['kill', 'holdWrites', 'fillDisk', 'heal'], KNOWN_PARKS),
)
