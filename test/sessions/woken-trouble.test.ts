import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { GatewayError } from '../../src/errors.js'
import { UNLIMITED } from '../../src/principal.js'
import { type BuildOptions, buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { FakeSink } from '../fixtures/fake-sink.js'
import { buildJournaled, testStorage } from '../fixtures/journaled.js'
import { buildParked, native, ok } from '../fixtures/parked.js'
import { type Script, ScriptedEngine, type ScriptedRunner } from '../fixtures/scripted-engine.js'

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

  t.test(
    `with ${where}: one whose engine is refused with what cannot be asked what it is is tried again`,
    async (t) => {
      const { registry, id, submitted, refuse, clock, engine } = await waking(t, kept())
      const { proxy, revoke } = Proxy.revocable({} as Error, {})
      revoke()
      refuse(proxy)
      t.match(await submitted, { applied: true })
      t.match(await registry.get(id), { status: 'parked', statusDetail: /is tried again/ })
      await until(() => clock.advance(1_000).then(() => engine.runners.length > 2), 'another try')
    },
  )

  t.test(`with ${where}: one that is deleted meanwhile is not said to be tried again`, async (t) => {
    const { registry, id, submitted } = await waking(t, kept())
    const info = await registry.close(id, 'client')
    t.match(info, { status: 'closed' })
    t.notOk(info.statusDetail)
    await submitted
  })
}

/** What no storage can write down. */
const notJson: NonNullable<Script['snapshot']> = () => ({ engine: 'scripted', state: 1n })
const promised = (async () => ({ engine: 'scripted', state: 1 })) as unknown as NonNullable<Script['snapshot']>
const nothing = (() => undefined) as unknown as NonNullable<Script['snapshot']>

for (const [storage, snapshot, what] of [
  [testStorage(), notJson, 'not JSON'],
  [undefined, notJson, 'not JSON'],
  [testStorage(), promised, 'a promise'],
  [undefined, promised, 'a promise'],
  [testStorage(), nothing, 'nothing'],
  [undefined, nothing, 'nothing'],
] as const) {
  const where = storage ? 'a journal' : 'a store of what is parked'
  t.test(`with ${where}: an engine whose snapshot is ${what} stays, and its session goes on`, async (t) => {
    const failed: unknown[] = []
    const parking = { parkDelayMs: 0, onError: (error: Error) => void failed.push(error) }
    const script: Script = {
      start(runner) {
        runner.snapshot = () => snapshot(runner)
        runner.init()
      },
    }
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

t.test('a repeated result hastens a wake that failed', async (t) => {
  let broken = true
  const start: Script['start'] = (runner) => {
    if (broken && runner.context.restore) throw new Error('no memory')
    runner.init()
  }
  const { registry, engine, executions, id, park } = await buildParked(t, { script: { start } })
  await park()
  t.same(await executions.submit('e1', ok), { applied: true, sessionId: id })
  t.match(await registry.get(id), { status: 'parked', statusDetail: /did not start/, parked: { executions: [] } })
  broken = false
  t.same(await executions.submit('e1', ok), { applied: false, sessionId: id })
  t.equal((await registry.get(id))?.status, 'running')
  t.same(engine.last.settled, [{ executionId: 'e1', result: ok }])
})

t.test('a directory that is not there yet costs neither the session nor the result that was confirmed', async (t) => {
  const cwd = join(realpathSync(mkdtempSync(join(tmpdir(), 'parked-'))), 'mount')
  mkdirSync(cwd)
  const { registry, engine, executions, id, park, clock, store, events } = await buildParked(t, { request: { cwd } })
  await park()
  rmSync(cwd, { recursive: true })
  t.same(await executions.submit('e1', ok), { applied: true, sessionId: id })
  t.match(await registry.get(id), { status: 'parked', statusDetail: /^Could not wake, .* cwd: does not exist/ })
  t.match((await events()).at(-1), { type: 'status_changed', status: 'parked', detail: /does not exist/ })
  const told = (await events()).length
  await clock.advance(60_000)
  t.equal((await events()).length, told, 'and says it once')

  const after = await buildGateway(t, { parking: { store }, script: native, clock })
  await until(async () => (await after.registry.get(id))?.statusDetail?.includes('does not exist'))
  t.match(await after.registry.get(id), { status: 'parked' }, 'neither does a restart')
  await after.gateway.close()

  mkdirSync(cwd)
  t.same(await executions.submit('e1', ok), { applied: false, sessionId: id })
  t.equal((await registry.get(id))?.status, 'running')
  t.notOk((await registry.get(id))?.statusDetail)
  t.same(engine.last.settled, [{ executionId: 'e1', result: ok }])
})

t.test('an engine that cannot be built, whatever it says, keeps the park and is tried again', async (t) => {
  const refusals = [new Error('ENOENT'), new GatewayError('SG_ERR_UNSUPPORTED'), new GatewayError('SG_ERR_TOO_MANY')]
  const script: Script = {
    ...native,
    start: (runner) => {
      const refusal = runner.context.restore && refusals.shift()
      if (refusal) throw refusal
      runner.init()
    },
  }
  const { registry, engine, executions, id, park, clock } = await buildParked(t, { script })
  await park()
  t.match(await executions.submit('e1', ok), { applied: true })
  for (const [at, delayMs] of [1_000, 2_000, 4_000].entries()) {
    await until(() => engine.runners.length === at + 2 && engine.last.closed, 'the next try')
    await until(async () => (await registry.get(id))?.status === 'parked')
    t.match(await registry.get(id), { statusDetail: /tried again/ })
    await clock.advance(delayMs)
  }
  await until(() => engine.last.settled.length === 1)
  t.match(await registry.get(id), { status: 'running' })
})

t.test('what policy forbids by now ends the session', async (t) => {
  const roots = [realpathSync(mkdtempSync(join(tmpdir(), 'root-')))]
  const { executions, id, park, store, gateway } = await buildParked(t)
  await park()
  await gateway.close()
  t.ok(executions)
  const after = await buildGateway(t, { parking: { store }, script: native, allowedCwdRoots: roots })
  t.match(await after.gateway.executions.submit('e1', ok), { applied: true })
  t.match(await after.registry.get(id), { status: 'failed', statusDetail: /outside/ })
})

t.test('a parked session that its agent has lost ends with one error that says what to do', async (t) => {
  const script: Script = {
    ...native,
    start: (runner) => {
      if (runner.context.restore) throw new GatewayError('SG_ERR_AGENT_STATE_GONE')
      runner.init()
    },
  }
  const { registry, executions, id, park, store, clock, events, engine } = await buildParked(t, { script })
  await park()
  t.match(await executions.submit('e1', ok), { applied: true })
  t.match(await registry.get(id), { status: 'failed', statusDetail: /Create a new session/ })
  t.match(
    (await events()).filter(({ type }) => type === 'session_error'),
    [{ code: 'SG_ERR_AGENT_STATE_GONE' }],
  )
  await until(async () => (await store.get(id)) === undefined)
  await clock.advance(600_000)
  t.equal(engine.runners.length, 2, 'it is not tried again')
})

t.test('an answer is told once, however many tries the wake takes', async (t) => {
  let broken = true
  const start: Script['start'] = (runner) => {
    if (broken && runner.context.restore) throw new Error('no memory')
    runner.init()
  }
  const { registry, engine, id, clock, events } = await buildParked(t, {
    request: { approvalTimeoutMs: 0 },
    script: { start },
  })
  void engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: {} })
  await until(async () => (await registry.get(id))?.status === 'parked')
  const [request] = (await registry.get(id))!.parked!.permissions!
  await registry.resolvePermission(id, request!.id, { behavior: 'allow' }, UNLIMITED)
  t.match(await registry.get(id), { status: 'parked', pendingPermissions: 0 })
  await clock.advance(1_000)
  broken = false
  await clock.advance(2_000)
  await until(async () => (await registry.get(id))?.status === 'running')
  t.equal((await events()).filter(({ type }) => type === 'permission_resolved').length, 1)
})

t.test('what an engine asked that then did not start is told to be denied, and waits for nobody', async (t) => {
  const { registry, executions, id, park, events } = await buildParked(t, {
    request: { approvalTimeoutMs: 0 },
    script: {
      async start(runner) {
        runner.init()
        if (!runner.context.restore) return
        void runner.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: {} })
        await new Promise(setImmediate)
        throw new Error('no memory')
      },
    },
  })
  await park()
  await executions.submit('e1', ok)
  t.match(await registry.get(id), { status: 'parked', pendingPermissions: 0 })
  const told = await events()
  t.match(told.at(-2), { type: 'permission_resolved', behavior: 'deny', resolvedBy: 'policy' })
  t.match(told.at(-1), { type: 'status_changed', status: 'parked', detail: /tried again/ })
})

t.test('DELETE does not wait for an engine that does not start', async (t) => {
  const start: Script['start'] = (runner) => {
    runner.init()
    return runner.context.restore ? new Promise<void>(() => {}) : undefined
  }
  const { registry, engine, executions, id, park, store } = await buildParked(t, { script: { start } })
  await park()
  const answer = executions.submit('e1', ok)
  await until(() => engine.runners.length === 2)
  t.match(await registry.close(id), { status: 'closed' })
  t.match(await answer, { applied: true })
  t.ok(engine.last.closed)
  t.equal(await store.get(id), undefined)
})

t.test('an engine that does not start is given up on, and tried again', async (t) => {
  let hangs = true
  const start: Script['start'] = (runner) => {
    runner.init()
    return hangs && runner.context.restore ? new Promise<void>(() => {}) : undefined
  }
  const { registry, engine, executions, id, park, clock } = await buildParked(t, { script: { start } })
  await park()
  const answer = executions.submit('e1', ok)
  await until(() => engine.runners.length === 2)
  await clock.advance(5_000)
  t.match(await answer, { applied: true }, 'whoever brought the result is not kept waiting')
  hangs = false
  await clock.advance(120_000)
  await until(async () => (await registry.get(id))?.status === 'running')
  t.ok(engine.runners[1]!.closed)
  t.equal(engine.last.settled.length, 1)
})

t.test('what an interrupt denies nobody allows any more, however long its engine takes to be told', async (t) => {
  const ran: unknown[] = []
  let start: NonNullable<Script['start']> = (runner) => runner.init()
  const script: Script = { start: (runner) => start(runner) }
  const { registry, engine, id, clock } = await buildParked(t, { script, request: { approvalTimeoutMs: 0 } })
  const ask = (runner: ScriptedRunner) =>
    runner.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: {} })
  void ask(engine.last)
  await until(async () => (await registry.get(id))?.status === 'parked')
  const [asked] = (await registry.get(id))!.parked!.permissions!
  start = () => Promise.reject(new Error('no agent'))
  const interrupted = registry.send(id, { type: 'interrupt' })
  await until(async () => /is tried again/.test((await registry.get(id))?.statusDetail ?? ''))
  await interrupted
  const allow = () => registry.resolvePermission(id, asked!.id, { behavior: 'allow' }, UNLIMITED)
  await t.rejects(allow(), { code: 'SG_ERR_PERMISSION_NOT_FOUND' })
  start = async (runner) => {
    runner.init()
    const answered = ask(runner)
    await t.rejects(allow(), { code: 'SG_ERR_PERMISSION_NOT_FOUND' })
    void answered.then((decision) => ran.push(decision))
  }
  await clock.advance(1_000)
  await until(async () => (await registry.get(id))?.status === 'idle')
  t.match(ran, [{ behavior: 'deny' }])
})

for (const isJournaled of [true, false]) {
  const where = isJournaled ? 'a journal' : 'a store of what is parked'
  t.test(
    `with ${where}: what came in for a session that is removed before it woke is told to who looks at it`,
    async (t) => {
      let isMissing = false
      const start: Script['start'] = (runner) => {
        if (isMissing) throw new Error('not installed')
        runner.init()
      }
      const { registry, executions, id, park } = await buildParked(t, {
        script: { start },
        ...(isJournaled && { storage: testStorage() }),
      })
      await park()
      const sink = new FakeSink()
      ;(await registry.open(id, UNLIMITED)).attach(sink, {})
      await until(() => sink.frames.at(-1)?.type === 'synced')
      isMissing = true
      t.match(await executions.submit('e1', ok), { applied: true })
      t.match(await registry.close(id, 'client'), { status: 'closed' })
      await until(() => sink.events.at(-1)?.type === 'session_closed')
      const told = sink.events.filter(({ type }) => type.startsWith('execution_')).map(({ type }) => type)
      t.same(told, ['execution_dispatched', 'execution_result'])
    },
  )
}
