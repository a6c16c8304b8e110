import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { gatewayPlugin } from '../../plugins/gateway.js'
import { createGateway } from '../../src/gateway.js'
import type { Authenticate } from '../../src/options.js'
import { createMemoryProfileStore } from '../../src/storage/memory/profile-store.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { attach, TestClient } from '../fixtures/client.js'
import fastify from '../fixtures/host.js'
import { isProblem } from '../fixtures/problem.js'
import { HANDSHAKE, rawRequest } from '../fixtures/raw-http.js'
import { ScriptedEngine } from '../fixtures/scripted-engine.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const KEY = { authorization: 'Bearer right' }
const OPEN_TO_ALL = ['/healthz', '/readyz']

/** A listening gateway and every route of it, as the router was told. */
async function buildRoutes(t: Test) {
  const engine = new ScriptedEngine({ files: { list: () => [], read: () => undefined } })
  let asked = 0
  const gateway = createGateway(
    {
      authenticate: ({ headers }) => {
        asked++
        return headers.authorization === KEY.authorization ? { canManageProfiles: true } : null
      },
      profiles: [{ name: 'p', engine: 'provider', provider: { id: 'x' } }],
      profileStore: createMemoryProfileStore(),
      queue: {},
      createEngineRunner: engine.create,
      health: true,
      metrics: true,
      // else they are the only routes for everybody, as their own test shows
      docs: 'authenticated',
    },
    { clock: new VirtualClock(), env: {} },
  )
  const app = fastify()
  const routes: { method: string; path: string }[] = []
  app.addHook('onRoute', ({ method, url }) => {
    for (const one of [method].flat()) routes.push({ method: one, path: url })
  })
  await app.register(gatewayPlugin, { gateway } as never)
  await app.listen({ port: 0, host: '127.0.0.1' })
  t.teardown(() => app.close())
  const { id } = await gateway.registry.create({ cwd: SOME_CWD })
  const filled = (path: string) => path.replace(':id', id).replace('*', 'a/b').replace(/:\w+/g, 'p')
  return {
    app,
    gateway,
    engine,
    id,
    routes,
    filled,
    port: (app.server.address() as AddressInfo).port,
    asked: () => asked,
  }
}

t.test('every route asks who is there, HEAD and the methods that are refused included', async (t) => {
  const { app, gateway, engine, id, routes, filled } = await buildRoutes(t)
  const body = (method: string) =>
    ['GET', 'HEAD', 'TRACE', 'OPTIONS'].includes(method) ? {} : { payload: { type: 'close' } }
  const unknown = ['/v1', '/v1/', '/v1/nowhere', '/v1//sessions', '/v1/sessions/', '/v1/sessions/a/b/c'].flatMap(
    (path) => ['GET', 'POST', 'DELETE'].map((method) => ({ method, path })),
  )
  const served = routes.filter(({ path }) => path.startsWith('/v1/') || path === '/metrics')
  t.ok(served.length >= 90, `${served.length} routes were registered`)
  for (const must of [
    '/v1/sessions',
    '/v1/sessions/:id/ws',
    '/v1/sessions/:id/files/*',
    '/v1/openapi.json',
    '/metrics',
  ])
    for (const method of ['GET', 'HEAD'])
      t.match(served, { [served.findIndex((one) => one.path === must && one.method === method)]: { path: must } })
  const documented = Object.keys((await app.inject({ url: '/v1/openapi.json', headers: KEY })).json().paths).filter(
    (path) => !OPEN_TO_ALL.includes(path),
  )
  for (const path of documented)
    t.ok(
      served.some(
        (one) => filled(one.path) === filled(path.replace('/files/{path}', '/files/*').replace(/\{(\w+)\}/g, ':$1')),
      ),
      path,
    )
  for (const { method, path } of [...served, ...unknown]) {
    for (const headers of [{}, { authorization: 'Bearer wrong' }]) {
      const answer = await app.inject({ method: method as 'GET', url: filled(path), headers, ...body(method) })
      const what = `${method} ${path}`
      if (method === 'HEAD') t.same([answer.statusCode, answer.body], [401, ''], what)
      else
        isProblem(
          t,
          { status: answer.statusCode, headers: answer.headers as never, text: answer.body, json: answer.json() },
          401,
          'SG_ERR_UNAUTHENTICATED',
          what,
        )
    }
  }
  t.match(await gateway.registry.get(id), { status: 'idle' }, 'no handler ran')
  t.equal(engine.runners.length, 1)
  for (const path of OPEN_TO_ALL) t.equal((await app.inject(path)).statusCode, 200, path)
  t.same(
    [...new Set(routes.map(({ path }) => path))].filter((path) => !served.some((one) => one.path === path)),
    OPEN_TO_ALL,
    'and there is no other route',
  )
})

t.test('what a caller is shown is left in no cache, where others would be shown it', async (t) => {
  const { app, routes, filled } = await buildRoutes(t)
  const cacheControl = async (url: string) => (await app.inject({ url, headers: KEY })).headers['cache-control']
  // streams, which have no end, and files that are the same for everybody
  const others = /^\/v1\/((queue|notifications)\/events|docs.*)$/
  const read = routes.filter(({ method, path }) => method === 'GET' && !others.test(path))
  t.ok(
    read.some(({ path }) => path === '/readyz'),
    'nor is whether it takes work',
  )
  for (const { path } of read) t.equal(await cacheControl(filled(path)), 'no-store', path)

  const host = fastify()
  host.addHook('onRequest', async (_request, reply) => void reply.header('cache-control', 'private, no-cache'))
  await host.register(gatewayPlugin, { allowUnauthenticated: true, profiles: [] })
  t.teardown(() => host.close())
  t.match(await host.inject('/v1/sessions'), { statusCode: 200, headers: { 'cache-control': 'private, no-cache' } })
})

t.test('an upgrade of any path asks who is there, and answers before it switches', async (t) => {
  const { port, routes, filled, asked } = await buildRoutes(t)
  const paths = new Set(routes.map(({ path }) => filled(path)).filter((path) => !OPEN_TO_ALL.includes(path)))
  for (const path of [...paths, '/v1', '/v1/nowhere', '/v1/sessions/nobody/ws']) {
    for (const method of path === '/metrics' ? ['GET', 'HEAD'] : ['GET', 'HEAD', 'POST', 'PUT', 'OPTIONS']) {
      const before = asked()
      const refused = await rawRequest(port, { method, path, headers: HANDSHAKE })
      t.same([refused.status, refused.upgraded, asked() - before], [401, false, 1], `${method} ${path}`)
    }
    const answer = await rawRequest(port, { path, headers: { ...HANDSHAKE, ...KEY } })
    const switches = path.endsWith('/ws') && !path.includes('nobody')
    const isNowhere = /nowhere|nobody|^\/v1$/.test(path) || (path.endsWith('/a/b') && !path.includes('/files/'))
    t.equal(answer.status, switches ? 101 : isNowhere ? 404 : 400, `${path} with credentials`)
  }
  for (const path of OPEN_TO_ALL) t.equal((await rawRequest(port, { path, headers: HANDSHAKE })).status, 400, path)
})

/** What `authenticate` returns, what a create answers then, and whether the session of another can be seen. */
const PRINCIPALS: [what: string, principal: unknown, create: number, code?: string][] = [
  ...[null, undefined, false, 0, '', Number.NaN, 0n].map((falsy): (typeof PRINCIPALS)[number] => [
    String(falsy),
    falsy,
    401,
    'SG_ERR_UNAUTHENTICATED',
  ]),
  ...[
    'scripted',
    null,
    false,
    { 0: 'scripted' },
    { length: 1, 0: 'scripted' },
    new Set(['scripted']),
    [1],
    [['scripted']],
    [null, 'scripted'],
    () => ['scripted'],
  ].map((allowedProfiles): (typeof PRINCIPALS)[number] => [
    `allowedProfiles: ${JSON.stringify(allowedProfiles) ?? String(allowedProfiles)}`,
    { allowedProfiles },
    500,
    'SG_ERR_AUTHENTICATE_FAILED',
  ]),
  [
    'a function with limits',
    Object.assign(() => {}, { allowedProfiles: 'scripted' }),
    500,
    'SG_ERR_AUTHENTICATE_FAILED',
  ],
  ...[[], ['scripte'], ['SCRIPTED'], ['scripted '], ['*'], ['']].map((allowedProfiles): (typeof PRINCIPALS)[number] => [
    `allowedProfiles: ${JSON.stringify(allowedProfiles)}`,
    { allowedProfiles },
    403,
    'SG_ERR_PROFILE_FORBIDDEN',
  ]),
  ['no limit', {}, 201],
  ['allowedProfiles: undefined', { allowedProfiles: undefined }, 201],
  ['its profile', { allowedProfiles: ['other', 'scripted'] }, 201],
  ['a name', 'somebody', 201],
]

t.test('principals of every form, now or later', async (t) => {
  let principal: unknown = {}
  let answers: (value: unknown) => unknown = (value) => value
  const { call, registry, api } = await buildServer(t, { authenticate: () => answers(principal) })
  const { id } = await registry.create({ cwd: SOME_CWD })
  for (const later of [false, true]) {
    answers = later ? (value) => Promise.resolve(value) : (value) => value
    for (const [what, given, status, code] of PRINCIPALS) {
      principal = given
      const created = await call('POST', '/sessions', { cwd: SOME_CWD })
      if (code) isProblem(t, created, status, code, what)
      else t.equal(created.status, status, what)
      const seen = await call('GET', `/sessions/${id}`)
      t.equal(seen.status, status === 201 ? 200 : status === 403 ? 404 : status, `${what} sees`)
      const list = await call('GET', '/sessions')
      if (status === 403) t.same(list.json, [], `${what} lists nothing`)
      const upgrade = await rawRequest(Number(new URL(api).port), { path: `/v1/sessions/${id}/ws`, headers: HANDSHAKE })
      t.equal(upgrade.status, status === 201 ? 101 : status === 403 ? 404 : status, `${what} upgrades`)
    }
  }
})

t.test('an authenticate hook that throws, rejects or never settles lets nobody in', async (t) => {
  const secret = Object.assign(new Error('ldap password is hunter2'), { statusCode: 200 })
  const throwing: Authenticate[] = [
    () => {
      throw secret
    },
    async () => {
      throw secret
    },
    () => {
      throw undefined
    },
    () => Promise.reject(null),
  ]
  for (const authenticate of throwing) {
    const { call, registry } = await buildServer(t, { authenticate })
    const answer = await call('POST', '/sessions', { cwd: SOME_CWD })
    isProblem(t, answer, 500, 'SG_ERR_AUTHENTICATE_FAILED')
    t.notMatch(answer.text, /hunter2/)
    t.same(await registry.list(), [])
  }
  for (const member of ['allowedProfiles', 'canManageProfiles', 'name', 'id', 'sub', 'toJSON of id']) {
    const fail = () => {
      throw secret
    }
    const trap = member.startsWith('toJSON')
      ? { id: { toJSON: fail } }
      : Object.defineProperty({}, member, { get: fail })
    const { call, registry } = await buildServer(t, { authenticate: () => trap })
    const answer = await call('POST', '/sessions', { cwd: SOME_CWD }, { 'idempotency-key': 'a' })
    isProblem(t, answer, 500, 'SG_ERR_AUTHENTICATE_FAILED')
    t.notMatch(answer.text, /hunter2/)
    t.same(await registry.list(), [], member)
  }

  let asked = 0
  let settle: ((value: unknown) => void) | undefined
  const { call, clock, registry } = await buildServer(t, {
    authenticate: () => {
      asked++
      return new Promise((resolve) => {
        settle = resolve
      })
    },
  })
  const silent = call('POST', '/sessions', { cwd: SOME_CWD })
  await until(() => asked === 1)
  await clock.advance(10_000)
  isProblem(t, await silent, 500, 'SG_ERR_AUTHENTICATE_FAILED')
  settle?.({})
  await new Promise(setImmediate)
  t.same(await registry.list(), [], 'an answer that comes too late lets nobody in either')
  t.equal(clock.pendingTimers, 0)
})

t.test('a stream is asked again: at every command, and at every beat', async (t) => {
  const revocations: [what: string, revoke: Authenticate][] = [
    ['refused', () => null],
    ['failing', () => Promise.reject(new Error('down'))],
    ['limited', () => ({ allowedProfiles: [] })],
  ]
  for (const [what, revoke] of revocations) {
    let authenticate: Authenticate = () => ({})
    const { call, api, engine, clock } = await buildServer(t, { authenticate: (request) => authenticate(request) })
    const { id } = (await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })).json
    await until(() => engine.last.sent.length === 1)
    const [speaking, listening] = [await attach(t, api, id), await attach(t, api, id)]
    const stream = await fetch(`${api}/sessions/${id}/events`, { headers: { accept: 'text/event-stream' } })
    const reader = stream.body!.getReader()
    await reader.read()
    await clock.advance(25_000)
    speaking.send({ type: 'ping', id: 'before' })
    await speaking.untilFrame('ack')

    authenticate = revoke
    for (const type of ['interrupt', 'close']) speaking.send({ type })
    t.same(await speaking.untilClosed(), { code: 4401, reason: 'credentials_no_longer_valid' }, `${what}: at a command`)
    t.equal(listening.closed, undefined)
    await clock.advance(25_000)
    t.same(await listening.untilClosed(), { code: 4401, reason: 'credentials_no_longer_valid' }, `${what}: at the beat`)
    for (let done = false; !done; ) done = (await reader.read()).done
    t.pass(`${what}: server-sent events end too`)

    authenticate = () => ({})
    t.match(
      (await call('GET', `/sessions/${id}`)).json,
      { status: 'running', attachedClients: 0 },
      'nothing was carried out',
    )
    const again = new TestClient(`${api.replace('http', 'ws')}/sessions/${id}/ws`)
    await again.untilFrame('synced')
    again.socket.terminate()
  }
})
