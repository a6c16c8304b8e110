import t, { type Test } from 'tap'
import { type BuildOptions, buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { buildJournaled, eventsOf } from '../fixtures/journaled.js'
import { buildParked, native, ok } from '../fixtures/parked.js'
import type { Script } from '../fixtures/scripted-engine.js'

/** What the process that goes on with a turn may need to end by it. */
const SOON_MS = 20_000

type World = Awaited<ReturnType<typeof buildJournaled>>
type Next = Awaited<ReturnType<World['again']>>

/** Sessions that were parked, got their results and are in the rest of their turns. */
async function woken(t: Test, count = 1) {
  const world = await buildJournaled(t, { script: native })
  const { registry, engine, gateway } = world
  const ids: string[] = []
  for (let n = 1; n <= count; n++) {
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: `${n}`, approvalTimeoutMs: 0 })
    await until(() => registry.here(id)?.status === 'running' && engine.last.sent.length === 1)
    await engine.last.defer(`e${n}`)
    await until(() => registry.here(id)?.status === 'parked')
    ids.push(id)
  }
  for (let n = 1; n <= count; n++) await gateway.executions.submit(`e${n}`, ok)
  await until(() => engine.runners.length === 2 * count)
  return { ...world, ids, id: ids[0]! }
}

const goesOn = ({ engine }: Next, count = 1) =>
  until(
    () => engine.runners.length === count && engine.runners.every(({ settled }) => settled.length === 1),
    'the turns that were cut off',
  )

const detailOf = ({ registry }: Next, id: string) => registry.here(id)?.statusDetail

/** Ends the process soon after it went on with its turns, so often. */
async function endSoon(world: Pick<World, 'again' | 'clock'>, times: number, count = 1): Promise<void> {
  for (let n = 1; n <= times; n++) {
    const next = await world.again()
    if (n > 2) await world.clock.advance(SOON_MS)
    await goesOn(next, count)
  }
}

t.test('a turn that ends each process which goes on with it is gone on with alone, and then is held', async (t) => {
  const world = await woken(t)
  const { clock, id } = world
  await endSoon(world, 2)
  const alone = await world.again()
  const { id: other } = await alone.registry.create({ cwd: SOME_CWD })
  await until(() => alone.registry.here(other)?.status === 'idle')
  await clock.advance(SOON_MS - 1)
  t.equal(alone.engine.runners.length, 1, 'the others come first')
  t.equal(alone.registry.here(id)?.status, 'parked')
  await clock.advance(1)
  await until(() => alone.engine.last.settled.length === 1)
  await world.again().then(async (fourth) => {
    await clock.advance(SOON_MS)
    await goesOn(fourth)
  })

  const held = await world.again()
  await until(() => detailOf(held, id) !== undefined, 'why')
  await clock.advance(24 * 3_600_000)
  t.equal(held.engine.runners.length, 0)
  t.match(held.registry.here(id), { status: 'parked' })
  t.match(
    detailOf(held, id),
    /^4 processes in a row .*: interrupt the session to end the turn, or remove it; .* restart of the gateway tries again\.$/,
  )
  const said = await eventsOf(held, id)
  t.match(said.at(-1), { type: 'status_changed', status: 'parked', detail: detailOf(held, id) })
  await held.registry.durable(id)

  const still = await world.again()
  await until(() => still.registry.here(id)?.statusDetail !== undefined)
  await clock.advance(SOON_MS)
  t.same(await eventsOf(still, id), said, 'told once')
  t.equal(still.engine.runners.length, 0)
  await still.registry.send(id, { type: 'interrupt' })
  await until(() => still.registry.here(id)?.status === 'idle')
  t.equal(detailOf(still, id), undefined)

  const after = await world.again()
  await clock.advance(SOON_MS)
  t.equal(after.engine.runners.length, 0)
  t.equal((await after.registry.get(id))?.status, 'idle')
})

t.test('one that is held is tried once more, alone, after a process that was shut down', async (t) => {
  const world = await woken(t)
  const { clock, id } = world
  await endSoon(world, 4)
  const held = await world.again()
  await until(() => detailOf(held, id) !== undefined)
  await held.gateway.close()
  const once = await world.again()
  await clock.advance(SOON_MS - 1)
  t.equal(once.engine.runners.length, 0, 'the others come first')
  await clock.advance(1)
  await goesOn(once)
  const again = await world.again()
  await until(() => detailOf(again, id) !== undefined, 'held again')
  await again.gateway.close()
  const mended = await world.again()
  await clock.advance(SOON_MS)
  await goesOn(mended)
  mended.engine.last.complete()
  await until(() => mended.registry.here(id)?.status === 'idle')
  t.equal(detailOf(mended, id), undefined)
})

t.test('one that is held is removed without an engine', async (t) => {
  const world = await woken(t)
  await endSoon(world, 4)
  const held = await world.again()
  await until(() => detailOf(held, world.id) !== undefined)
  await held.registry.close(world.id)
  t.equal(held.registry.here(world.id), undefined)
  t.equal(held.engine.runners.length, 0)
})

t.test('one that a process has lived with is cleared of how others ended', async (t) => {
  const world = await woken(t)
  for (let round = 1; round <= 3; round++) {
    await endSoon(world, 1)
    const next = await world.again()
    await goesOn(next)
    await world.clock.advance(SOON_MS)
    await next.registry.durable(world.id)
  }
})

t.test('of several that went on as processes ended few go on, then each alone; who lives is cleared', async (t) => {
  const world = await woken(t, 3)
  const { clock, ids } = world
  await endSoon(world, 2, 3)
  // one of two ends this process; the third had no part in that
  const third = await world.again()
  await clock.advance(SOON_MS)
  await goesOn(third, 2)
  const fourth = await world.again()
  await clock.advance(SOON_MS)
  await goesOn(fourth, 1)
  t.equal(fourth.registry.here(ids[2]!)?.status, 'running', 'first the one that ended with fewer')
  await clock.advance(SOON_MS)
  await goesOn(fourth, 2)
  await clock.advance(SOON_MS)
  await goesOn(fourth, 3)
  const fifth = await world.again()
  await until(() => ids.some((id) => detailOf(fifth, id) !== undefined), 'one that is held')
  await goesOn(fifth, 2)
  t.same(
    ids.filter((id) => detailOf(fifth, id) !== undefined),
    [ids[1]],
  )
})

t.test('one that waits for the others goes on when somebody says something to it', async (t) => {
  const world = await woken(t)
  await endSoon(world, 2)
  const next = await world.again()
  await next.registry.send(world.id, { type: 'interrupt' })
  await until(() => next.registry.here(world.id)?.status === 'idle')
  await world.clock.advance(2 * SOON_MS)
  t.equal(next.engine.runners.length, 1, 'once')
})

t.test('a process that is shut down was not ended by what it went on with', async (t) => {
  const world = await woken(t)
  for (let round = 1; round <= 4; round++) {
    const next = await world.again()
    await goesOn(next)
    await next.gateway.close()
  }
  await goesOn(await world.again())
})

t.test('no engine begins again before it is known that it does', async (t) => {
  const world = await woken(t)
  const { journal } = world
  journal.hold()
  const next = await world.again()
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  t.equal(next.engine.runners.length, 0)
  journal.release()
  await goesOn(next)
  const writes = journal.writes.filter(({ id }) => id === world.id)
  t.ok(writes.some(({ state }) => state?.midTurn?.endedSoon === 1))
})

/** An engine that is built again and does not start. */
const refused: Script = { ...native, start: () => Promise.reject(new Error('no credentials')) }

for (const isJournaled of [true, false])
  t.test(
    `with ${isJournaled ? 'a journal' : 'a store of what is parked'}: no process ended whose engine did not start`,
    async (t) => {
      const { again, id } = isJournaled ? await woken(t) : await storedWoken(t)
      for (let round = 1; round <= 5; round++) {
        const next = await again({ script: refused })
        await until(() => next.engine.runners.length === 1 && next.registry.here(id)?.status === 'parked')
        t.equal(detailOf(next, id), 'Could not wake, and is tried again: the engine did not start.')
        await next.registry.durable(id)
        await new Promise(setImmediate)
      }
      await goesOn(await again())
    },
  )

/** The same where only what is parked is kept. */
async function storedWoken(t: Test) {
  const { executions, store, engine, clock, id, park } = await buildParked(t)
  await park()
  await executions.submit('e1', ok)
  await until(() => engine.runners.length === 2)
  return {
    id,
    again: (more: BuildOptions = {}) => buildGateway(t, { clock, parking: { store }, script: native, ...more }),
  }
}

t.test('one whose engine starts slowly is cleared once the process has lived with that engine', async (t) => {
  const world = await woken(t)
  const { clock, id } = world
  const counted = async (next: Next) => {
    await next.registry.durable(id)
    return (await world.journal.get(id))?.state.midTurn?.endedSoon
  }
  let start = () => {}
  const started = new Promise<void>((resolve) => {
    start = resolve
  })
  const slow = await world.again({ script: { ...native, start: () => started } })
  await until(() => slow.engine.runners.length === 1)
  await clock.advance(SOON_MS + 5_000)
  t.equal(await counted(slow), 1)
  start()
  await goesOn(slow)
  await clock.advance(SOON_MS - 1)
  t.equal(await counted(slow), 1)
  await clock.advance(1)
  t.equal(await counted(slow), undefined)
})

t.test('the next ones wait for an engine that starts slowly', async (t) => {
  const world = await woken(t, 3)
  await endSoon(world, 2, 3)
  let start = () => {}
  const started = new Promise<void>((resolve) => {
    start = resolve
  })
  const next = await world.again({ script: { ...native, start: () => started } })
  await world.clock.advance(SOON_MS)
  await until(() => next.engine.runners.length === 2)
  await world.clock.advance(5_000)
  await world.clock.advance(SOON_MS)
  t.equal(next.engine.runners.length, 2)
  start()
  await goesOn(next, 2)
  await until(async () => {
    await world.clock.advance(1_000)
    return next.engine.runners.length === 3
  }, 'the next one')
})

t.test('one that is held and goes on with an answer is cleared like any other', async (t) => {
  const world = await buildJournaled(t, { script: native })
  const { registry, engine, gateway, clock } = world
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0 })
  await until(() => engine.last.sent.length === 1)
  await engine.last.defer('e1')
  await engine.last.defer('e2')
  await until(() => registry.here(id)?.status === 'parked')
  await gateway.executions.submit('e1', ok)
  await until(() => engine.runners.length === 2)
  await endSoon(world, 4)
  const held = await world.again()
  await until(() => detailOf(held, id) !== undefined)
  await held.gateway.executions.submit('e2', ok)
  await until(() => held.engine.runners.length === 1)
  await clock.advance(SOON_MS)
  await held.registry.durable(id)
  const next = await world.again()
  await until(() => next.engine.runners.length === 1, 'a start that goes on with it at once')
})
