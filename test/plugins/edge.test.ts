import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { attach, TestClient } from '../fixtures/client.js'
import { headerOf, isProblem } from '../fixtures/problem.js'
import { HANDSHAKE, rawRequest } from '../fixtures/raw-http.js'
import { ScriptedEngine } from '../fixtures/scripted-engine.js'

t.test('origins: none, our own host and exact entries open sockets, nothing else does', async (t) => {
  const allowedOrigins = ['https://app.example', 'http://app.example:8080']
  const { call, port } = await buildServer(t, { allowedOrigins })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD })
  const path = `/v1/sessions/${json.id}/ws`
  const rows: [origin: string | string[] | undefined, opens: boolean, host?: string][] = [
    [undefined, true],
    [`http://127.0.0.1:${port}`, true],
    [`https://127.0.0.1:${port}`, true],
    ['https://app.example', true],
    ['http://app.example:8080', true],
    ['https://gateway.example', true, 'gateway.example'],
    ['https://gateway.example', true, 'GATEWAY.example:443'],
    ['', false],
    ['null', false],
    ['*', false],
    ['https://evil.example', false],
    ['http://app.example', false],
    ['https://app.example:8443', false],
    ['https://app.example/', false],
    ['https://app.example.evil.example', false],
    ['https://evil-app.example', false],
    ['https://user@app.example', false],
    ['http://127.0.0.1', false],
    [`http://127.0.0.1:${port + 1}`, false],
    [`http://localhost:${port}`, false],
    [`http://user@127.0.0.1:${port}`, false],
    [`http://127.0.0.1:${port}/path`, false],
    [`file://127.0.0.1:${port}`, false],
    [`ws://127.0.0.1:${port}`, false],
    ['127.0.0.1', false],
    ['file://', false],
    ['chrome-extension://abc', false],
    ['https://app.example, https://app.example', false],
    ['https://gateway.example', false, 'gateway.example:8443'],
  ]
  for (const [origin, opens, host] of rows) {
    const headers = { ...HANDSHAKE, ...(origin !== undefined && { origin }), ...(host && { host }) }
    const answer = await rawRequest(port, { path, headers })
    if (opens) t.equal(answer.status, 101, `${origin} ${host ?? ''}`)
    else isProblem(t, answer, 403, 'SG_ERR_ORIGIN_REFUSED', `${origin} ${host ?? ''}`)
  }
  const forwarded = { 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' }
  const spoofed = await rawRequest(port, {
    path,
    headers: { ...HANDSHAKE, ...forwarded, origin: 'https://evil.example' },
  })
  isProblem(t, spoofed, 403, 'SG_ERR_ORIGIN_REFUSED', 'a forwarded host')
  const { headers } = await rawRequest(port, { path: '/v1/sessions', headers: { origin: 'https://app.example' } })
  t.same(
    Object.keys(headers).filter((name) => name.startsWith('access-control')),
    [],
    'no CORS headers',
  )
})

t.test('hosts: with allowedHosts set, a name that leads here reaches nothing', async (t) => {
  let asked = 0
  const { port } = await buildServer(t, {
    allowedHosts: ['localhost', '127.0.0.1:9', '[::1]', 'Gateway.Example'],
    metrics: true,
    authenticate: () => {
      asked++
      return {}
    },
  })
  const rows: [host: string, served: boolean][] = [
    ['localhost', true],
    ['localhost:1', true],
    ['LOCALHOST:65535', true],
    ['127.0.0.1:9', true],
    ['[::1]', true],
    ['[::1]:80', true],
    ['gateway.example', true],
    ['127.0.0.1', false],
    ['127.0.0.1:90', false],
    ['localhost.', false],
    ['localhost.evil.example', false],
    ['evil-localhost', false],
    ['evil.example', false],
    ['localhost@evil.example', false],
    ['::1', false],
    ['', false],
  ]
  for (const path of ['/v1/sessions', '/v1/nowhere', '/metrics']) {
    for (const [host, served] of rows) {
      const before = asked
      const answer = await rawRequest(port, { path, headers: { host, 'x-forwarded-host': 'localhost' } })
      if (served) t.equal(answer.status, path === '/v1/nowhere' ? 404 : 200, `${path} at ${host}`)
      else {
        isProblem(t, answer, 403, 'SG_ERR_HOST_REFUSED', `${path} at ${host}`)
        t.equal(asked, before, 'authenticate is not asked')
      }
    }
  }
  const upgrade = await rawRequest(port, { path: '/v1/sessions/x/ws', headers: { ...HANDSHAKE, host: 'evil.example' } })
  isProblem(t, upgrade, 403, 'SG_ERR_HOST_REFUSED', 'an upgrade')
})

t.test('a socket is opened by the handshake of one, and plain requests are told so', async (t) => {
  const { call, port } = await buildServer(t)
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD })
  const path = `/v1/sessions/${json.id}/ws`
  const { upgrade: _upgrade, connection: _connection, ...rest } = HANDSHAKE
  const { 'sec-websocket-key': _key, ...keyless } = HANDSHAKE
  isProblem(t, await rawRequest(port, { path }), 426, 'SG_ERR_UPGRADE_REQUIRED')
  isProblem(t, await rawRequest(port, { path, headers: rest }), 426, 'SG_ERR_UPGRADE_REQUIRED')
  const other = { ...HANDSHAKE, upgrade: 'h2c' }
  isProblem(t, await rawRequest(port, { path, headers: other }), 426, 'SG_ERR_UPGRADE_REQUIRED', 'another protocol')
  const version = await rawRequest(port, { path, headers: { ...HANDSHAKE, 'sec-websocket-version': '8' } })
  isProblem(t, version, 426, 'SG_ERR_UPGRADE_REQUIRED', 'another version')
  t.match(version.json.detail, /version 13/)
  t.equal(version.headers['sec-websocket-version'], '13')
  const rows: [what: string, headers: Record<string, string>, method?: string][] = [
    ['no key', keyless],
    ['a bad key', { ...HANDSHAKE, 'sec-websocket-key': 'short' }],
    ['another method', HANDSHAKE, 'POST'],
    ...['', 'a,,b', 'a, b, a', 'a b', 'a/b', ','].map((protocols): (typeof rows)[number] => [
      `the subprotocols ${JSON.stringify(protocols)}`,
      { ...HANDSHAKE, 'sec-websocket-protocol': protocols },
    ]),
  ]
  for (const [what, headers, method = 'GET'] of rows)
    isProblem(t, await rawRequest(port, { path, headers, method }), 400, 'SG_ERR_BAD_REQUEST', what)
  const twice = { ...HANDSHAKE, 'sec-websocket-protocol': 'a, a' }
  t.match((await rawRequest(port, { path, headers: twice })).json.detail, /each of them once/)
  t.match(await rawRequest(port, { path, headers: HANDSHAKE, method: 'HEAD' }), { status: 400, upgraded: false })
  isProblem(t, await rawRequest(port, { path: `${path}?afterSeq=x`, headers: HANDSHAKE }), 400, 'SG_ERR_VALIDATION')
  t.equal((await rawRequest(port, { path: `${path}?afterSeq=0&epoch=e`, headers: HANDSHAKE })).status, 101)
  const subprotocols = { 'sec-websocket-protocol': 'a ,\tb,session-gateway.bearer.x~y' }
  t.equal((await rawRequest(port, { path, headers: { ...HANDSHAKE, ...subprotocols } })).status, 101)
})

t.test('a refused upgrade is let go of, whatever refused it, and close() does not wait for it', async (t) => {
  let hanging = 0
  const { port, worker, url } = await buildServer(t, {
    health: true,
    metrics: true,
    authenticate: ({ headers }) => {
      if (!headers.hang) return {}
      hanging++
      return new Promise(() => {})
    },
  })
  const open = (path: string, extra = '') => {
    const connection = connect(port, '127.0.0.1')
    connection.on('error', () => {})
    const head = Object.entries({ host: 'x', ...HANDSHAKE }).map(([name, value]) => `${name}: ${value}\r\n`)
    connection.write(`GET ${path} HTTP/1.1\r\n${head.join('')}${extra}\r\n`)
    return connection
  }
  for (const path of [
    '/v1/%zz',
    `/v1/sessions/${'x'.repeat(600)}/ws`,
    '/v1/nowhere',
    '/nowhere',
    '/v1/sessions',
    '/v1/sessions/x/ws',
    '/healthz',
    '/metrics',
  ]) {
    const connection = open(path)
    connection.resume()
    await once(connection, 'close')
    t.pass(path)
  }
  const reset = open('/v1/sessions/x/ws', 'hang: 1\r\n')
  await until(() => hanging === 1)
  reset.resetAndDestroy()
  const silent = open('/v1/sessions/x/ws', 'hang: 1\r\n')
  await until(() => hanging === 2)
  t.equal((await fetch(`${url}/v1/sessions`)).status, 200, 'a connection that was reset in the middle harms nobody')
  const gone = once(silent.resume(), 'close')
  await worker.close()
  await gone
})

t.test('what is no HTTP is answered as a problem too', async (t) => {
  const { port, call } = await buildServer(t)
  const rows: [sent: string, status: number, code: string][] = [
    ['nonsense\r\n\r\n', 400, 'SG_ERR_BAD_REQUEST'],
    ['\u0016\u0003\u0001\u0002', 400, 'SG_ERR_BAD_REQUEST'],
    ['GET /v1/sessions HTTP/1.1\r\n\r\n', 400, ''],
    ['GET /v1/sessions HTTP/9.9\r\nhost: x\r\n\r\n', 400, 'SG_ERR_BAD_REQUEST'],
    ['POST /v1/sessions HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n', 400, 'SG_ERR_BAD_REQUEST'],
    [`GET /v1/${'x'.repeat(20_000)} HTTP/1.1\r\nhost: x\r\n\r\n`, 431, 'SG_ERR_HEADERS_TOO_LARGE'],
    [
      'POST /v1/sessions HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
      400,
      'SG_ERR_BAD_REQUEST',
    ],
  ]
  for (const [sent, status, code] of rows) {
    const connection = connect(port, '127.0.0.1')
    connection.on('error', () => {})
    let answer = ''
    connection.on('data', (chunk) => {
      answer += chunk
    })
    connection.write(sent)
    await once(connection, 'close')
    const what = JSON.stringify(sent.slice(0, 40))
    t.equal(Number(answer.slice(9, 12)), status, what)
    const [head = '', text = ''] = answer.split('\r\n\r\n')
    // without a Host header Node itself answers, with no body at all
    if (code === '') continue
    const headers = { 'content-type': /content-type: (.*)\r\n/.exec(head)?.[1] }
    isProblem(t, { status, headers, text, json: JSON.parse(text) }, status, code, what)
  }
  t.equal((await call('GET', '/sessions')).status, 200)
})

t.test('every close that the server decides on has a code and a reason', async (t) => {
  const { call, api, registry } = await buildServer(t, { maxBodyBytes: 1_000, maxSocketsPerSession: 1 })
  const create = async () => (await call('POST', '/sessions', { cwd: SOME_CWD })).json.id as string
  const id = await create()
  const rows: [what: string, bytes: Buffer | string, code: number, reason: string][] = [
    ['a frame above maxBodyBytes', 'x'.repeat(1_001), 1009, 'frame_too_large'],
    ['text that is no UTF-8', Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0xff, 0xff]), 1007, 'invalid_utf8'],
    ['an unknown opcode', Buffer.from([0x83, 0x80, 0, 0, 0, 0]), 1002, 'protocol_error'],
    ['a frame without a mask', Buffer.from([0x81, 0x02, 0x7b, 0x7d]), 1002, 'protocol_error'],
    ['an announced terabyte', Buffer.from([0x81, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]), 1009, 'frame_too_large'],
  ]
  for (const [what, bytes, code, reason] of rows) {
    const client = await attach(t, api, id)
    if (typeof bytes === 'string') client.send(bytes)
    else (client.socket as unknown as { _socket: { write(bytes: Buffer): void } })._socket.write(bytes)
    t.same(await client.untilClosed(), { code, reason }, what)
    await until(async () => (await registry.get(id))?.attachedClients === 0)
  }
  const first = await attach(t, api, id)
  const second = new TestClient(`${api.replace('http', 'ws')}/sessions/${id}/ws`)
  second.socket.once('open', () => second.send({ type: 'close' }))
  t.same(await second.untilClosed(), { code: 1013, reason: 'too_many_sockets' }, 'one socket too many')
  t.same(second.frames, [])
  t.equal((await registry.get(id))?.status, 'idle', 'and its commands are not carried out')
  const stream = await call('GET', `/sessions/${id}/events`, undefined, { accept: 'text/event-stream' })
  isProblem(t, stream, 429, 'SG_ERR_TOO_MANY', 'one stream too many')
  t.ok(headerOf(stream, 'retry-after'))
  await call('DELETE', `/sessions/${id}`)
  t.same(await first.untilClosed(), { code: 1000, reason: 'session_ended' }, 'DELETE')
  t.equal(first.events.at(-1)?.type, 'session_closed')
})

t.test('a limit of sessions is a 429 with Retry-After, and the next one fits when one has ended', async (t) => {
  const { call } = await buildServer(t, { maxSessions: 1 })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD })
  const refused = await call('POST', '/sessions', { cwd: SOME_CWD })
  isProblem(t, refused, 429, 'SG_ERR_TOO_MANY')
  t.match(headerOf(refused, 'retry-after'), /^\d+$/)
  t.equal((await call('GET', '/sessions')).json.length, 1)
  await call('DELETE', `/sessions/${json.id}`)
  t.equal((await call('POST', '/sessions', { cwd: '/dev/null/x' })).status, 400)
  t.equal((await call('POST', '/sessions', { cwd: SOME_CWD })).status, 201)
})

t.test('while it shuts down everybody is answered 503 with Retry-After, sockets too', async (t) => {
  let closed: () => void = () => {}
  const { call, api, port, worker, clock } = await buildServer(t, {
    health: true,
    authenticate: () => ({}),
    script: {
      close: () =>
        new Promise((resolve) => {
          closed = resolve
        }),
    },
  })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD })
  const client = await attach(t, api, json.id)
  const closing = worker.close()
  t.same(await client.untilClosed(), { code: 1001, reason: 'server_shutdown' })
  const path = `/v1/sessions/${json.id}`
  for (const request of [
    { path },
    { path: '/v1/nowhere' },
    { method: 'PUT', path },
    { method: 'DELETE', path },
    { method: 'POST', path: '/v1/sessions', body: '{', headers: { 'content-type': 'application/json' } },
    { path: `${path}/ws`, headers: HANDSHAKE },
    { path: `${path}/ws`, headers: { ...HANDSHAKE, origin: 'https://evil.example' } },
  ]) {
    const answer = await rawRequest(port, request)
    isProblem(t, answer, 503, 'SG_ERR_SHUTTING_DOWN', `${request.method ?? 'GET'} ${request.path}`)
    t.match(headerOf(answer, 'retry-after'), /^\d+$/)
  }
  const readiness = await rawRequest(port, { path: '/readyz' })
  t.match(readiness, { status: 503, json: { status: 'draining' }, headers: { 'retry-after': /^\d+$/ } })
  t.match(await rawRequest(port, { path: '/healthz' }), { status: 200 })
  closed()
  await closing
  t.equal(clock.pendingTimers, 0)
})

t.test(
  'a session whose engine is being built at the shutdown is refused, and the engine closed when it comes',
  async (t) => {
    const engine = new ScriptedEngine()
    let build = () => {}
    const { port, worker } = await buildServer(t, {
      authenticate: () => ({}),
      createEngineRunner: async (context) => {
        await new Promise<void>((resolve) => {
          build = resolve
          building()
        })
        return engine.create(context)
      },
    })
    let building = () => {}
    const begun = new Promise<void>((resolve) => {
      building = resolve
    })
    const body = JSON.stringify({ cwd: SOME_CWD })
    const headers = { 'content-type': 'application/json' }
    const asked = rawRequest(port, { method: 'POST', path: '/v1/sessions', body, headers })
    await begun
    await worker.close()
    isProblem(t, await asked, 503, 'SG_ERR_SHUTTING_DOWN')
    build()
    await until(() => engine.runners[0]?.closed)
  },
)

t.test('what was asked before the shutdown is answered, also when nothing else is left to wait for', async (t) => {
  let letIn = () => {}
  let asking = () => {}
  const begun = new Promise<void>((resolve) => {
    asking = resolve
  })
  const { port, worker, registry } = await buildServer(t, {
    authenticate: () =>
      new Promise((resolve) => {
        letIn = () => resolve({})
        asking()
      }),
  })
  const asked = rawRequest(port, { path: '/v1/sessions' })
  await begun
  const closed = worker.close()
  await t.rejects(registry.create({ cwd: SOME_CWD }), { code: 'SG_ERR_SHUTTING_DOWN' })
  // nothing holds up the gateway itself, which is closed within these
  for (let turns = 0; turns < 200; turns++) await new Promise(setImmediate)
  letIn()
  t.match(await asked, { status: 200, json: [] })
  await closed
})

t.test('as many engines as one likes are built at once without a warning of the process', async (t) => {
  const warnings: Error[] = []
  const onWarning = (warning: Error) => warnings.push(warning)
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  const engine = new ScriptedEngine()
  const builds: (() => void)[] = []
  const { call } = await buildServer(t, {
    authenticate: () => ({}),
    createEngineRunner: async (context) => {
      await new Promise<void>((resolve) => builds.push(resolve))
      return engine.create(context)
    },
  })
  const asked = Array.from({ length: 12 }, () => call('POST', '/sessions', { cwd: SOME_CWD }))
  await until(() => builds.length === asked.length)
  for (const build of builds) build()
  t.same(
    (await Promise.all(asked)).map(({ status }) => status),
    asked.map(() => 201),
  )
  t.same(warnings, [])
})

t.test('what comes while the last streams are being closed is refused as everything is', async (t) => {
  const { call, port, worker, clock } = await buildServer(t, { authenticate: () => ({}), script: {} })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD })
  const path = `/v1/sessions/${json.id}`
  // a client that is told to go and does not react
  const deaf = connect(port, '127.0.0.1').on('error', () => {})
  t.teardown(() => deaf.destroy())
  const lines = Object.entries({ host: 'gateway', ...HANDSHAKE }).map(([name, value]) => `${name}: ${value}`)
  deaf.write(`GET ${path}/ws HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
  await new Promise((resolve) => deaf.once('data', resolve))
  const closing = worker.close()
  // first the gateway is drained, then Fastify waits for the deaf one
  for (let request = 0; request < 40; request++)
    isProblem(t, await rawRequest(port, { path }), 503, 'SG_ERR_SHUTTING_DOWN', `request ${request}`)
  await clock.advance(60_000)
  await closing
})
