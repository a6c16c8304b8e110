import t from 'tap'
import type { SessionCommand } from '../../schemas/commands.js'
import { UNLIMITED } from '../../src/principal.js'
import type { ParkedSessionRecord } from '../../src/sessions/kept/store.js'
import { MemorySessionStore } from '../../src/storage/memory/session-store.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { buildJournaled, eventsOf } from '../fixtures/journaled.js'
import { buildParked, native } from '../fixtures/parked.js'

async function build(t: Parameters<typeof buildJournaled>[0], options: Parameters<typeof buildJournaled>[1] = {}) {
  const world = await buildJournaled(t, options)
  const { registry, engine } = world
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go', approvalTimeoutMs: 0 })
  await until(() => engine.last.sent.length === 1)
  return { ...world, id }
}

const ask = { toolName: 'Write', toolUseId: 'w', input: {} }
const allow = (requestId: string): SessionCommand => ({
  type: 'permission_decision',
  id: 'd',
  requestId,
  behavior: 'allow',
})

t.test('a choice that comes again after a crash does not undo the one after it', async (t) => {
  const { registry, engine, id, again } = await build(t)
  engine.last.complete()
  await registry.send(id, { type: 'set_model', id: 'c1', model: 'a' })
  await registry.send(id, { type: 'set_model', id: 'c2', model: 'b' })
  await registry.send(id, { type: 'set_permission_mode', id: 'c3', mode: 'dontAsk' })
  const next = await again()
  await next.registry.send(id, { type: 'set_model', id: 'c1', model: 'a' })
  await next.registry.send(id, { type: 'set_permission_mode', id: 'c3', mode: 'dontAsk' })
  t.equal(next.engine.runners.length, 0, 'nothing is done')
  await next.registry.send(id, { type: 'user_message', id: 'c4', text: 'hello' })
  t.match(next.engine.last.context.config, { model: 'b', permissionMode: 'dontAsk' })
})

t.test('a choice that the engine refused can be tried again under its id', async (t) => {
  const { registry, engine, id } = await build(t)
  const { last: runner } = engine
  const setModel = runner.setModel.bind(runner)
  runner.setModel = () => Promise.reject(new Error('no such model'))
  const command: SessionCommand = { type: 'set_model', id: 'c1', model: 'a' }
  await t.rejects(registry.send(id, command), { code: 'SG_ERR_ENGINE_REFUSED' })
  runner.setModel = setModel
  await registry.send(id, command)
  t.match(await registry.get(id), { model: 'a' })
})

t.test('an answer that comes again after a crash is acknowledged', async (t) => {
  const { registry, engine, id, again } = await build(t)
  void engine.last.host.requestPermission(ask)
  const [request] = (await registry.open(id, UNLIMITED)).pendingPermissions
  await registry.send(id, allow(request!.id))
  const next = await again()
  await next.registry.send(id, allow(request!.id))
  await t.rejects(next.registry.send(id, { ...allow(request!.id), id: 'another' }), {
    code: 'SG_ERR_PERMISSION_NOT_FOUND',
  })
})

t.test('so is one that woke a session, and one that a crash let nobody take up', async (t) => {
  const { registry, engine, id, again, kill, journal } = await build(t, { script: native })
  void engine.last.host.requestPermission(ask)
  await until(async () => (await registry.get(id))?.status === 'parked')
  const [request] = (await registry.get(id))!.parked!.permissions!
  journal.hold(1)
  const answered = registry.send(id, allow(request!.id))
  await until(() => journal.deposits.length === 1)
  kill()
  journal.release()
  await answered.catch(() => {})
  const next = await again()
  await until(async () => (await next.registry.get(id))?.status === 'running')
  await next.registry.send(id, allow(request!.id))
  next.engine.last.complete()
  await until(async () => (await next.registry.get(id))?.status === 'idle')
  await next.registry.durable(id)
  const last = await again()
  await last.registry.send(id, allow(request!.id))
  const told = (await eventsOf(last, id)).filter(({ type }) => type === 'permission_resolved')
  t.match(told, [{ behavior: 'allow', resolvedBy: 'client' }])
})

t.test('so is one that a store of parked sessions had when the process ended', async (t) => {
  const left = new MemorySessionStore()
  class StoreThatEnds extends MemorySessionStore {
    override async save(record: ParkedSessionRecord): Promise<void> {
      await super.save(record)
      if (record.hasNews && !(await left.get(record.id))) await left.save(record)
    }
  }
  const parking = { store: new StoreThatEnds() }
  const { registry, engine, id } = await buildParked(t, { parking, request: { approvalTimeoutMs: 0 } })
  void engine.last.host.requestPermission(ask)
  await until(async () => (await registry.get(id))?.status === 'parked')
  const [request] = (await registry.get(id))!.parked!.permissions!
  await registry.send(id, allow(request!.id))
  const next = await buildGateway(t, { parking: { store: left }, script: native })
  await until(async () => (await next.registry.get(id))?.status === 'running')
  await next.registry.send(id, allow(request!.id))
  await t.rejects(next.registry.send(id, { ...allow(request!.id), id: 'another' }), {
    code: 'SG_ERR_PERMISSION_NOT_FOUND',
  })
})

t.test('so is a close', async (t) => {
  const { registry, id, again } = await build(t)
  await registry.send(id, { type: 'close', id: 'c1' })
  const next = await again()
  await next.registry.send(id, { type: 'close', id: 'c1' })
  await t.rejects(next.registry.send(id, { type: 'close', id: 'c2' }), { code: 'SG_ERR_SESSION_ENDED' })
})
