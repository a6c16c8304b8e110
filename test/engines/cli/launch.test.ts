import { once } from 'node:events'
import { mkdirSync, realpathSync, renameSync, symlinkSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import t, { type Test } from 'tap'
import { agentTable } from '../../../src/engines/cli/agent-table.js'
import {
  type AgentSetup,
  beginLaunch,
  type Launch,
  SLOT_MS,
  START_TIMEOUT_MS,
} from '../../../src/engines/cli/launch.js'
import { SpawnSlots } from '../../../src/engines/cli/spawn-slots.js'
import { systemClock } from '../../../src/lib/clock.js'
import { resolveRoots } from '../../../src/lib/paths-within-roots.js'
import { VirtualClock } from '../../fixtures/virtual-clock.js'

const { signal } = new AbortController()
/** How many must start, and how many be refused, before the race is called run. */
const ENOUGH = 20

/** A root with the directory of a session in it, a place outside, and what exchanges the one for a link to the other. */
function build(t: Test) {
  const world = realpathSync(t.testdir({ root: { work: {} }, outside: {} }))
  const root = join(world, 'root')
  const outside = join(world, 'outside')
  const cwd = join(root, 'work')
  const aside = join(root, 'aside')
  const setup: AgentSetup = {
    ...{ sessionId: 's', row: agentTable().get('claude')!, config: { cwd }, env: { PATH: process.env.PATH! } },
    ...{ trusted: false, slots: new SpawnSlots(), roots: resolveRoots([root]), clock: systemClock },
  }
  const swap = () => {
    renameSync(cwd, aside)
    symlinkSync(outside, cwd)
  }
  const swapBack = () => {
    unlinkSync(cwd)
    renameSync(aside, cwd)
  }
  return { setup, swap, swapBack, outside, cwd, aside }
}

/** Where the kernel says that a child of this launch works. */
async function placeOfChild(launch: Launch): Promise<string> {
  const agent = launch.spawn('/bin/sh', ['-c', 'readlink /proc/self/cwd'])
  const [line] = (await once(agent.child.stdout.setEncoding('utf8'), 'data')) as [string]
  await agent.stop(0)
  return line.trim()
}

t.test('a link that takes the place of the directory after it was checked does not move the child', async (t) => {
  const { setup, swap, swapBack, aside } = build(t)
  const launch = await beginLaunch(setup, signal)
  swap()
  t.equal(await placeOfChild(launch), aside, 'it works in the directory that was checked, whatever it is called now')
  await launch.end()
  await t.rejects(beginLaunch(setup, signal), { message: /outside the allowed roots/ })
  swapBack()
  mkdirSync(aside)
  const again = await beginLaunch(setup, signal)
  t.equal(await placeOfChild(again), setup.config.cwd)
  await again.end()
})

t.test('what the system does not take is told as a start that failed, and the slot is free again', async (t) => {
  const { setup } = build(t)
  const slots = new SpawnSlots(1)
  for (const args of [['a\0b'], ['a'.repeat(200_000)]]) {
    const launch = await beginLaunch({ ...setup, slots }, signal)
    t.throws(() => launch.spawn('/bin/true', args), {
      code: 'SG_ERR_ENGINE_START',
      message: /^The agent could not be started: .*(null bytes|E2BIG: shorten .*128 KiB)/,
    })
    await launch.end()
  }
})

t.test(
  'an agent that does not come to its start keeps others from theirs for a while, and costs them none of their time',
  async (t) => {
    const clock = new VirtualClock()
    const setup = { ...build(t).setup, clock, slots: new SpawnSlots(1) }
    const stuck = await beginLaunch(setup, signal)
    let next: Launch | undefined
    const waiting = beginLaunch(setup, signal).then((launch) => {
      next = launch
    })
    await clock.advance(SLOT_MS - 1)
    t.notOk(next)
    await clock.advance(1)
    await waiting
    t.notOk(stuck.signal.aborted)
    await clock.advance(START_TIMEOUT_MS - SLOT_MS)
    t.ok(stuck.signal.aborted, 'it is waited for no longer')
    t.notOk(next!.signal.aborted, 'the other’s time began with its slot')
    await clock.advance(SLOT_MS)
    t.ok(next!.signal.aborted)
    await Promise.all([stuck.end(), next!.end()])
    const after = await beginLaunch(setup, signal)
    await after.end()
    t.equal(clock.pendingTimers, 0)
  },
)

t.test('the first start of codex in a config directory has no other one beside it there', async (t) => {
  const { setup } = build(t)
  const row = agentTable().get('codex')!
  const slots = new SpawnSlots(3)
  const at = (home: string): AgentSetup => ({ ...setup, row, env: { HOME: home }, slots })
  const first = await beginLaunch(at('/one'), signal)
  const begun: Launch[] = []
  const waiting = [1, 2].map(async () => void begun.push(await beginLaunch(at('/one'), signal)))
  const unwanted = new AbortController()
  const givenUp = beginLaunch(at('/one'), unwanted.signal)
  unwanted.abort()
  await t.rejects(givenUp, { name: 'AbortError' })
  const others = [await beginLaunch(at('/two'), signal), await beginLaunch({ ...setup, slots }, signal)]
  t.strictSame(begun, [], 'those of another directory or agent start meanwhile, and have a slot')
  await Promise.all(others.map((launch) => launch.end()))
  await first.spawn('/bin/true', []).exited
  await first.end()
  await Promise.all(waiting)
  t.equal(begun.length, 2, 'later ones start together')
  const again = await beginLaunch(at('/one'), signal)
  await Promise.all([again, ...begun].map((launch) => launch.end()))
})

t.test('where the first start of codex does not come about, one of those that wait is the first', async (t) => {
  const { setup, swap, swapBack } = build(t)
  const row = agentTable().get('codex')!
  const at: AgentSetup = { ...setup, row, env: { HOME: '/three' }, slots: new SpawnSlots(4) }
  swap()
  await t.rejects(beginLaunch(at, signal), { message: /outside the allowed roots/ })
  swapBack()
  const closed = new AbortController()
  const first = await beginLaunch(at, closed.signal)
  await first.spawn('/bin/true', []).exited
  const begun: Launch[] = []
  const waiting = [1, 2, 3].map(async () => begun.push(await beginLaunch(at, signal)))
  closed.abort()
  await first.end()
  await Promise.race(waiting)
  // another that began beside it would have by then
  const elsewhere = await beginLaunch({ ...at, env: { HOME: '/four' } }, signal)
  t.equal(begun.length, 1)
  await begun[0]!.spawn('/bin/true', []).exited
  await begun[0]!.end()
  await Promise.all(waiting)
  await Promise.all([elsewhere, ...begun].map((launch) => launch.end()))
})

/** Exchanges the directory and the link, in a thread of its own, now and then with a moment's rest. */
const SWAPPER = `
const { renameSync, symlinkSync, unlinkSync } = require('node:fs')
const { parentPort, workerData: { cwd, aside, outside, stop } } = require('node:worker_threads')
const stopped = new Int32Array(stop)
const rest = () => Atomics.wait(stopped, 0, 0, Math.random() < 0.5 ? 0 : 3 * Math.random())
parentPort.postMessage('swaps')
while (Atomics.load(stopped, 0) === 0) {
  renameSync(cwd, aside)
  symlinkSync(outside, cwd)
  rest()
  unlinkSync(cwd)
  renameSync(aside, cwd)
  rest()
}
`

t.test('nor does one that comes and goes all the time: a child starts inside, or not at all', async (t) => {
  const { setup, outside, cwd, aside } = build(t)
  const stop = new SharedArrayBuffer(4)
  const swapper = new Worker(SWAPPER, { eval: true, execArgv: [], workerData: { cwd, aside, outside, stop } })
  await once(swapper, 'message')
  const places: string[] = []
  const refusals: unknown[] = []
  while (places.length < ENOUGH || refusals.length < ENOUGH) {
    try {
      const launch = await beginLaunch(setup, signal)
      places.push(await placeOfChild(launch).finally(launch.end))
    } catch (error) {
      refusals.push((error as { code?: string }).code ?? error)
    }
  }
  Atomics.store(new Int32Array(stop), 0, 1)
  await once(swapper, 'exit')
  t.strictSame(
    places.filter((place) => place !== cwd && place !== aside),
    [],
  )
  t.strictSame([...new Set(refusals)], ['SG_ERR_ENGINE_START'])
})
