import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import websocket from '@fastify/websocket'
import t from 'tap'
import WebSocket, { WebSocketServer } from 'ws'
import gatewayPlugin, { createWorkerServer } from '../../src/index.js'
import { silentLogger } from '../../src/lib/logger.js'
import { MemorySessionStore } from '../../src/storage/memory/session-store.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { createSqliteStorage } from '../../src/storage/sqlite/storage.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { attach, TestClient } from '../fixtures/client.js'
import fastify from '../fixtures/host.js'
import { HANDSHAKE } from '../fixtures/raw-http.js'
import { ScriptedEngine } from '../fixtures/scripted-engine.js'
import { turns } from '../fixtures/turns.js'

const world = (basePath = '/v1') => {
  const engine = new ScriptedEngine()
  return {
    allowUnauthenticated: true,
    basePath,
    profiles: [{ name: 'p', engine: 'provider' as const, provider: { id: 'scripted' } }],
    createEngineRunner: engine.create,
  }
}

t.test('inside a host the gateway leaks nothing', async (t) => {
  const host = fastify()
  t.teardown(() => host.close())
  host.post('/echo', async (request) => ({ got: request.body }))
  host.get('/fails', async () => {
    throw new Error("the host's own")
  })
  await host.register(gatewayPlugin, { ...world(), maxBodyBytes: 200 })
  const big = { text: 'x'.repeat(500) }
  t.same((await host.inject({ method: 'POST', url: '/echo', payload: big })).json(), { got: big })
  t.same(
    (
      await host.inject({ method: 'POST', url: '/echo', payload: 'plain', headers: { 'content-type': 'text/plain' } })
    ).json(),
    { got: 'plain' },
  )
  t.match((await host.inject('/fails')).json(), { statusCode: 500, message: "the host's own" })
  t.match((await host.inject('/nowhere')).json(), { statusCode: 404, error: 'Not Found' })
  t.match((await host.inject('/v1/nowhere')).json(), { code: 'SG_ERR_NOT_FOUND' })
  t.equal((await host.inject({ method: 'POST', url: '/v1/sessions', payload: big })).statusCode, 413)
  t.match((await host.inject('/v1x/sessions')).json(), { statusCode: 404, error: 'Not Found' })
})

t.test('two gateways share a server, each with its own world', async (t) => {
  const host = fastify()
  t.teardown(() => host.close())
  await host.register(gatewayPlugin, world('/one'))
  t.ok(host.gateway)
  await host.register(gatewayPlugin, world('/two'))
  t.equal(host.gateway, undefined)
  t.same(Object.keys(host.gateways), ['/one', '/two'])
  const created = await host.inject({ method: 'POST', url: '/one/sessions', payload: { cwd: SOME_CWD } })
  t.equal(created.statusCode, 201)
  t.equal((await host.inject('/one/sessions')).json().length, 1)
  t.same((await host.inject('/two/sessions')).json(), [])
})

t.test('both are reached by sockets, each by its own', async (t) => {
  const host = fastify()
  t.teardown(() => host.close())
  await host.register(gatewayPlugin, world('/one'))
  await host.register(gatewayPlugin, world('/two'))
  const url = await host.listen({ port: 0 })
  for (const basePath of ['/one', '/two']) {
    const created = await host.inject({ method: 'POST', url: `${basePath}/sessions`, payload: { cwd: SOME_CWD } })
    const client = await attach(t, `${url}${basePath}`, created.json().id)
    await client.untilFrame('synced')
    t.equal(client.frames.filter(({ type }) => type === 'attached').length, 1)
  }
})

t.test('gateways in scopes of their own say goodbye to their own clients', async (t) => {
  const host = fastify()
  t.teardown(() => host.close())
  for (const basePath of ['/one', '/two'])
    await host.register(async (scope) => scope.register(gatewayPlugin, world(basePath)))
  const url = await host.listen({ port: 0 })
  const clients: TestClient[] = []
  for (const basePath of ['/one', '/two']) {
    const created = await host.inject({ method: 'POST', url: `${basePath}/sessions`, payload: { cwd: SOME_CWD } })
    clients.push(await attach(t, `${url}${basePath}`, created.json().id))
  }
  await Promise.all(clients.map((client) => client.untilFrame('synced')))
  await host.close()
  for (const client of clients) t.same(await client.untilClosed(), { code: 1001, reason: 'server_shutdown' })
})

t.test("a host's own routes are no sockets by our doing, and end the connection of who asks for one", async (t) => {
  const host = fastify()
  t.teardown(() => host.close())
  const handler = () => 'hello'
  const wrapped: boolean[] = []
  await host.register(gatewayPlugin, world())
  host.addHook('onRoute', (route) => void wrapped.push(route.handler !== handler))
  host.get('/own', handler)
  const { port } = new URL(await host.listen({ port: 0 }))
  t.ok(wrapped.every((is) => !is))
  for (const path of ['/own', '/nowhere']) {
    const connection = connect(Number(port), '127.0.0.1')
    const head = Object.entries({ host: 'x', ...HANDSHAKE }).map(([name, value]) => `${name}: ${value}\r\n`)
    connection.write(`GET ${path} HTTP/1.1\r\n${head.join('')}\r\n`)
    let text = ''
    connection.on('data', (data) => {
      text += data
    })
    await once(connection, 'close')
    t.match(text, path === '/own' ? /200 OK[\s\S]*hello$/ : /404 Not Found/)
  }
})

t.test('a host with sockets of its own brings the plugin for them before the gateway, and is told so', async (t) => {
  const late = fastify()
  t.teardown(() => late.close())
  await late.register(gatewayPlugin, world())
  t.throws(() => late.get('/own', { websocket: true }, () => {}), /\/own .*@fastify\/websocket before the gateway/)
  const between = fastify()
  t.teardown(() => between.close())
  await between.register(async (scope) => scope.register(gatewayPlugin, world('/one')))
  await between.register(websocket)
  await between.register(gatewayPlugin, world('/two'))
  const url = await between.listen({ port: 0 })
  const created = await between.inject({ method: 'POST', url: '/two/sessions', payload: { cwd: SOME_CWD } })
  const client = await attach(t, `${url}/two`, created.json().id)
  await client.untilFrame('synced')
})

t.test('an upgrade that a hook of the host answers does not hold its connection for ever', async (t) => {
  const host = fastify()
  t.teardown(() => host.close())
  host.addHook('onRequest', async (request, reply) => {
    if (request.url.startsWith('/refused')) return reply.code(429).send()
  })
  await host.register(gatewayPlugin, world())
  const connections: Socket[] = []
  host.server.on('connection', (socket) => connections.push(socket))
  const url = await host.listen({ port: 0 })
  const connection = connect(Number(new URL(url).port), '127.0.0.1')
  t.teardown(() => connection.destroy())
  const head = Object.entries({ host: 'x', ...HANDSHAKE }).map(([name, value]) => `${name}: ${value}\r\n`)
  connection.write(`GET /refused HTTP/1.1\r\n${head.join('')}\r\n`)
  await once(connection, 'data')
  t.equal(connections[0]?.timeout, 60_000)
  connections[0]?.emit('timeout')
  await once(connection.resume(), 'close')
  const created = await host.inject({ method: 'POST', url: '/v1/sessions', payload: { cwd: SOME_CWD } })
  const client = await attach(t, `${url}/v1`, created.json().id)
  await client.untilFrame('synced')
  t.equal(connections[1]?.timeout, 0, 'one that was accepted may be silent')
})

t.test('it composes inside a prefix of the host and beside its own WebSockets', async (t) => {
  const host = fastify()
  t.teardown(() => host.close())
  await host.register(websocket)
  host.get('/own', { websocket: true }, (socket) => socket.send('hello'))
  await host.register(async (scope) => scope.register(gatewayPlugin, world()), { prefix: '/api' })
  const url = await host.listen({ port: 0 })
  const created = await fetch(`${url}/api/v1/sessions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ cwd: SOME_CWD }),
  })
  t.match(created.headers.get('location'), /^\/api\/v1\/sessions\//)
  const { id } = (await created.json()) as { id: string }
  const client = await attach(t, `${url}/api/v1`, id)
  await client.untilFrame('synced')
  const own = new WebSocket(`${url.replace('http', 'ws')}/own`)
  const greeting = await new Promise((resolve) => own.on('message', (data) => resolve(data.toString())))
  t.equal(greeting, 'hello')
  own.terminate()
  await host.close()
  t.match(
    await client.untilClosed(),
    { code: 1001, reason: 'server_shutdown' },
    'though it is the plugin of the host that closes it',
  )
})

t.test('sockets that a host serves without a plugin stay its own', async (t) => {
  const host = fastify()
  t.teardown(() => host.close())
  const own = new WebSocketServer({ noServer: true })
  host.server.on('upgrade', (request, connection, head) => {
    if (request.url === '/own') own.handleUpgrade(request, connection, head, (socket) => socket.send('hello'))
  })
  await host.register(async (scope) => scope.register(gatewayPlugin, world()), { prefix: '/of/:tenant' })
  const url = await host.listen({ port: 0 })
  const client = new WebSocket(`${url.replace('http', 'ws')}/own`)
  const seen: unknown[] = []
  client.on('message', (data) => seen.push(String(data)))
  client.on('error', (error) => seen.push(error))
  client.on('pong', () => seen.push('pong'))
  client.on('open', () => client.ping())
  await until(() => seen.length === 2)
  t.same(seen, ['hello', 'pong'], 'nobody else writes to it')
  client.terminate()
  const created = await host.inject({ method: 'POST', url: '/of/ada/v1/sessions', payload: { cwd: SOME_CWD } })
  const attached = await attach(t, `${url}/of/ada/v1`, created.json().id)
  await attached.untilFrame('synced')
})

t.test(
  "a host's own plugin for sockets, in a scope beside the gateway's, and the gateway hand nothing on twice",
  async (t) => {
    const warnings: string[] = []
    const host = fastify({ logger: { level: 'warn', stream: { write: (line) => void warnings.push(line) } } })
    t.teardown(() => host.close())
    await host.register(async (scope) => {
      await scope.register(websocket)
      scope.get('/own', { websocket: true }, (socket) => socket.send('hello'))
    })
    await host.register(gatewayPlugin, world())
    const url = await host.listen({ port: 0 })
    const own = new WebSocket(`${url.replace('http', 'ws')}/own`)
    t.equal(await new Promise((resolve) => own.on('message', (data) => resolve(String(data)))), 'hello')
    own.terminate()
    const created = await host.inject({ method: 'POST', url: '/v1/sessions', payload: { cwd: SOME_CWD } })
    const attached = await attach(t, `${url}/v1`, created.json().id)
    await attached.untilFrame('synced')
    t.same(warnings, [])
  },
)

t.test('a bad option is an error of the registration', async (t) => {
  const host = fastify()
  t.teardown(() => host.close())
  await t.rejects(async () => host.register(gatewayPlugin, {}), { code: 'SG_ERR_OPTION' })
})

t.test('close sends sockets away with 1001 and settles while a client does not read', async (t) => {
  const { worker, call, api, engine } = await buildServer(t)
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD })
  const polite = await attach(t, api, json.id)
  const stream = await fetch(`${api}/sessions/${json.id}/events`, { headers: { accept: 'text/event-stream' } })
  const stuck = new TestClient(`${api.replace('http', 'ws')}/sessions/${json.id}/ws`)
  t.teardown(() => stuck.socket.terminate())
  await stuck.untilFrame('attached')
  stuck.socket.pause()
  for (let n = 0; n < 100; n++) engine.last.say('x'.repeat(100_000))
  await polite.until(() => polite.events.length > 100)
  const closing = worker.close()
  t.match(await polite.untilClosed(), { code: 1001, reason: 'server_shutdown' })
  await stream.text()
  // the clock of this world stands still: what keeps close() waiting is the grace for the stuck client
  await until(async () => (await worker.registry.list())[0]?.status === 'closed')
  stuck.socket.terminate()
  await closing
})

t.test('close settles twice, and before listen', async (t) => {
  const worker = createWorkerServer(world())
  t.teardown(() => void worker.server.close())
  await Promise.all([worker.close(), worker.close()])
  await t.rejects(worker.listen(0), { code: 'SG_ERR_SHUTTING_DOWN' }, 'nothing would end what listens after it')
  t.notOk(worker.server.listening)
})

t.test('two gateways of a process do not share a database, and the second takes nothing from the first', async (t) => {
  const storage = createSqliteStorage({ path: join(t.testdir(), 'shared.db') })
  const first = await buildServer(t, { storage })
  const second = createWorkerServer({ ...world(), storage })
  await t.rejects(second.listen(0), {
    code: 'SG_ERR_OPTION',
    message: /^storage: another gateway of this process has it/,
  })
  await second.close()
  t.equal((await first.call('POST', '/sessions', { cwd: SOME_CWD })).status, 201, 'it is open')
  await first.worker.close()
  const next = await buildServer(t, { storage })
  t.equal((await next.call('GET', '/sessions')).json.length, 1, "closed, it may be the next one's")
})

for (const where of ['in a host', 'as a server of its own'])
  t.test(`what was asked before the end is answered from the storage, ${where}`, async (t) => {
    const storage = createSqliteStorage({ path: join(t.testdir(), 'read.db') })
    const asking: (() => void)[] = []
    const given = {
      ...world(),
      storage,
      shutdownTimeoutMs: 200,
      allowUnauthenticated: false,
      authenticate: () => new Promise<object>((resolve) => asking.push(() => resolve({}))),
    }
    const start = async () => {
      const worker = createWorkerServer(given)
      if (where === 'as a server of its own') return { url: (await worker.listen(0)).url, close: () => worker.close() }
      const host = fastify()
      await host.register(gatewayPlugin, given)
      return { url: await host.listen({ port: 0 }), close: () => host.close() }
    }
    const { url, close } = await start()
    const asked = fetch(`${url}/v1/usage`)
    await until(() => asking.length === 1)
    const closed = close()
    await turns(50)
    asking[0]!()
    const { status, headers } = await asked
    t.equal(status, 200)
    t.equal(headers.get('connection'), 'close', 'or a host waits for what else may come on it')
    await closed
  })

t.test('what is read once the storage is closed is told that the gateway ends', async (t) => {
  const logged: unknown[] = []
  const database = createSqliteStorage({ path: join(t.testdir(), 'late.db') })
  let isClosed = false
  const close = async () => {
    await database.close()
    isClosed = true
  }
  const storage = { ...database, close }
  const asking: (() => void)[] = []
  const authenticate = () => new Promise<object>((resolve) => asking.push(() => resolve({})))
  const host = fastify()
  const logger = { ...silentLogger, error: (fields: object) => void logged.push(fields) }
  const more = { allowUnauthenticated: false, shutdownTimeoutMs: 1, authenticate, storage, logger }
  await host.register(gatewayPlugin, { ...world(), ...more })
  const asked = fetch(`${await host.listen({ port: 0 })}/v1/usage`)
  await until(() => asking.length === 1)
  const closed = host.close()
  await until(() => isClosed)
  asking[0]!()
  t.match(await (await asked).json(), { status: 503, code: 'SG_ERR_SHUTTING_DOWN' })
  t.same(logged, [])
  await closed
})

t.test('close ends everything else when a store of the host cannot be closed', async (t) => {
  const memory = createMemoryStorage()
  let isClosed = false
  const storage = {
    ...memory,
    close: async () => {
      isClosed = true
    },
  }
  const store = Object.assign(new MemorySessionStore(), { close: () => Promise.reject(new Error('stale handle')) })
  const { worker } = await buildServer(t, { storage, parking: { store } })
  await worker.close()
  t.ok(isClosed)
  t.notOk(worker.server.listening)
})

t.test('the documents describe what is served', async (t) => {
  const { call } = await buildServer(t)
  const openapi = await call('GET', '/openapi.json')
  t.equal(openapi.json.openapi, '3.1.0')
  const paths = Object.keys(openapi.json.paths)
  for (const path of ['/v1/sessions', '/v1/sessions/{id}', '/v1/sessions/{id}/events', '/v1/profiles'])
    t.ok(paths.includes(path), path)
  t.match(openapi.json.paths['/v1/sessions'].post.requestBody, Object)
  t.match(openapi.json.paths['/v1/sessions/{id}/commands'].post.requestBody, Object)
  t.ok(paths.includes('/v1/sessions/{id}/files/{path}'))
  t.notOk(paths.includes('/v1/sessions/{id}/ws'), "sockets are the other document's")
  const asyncapi = await call('GET', '/asyncapi.json')
  t.match(asyncapi.json, { asyncapi: '3.0.0', channels: { session: { address: '/v1/sessions/{id}/ws' } } })
  t.ok(asyncapi.json.channels.session.messages.attached)
  t.ok(asyncapi.json.channels.session.messages.user_message)
})
