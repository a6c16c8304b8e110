import { join } from 'node:path'
import { runInNewContext } from 'node:vm'
import t, { type Test } from 'tap'
import type { SessionNotification } from '../../schemas/notifications.js'
import gatewayPlugin, {
  createSqliteStorage,
  type GatewayPluginOptions,
  type Principal,
  type RunnerHost,
} from '../../src/index.js'
import { createMemoryProfileStore } from '../../src/storage/memory/profile-store.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { attach } from '../fixtures/client.js'
import fastify from '../fixtures/host.js'
import { ScriptedEngine } from '../fixtures/scripted-engine.js'

const provider = { id: 'scripted' }
const profiles = ['demo', 'other'].map((name) => ({ name, engine: 'provider' as const, provider }))

async function build(t: Test, options: Partial<GatewayPluginOptions> = {}) {
  const engine = new ScriptedEngine({ send: (runner) => runner.complete({ result: 'done' }) })
  const given = { allowUnauthenticated: true, profiles, queue: {}, createEngineRunner: engine.create, ...options }
  const host = fastify()
  t.teardown(() => host.close())
  await host.register(gatewayPlugin, given)
  return { host, given, engine }
}

t.test('a host passes the principal that authenticate would return', async (t) => {
  const { host } = await build(t)
  await host.ready()
  const { registry, queue } = host.gateway
  const principal = { allowedProfiles: ['demo'] }
  const session = { cwd: SOME_CWD, profile: 'demo' }
  t.match(await registry.create(session, { principal }), { profile: 'demo' })
  const forbidden = { ...session, profile: 'other' }
  await t.rejects(registry.create(forbidden, { principal }), { code: 'SG_ERR_PROFILE_FORBIDDEN' })
  await t.rejects(registry.create(session, { principal: { allowedProfiles: [] } }), {
    code: 'SG_ERR_PROFILE_FORBIDDEN',
  })
  const unreadable = { allowedProfiles: 'demo' } as unknown as Principal
  await t.rejects(registry.create(session, { principal: unreadable }), { code: 'SG_ERR_PROFILE_FORBIDDEN' })
  const { id } = await registry.create(forbidden)
  t.equal((await registry.page({}, principal)).items.length, 1)
  await t.rejects(registry.close(id, 'server', principal), { code: 'SG_ERR_SESSION_NOT_FOUND' })

  const job = (profile: string) => ({ session: { ...session, profile, prompt: 'go' } })
  t.match(await queue!.submit(job('demo'), { principal }), { profile: 'demo' })
  await queue!.submit(job('other'))
  await t.rejects(queue!.submit(job('other'), { principal }), { code: 'SG_ERR_PROFILE_FORBIDDEN' })
  t.match((await queue!.page({}, principal)).items, [{ profile: 'demo' }])
  t.same((await queue!.page({}, unreadable)).items, [])
  t.equal(host.gateway.profiles.list(principal).profiles.length, 1)
})

t.test(
  'a session that a host creates before it is ready is there once afterwards, or refused with what to do',
  async (t) => {
    const { host } = await build(t, { storage: createMemoryStorage() })
    const { registry } = host.gateway
    const { id } = await registry.create({ cwd: SOME_CWD, profile: 'demo', prompt: 'go' })
    await host.ready()
    t.match(await registry.list(), [{ id, status: 'idle' }])
    await registry.send(id, { type: 'user_message', text: 'again' })
    await until(async () => (await registry.get(id))?.numTurns === 2)

    const early = await build(t, { storage: createSqliteStorage({ path: join(t.testdir(), 'sessions.db') }) })
    const refusal = { code: 'SG_ERR_STORE_UNAVAILABLE', message: /not open.*ready\(\)/ }
    await t.rejects(early.host.gateway.registry.create({ cwd: SOME_CWD, profile: 'demo' }), refusal)
    await early.host.ready()
    await early.host.gateway.registry.create({ cwd: SOME_CWD, profile: 'demo' })
    t.equal((await early.host.gateway.registry.list()).length, 1)

    await early.host.close()
    // it has awaited the start
    await t.rejects(early.host.gateway.queue!.page({}), { code: refusal.code, message: /not open.* to its end\./ })
  },
)

t.test('whom authenticate would refuse may nothing where a host hands that on', async (t) => {
  const { host } = await build(t, { profileStore: createMemoryProfileStore() })
  await host.ready()
  const { registry, queue, profiles } = host.gateway
  const session = { cwd: SOME_CWD, profile: 'demo' }
  const job = { session: { ...session, prompt: 'go' } }
  const { id } = await registry.create(session)
  // one that is no Promise, as a query builder gives
  const query = runInNewContext("Promise.resolve({ allowedProfiles: ['demo'] })")
  t.notOk(query instanceof Promise)
  for (const refused of [null, false, 0, '', Promise.resolve({ allowedProfiles: ['demo'] }), query]) {
    const principal = refused as unknown as Principal
    await t.rejects(registry.create(session, { principal }), { code: 'SG_ERR_PROFILE_FORBIDDEN' })
    await t.rejects(queue!.submit(job, { principal }), { code: 'SG_ERR_PROFILE_FORBIDDEN' })
    await t.rejects(registry.close(id, 'server', principal), { code: 'SG_ERR_SESSION_NOT_FOUND' })
    t.same((await registry.page({}, principal)).items, [])
    t.same(profiles.list(principal), { profiles: [], canManage: false })
    await t.rejects(profiles.create({ name: 'new', engine: 'provider', provider }, principal), {
      code: 'SG_ERR_PROFILES_NOT_MANAGEABLE',
    })
  }
  t.match(await registry.create(session, { principal: 'ann' as unknown as Principal }), { profile: 'demo' })
})

t.test('a host that says in a hook of its own who asks is asked about it again over a socket', async (t) => {
  const host = fastify()
  t.teardown(() => host.close())
  host.addHook('onRequest', async (request) => {
    Object.assign(request, { principal: { allowedProfiles: ['demo'], name: 'ann' } })
  })
  const createEngineRunner = new ScriptedEngine().create
  await host.register(gatewayPlugin, { authenticate: ({ principal }) => principal, profiles, createEngineRunner })
  const url = await host.listen({ port: 0 })
  const session = await host.gateway.registry.create({ cwd: SOME_CWD, profile: 'demo' })
  const client = await attach(t, `${url}/v1`, session.id)
  client.send({ type: 'ping', id: 'p' })
  await client.untilFrame('ack')
  t.equal(client.closed, undefined)
})

t.test('a host hears of notifications that nobody configured', async (t) => {
  const { host } = await build(t)
  await host.ready()
  const { registry, notifications, executions, profiles, queue } = host.gateway
  t.ok(executions && profiles && queue)
  const heard: SessionNotification[] = []
  const stop = notifications.on((notification) => void heard.push(notification))
  const { id } = await registry.create({ cwd: SOME_CWD, profile: 'demo', prompt: 'go' })
  await until(() => heard.length === 1)
  t.match(heard, [{ type: 'turn_completed', sessionId: id, preview: 'done' }])
  stop()
  await registry.close(id)
  await new Promise(setImmediate)
  t.equal(heard.length, 1)
})

t.test('a host ends a session for one of the reasons that clients know, and by no other', async (t) => {
  const { host } = await build(t)
  await host.ready()
  const { registry } = host.gateway
  const { id } = await registry.create({ cwd: SOME_CWD, profile: 'demo' })
  const told: string[] = []
  registry.on('session_event', ({ event }) => void (event.type === 'session_closed' && told.push(event.reason)))
  for (const reason of ['maintenance', '', null])
    for (const ended of [registry.close(id, reason as never), registry.end(id, reason as never)])
      await t.rejects(
        ended as Promise<unknown>,
        { code: 'SG_ERR_VALIDATION', errors: [{ path: 'reason' }] },
        String(reason),
      )
  t.match(await registry.get(id), { status: 'idle' }, 'and nothing has ended')
  t.match(await registry.close(id, 'client'), { status: 'closed' })
  await until(() => told.length > 0)
  t.same(told, ['client'])
})

t.test('a factory that returns no runner is an engine that could not be started', async (t) => {
  const whole = { capabilities: { permissionModes: ['default'] }, start() {}, send() {}, interrupt() {}, close() {} }
  for (const made of [undefined, null, 'runner', {}, { ...whole, start: undefined }, { ...whole, capabilities: {} }]) {
    const { host } = await build(t, { createEngineRunner: () => made as never })
    const payload = { cwd: SOME_CWD, profile: 'demo' }
    const answer = await host.inject({ method: 'POST', url: '/v1/sessions', payload })
    t.equal(answer.statusCode, 502)
    t.match(answer.json(), { code: 'SG_ERR_ENGINE_START', detail: 'createEngineRunner returned no runner.' })
    t.same(await host.gateway.registry.list(), [], 'nothing is left registered')
  }
})

t.test('what a runner lacks is named', async (t) => {
  const methods = { start: async () => {}, send() {}, interrupt: async () => {}, close: async () => {} }
  const capabilities = { permissionModes: ['default'] }
  for (const [made, lack] of [
    [{ ...methods, capabilities, send: undefined, close: 'none' }, 'send(), no close()'],
    [{ ...methods, capabilities: { permissionModes: 'default' } }, 'list in capabilities.permissionModes'],
  ] as const) {
    const { host } = await build(t, { createEngineRunner: () => made as never })
    const answer = await host.inject({
      method: 'POST',
      url: '/v1/sessions',
      payload: { cwd: SOME_CWD, profile: 'demo' },
    })
    t.match(answer.json().detail, `It has no ${lack}.`)
  }
  const throwing = Object.defineProperty({ ...methods }, 'capabilities', {
    get() {
      throw new Error('not yet')
    },
  })
  const { host } = await build(t, { createEngineRunner: () => throwing as never })
  const answer = await host.inject({ method: 'POST', url: '/v1/sessions', payload: { cwd: SOME_CWD, profile: 'demo' } })
  t.match(answer.json(), { code: 'SG_ERR_ENGINE_START' })
})

t.test('methods of a runner that are done when they return are taken', async (t) => {
  let told: RunnerHost | undefined
  const runner = {
    capabilities: { permissionModes: ['default'] },
    start(host: RunnerHost) {
      told = host
    },
    send() {},
    interrupt() {},
    close() {},
  }
  const errors: string[] = []
  const logger = { info() {}, warn() {}, error: (_: object, message: string) => void errors.push(message) }
  const { host } = await build(t, { createEngineRunner: () => runner as never, logger })
  const create = (payload: object) =>
    host.inject({ method: 'POST', url: '/v1/sessions', payload: { cwd: SOME_CWD, profile: 'demo', ...payload } })
  const refused = await create({ permissionMode: 'plan' })
  t.equal(refused.statusCode, 400, 'also to let go of one that cannot do what was asked')
  const { id, status } = (await create({})).json()
  t.ok(told)
  t.equal(status, 'idle')
  t.equal((await host.inject({ method: 'DELETE', url: `/v1/sessions/${id}` })).json().status, 'closed')
  t.strictSame(errors, [])
})

t.test('a logger that throws, or rejects, costs its lines alone', async (t) => {
  const fails = () => {
    throw new Error('the log is full')
  }
  for (const one of [fails, async () => fails()]) {
    const logger = { info: one, warn: one, error: one, debug: one, trace: one, isLevelEnabled: fails }
    const { host } = await build(t, { logger })
    await host.ready()
    const { registry, queue } = host.gateway
    registry.on('session_event', fails)
    const { id } = await registry.create({ cwd: SOME_CWD, profile: 'demo', prompt: 'go' })
    const job = await queue!.submit({ session: { cwd: SOME_CWD, profile: 'demo', prompt: 'go' } })
    await until(async () => (await registry.get(id))?.numTurns === 1)
    await until(async () => (await queue!.get(job.id))?.status === 'succeeded')
    t.match(await registry.close(id), { status: 'closed' })
  }
})

t.test('a second gateway at the same path is refused when it is registered', async (t) => {
  const { host, given } = await build(t)
  await t.rejects(async () => host.register(gatewayPlugin, given), {
    code: 'SG_ERR_OPTION',
    message: /^basePath: .*"\/v1"/,
  })
})

t.test('a job that is handed in before the start is refused when the host closes instead', async (t) => {
  const { host } = await build(t)
  const submitted = host.gateway.queue!.submit({ session: { cwd: SOME_CWD, profile: 'demo', prompt: 'go' } })
  const refused = t.rejects(submitted, { code: 'SG_ERR_SHUTTING_DOWN' })
  await host.close()
  await refused
})
