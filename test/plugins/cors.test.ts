import t from 'tap'
import gatewayPlugin from '../../src/index.js'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import fastify from '../fixtures/host.js'
import { headerOf, isProblem } from '../fixtures/problem.js'
import { HANDSHAKE, type RawAnswer, rawRequest } from '../fixtures/raw-http.js'

const ORIGIN = 'https://app.example'
const FOREIGN = [
  'https://evil.example',
  'http://app.example',
  'https://app.example:8443',
  'https://app.example.evil.example',
  'null',
]
const PREFLIGHT = {
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'authorization,content-type,idempotency-key',
}
const LET_IN = { authorization: 'Bearer x' }
const corsOf = (answer: RawAnswer) => Object.keys(answer.headers).filter((name) => name.startsWith('access-control-'))

async function buildCors(t: Parameters<typeof buildServer>[0]) {
  let asked = 0
  const server = await buildServer(t, {
    cors: { origins: [ORIGIN] },
    queue: {},
    authenticate: ({ headers }) => {
      asked++
      return headers.authorization && {}
    },
  })
  return { ...server, asked: () => asked }
}

t.test('a page of a listed origin may ask, is answered before anybody authenticates, and nobody else is', async (t) => {
  const { port, asked } = await buildCors(t)
  for (const path of ['/v1/sessions', '/v1/sessions/x/commands', '/v1/jobs/x']) {
    const before = asked()
    const answer = await rawRequest(port, { method: 'OPTIONS', path, headers: { origin: ORIGIN, ...PREFLIGHT } })
    t.match(answer, { status: 204, text: '' }, path)
    t.match(answer.headers, {
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-credentials': 'true',
      'access-control-allow-headers': PREFLIGHT['access-control-request-headers'],
      'access-control-allow-methods': /PATCH/,
      vary: /Origin/i,
    })
    t.equal(asked(), before)
  }
  for (const origin of FOREIGN) {
    const headers = { origin, ...PREFLIGHT }
    const answer = await rawRequest(port, { method: 'OPTIONS', path: '/v1/sessions', headers })
    isProblem(t, answer, 401, 'SG_ERR_UNAUTHENTICATED', origin)
    t.same(corsOf(answer), [], origin)
  }
  for (const headers of [{ origin: ORIGIN }, PREFLIGHT, {}]) {
    const answer = await rawRequest(port, { method: 'OPTIONS', path: '/v1/sessions', headers })
    isProblem(t, answer, 401, 'SG_ERR_UNAUTHENTICATED', 'no preflight')
    const known = await rawRequest(port, {
      method: 'OPTIONS',
      path: '/v1/sessions',
      headers: { ...headers, ...LET_IN },
    })
    isProblem(t, known, 405, 'SG_ERR_METHOD_NOT_ALLOWED', 'no preflight')
  }
})

t.test('such a page does not say what a proxy does, by which it would be a page of the gateway itself', async (t) => {
  const { port } = await buildCors(t)
  const wanted = 'authorization, x-forwarded-host,X-Forwarded-For,forwarded,x-api-key'
  const headers = { origin: ORIGIN, ...PREFLIGHT, 'access-control-request-headers': wanted }
  const answer = await rawRequest(port, { method: 'OPTIONS', path: '/v1/sessions', headers })
  t.match(answer, { status: 204, headers: { 'access-control-allow-headers': 'authorization,x-api-key' } })
})

t.test('such a page creates, reads refusals, follows a stream and opens a socket', async (t) => {
  const { port } = await buildCors(t)
  const headers = { origin: ORIGIN, ...LET_IN }
  const created = await rawRequest(port, {
    method: 'POST',
    path: '/v1/sessions',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ cwd: SOME_CWD }),
  })
  t.match(created, { status: 201, headers: { 'access-control-allow-origin': ORIGIN } })
  const exposed = headerOf(created, 'access-control-expose-headers')?.split(', ')
  // Location for the caller, the others for the client; what else there is may be read too
  for (const name of ['Link', 'Location', 'Retry-After', 'Idempotent-Replayed', 'WWW-Authenticate', 'Allow'])
    t.ok(exposed?.includes(name), name)
  const usage = await rawRequest(port, { path: '/v1/usage', headers })
  t.equal(headerOf(usage, 'vary'), 'Origin, Accept', 'also where an answer depends on more')
  const path = `/v1/sessions/${created.json.id}`
  for (const [what, request, status] of [
    ['a refusal', { path: '/v1/sessions/x', headers }, 404],
    ['a stranger', { path, headers: { origin: ORIGIN } }, 401],
    ['an unknown path', { path: '/v1/nowhere', headers }, 404],
    ['the log', { path: `${path}/events`, headers: { ...headers, accept: 'text/event-stream' } }, 200],
    ['the queue', { path: '/v1/queue/events', headers }, 200],
  ] as const) {
    const answer = await rawRequest(port, { ...request, firstChunkOnly: true })
    t.match(answer, { status, headers: { 'access-control-allow-origin': ORIGIN } }, what)
  }
  t.equal((await rawRequest(port, { path: `${path}/ws`, headers: { ...headers, ...HANDSHAKE } })).status, 101)
  for (const origin of FOREIGN) {
    const foreign = await rawRequest(port, { path, headers: { ...LET_IN, origin } })
    t.equal(foreign.status, 200, 'it is the browser that keeps it from the page')
    t.same(corsOf(foreign), [], origin)
    const socket = await rawRequest(port, { path: `${path}/ws`, headers: { ...LET_IN, origin, ...HANDSHAKE } })
    isProblem(t, socket, 403, 'SG_ERR_ORIGIN_REFUSED', origin)
  }
})

t.test("a host's own routes get none of it, and origins that no browser sends are refused at start", async (t) => {
  const host = fastify()
  t.teardown(() => host.close())
  const options = { allowUnauthenticated: true, profiles: [] }
  await host.register(gatewayPlugin, { ...options, cors: { origins: [ORIGIN] } })
  for (const url of ['/own', '/v1own']) {
    const headers = { origin: ORIGIN, ...PREFLIGHT }
    const answer = await host.inject({ method: 'OPTIONS', url, headers })
    t.match(answer.json(), { statusCode: 404, error: 'Not Found' }, url)
    t.notOk(answer.headers['access-control-allow-origin'])
  }
  for (const origin of ['*', 'app.example', 'https://app.example/', 'https://App.example', 'https://*.example', '']) {
    const other = fastify()
    await t.rejects(
      async () => other.register(gatewayPlugin, { ...options, cors: { origins: [origin] } }),
      { code: 'SG_ERR_OPTION' },
      origin,
    )
    await other.close()
  }
})

t.test('a cache tells what the console is sent with by the page that asks, too', async (t) => {
  const { port } = await buildServer(t, { cors: { origins: [ORIGIN, 'https://other.example'] }, console: true })
  const page = await rawRequest(port, { path: '/v1/console/', headers: { origin: ORIGIN } })
  t.equal(headerOf(page, 'access-control-allow-origin'), ORIGIN)
  t.equal(headerOf(page, 'vary'), 'Origin, Accept-Encoding')
})
