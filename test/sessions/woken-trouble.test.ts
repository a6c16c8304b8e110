import t from 'tap'
import { UNLIMITED } from '../../src/principal.js'
import { type BuildOptions, SOME_CWD, until } from '../fixtures/build.js'
import { buildJournaled, testStorage } from '../fixtures/journaled.js'
import { buildParked, ok } from '../fixtures/parked.js'
import { type Script, ScriptedEngine } from '../fixtures/scripted-engine.js'

/** A parked session that has its result, and whose engine is being started again. */
async function waking(t: Parameters<typeof buildParked>[0], options: BuildOptions = {}) {
  let refuse = (_error: Error) => {}
  const started = new Promise<void>((_, reject) => {
    refuse = reject
  })
  const start: Script['start'] = (runner) => {
    runner.init()
    return runner.context.restore ? started : undefined
  }
  const world = await buildParked(t, { script: { start }, ...options })
  await world.park()
  const submitted = world.executions.submit('e1', ok)
  await until(() => world.engine.runners.length === 2)
  return { ...world, submitted, refuse }
}

for (const isJournaled of [true, false]) {
  const kept = (): BuildOptions => (isJournaled ? { storage: testStorage() } : {})
  const where = isJournaled ? 'a journal' : 'a store of what is parked'

  t.test(`with ${where}: nothing follows the close of a session whose engine is being started again`, async (t) => {
    const { registry, id, submitted, events, store } = await waking(t, kept())
    await registry.send(id, { type: 'close' })
    t.match(await submitted, { applied: true })
    const told = await events()
    t.match(told.at(-1), { type: 'session_closed', reason: 'client' })
    const info = await registry.get(id)
    t.match(info, { status: 'closed' })
    t.notOk(info?.statusDetail)
    t.equal(await store.get(id), undefined)
  })

  t.test(`with ${where}: a session whose engine dies while it starts again says why to the end`, async (t) => {
    const { registry, engine, id, submitted, refuse, events } = await waking(t, kept())
    engine.last.host.emit({ type: 'session_error', message: 'gone' })
    refuse(new Error('gone'))
    await submitted
    t.match((await events()).at(-1), { type: 'session_closed', reason: 'error' })
    t.match(await registry.get(id), { status: 'failed', statusDetail: 'gone' })
  })

  t.test(`with ${where}: one that is deleted meanwhile is not said to be tried again`, async (t) => {
    const { registry, id, submitted } = await waking(t, kept())
    const info = await registry.close(id, 'client')
    t.match(info, { status: 'closed' })
    t.notOk(info.statusDetail)
    await submitted
  })
}

/** What no storage can write down. */
const notJson: Script['snapshot'] = () => ({ engine: 'scripted', state: 1n })

for (const storage of [testStorage(), undefined]) {
  const where = storage ? 'a journal' : 'a store of what is parked'
  t.test(`with ${where}: an engine whose snapshot is not JSON stays, and its session goes on`, async (t) => {
    const failed: unknown[] = []
    const parking = { parkDelayMs: 0, onError: (error: Error) => void failed.push(error) }
    const script: Script = { snapshot: notJson }
    const { registry, engine, executions, id } = await buildParked(t, {
      script,
      ...(storage ? { storage } : {}),
      parking,
    })
    await engine.last.defer('e1')
    await until(() => failed.length > 0)
    t.match(await registry.get(id), { status: 'running' })
    t.match(await executions.submit('e1', ok), { applied: true })
    t.equal(engine.runners.length, 1)
    engine.last.complete()
    await until(async () => (await registry.get(id))?.status === 'idle')
    t.ok(registry.isWritable)
    await registry.send(id, { type: 'user_message', text: 'second' })
    await until(() => engine.last.sent.length === 2)
  })
}

t.test('an answer that finds its session woken is one answer to the operator', async (t) => {
  const said: string[] = []
  const logger = { info: (_: object, message: string) => void said.push(message), warn: () => {}, error: () => {} }
  const { registry, engine, executions, id, park } = await buildParked(t, { logger, request: { approvalTimeoutMs: 0 } })
  void engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: {} })
  await park()
  const [asked] = (await registry.get(id))!.parked!.permissions!
  const submitted = executions.submit('e1', ok)
  await registry.resolvePermission(id, asked!.id, { behavior: 'allow' }, UNLIMITED)
  await submitted
  t.equal(said.filter((message) => message === 'approval answered').length, 1)
})

t.test('no engine is left of a session that ends while one is built for it, whenever that is', async (t) => {
  const idleReleaseMs = 60_000
  const engine = new ScriptedEngine({ send: (runner) => runner.complete() })
  let onBuilt: (() => void) | undefined
  const { registry, clock } = await buildJournaled(t, {
    idleReleaseMs,
    createEngineRunner: (context) => {
      onBuilt?.()
      return engine.create(context)
    },
  })
  for (let wait = 0; wait < 12; wait++) {
    onBuilt = undefined
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'first' })
    await until(async () => (await registry.get(id))?.status === 'idle')
    const session = await registry.open(id, UNLIMITED)
    await clock.advance(idleReleaseMs)
    await until(() => session.asleepIdle)
    onBuilt = async () => {
      for (let turn = 0; turn < wait; turn++) await undefined
      await session.close('client')
    }
    await t.rejects(registry.send(id, { type: 'user_message', text: 'second' }), { code: 'SG_ERR_SESSION_ENDED' })
    await until(() => engine.last.closed, `the end of the engine after ${wait}`)
  }
})

t.test('no engine is left of a run that is ended while one is built for it, whenever that is', async (t) => {
  const engine = new ScriptedEngine()
  let onBuilt = () => {}
  const { registry } = await buildJournaled(t, {
    createEngineRunner: (context) => {
      onBuilt()
      return engine.create(context)
    },
  })
  for (let wait = 0; wait < 20; wait++) {
    const id = `run-${wait}`
    onBuilt = async () => {
      for (let turn = 0; turn < wait; turn++) await undefined
      await registry.end(id)
    }
    const created = registry.create({ cwd: SOME_CWD, prompt: 'first' }, { id, jobId: `job-${wait}` })
    await created.catch((error) => t.match(error, { code: 'SG_ERR_SESSION_ENDED' }))
    await until(() => engine.last.closed, `the end of the engine after ${wait}`)
  }
})
