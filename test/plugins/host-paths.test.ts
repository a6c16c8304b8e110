import cors from '@fastify/cors'
import t from 'tap'
import gatewayPlugin, { createMemoryProfileStore } from '../../src/index.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { attach } from '../fixtures/client.js'
import fastify from '../fixtures/host.js'
import { hostWorld } from '../fixtures/host-world.js'

t.test('the prefix of a registration is the beginning of every path, as for any plugin', async (t) => {
  const host = fastify()
  t.teardown(() => host.close())
  const dispatched: unknown[] = []
  const { engine, options } = hostWorld()
  const tool = { name: 'far', description: '', inputSchema: {}, dispatch: { url: 'http://127.0.0.1:1/' } }
  await host.register(
    async (scope) =>
      scope.register(gatewayPlugin, {
        ...options,
        prefix: '/agents',
        health: true,
        metrics: true,
        executions: { tools: [tool], onDispatch: (execution) => void dispatched.push(execution) },
      }),
    { prefix: '/api' },
  )
  const url = await host.listen({ port: 0 })
  const created = await host.inject({ method: 'POST', url: '/api/agents/v1/sessions', payload: { cwd: SOME_CWD } })
  const { id } = created.json()
  t.equal(created.headers.location, `/api/agents/v1/sessions/${id}`)
  t.equal((await host.inject('/v1/sessions')).statusCode, 404)
  for (const path of ['/healthz', '/metrics']) t.equal((await host.inject(`/api/agents${path}`)).statusCode, 200, path)
  const client = await attach(t, `${url}/api/agents/v1`, id)
  await client.untilFrame('synced')
  await engine.last.host.deferExecution({ executionId: 'e', toolName: 'far', input: {} })
  await until(() => dispatched.length === 1)
  t.match(dispatched, [{ resultPath: '/api/agents/v1/executions/e/result' }])
})

t.test('a list is followed to its end also where the host takes several slashes for one', async (t) => {
  const host = fastify({ routerOptions: { ignoreDuplicateSlashes: true } })
  t.teardown(() => host.close())
  await host.register(gatewayPlugin, hostWorld().options)
  for (let n = 0; n < 2; n++) await host.inject({ method: 'POST', url: '/v1/sessions', payload: { cwd: SOME_CWD } })
  for (const path of ['/v1/sessions', '//v1//sessions', '///v1/sessions']) {
    const first = await host.inject({ path: `${path}?limit=1` } as never)
    const {
      host: server,
      pathname,
      search,
    } = new URL(/^<(.*)>; rel="next"$/.exec(String(first.headers.link))![1]!, 'http://here')
    t.equal(server, 'here', path)
    const second = await host.inject(`${pathname}${search}`)
    t.equal(second.statusCode, 200)
    t.not(second.json()[0].id, first.json()[0].id)
  }
})

t.test('where something was made is told under the prefix as it was asked for', async (t) => {
  const host = fastify()
  t.teardown(() => host.close())
  const authenticate = () => ({ canManageProfiles: true })
  const stores = { profileStore: createMemoryProfileStore(), managedProfiles: {} }
  const { profiles, createEngineRunner } = hostWorld().options
  const given = { authenticate, profiles, queue: {}, createEngineRunner, ...stores }
  await host.register(gatewayPlugin, { ...given, prefix: '/of::all/:tenant(^[\\w ]+$)' })
  for (const [path, body] of [
    ['sessions', { cwd: SOME_CWD }],
    ['jobs', { session: { cwd: SOME_CWD, prompt: 'go' } }],
    ['profiles', { name: 'made', engine: 'provider', provider: { id: 'demo' } }],
  ] as const) {
    const made = await host.inject({ method: 'POST', url: `/of:all/some%20body/v1/${path}`, payload: body })
    t.equal(made.statusCode, 201, made.body)
    const { location } = made.headers
    t.match(location, /^\/of:all\/some%20body\/v1\//)
    t.equal((await host.inject(location!)).statusCode, 200)
  }
})

t.test('a prefix may end in a slash, as for any plugin', async (t) => {
  for (const prefix of ['/agents/', 'agents']) {
    const host = fastify()
    t.teardown(() => host.close())
    await host.register(gatewayPlugin, { ...hostWorld().options, prefix, health: true })
    await host.ready()
    t.same(Object.keys(host.gateways), ['/agents/v1'])
    t.equal((await host.inject('/agents/healthz')).statusCode, 200)
    const created = await host.inject({ method: 'POST', url: '/agents/v1/sessions', payload: { cwd: SOME_CWD } })
    t.equal(created.headers.location, `/agents/v1/sessions/${created.json().id}`)
  }
})

t.test('health or metrics where the host has them already are refused by the name of the option', async (t) => {
  for (const [option, path] of [
    ['health', '/healthz'],
    ['health', '/readyz'],
    ['metrics', '/metrics'],
  ] as const) {
    const given = { ...hostWorld().options, [option]: true }
    const hostWithTwo = fastify()
      .register(gatewayPlugin, given)
      .register(gatewayPlugin, { ...given, basePath: '/two' })
    const hostWithOwn = fastify()
    hostWithOwn.get(path, async () => 'mine')
    hostWithOwn.register(gatewayPlugin, given)
    for (const host of [hostWithTwo, hostWithOwn])
      await t.rejects(async () => host.ready(), {
        code: 'SG_ERR_OPTION',
        message: new RegExp(`^${option}: .*(/healthz|${path})`),
      })
    const beside = fastify()
      .register(gatewayPlugin, given)
      .register(gatewayPlugin, { ...given, prefix: '/two' })
    t.teardown(() => beside.close())
    t.equal((await beside.inject(`/two${path}`)).statusCode, 200)
  }
})

t.test('a gateway in a scope is another than one of the same base path around it, whichever comes first', async (t) => {
  for (const isOuterFirst of [true, false]) {
    const app = fastify()
    t.teardown(() => app.close())
    const inner = () =>
      app.register(async (scope) => void (await scope.register(gatewayPlugin, hostWorld().options)), { prefix: '/in' })
    if (!isOuterFirst) await inner()
    await app.register(gatewayPlugin, hostWorld().options)
    if (isOuterFirst) await inner()
    await app.ready()
    for (const url of ['/v1/sessions', '/in/v1/sessions']) t.equal((await app.inject(url)).statusCode, 200, url)
    t.same(Object.keys(app.gateways), isOuterFirst ? ['/v1', '/in/v1'] : ['/v1'])
  }
})

t.test('two gateways under one base path are told apart by their prefixes', async (t) => {
  const host = fastify()
  t.teardown(() => host.close())
  await host.register(gatewayPlugin, { ...hostWorld().options, prefix: '/a' })
  await host.register(gatewayPlugin, { ...hostWorld().options, prefix: '/b' })
  await host.ready()
  t.same(Object.keys(host.gateways), ['/a/v1', '/b/v1'])
})

t.test('what is at no path of the gateway is its 404, also in a host that answers every path', async (t) => {
  const host = fastify()
  t.teardown(() => host.close())
  host.get('/v1/*', { constraints: { host: 'old.example' } }, async () => 'old')
  host.get('/kept/*', async () => 'kept')
  const authenticate = ({ headers }: { headers: { authorization?: string | undefined } }) =>
    headers.authorization ? {} : null
  const options = { ...hostWorld().options, allowUnauthenticated: false, authenticate }
  await host.register(gatewayPlugin, options)
  await host.register(gatewayPlugin, { ...options, basePath: '/kept' })
  host.get('/*', async (_request, reply) => reply.type('text/html').send('<!doctype html>'))
  const headers = { authorization: 'yes' }
  for (const url of [
    '/v1/jobs',
    '/v1/jobs/1',
    '/v1/queue',
    '/v1/queue/ws',
    '/v1/queue/events',
    '/v1/nowhere',
    '/v1/',
  ]) {
    t.match((await host.inject({ url, headers })).json(), { status: 404, code: 'SG_ERR_NOT_FOUND' }, url)
    t.match((await host.inject(url)).json(), { status: 401, code: 'SG_ERR_UNAUTHENTICATED' }, url)
  }
  t.equal((await host.inject('/elsewhere')).body, '<!doctype html>')
  t.equal((await host.inject({ url: '/v1/x', headers: { host: 'old.example' } })).body, 'old')
  t.equal((await host.inject('/kept/x')).body, 'kept', 'a host that has such a route under it means that')
  t.match((await host.inject({ method: 'POST', url: '/kept/x', headers })).json(), { code: 'SG_ERR_NOT_FOUND' })
})

t.test('a host answers preflights of its own routes under the prefix of the gateway', async (t) => {
  const host = fastify()
  t.teardown(() => host.close())
  await host.register(gatewayPlugin, hostWorld().options)
  await host.register(async (scope) => {
    await scope.register(cors, { origin: 'https://page.example' })
    scope.get('/v1/own', async () => 'own')
  })
  const preflight = { origin: 'https://page.example', 'access-control-request-method': 'GET' }
  const { statusCode, headers } = await host.inject({ method: 'OPTIONS', url: '/v1/own', headers: preflight })
  t.equal(statusCode, 204)
  t.equal(headers['access-control-allow-origin'], 'https://page.example')
})
