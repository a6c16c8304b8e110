import t from 'tap'
import { deferred } from '../../src/lib/deferred.js'
import { UNLIMITED } from '../../src/principal.js'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { ScriptedEngine } from '../fixtures/scripted-engine.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'

const profiles = ['a', 'b'].map((name) => ({ name, engine: 'provider' as const, provider: { id: 'scripted' } }))

t.test('lists are newest first, in pages that a removal does not disturb', async (t) => {
  const { registry } = await buildGateway(t)
  const ids: string[] = []
  for (let n = 0; n < 7; n++) ids.unshift((await registry.create({ cwd: SOME_CWD })).id)
  t.same(
    (await registry.list()).map(({ id }) => id),
    ids,
  )
  const first = await registry.page({ limit: 3 }, UNLIMITED)
  t.same(
    first.items.map(({ id }) => id),
    ids.slice(0, 3),
  )
  await registry.close(ids[2]!)
  const second = await registry.page({ limit: 3, cursor: first.next! }, UNLIMITED)
  t.same(
    second.items.map(({ id }) => id),
    ids.slice(3, 6),
  )
  const third = await registry.page({ limit: 3, cursor: second.next! }, UNLIMITED)
  t.same(
    third.items.map(({ id }) => id),
    ids.slice(6),
  )
  t.equal(third.next, undefined)
  await t.rejects(registry.page({ cursor: 'made up' }, UNLIMITED), { code: 'SG_ERR_VALIDATION' })
})

t.test('a caller sees and touches the sessions of its profiles only', async (t) => {
  const { registry } = await buildGateway(t, { profiles })
  const mine = await registry.create({ cwd: SOME_CWD, profile: 'a' })
  const theirs = await registry.create({ cwd: SOME_CWD, profile: 'b' })
  const limited = { allowedProfiles: new Set(['a']), canManageProfiles: false }
  t.same(
    (await registry.page({}, limited)).items.map(({ id }) => id),
    [mine.id],
  )
  t.equal((await registry.open(mine.id, limited)).id, mine.id)
  await t.rejects(registry.open(theirs.id, limited), { code: 'SG_ERR_SESSION_NOT_FOUND' })
  await t.rejects(registry.create({ cwd: SOME_CWD, profile: 'b' }, { principal: limited }), {
    code: 'SG_ERR_PROFILE_FORBIDDEN',
  })
})

t.test('filters: status, profile and engine', async (t) => {
  const { registry } = await buildGateway(t, { profiles })
  const ended = await registry.create({ cwd: SOME_CWD, profile: 'a' })
  await registry.send(ended.id, { type: 'close' })
  const open = await registry.create({ cwd: SOME_CWD, profile: 'b' })
  await until(async () => (await registry.get(open.id))?.status === 'idle')
  const ids = async (query: object) => (await registry.page(query, UNLIMITED)).items.map(({ id }) => id)
  t.same(await ids({ status: 'closed' }), [ended.id])
  t.same(await ids({ status: 'idle' }), [open.id])
  t.same(await ids({ profile: 'a' }), [ended.id])
  t.same(await ids({ engine: 'cli' }), [])
})

t.test('maxSessions counts what lives; an ended or refused session makes room', async (t) => {
  const { registry } = await buildGateway(t, { maxSessions: 1 })
  await t.rejects(registry.create({ cwd: '/does/not/exist' }))
  const { id } = await registry.create({ cwd: SOME_CWD })
  await t.rejects(registry.create({ cwd: SOME_CWD }), {
    ...{ code: 'SG_ERR_TOO_MANY', retryAfterS: 5 },
    message: /maxSessions.*Try again once/,
  })
  await registry.send(id, { type: 'close' })
  await registry.create({ cwd: SOME_CWD })
})

t.test('two creates at once do not pass one free place', async (t) => {
  const { registry } = await buildGateway(t, { maxSessions: 1 })
  const outcomes = await Promise.allSettled([registry.create({ cwd: SOME_CWD }), registry.create({ cwd: SOME_CWD })])
  t.same(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
})

t.test('a terminal session stays listed for sessionRetentionMs', async (t) => {
  const { registry, clock } = await buildGateway(t, { sessionRetentionMs: 60_000 })
  const { id } = await registry.create({ cwd: SOME_CWD })
  await registry.send(id, { type: 'close' })
  await clock.advance(59_999)
  t.equal((await registry.get(id))?.status, 'closed')
  await clock.advance(1)
  t.equal(await registry.get(id), undefined)
})

t.test('a terminal session goes soon after its time has come while the machine slept', async (t) => {
  const { registry, clock } = await buildGateway(t, { sessionRetentionMs: 24 * 3_600_000 })
  const { id } = await registry.create({ cwd: SOME_CWD })
  await registry.send(id, { type: 'close' })
  await clock.advance(1)
  // which no timer counts
  clock.set(24 * 3_600_000)
  await clock.advance(60_000)
  t.equal(await registry.get(id), undefined)
})

t.test('close removes at once, answers with the final state and tells why', async (t) => {
  const { registry, engine } = await buildGateway(t)
  const { id } = await registry.create({ cwd: SOME_CWD })
  const events: string[] = []
  registry.on(
    'session_event',
    ({ event }) => void events.push(event.type === 'session_closed' ? event.reason : event.type),
  )
  const closing = registry.close(id)
  t.equal(await registry.get(id), undefined)
  t.match(await closing, { id, status: 'closed' })
  t.ok(engine.last.closed)
  await t.rejects(registry.close(id), { code: 'SG_ERR_SESSION_NOT_FOUND' })
  t.equal(events.at(-1), 'server')
})

t.test('observers hear each event with the session as it left it, and one that throws breaks nothing', async (t) => {
  const { registry, engine } = await buildGateway(t)
  const seen: [number, string][] = []
  registry.on('session_event', () => {
    throw new Error('a bug of the host')
  })
  registry.on('session_event', ({ event, session }) => void seen.push([event.seq, session.status]))
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(async () => (await registry.get(id))?.status === 'running')
  engine.last.complete()
  await until(async () => seen.length === (await registry.get(id))?.lastSeq)
  t.same(
    seen.map(([seq]) => seq),
    seen.map((_, index) => index + 1),
  )
  t.same(seen.at(-1)?.[1], 'idle')
})

t.test('an observer that ends the session inside an event cannot reorder the log', async (t) => {
  const { registry, engine } = await buildGateway(t)
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(async () => (await registry.get(id))?.status === 'running')
  const seqs: number[] = []
  registry.on('session_event', ({ event }) => {
    if (event.type === 'assistant_message') registry.send(id, { type: 'close' }).catch(() => {})
  })
  registry.on('session_event', ({ event }) => void seqs.push(event.seq))
  engine.last.say('one')
  engine.last.say('two')
  await until(
    async () => (await registry.get(id))?.status === 'closed' && seqs.at(-1) === (await registry.get(id))?.lastSeq,
  )
  t.same(
    seqs,
    [...seqs].sort((a, b) => a - b),
  )
})

t.test('a host whose code does not answer is waited for two minutes, and not at all at the end', async (t) => {
  const hangs = () => new Promise<never>(() => {})
  for (const hook of ['buildRunnerConfig', 'createEngineRunner'] as const) {
    let asked = 0
    const hang = () => {
      asked++
      return hangs()
    }
    const { registry, clock, gateway } = await buildGateway(t, { maxSessions: 1, [hook]: hang })
    const first = registry.create({ cwd: SOME_CWD })
    first.catch(() => {})
    await until(() => asked === 1)
    await t.rejects(registry.create({ cwd: SOME_CWD }), { code: 'SG_ERR_TOO_MANY' }, hook)
    await clock.advance(120_000)
    await t.rejects(first, { code: 'SG_ERR_ENGINE_START' }, hook)
    const second = registry.create({ cwd: SOME_CWD })
    second.catch(() => {})
    await until(() => asked === 2, 'its place is another one’s')
    void gateway.close()
    await t.rejects(second, { code: 'SG_ERR_SHUTTING_DOWN' }, hook)
  }
})

t.test('an engine whose start does not answer fails its session after two minutes, and is closed', async (t) => {
  let closed = 0
  const hang = { start: () => new Promise<never>(() => {}), close: () => void closed++ }
  const { registry, clock } = await buildGateway(t, { maxSessions: 1, script: hang })
  const { id, status } = await registry.create({ cwd: SOME_CWD })
  t.equal(status, 'starting')
  await clock.advance(120_000)
  const { status: after, statusDetail } = (await registry.get(id))!
  t.match({ after, statusDetail }, { after: 'failed', statusDetail: 'The engine did not start in time.' })
  t.equal(closed, 1)
  await t.resolves(registry.create({ cwd: SOME_CWD }), 'its place is another one’s')
})

t.test('an engine that is built too late is closed once, also when the gateway closed meanwhile', async (t) => {
  const built = deferred()
  let asked = 0
  let closed = 0
  const engine = new ScriptedEngine({ close: () => void closed++ })
  const { registry, clock, gateway } = await buildGateway(t, {
    createEngineRunner: async (context) => {
      asked++
      await built.promise
      return engine.create(context)
    },
  })
  const created = registry.create({ cwd: SOME_CWD })
  created.catch(() => {})
  await until(() => asked === 1)
  await clock.advance(120_000)
  await t.rejects(created, { code: 'SG_ERR_ENGINE_START' })
  await gateway.close()
  built.resolve()
  await until(() => closed > 0)
  await new Promise(setImmediate)
  t.equal(closed, 1)
})

t.test('what buildRunnerConfig returns passes the same policy as a request', async (t) => {
  const forbidden = await buildGateway(t, {
    disableBypassPermissions: true,
    buildRunnerConfig: (request) => ({ ...request, permissionMode: 'bypassPermissions' }),
  })
  await t.rejects(forbidden.registry.create({ cwd: SOME_CWD }), { code: 'SG_ERR_BYPASS_DISABLED' })
  t.same(forbidden.engine.runners, [], 'no engine was started')
  const elsewhere = await buildGateway(t, {
    allowedCwdRoots: [SOME_CWD],
    buildRunnerConfig: (request) => ({ ...request, cwd: '/' }),
  })
  await t.rejects(elsewhere.registry.create({ cwd: SOME_CWD }), { code: 'SG_ERR_CWD_FORBIDDEN' })
  const broken = await buildGateway(t, {
    buildRunnerConfig: () => {
      throw new Error('db password is hunter2')
    },
  })
  await t.rejects(broken.registry.create({ cwd: SOME_CWD }), { code: 'SG_ERR_ENGINE_START', message: /^(?!.*hunter2)/ })
  const host = await buildGateway(t, {
    buildRunnerConfig: async (request) => ({ ...request, env: { A: '1' }, agentOptions: { x: 1 } }),
  })
  await host.registry.create({ cwd: SOME_CWD })
  t.match(host.engine.last.context.config, { env: { A: '1' }, agentOptions: { x: 1 }, permissionMode: 'default' })
})

t.test(
  'profile defaults fill in, an explicit value wins, and the pre-authorisation is stripped where bypass is disabled',
  async (t) => {
    const { registry, engine } = await buildGateway(t, {
      disableBypassPermissions: true,
      profiles: [
        {
          name: 'p',
          engine: 'provider',
          provider: { id: 'scripted' },
          defaults: { model: 'small', permissionMode: 'dontAsk' },
        },
      ],
    })
    await registry.create({ cwd: SOME_CWD, allowDangerouslySkipPermissions: true })
    t.match(engine.last.context.config, { model: 'small', permissionMode: 'dontAsk' })
    t.notOk('allowDangerouslySkipPermissions' in engine.last.context.config)
    await registry.create({ cwd: SOME_CWD, model: 'large', permissionMode: 'default' })
    t.match(engine.last.context.config, { model: 'large', permissionMode: 'default' })
  },
)

t.test('a runner that cannot be built leaves nothing behind', async (t) => {
  const { registry } = await buildGateway(t, {
    createEngineRunner: () => Promise.reject(new Error('no such model')),
  })
  await t.rejects(registry.create({ cwd: SOME_CWD }), { code: 'SG_ERR_ENGINE_START' })
  t.same(await registry.list(), [])
})

t.test('what the built runner cannot do is refused, and it is closed again', async (t) => {
  const { registry, engine } = await buildGateway(t, { script: { capabilities: { permissionModes: ['default'] } } })
  await t.rejects(registry.create({ cwd: SOME_CWD, permissionMode: 'dontAsk' }), { code: 'SG_ERR_PERMISSION_MODE' })
  await t.rejects(registry.create({ cwd: SOME_CWD, resume: 'x' }), { code: 'SG_ERR_UNSUPPORTED' })
  t.ok(engine.runners.every(({ closed }) => closed))
  t.same(await registry.list(), [])
})

t.test('close of the gateway ends every session, refuses new ones and settles', async (t) => {
  const { gateway, registry, engine, clock } = await buildGateway(t, {
    shutdownTimeoutMs: 1_000,
    script: { close: () => new Promise(() => {}) },
  })
  await registry.create({ cwd: SOME_CWD })
  let closed = false
  const closing = gateway.close().then(() => {
    closed = true
  })
  t.equal(gateway.ready, false)
  await t.rejects(registry.create({ cwd: SOME_CWD }), { code: 'SG_ERR_SHUTTING_DOWN' })
  await clock.advance(1_000)
  await closing
  t.ok(closed && engine.last.closed)
  t.equal((await registry.list())[0]?.status, 'closed')
})

t.test(
  'close of the gateway has time left for what is kept in memory to be delivered, whatever an engine does',
  async (t) => {
    const sink = await WebhookSink.start(t)
    sink.answer = (_received, response) => void response.writeHead(503).end()
    const { gateway, registry, clock } = await buildGateway(t, {
      shutdownTimeoutMs: 1_000,
      notifications: { webhook: { url: sink.url, events: ['session_closed'] }, attempts: 2, retryDelayMs: 60_000 },
      script: { close: () => new Promise(() => {}) },
    })
    await registry.create({ cwd: SOME_CWD })
    const closed = gateway.close()
    await until(() => sink.received.length === 1 && sink.open === 0)
    await clock.advance(750)
    await until(() => sink.received.length === 2, 'the second attempt')
    await closed
  },
)

t.test(
  'what a host has resumed in place of what was asked for is in use while its engine is being built',
  async (t) => {
    const asked = deferred<void>()
    const built = deferred<void>()
    const { registry } = await buildGateway(t, {
      buildRunnerConfig: (request) => ({ ...request, resume: 'theirs' }),
      createEngineRunner: async () => {
        asked.resolve()
        await built.promise
        throw new Error('no such model')
      },
    })
    const isInUse = () => Promise.all(['asked', 'theirs'].map((id) => registry.isContinued(id)))
    const created = registry.create({ cwd: SOME_CWD, resume: 'asked' })
    await asked.promise
    t.same(await isInUse(), [true, true])
    built.resolve()
    await t.rejects(created, { code: 'SG_ERR_ENGINE_START' })
    t.same(await isInUse(), [false, false])
  },
)
