import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { UNLIMITED } from '../../src/principal.js'
import { nothingUsed } from '../../src/sessions/session-facts.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { buildJournaled, eventsOf } from '../fixtures/journaled.js'
import { buildParked, native, ok } from '../fixtures/parked.js'
import type { ScriptedEngine, ScriptedRunner } from '../fixtures/scripted-engine.js'

/** A session that was parked, got its result and is in the rest of its turn: its record is still in the store. */
async function woken(t: Test) {
  const world = await buildJournaled(t, { script: native })
  const { registry, engine, gateway } = world
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0 })
  await until(() => engine.last.sent.length === 1)
  await engine.last.defer('e1')
  await until(() => registry.here(id)?.status === 'parked')
  await gateway.executions.submit('e1', ok)
  await until(() => engine.runners.length === 2 && engine.last.settled.length === 1)
  return { ...world, id, runner: engine.last }
}

t.test('a turn that goes on after a crash is not told as running again', async (t) => {
  const { id, again } = await woken(t)
  const statuses = async ({ registry }: Awaited<ReturnType<typeof again>>) =>
    (await eventsOf({ registry }, id)).flatMap((event) => (event.type === 'status_changed' ? event.status : []))
  const second = await again()
  await until(() => second.engine.runners.length === 1 && second.engine.last.settled.length === 1)
  t.same((await statuses(second)).slice(-3), ['running', 'parked', 'running'])
  void second.engine.last.host.requestPermission({ toolName: 'write', toolUseId: 'u1', input: {} }).catch(() => {})
  await until(() => second.registry.here(id)?.pendingPermissions === 1)
  // somebody looked
  await second.clock.advance(2_000)
  await until(() => second.registry.here(id)?.status === 'parked')
  const third = await again()
  t.equal(third.registry.here(id)?.status, 'parked')
  t.same((await statuses(third)).slice(-2), ['awaiting_approval', 'parked'])
  const [request] = third.registry.here(id)!.parked!.permissions!
  await third.registry.resolvePermission(id, request!.id, { behavior: 'deny' }, UNLIMITED)
  await until(() => third.registry.here(id)?.status === 'running')
  third.engine.last.complete()
  await until(() => third.registry.here(id)?.status === 'idle')
  t.same((await statuses(third)).slice(-4), ['awaiting_approval', 'parked', 'running', 'idle'])
})

t.test('a message that was taken in a woken turn is begun after a crash, once that turn is over', async (t) => {
  const { registry, id, again } = await woken(t)
  await registry.send(id, { type: 'user_message', text: 'later', id: 'c1' })
  const { registry: next, engine } = await again()
  await until(() => engine.runners.length === 1 && engine.last.settled.length === 1, 'the turn that was cut off')
  await next.send(id, { type: 'user_message', text: 'later', id: 'c1' })
  engine.last.complete()
  await until(() => engine.last.sent.length === 1, 'the message')
  t.same(engine.last.sent, [{ text: 'later', commandId: 'c1' }])
  engine.last.complete()
  await until(() => next.here(id)?.status === 'idle')
  const said = (await eventsOf({ registry: next }, id)).filter(({ type }) => type === 'user_message')
  t.equal(said.length, 2, 'told once')
})

t.test('what a woken turn had used by a crash counts with what is used as it is done again', async (t) => {
  const call = (runner: ScriptedRunner, uuid: string, outputTokens: number) => {
    const usage = { ...nothingUsed(), outputTokens }
    const message = { role: 'assistant', content: uuid, usage }
    runner.host.emit({ type: 'assistant_message', uuid, parentToolUseId: null, message })
  }
  const goesOn = ({ engine }: { engine: ScriptedEngine }) =>
    until(() => engine.runners.length === 1 && engine.last.settled.length === 1, 'the turn that was cut off')
  const { registry, engine, gateway, again } = await buildJournaled(t, { script: native })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0 })
  const told = (by: typeof registry, uuid: string) =>
    until(async () => (await eventsOf({ registry: by }, id)).some((event) => 'uuid' in event && event.uuid === uuid))
  await until(() => engine.last.sent.length === 1)
  call(engine.last, 'known to the snapshot', 100)
  await engine.last.defer('e1')
  await until(() => registry.here(id)?.status === 'parked')
  await gateway.executions.submit('e1', ok)
  await until(() => engine.runners.length === 2 && engine.last.settled.length === 1)
  call(engine.last, 'lost', 20)
  await told(registry, 'lost')
  const second = await again()
  await goesOn(second)
  call(second.engine.last, 'lost again', 7)
  await told(second.registry, 'lost again')
  const third = await again()
  await goesOn(third)
  call(third.engine.last, 'done again', 3)
  third.engine.last.complete({ usage: { ...nothingUsed(), outputTokens: 103 } })
  await until(() => third.registry.here(id)?.status === 'idle')
  t.equal(third.registry.here(id)?.usage.outputTokens, 130)
  const end = (await eventsOf({ registry: third.registry }, id)).find(({ type }) => type === 'turn_completed')
  t.match(end, { usage: { outputTokens: 130 } }, 'as those are told who count by it')
})

t.test('an answer that was given in a woken turn is the answer after a crash, too', async (t) => {
  const { registry, id, runner, again } = await woken(t)
  void runner.host.requestPermission({ toolName: 'write', toolUseId: 'u1', input: {} }).catch(() => {})
  await until(() => registry.here(id)?.pendingPermissions === 1 || registry.here(id)?.status === 'parked')
  const session = await registry.open(id, UNLIMITED)
  await registry.resolvePermission(id, session.pendingPermissions[0]!.id, { behavior: 'allow' }, UNLIMITED)
  const { engine, registry: next } = await again()
  await until(() => engine.runners.length === 1 && engine.last.settled.length === 1, 'the turn that was cut off')
  let decision: unknown
  engine.last.host.requestPermission({ toolName: 'write', toolUseId: 'u1', input: {} }).then(
    (decided) => (decision = decided),
    (error) => (decision = error),
  )
  await until(
    () => decision !== undefined || next.here(id)?.pendingPermissions === 1,
    'an answer, or the question again',
  )
  t.match(decision, { behavior: 'allow' })
})

t.test('an answer to what was asked after a wake is in the record of a store of parked sessions', async (t) => {
  const { registry, engine, executions, store, id, park } = await buildParked(t)
  await park()
  await executions.submit('e1', ok)
  await until(() => engine.runners.length === 2 && engine.last.settled.length === 1)
  // waited for with a limit, so that it is not parked again
  const allowed = engine.last.host.requestPermission({ toolName: 'write', toolUseId: 'u1', input: { path: 'a' } })
  await until(async () => (await registry.get(id))?.pendingPermissions === 1)
  const session = await registry.open(id, UNLIMITED)
  await registry.resolvePermission(id, session.pendingPermissions[0]!.id, { behavior: 'allow' }, UNLIMITED)
  t.match(await allowed, { behavior: 'allow' })
  const next = await buildGateway(t, { parking: { store }, script: native })
  await until(
    () => next.engine.runners.length === 1 && next.engine.last.settled.length === 1,
    'the turn that was cut off',
  )
  const { host } = next.engine.last
  const again = host.requestPermission({ toolName: 'write', toolUseId: 'u1', input: { path: 'a' } })
  await until(async () => (await next.registry.get(id))?.pendingPermissions === 0, 'nobody is asked')
  t.match(await again, { behavior: 'allow', updatedInput: { path: 'a' } })
})

/** A session on a durable storage that waits for `e1` and two answers, and whose directory can be away: no engine can be built then. */
async function inMountedDirectory(t: Test) {
  const cwd = join(realpathSync(mkdtempSync(join(tmpdir(), 'parked-'))), 'mount')
  mkdirSync(cwd)
  const world = await buildJournaled(t, { script: native })
  const { registry, engine } = world
  const { id } = await registry.create({ cwd, prompt: 'go', approvalTimeoutMs: 0 })
  await until(() => engine.last.sent.length === 1)
  const ask = (toolUseId: string) =>
    void engine.last.host.requestPermission({ toolName: 'write', toolUseId, input: {} }).catch(() => {})
  return { ...world, id, ask, unmount: () => rmSync(cwd, { recursive: true }), mount: () => mkdirSync(cwd) }
}

t.test('a result that was confirmed while no engine could be built is gone on with after a crash', async (t) => {
  const { registry, engine, gateway, id, again, unmount, mount } = await inMountedDirectory(t)
  await engine.last.defer('e1')
  await until(() => registry.here(id)?.status === 'parked')
  unmount()
  t.match(await gateway.executions.submit('e1', ok), { applied: true })
  await registry.durable(id)
  mount()
  const next = await again()
  await until(() => next.engine.runners[0]?.settled.length === 1, 'the result')
  t.same(next.engine.last.settled, [{ executionId: 'e1', result: ok }])
})

t.test('what was answered while no engine could be built is not asked for again', async (t) => {
  const { registry, clock, id, ask, unmount } = await inMountedDirectory(t)
  ask('u1')
  ask('u2')
  await until(() => registry.here(id)?.status === 'parked')
  const [first, second] = registry.here(id)!.parked!.permissions!
  unmount()
  await registry.resolvePermission(id, first!.id, { behavior: 'allow' }, UNLIMITED)
  await registry.durable(id)
  await registry.resolvePermission(id, second!.id, { behavior: 'allow' }, UNLIMITED)
  // the next try is far away, and nobody looks
  await clock.advance(50_000)
  const session = await registry.open(id, UNLIMITED)
  t.same(session.pendingPermissions, [])
  const late = registry.resolvePermission(id, second!.id, { behavior: 'deny' }, UNLIMITED)
  await t.rejects(late, { code: 'SG_ERR_PERMISSION_NOT_FOUND' }, 'the first answer wins')
})
