import { createHmac } from 'node:crypto'
import t from 'tap'
import type { ExecutionDispatch } from '../../src/executions/dispatch.js'
import { createGateway, type Gateway } from '../../src/gateway.js'
import { UNLIMITED } from '../../src/principal.js'
import type { SessionRegistry } from '../../src/sessions/registry.js'
import { buildGateway, buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { buildJournaled } from '../fixtures/journaled.js'
import { native, ok } from '../fixtures/parked.js'
import { status, WebhookSink } from '../fixtures/webhook-sink.js'

const deploy = { name: 'deploy', description: 'Deploys.', inputSchema: { type: 'object' }, timeoutMs: 60_000 }

t.test('engines are given the tools, without who is told of their calls', async (t) => {
  const dispatch = { url: 'http://127.0.0.1:9/', secret: 'canary' }
  const { registry, engine } = await buildServer(t, { executions: { tools: [{ ...deploy, dispatch }] } })
  await registry.create({ cwd: SOME_CWD })
  t.same(engine.last.context.deferredTools, [deploy])
})

t.test('a call is POSTed, signed, with the path that takes its result', async (t) => {
  const sink = await WebhookSink.start(t)
  const dispatch = { url: sink.url, headers: { 'x-team': 'blue' }, secret: 'shared' }
  const { registry, engine, call, clock } = await buildServer(t, {
    basePath: '/agents/v1',
    executions: { tools: [{ ...deploy, dispatch }] },
    script: native,
  })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  const { host } = engine.last
  const expiresAt = clock.now() + 60_000
  await host.deferExecution({ executionId: 'a b', toolName: 'deploy', input: { to: 'production' }, expiresAt })
  await host.deferExecution({ executionId: 'other', toolName: 'undeclared', input: {} })
  host.waitForExecutions()
  await until(() => sink.received.length === 1)
  const [received] = sink.received
  const resultPath = '/agents/v1/executions/a%20b/result'
  t.same(received!.body, {
    executionId: 'a b',
    sessionId: id,
    toolName: 'deploy',
    input: { to: 'production' },
    expiresAt,
    resultPath,
  })
  const { headers, text } = received!
  t.match(headers, { 'x-team': 'blue', 'webhook-id': 'a b' })
  const signed = `a b.${headers['webhook-timestamp']}.${text}`
  t.equal(headers['webhook-signature'], `v1,${createHmac('sha256', 'shared').update(signed).digest('base64')}`)
  await until(async () => (await registry.get(id))?.status === 'parked')
  t.same((await call('POST', resultPath.slice('/agents/v1'.length), ok)).json, { applied: true, sessionId: id })
  t.equal(sink.received.length, 1, 'nobody is told of a tool that was not declared')
})

t.test('a result from inside the dispatch hook is applied once, over REST or in the process', async (t) => {
  const run = async (
    deliver: (execution: ExecutionDispatch) => Promise<unknown>,
    build: typeof buildGateway | typeof buildServer,
  ) => {
    const answers: unknown[] = []
    const seen: ExecutionDispatch[] = []
    const onDispatch = async (execution: ExecutionDispatch) => {
      seen.push(execution)
      answers.push(await deliver(execution))
    }
    const world = await build(t, { executions: { tools: [], onDispatch }, script: native })
    const { registry, engine } = world
    started = world
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
    await until(() => engine.last.sent.length === 1)
    await engine.last.defer('e1')
    await until(() => answers.length === 1)
    t.same(answers, [{ applied: true, sessionId: id }])
    t.match(seen, [{ executionId: 'e1', sessionId: id, toolName: 'elsewhere' }])
    await until(async () => (await registry.get(id))?.status === 'running')
    const settled = engine.runners.flatMap((runner) => runner.settled)
    t.same(settled, [{ executionId: 'e1', result: ok }])
  }
  // biome-ignore lint/suspicious/noExplicitAny: one of two worlds
  let started: any
  await run(
    async ({ resultPath }) => (await started.call('POST', resultPath.slice('/v1'.length), ok)).json,
    buildServer,
  )
  await run(({ executionId }) => started.gateway.executions.submit(executionId, ok), buildGateway)
})

t.test('a redelivery is not dispatched again, and a hook that fails hurts nobody', async (t) => {
  const seen: string[] = []
  const errors: object[] = []
  const { registry, engine, gateway } = await buildGateway(t, {
    executions: {
      tools: [],
      onDispatch: ({ executionId }) => {
        seen.push(executionId)
        throw new Error('no')
      },
    },
    logger: { info() {}, warn() {}, error: (fields) => errors.push(fields) },
    script: native,
  })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  await engine.last.host.deferExecution({ executionId: 'e1', toolName: 'x' })
  await engine.last.host.deferExecution({ executionId: 'e1', toolName: 'x' })
  await engine.last.defer('e1')
  await until(async () => (await registry.get(id))?.status === 'parked')
  t.same(seen, ['e1'])
  t.match(errors, [{ executionId: 'e1' }])
  t.match(await gateway.executions.submit('e1', ok), { applied: true })
})

t.test(
  'tools that engines could not tell apart, or read, or that cannot be dispatched, are refused at the start',
  async (t) => {
    const open = { allowUnauthenticated: true, profiles: [] }
    const cases: [string, object[]][] = [
      ['executions.tools', [deploy, deploy]],
      ['executions.tools', [{ ...deploy, name: 'fs_write' }]],
      ['executions.tools', [{ ...deploy, name: 'has space' }]],
      ['executions.tools.1.inputSchema.type', [deploy, { ...deploy, name: 'other', inputSchema: { type: 'string' } }]],
      ['executions.tools.0.inputSchema.properties', [{ ...deploy, inputSchema: { properties: 3 } }]],
      [
        'executions.tools.0.inputSchema.properties',
        [{ ...deploy, inputSchema: { properties: { version: 'string' } } }],
      ],
      ['executions.tools.0.inputSchema.required', [{ ...deploy, inputSchema: { type: 'object', required: true } }]],
      ['executions.tools.0.dispatch.url', [{ ...deploy, dispatch: { url: 'file:///etc/passwd' } }]],
      [
        'executions.tools.0.dispatch.headers.host',
        [{ ...deploy, dispatch: { url: 'http://h/', headers: { host: 'x' } } }],
      ],
    ]
    for (const [option, tools] of cases)
      t.throws(() => createGateway({ ...open, executions: { tools: tools as never } }), {
        code: 'SG_ERR_OPTION',
        message: RegExp(`^${option}`),
      })
  },
)

for (const [what, end] of [
  ['an interrupt', (registry, id) => registry.send(id, { type: 'interrupt' })],
  ['a removal', (registry, id) => registry.close(id)],
] satisfies [string, (registry: SessionRegistry, id: string) => Promise<unknown>][])
  t.test(`nobody is told of work that ${what} has made vain before it was written down`, async (t) => {
    const sink = await WebhookSink.start(t)
    const told: string[] = []
    const { registry, engine, journal } = await buildJournaled(t, {
      script: native,
      executions: {
        tools: [{ ...deploy, dispatch: { url: sink.url } }],
        onDispatch: ({ executionId }) => void told.push(executionId),
      },
    })
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
    await until(() => engine.last.sent.length === 1)
    const session = await registry.open(id, UNLIMITED)
    await session.durable()
    const defer = (executionId: string) => engine.last.host.deferExecution({ executionId, toolName: 'deploy' })
    journal.hold()
    const deferred = defer('e1')
    const ended = end(registry, id)
    journal.release()
    await Promise.all([deferred, ended])
    if (what === 'a removal') await registry.create({ cwd: SOME_CWD })
    // what comes after it is told, and nothing before that
    await defer('e2')
    await until(() => sink.received.length > 0)
    t.match(told, ['e2'])
    t.match(sink.received, [{ body: { executionId: 'e2' } }])
  })

t.test('nobody is told of work of a job that was canceled before it was written down', async (t) => {
  const told: string[] = []
  const onDispatch = ({ executionId }: ExecutionDispatch) => void told.push(executionId)
  const executions = { tools: [], onDispatch }
  const { gateway, registry, engine, journal } = await buildJournaled(t, { queue: {}, script: native, executions })
  const queue = gateway.queue!
  const begun = async () => {
    const before = engine.runners.length
    const { id } = await queue.submit({ session: { cwd: SOME_CWD, prompt: 'go' } })
    await until(() => engine.runners.length > before && engine.last.sent.length === 1)
    const { sessionId } = engine.last.context
    await (await registry.open(sessionId, UNLIMITED)).durable()
    return { id, sessionId, host: engine.last.host }
  }
  const vain = await begun()
  journal.hold()
  const deferred = vain.host.deferExecution({ executionId: 'e1', toolName: 'deploy' })
  const canceled = queue.cancel(vain.id)
  await until(() => registry.here(vain.sessionId)?.status === 'closed')
  journal.release()
  await deferred
  t.match(await canceled, { status: 'canceled' })
  const next = await begun()
  await next.host.deferExecution({ executionId: 'e2', toolName: 'deploy' })
  await until(() => told.includes('e2'))
  t.same(told, ['e2'])
})

for (const [what, end] of [
  ['a result', (gateway) => gateway.executions.submit('e1', ok)],
  ['an interrupt', ({ registry }, id) => registry.send(id, { type: 'interrupt' })],
  ['a removal', ({ registry }, id) => registry.close(id)],
] satisfies [string, (gateway: Gateway, id: string) => Promise<unknown>][])
  t.test(`a receiver that was not there is told no more of work that ${what} has made vain`, async (t) => {
    const sink = await WebhookSink.start(t)
    sink.answer = status(503)
    const { gateway, registry, engine, clock } = await buildGateway(t, {
      executions: { tools: [{ ...deploy, dispatch: { url: sink.url } }] },
      script: native,
    })
    const { deliverer } = gateway
    const deferred = async (executionId: string) => {
      const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
      await until(() => engine.last.sent.length === 1)
      await engine.last.host.deferExecution({ executionId, toolName: 'deploy', input: {} })
      engine.last.host.waitForExecutions()
      await until(async () => (await registry.get(id))?.status === 'parked')
      return id
    }
    const id = await deferred('e1')
    await deferred('e2')
    await until(() => deliverer.counts.failedAttempts === 2, 'that both were refused')
    await end(gateway, id)
    sink.answer = undefined
    await clock.advance(1_000)
    await until(() => deliverer.pending === 0, 'that nothing waits')
    t.same(
      sink.received.map(({ body }) => body.executionId),
      ['e1', 'e2', 'e2'],
    )
  })

for (const [what, end] of [
  [
    'ended',
    async ({ gateway }, id) => {
      await gateway.registry.end(id)
      return gateway
    },
  ],
  [
    'failed',
    async ({ gateway, engine }) => {
      engine.last.host.emit({ type: 'session_error', message: 'out of memory' })
      return gateway
    },
  ],
  [
    'cut off by a crash',
    async ({ gateway, kill, again }) => {
      kill()
      await gateway.deliverer.close()
      return (await again()).gateway
    },
  ],
] satisfies [string, (world: Awaited<ReturnType<typeof buildJournaled>>, id: string) => Promise<Gateway>][])
  t.test(`a receiver that was not there is told no more of work of a turn that was ${what}`, async (t) => {
    const sink = await WebhookSink.start(t)
    sink.answer = status(503)
    const world = await buildJournaled(t, {
      executions: { tools: [{ ...deploy, dispatch: { url: sink.url } }] },
    })
    const { gateway, registry, engine, clock } = world
    const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
    await until(() => engine.last.sent.length === 1)
    await engine.last.host.deferExecution({ executionId: 'e1', toolName: 'deploy', input: {} })
    await until(() => gateway.deliverer.counts.failedAttempts === 1)
    const last = await end(world, id)
    const { deliverer } = last
    await until(() => deliverer.counts.failedAttempts === 1)
    await until(async () => (await last.registry.get(id))?.status !== 'running')
    const before = sink.received.length
    sink.answer = undefined
    // long enough for what is at rest to be left to the storage alone
    await clock.advance(10_000)
    await until(() => deliverer.pending === 0, 'that nothing waits')
    t.equal(sink.received.length, before)
  })

t.test('a receiver that was not there is not told after a restart of work that was made vain before it', async (t) => {
  const sink = await WebhookSink.start(t)
  sink.answer = status(503)
  const { gateway, registry, engine, again } = await buildJournaled(t, {
    executions: { tools: [{ ...deploy, dispatch: { url: sink.url } }] },
    script: native,
  })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  for (const executionId of ['e1', 'e2'])
    await engine.last.host.deferExecution({ executionId, toolName: 'deploy', input: {} })
  engine.last.host.waitForExecutions()
  await until(async () => (await registry.get(id))?.status === 'parked')
  await until(() => gateway.deliverer.counts.failedAttempts === 1)
  await gateway.executions.submit('e1', ok)
  await gateway.close()
  sink.answer = undefined
  const before = sink.received.length
  const next = await again()
  await until(() => next.gateway.deliverer.pending === 0, 'that nothing waits')
  t.same(
    sink.received.slice(before).map(({ body }) => body.executionId),
    ['e2'],
  )
})

t.test('a receiver that was not there is told no more of a call that a crash took from its turn', async (t) => {
  const sink = await WebhookSink.start(t)
  sink.answer = status(503)
  const { gateway, registry, engine, clock, kill, again } = await buildJournaled(t, {
    executions: { tools: [{ ...deploy, dispatch: { url: sink.url } }] },
    script: native,
  })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  await engine.last.host.deferExecution({ executionId: 'e1', toolName: 'elsewhere' })
  engine.last.host.waitForExecutions()
  await until(async () => (await registry.get(id))?.status === 'parked')
  await gateway.executions.submit('e1', ok)
  await until(() => engine.last.settled.length === 1)
  await engine.last.host.deferExecution({ executionId: 'e2', toolName: 'deploy', input: {} })
  await until(() => gateway.deliverer.counts.failedAttempts === 1)
  kill()
  await gateway.deliverer.close()

  const { gateway: next, engine: nextEngine } = await again()
  await until(() => nextEngine.runners.length === 1 && nextEngine.last.settled.length === 1, 'the turn goes on')
  await until(() => next.deliverer.counts.failedAttempts === 1)
  const before = sink.received.length
  sink.answer = undefined
  await clock.advance(10_000)
  await until(() => next.deliverer.pending === 0, 'that nothing waits')
  t.equal(sink.received.length, before)
  await nextEngine.last.host.deferExecution({ executionId: 'e2', toolName: 'deploy', input: {} })
  await until(() => sink.received.length === before + 1, 'told of a call that is made again')
})

t.test(
  'a receiver that wants no calls of one tool any more is left alone with those of that tool, wherever it stands',
  async (t) => {
    const sink = await WebhookSink.start(t)
    const dispatch = { url: sink.url }
    const [left, other] = [deploy, { ...deploy, name: 'roll_back' }].map((tool) => ({ ...tool, dispatch }))
    let calls = 0
    const call = async ({ registry, engine }: Awaited<ReturnType<typeof buildGateway>>, toolName: string) => {
      await registry.create({ cwd: SOME_CWD, prompt: 'go' })
      await until(() => engine.last.sent.length === 1)
      await engine.last.host.deferExecution({ executionId: `call ${++calls}`, toolName, input: {} })
    }
    const world = await buildJournaled(t, { executions: { tools: [left!, other!] }, script: native })
    sink.answer = status(410)
    await call(world, 'deploy')
    await until(() => world.gateway.deliverer.counts.failedAttempts === 1)
    await until(async () => (await world.storage.outbox.gone!()).length === 1)
    sink.answer = undefined
    const next = await world.again({ executions: { tools: [other!, left!] } })
    await call(next, 'deploy')
    await call(next, 'roll_back')
    await until(() => sink.received.length > 1)
    t.same(
      sink.received.map(({ body }) => body.toolName),
      ['deploy', 'roll_back'],
    )
  },
)
