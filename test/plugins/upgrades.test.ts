import { once } from 'node:events'
import { Agent, createServer, request as httpRequest, type RequestListener, ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import websocket from '@fastify/websocket'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import WebSocket, { WebSocketServer } from 'ws'
import gatewayPlugin from '../../src/index.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { TestClient } from '../fixtures/client.js'
import fastify from '../fixtures/host.js'
import { HANDSHAKE, rawRequest } from '../fixtures/raw-http.js'
import { ScriptedEngine } from '../fixtures/scripted-engine.js'

/** What the JDK's client sends with every request over http. */
const OFFERS_H2C = {
  connection: 'Upgrade, HTTP2-Settings',
  upgrade: 'h2c',
  'http2-settings': 'AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA',
}
const JSON_TYPE = { 'content-type': 'application/json' }

const GATEWAY = {
  allowUnauthenticated: true,
  profiles: [{ name: 'p', engine: 'provider' as const, provider: { id: 'scripted' } }],
  createEngineRunner: new ScriptedEngine().create,
}

const HEADERS = Object.entries({ host: 'x', ...HANDSHAKE })
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join('')

async function readToEnd(connection: Socket): Promise<string> {
  let text = ''
  for await (const chunk of connection) text += chunk
  return text
}

async function serveHost(t: Test, before?: (host: FastifyInstance) => Promise<void>) {
  const host = fastify()
  t.teardown(() => host.close())
  await before?.(host)
  host.post('/echo', async ({ body, headers }) => ({ got: body, upgrade: headers.upgrade }))
  await host.register(gatewayPlugin, GATEWAY)
  const url = await host.listen({ port: 0 })
  return { host, url, port: Number(new URL(url).port) }
}

t.test('a client that offers h2c with every request is served, its bodies included', async (t) => {
  const { port } = await buildServer(t)
  const body = JSON.stringify({ cwd: SOME_CWD, title: 'é'.repeat(200), meta: { text: 'x'.repeat(10_000) } })
  const created = await rawRequest(port, {
    method: 'POST',
    path: '/v1/sessions',
    headers: { ...OFFERS_H2C, ...JSON_TYPE },
    body,
  })
  t.match(created, { status: 201, json: { title: 'é'.repeat(200) } })
  const headers = { ...OFFERS_H2C, ...JSON_TYPE, 'transfer-encoding': 'chunked' }
  const chunked = await rawRequest(port, { method: 'POST', path: '/v1/sessions', headers, body })
  t.equal(chunked.status, 201)
  const listed = await rawRequest(port, { path: '/v1/sessions', headers: OFFERS_H2C })
  t.match(listed, { status: 200, json: { length: 2 } })
  const socketPath = `/v1/sessions/${created.json.id}/ws`
  const refused = await rawRequest(port, { path: socketPath, headers: OFFERS_H2C })
  t.match(refused, { status: 426, headers: { upgrade: 'websocket', connection: 'upgrade' } })
  t.match(await rawRequest(port, { path: '/v1/%zz', headers: OFFERS_H2C }), { status: 400 })
})

for (const [what, before] of [
  ['alone', undefined],
  ['beside a WebSocket plugin of its own', async (host: FastifyInstance) => void (await host.register(websocket))],
] as const) {
  t.test(`a host's own routes are served to who offers h2c, ${what}`, async (t) => {
    const { port } = await serveHost(t, before)
    const text = JSON.stringify({ text: 'x'.repeat(100_000) })
    const request = { method: 'POST', path: '/echo', headers: { ...OFFERS_H2C, ...JSON_TYPE }, body: text }
    t.match(await rawRequest(port, request), { status: 200, json: { got: JSON.parse(text), upgrade: 'h2c' } })
    t.match(await rawRequest(port, { path: '/nowhere', headers: OFFERS_H2C }), { status: 404, upgraded: false })
  })
}

// and not by the limit for an upgrade, after a minute
t.test(
  'a connection whose upgrade a hook of the host refuses before the gateway is asked ends with that',
  { timeout: 40_000 },
  async (t) => {
    const { port } = await serveHost(t, async (host) => {
      host.addHook('onRequest', async ({ headers }, reply) => {
        if (headers.upgrade) await reply.code(403).send('no sockets')
      })
    })
    for (const path of ['/v1/sessions/x/ws', '/nowhere']) {
      const connection = connect(port, '127.0.0.1')
      connection.write(`GET ${path} HTTP/1.1\r\n${HEADERS}\r\n`)
      let text: string | undefined
      void readToEnd(connection).then((read) => {
        text = read
      })
      await until(() => text !== undefined, `the end of ${path}`)
      t.match(text, /^HTTP\/1\.1 403 .*no sockets$/s)
    }
  },
)

t.test('who offers h2c may be answered as late as anybody', async (t) => {
  const { port } = await serveHost(t, async (host) => {
    host.get('/limit', async ({ raw }) => ({ ms: raw.socket.timeout ?? 0 }))
  })
  t.match(await rawRequest(port, { path: '/limit', headers: OFFERS_H2C }), { status: 200, json: { ms: 0 } })
})

t.test('a connection that is used again and again with such an offer stays one, and well', async (t) => {
  const { host, port } = await serveHost(t)
  let connections = 0
  host.server.on('connection', () => connections++)
  const warnings: unknown[] = []
  const onWarning = (warning: unknown) => warnings.push(warning)
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const ports = new Set<number | undefined>()
  for (let n = 0; n < 30; n++) {
    const request = httpRequest({ port, host: '127.0.0.1', path: '/echo', method: 'POST', agent })
    for (const [name, value] of Object.entries({ ...OFFERS_H2C, ...JSON_TYPE })) request.setHeader(name, value)
    request.end(JSON.stringify({ n }))
    const [response] = await once(request, 'response')
    ports.add(request.socket?.localPort)
    let text = ''
    for await (const chunk of response) text += chunk
    t.match(JSON.parse(text), { got: { n } })
  }
  t.equal(ports.size, 1)
  await new Promise(setImmediate)
  t.same(warnings, [])
})

t.test('what was asked before on the same connection is answered before an upgrade, and both are', async (t) => {
  let answer: () => void = () => {}
  const { port } = await serveHost(t, async (host) => {
    host.get('/slow', async () => {
      await new Promise<void>((resolve) => {
        answer = resolve
      })
      return 'slow'
    })
  })
  const head = (path: string, headers: Record<string, string>) =>
    `GET ${path} HTTP/1.1\r\nhost: x\r\n${Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('')}\r\n`
  for (const [headers, expected] of [
    [OFFERS_H2C, /200 OK[\s\S]*slow[\s\S]*200 OK[\s\S]*\[\]/],
    [HANDSHAKE, /200 OK[\s\S]*slow[\s\S]*400 Bad Request/],
  ] as const) {
    const connection = connect(port, '127.0.0.1')
    t.teardown(() => connection.destroy())
    let text = ''
    connection.on('data', (data) => {
      text += data
    })
    answer = () => {}
    const idle = answer
    connection.write(`${head('/slow', {})}${head('/v1/sessions', headers)}`)
    await until(() => answer !== idle)
    answer()
    await until(() => expected.test(text), String(expected))
  }
})

t.test('a refused upgrade says that its connection closes, and a client that goes on meets no reset', async (t) => {
  const { port } = await buildServer(t, { authenticate: ({ headers }) => headers.authorization && {} })
  for (const path of ['/v1/sessions/x/ws', '/v1/nowhere', '/v1/%zz', '/nowhere']) {
    const { headers, upgraded } = await rawRequest(port, { path, headers: HANDSHAKE })
    t.match({ connection: headers.connection, upgraded }, { connection: 'close', upgraded: false }, path)
  }
  const agent = new Agent({ keepAlive: true })
  t.teardown(() => agent.destroy())
  const get = async (headers: Record<string, string>) => {
    const request = httpRequest({ port, host: '127.0.0.1', path: '/v1/sessions', agent, headers }).end()
    const [response] = await once(request, 'response')
    response.resume()
    await once(response, 'end')
    return response.statusCode
  }
  for (let n = 0; n < 20; n++) {
    t.equal(await get(HANDSHAKE), 401)
    t.equal(await get({ authorization: 'Bearer x' }), 200)
  }
})

t.test('an upgrade that nobody has answered yet ends with the host that has sockets of its own', async (t) => {
  let asked = 0
  const { host, port, url } = await serveHost(t, async (host) => {
    await host.register(websocket)
    host.addHook('onRequest', async (request) => {
      if (request.headers.hang && ++asked) await new Promise(() => {})
    })
    host.get('/own', { websocket: true }, (socket) => socket.send('{"type":"hello"}'))
  })
  const own = new TestClient(`${url.replace('http', 'ws')}/own`)
  t.teardown(() => own.socket.terminate())
  await own.until(() => own.frames.length > 0)
  const connection = connect(port, '127.0.0.1')
  connection.on('error', () => {})
  const headers = Object.entries({ host: 'x', hang: '1', ...HANDSHAKE }).map(([name, value]) => `${name}: ${value}\r\n`)
  connection.write(`GET /own HTTP/1.1\r\n${headers.join('')}\r\n`)
  await until(() => asked === 1)
  const gone = once(connection.resume(), 'close')
  await host.close()
  await gone
  t.equal((await own.untilClosed()).code, 1005, 'its own plugin says goodbye to its own sockets')
})

t.test('an upgrade that neither the gateway nor the host answers ends, and hurts neither', async (t) => {
  const asked: string[] = []
  const own = new WebSocketServer({ noServer: true })
  const { host, port, url } = await serveHost(t, async (host) => {
    host.get('/later', () => new Promise((answer) => setImmediate(answer, 'later')))
    host.server.on('upgrade', (request, connection, head) => {
      if (request.url === '/own')
        own.handleUpgrade(request, connection, head, (socket) => socket.send('{"type":"hello"}'))
      else asked.push(request.url!)
    })
  })
  const accepted: Socket[] = []
  host.server.on('connection', (connection) => accepted.push(connection))
  const ask = async (path: string, before = '') => {
    const connection = connect(port, '127.0.0.1').on('error', () => {})
    connection.write(`${before}GET ${path} HTTP/1.1\r\n${HEADERS}\r\n`)
    await until(() => asked.includes(path))
    return connection
  }
  ;(await ask('/reset')).resetAndDestroy()
  await until(() => accepted[0]!.destroyed)
  const late = await ask('/v1-late')
  const timedOut = once(late.resume(), 'close')
  accepted[1]!.emit('timeout')
  await timedOut

  const taken = new TestClient(`${url.replace('http', 'ws')}/own`)
  t.teardown(() => taken.socket.terminate())
  await taken.until(() => taken.frames.length > 0)
  accepted[2]!.emit('timeout')
  const open = await ask('/open')
  const gone = [once(open.resume(), 'close')]
  const used = await ask('/used', 'GET /later HTTP/1.1\r\nhost: x\r\n\r\n')
  gone.push(once(used.resume(), 'close'))
  for (const connection of accepted.slice(3))
    connection.once('timeout', () => t.fail('the host waits for its time limit'))
  const closed = host.close()
  await Promise.all(gone)
  t.equal(taken.socket.readyState, WebSocket.OPEN, "what the host has answered is the host's")
  taken.socket.terminate()
  await closed
})

for (const order of ['before', 'after'])
  t.test(
    `a proxy of the host that answers each upgrade, brought ${order} the gateway, leaves it its sockets`,
    async (t) => {
      const host = fastify()
      t.teardown(() => host.close())
      const answerEach = () =>
        host.server.on('upgrade', (request, connection) => {
          const response = new ServerResponse(request)
          response.assignSocket(connection as Socket)
          host.routing(request, response)
        })
      if (order === 'before') answerEach()
      host.get('/own', async () => 'proxied')
      await host.register(gatewayPlugin, GATEWAY)
      if (order === 'after') answerEach()
      const url = await host.listen({ port: 0 })
      const { id } = (await host.inject({ method: 'POST', url: '/v1/sessions', payload: { cwd: SOME_CWD } })).json()
      const client = new TestClient(`${url.replace('http', 'ws')}/v1/sessions/${id}/ws`)
      t.teardown(() => client.socket.terminate())
      await client.untilFrame('synced')
      const answer = await rawRequest(Number(new URL(url).port), { path: '/own', headers: HANDSHAKE })
      t.match(answer, { status: 200, text: 'proxied' })
    },
  )

for (const [what, hasListener] of [
  ['', false],
  [' that has sockets of its own', true],
] as const)
  t.test(`an upgrade that comes while a host${what} closes is refused, and nobody waits for it`, async (t) => {
    const { host, port } = await serveHost(t, async (host) => {
      if (hasListener) host.server.on('upgrade', () => {})
    })
    const opened: Socket[] = []
    for (let count = 0; count < 2; count++) {
      const connection = connect(port, '127.0.0.1')
      await once(connection, 'connect')
      opened.push(connection)
    }
    const answers: Promise<string>[] = []
    const { close } = host.server
    host.server.close = function (...args) {
      // the plugins have been told by now
      for (const [index, path] of ['/v1/queue/ws', '/nowhere'].entries()) {
        answers.push(readToEnd(opened[index]!))
        opened[index]!.write(`GET ${path} HTTP/1.1\r\n${HEADERS}\r\n`)
      }
      Promise.all(answers).then(() => close.apply(this, args))
      return this
    }
    await host.close()
    for (const answer of await Promise.all(answers)) {
      t.match(answer, /^HTTP\/1\.1 503 /)
      t.match(answer, /\r\nretry-after: 5\r\n/)
    }
  })

t.test('a server that listens again, for another host, has that one answer its upgrades', async (t) => {
  const server = createServer()
  const serverFactory = (handler: RequestListener) => server.removeAllListeners('request').on('request', handler)
  const first = fastify({ serverFactory })
  await first.register(gatewayPlugin, GATEWAY)
  await first.listen({ port: 0 })
  await first.close()

  const own = new WebSocketServer({ noServer: true })
  const second = fastify({ serverFactory })
  t.teardown(() => second.close())
  server.on('upgrade', (request, connection, head) =>
    setImmediate(() => own.handleUpgrade(request, connection, head, (socket) => socket.send('{"type":"hello"}'))),
  )
  const url = await second.listen({ port: 0 })
  const client = new TestClient(`${url.replace('http', 'ws')}/own`)
  t.teardown(() => client.socket.terminate())
  await client.until(() => client.frames.length > 0)
})
