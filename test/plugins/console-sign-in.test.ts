import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, request as httpRequest } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { TestClient } from '../fixtures/client.js'
import { buildConsole, TOKENS } from '../fixtures/console.js'
import { HANDSHAKE } from '../fixtures/raw-http.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const HOUR = 3_600_000
const UNAUTHENTICATED = { status: 401, json: { code: 'SG_ERR_UNAUTHENTICATED' } }
const FOREIGN = { status: 403, json: { code: 'SG_ERR_ORIGIN_REFUSED' } }
const TOO_MANY = { status: 429, json: { code: 'SG_ERR_TOO_MANY' } }
const NOT_FOUND = { status: 404, json: { code: 'SG_ERR_NOT_FOUND' } }

t.test('a token is exchanged once for a cookie that no script reads, and is whoever the token is', async (t) => {
  const { ask, signIn, as } = await buildConsole(t)
  t.same((await ask({ path: '/v1/console/me' })).json, { required: true, authenticated: false })
  const { answer, setCookie, cookie, id } = await signIn('token-of-ann', { 'user-agent': 'A browser' })
  t.match(answer, { status: 201, json: { id, userAgent: 'A browser', current: true } })
  t.match(setCookie, /^sgw_console_[0-9a-f]{8}=[\w-]{43}; Path=\/v1; Max-Age=604800; HttpOnly; SameSite=Strict$/)
  t.notMatch(JSON.stringify(answer), 'token-of-ann')
  const ann = as(cookie)
  t.match((await ann('GET', '/console/me')).json, {
    ...{ required: true, authenticated: true, caller: { name: 'ann', isLimited: false } },
    signIn: { id, current: true },
  })
  const created = await ann('POST', '/sessions', { body: { cwd: SOME_CWD } })
  t.match(created, { status: 201 })
  t.equal((await ann('GET', `/sessions/${created.json.id}`)).status, 200)
  const ben = as((await signIn('token-of-ben')).cookie)
  t.match((await ben('GET', '/console/me')).json, { caller: { name: 'ben', allowedProfiles: ['scripted'] } })
})

t.test('no wrong token signs anybody in, and there is an end to trying', async (t) => {
  const lines: unknown[] = []
  const log = (...line: unknown[]) => void lines.push(line)
  const logger = { trace: log, debug: log, info: log, warn: log, error: log, fatal: log }
  const { ask, signIn, origin } = await buildConsole(t, { logger })
  for (const token of ['token-of-nobody', 'token-of-an', 'two words', 'tøken', 'line\nbreak'])
    t.match((await signIn(token)).answer, { ...UNAUTHENTICATED, headers: { 'set-cookie': undefined } }, token)
  const post = (body: unknown, headers = {}) =>
    ask({
      ...{ method: 'POST', path: '/v1/console/sessions', body: JSON.stringify(body) },
      headers: { 'content-type': 'application/json', origin, ...headers },
    })
  t.match(await post({ token: '' }), { status: 400, json: { errors: [{ path: 'token' }] } })
  t.match(await post({}), { status: 400, json: { errors: [{ path: 'token' }] } })
  t.match(await post({ token: 'x', path: '/v1; Domain=example' }), {
    status: 400,
    json: { errors: [{ path: 'path' }] },
  })
  t.match(await post({ token: 'token-of-ann' }, { 'content-type': 'text/plain' }), { status: 415 })
  t.match(await post({ token: 'token-of-ann' }, { origin: 'https://evil.example' }), FOREIGN)
  for (let tries = 0; tries < 30; tries++) await signIn(`token-of-nobody-${tries}`)
  t.match((await signIn('token-of-nobody')).answer, TOO_MANY)
  t.notMatch(JSON.stringify(lines), /token-of/)
})

t.test('whoever guesses at tokens keeps nobody out who has one, from the same address', async (t) => {
  const { signIn } = await buildConsole(t)
  const guess = async (n: number) => (await signIn(`token-of-nobody-${n}`)).answer
  for (let tries = 0; tries < 30; tries++) t.match(await guess(tries), UNAUTHENTICATED)
  t.match(await guess(30), TOO_MANY, 'guesses are counted together')
  for (let tries = 0; tries < 30; tries++) t.match((await signIn('token-of-ann')).answer, { status: 201 })
  t.match((await signIn('token-of-ann')).answer, TOO_MANY, 'and sign-ins with one token are, too')
  t.match((await signIn('token-of-ben')).answer, { status: 201 })
})

t.test('behind a proxy that does not pass the Host on, it is said what to do', async (t) => {
  const known = 'https://gateway.example'
  const helped = /pass the Host header on with its port, or set notifications\.publicUrl/
  const { signIn } = await buildConsole(t, { allowedOrigins: [known] })
  const { answer } = await signIn('token-of-ann', { origin: known })
  t.match(answer, { ...FOREIGN, json: { ...FOREIGN.json, detail: helped } })
  const told = await buildConsole(t, { notifications: { publicUrl: known } })
  t.match((await told.signIn('token-of-ann', { origin: known })).answer, { status: 201 })
})

t.test('over a Unix socket, where nobody has an address, people sign in, too', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'sign-in-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const { worker } = await buildConsole(t)
  const socketPath = join(folder, 'socket')
  const listener = createServer((request, response) => worker.server.emit('request', request, response)).listen(
    socketPath,
  )
  t.teardown(() => listener.close())
  await once(listener, 'listening')
  const signIn = async (token: string) => {
    const headers = { host: 'gateway.example', 'content-type': 'application/json' }
    const request = httpRequest({ socketPath, method: 'POST', path: '/v1/console/sessions', headers })
    request.end(JSON.stringify({ token }))
    const [answer] = await once(request, 'response')
    answer.resume()
    return answer.statusCode
  }
  t.equal(await signIn('token-of-ann'), 201)
  for (let tries = 0; tries < 30; tries++) t.equal(await signIn('token-of-nobody'), 401)
  t.equal(await signIn('token-of-nobody'), 429)
})

t.test('neither the cookie nor the storage holds the token', async (t) => {
  const storage = createMemoryStorage()
  const { signIn } = await buildConsole(t, { storage })
  const { cookie, setCookie } = await signIn('token-of-ann')
  const kept = JSON.stringify(await storage.signIns!.list())
  t.match(kept, /"sealedToken":"[\w-]+"/)
  for (const secret of ['token-of-ann', cookie.split('=')[1]!]) {
    t.notMatch(kept, secret)
    t.notMatch(kept, Buffer.from(secret).toString('base64url'))
  }
  t.notMatch(setCookie, 'token-of-ann')
})

t.test('only pages of the gateway itself use the cookie', async (t) => {
  const { signIn, as, origin, port, ask } = await buildConsole(t, {
    allowedOrigins: ['https://listed.example'],
    cors: { origins: ['https://cors.example'] },
    notifications: { publicUrl: 'https://gateway.example/prefix' },
  })
  const { cookie } = await signIn('token-of-ann')
  const ann = as(cookie)
  const body = { cwd: SOME_CWD }
  const json = { 'content-type': 'application/json' }
  for (const [what, headers, expected] of [
    ['its own', { origin }, { status: 201 }],
    ['the one that people know', { origin: 'https://gateway.example' }, { status: 201 }],
    ['another one', { origin: 'https://evil.example' }, FOREIGN],
    ['another port of the same host', { origin: `http://127.0.0.1:${port + 1}` }, FOREIGN],
    ['another name of the same host', { origin: `http://localhost:${port}` }, FOREIGN],
    ['no real one', { origin: 'null' }, FOREIGN],
    ['one that may open sockets', { origin: 'https://listed.example' }, FOREIGN],
    ['one that may use the API', { origin: 'https://cors.example' }, FOREIGN],
  ] as const)
    t.match(await ann('POST', '/sessions', { body, ...headers }), expected, what)
  const send = (headers: Record<string, string>, method = 'POST', path = '/v1/sessions') =>
    ask({ method, path, headers: { cookie, ...headers }, body: JSON.stringify(body) })
  t.match(await send(json), FOREIGN, 'none at all')
  t.match(await send({ origin, 'content-type': 'text/plain' }), { status: 415 })
  t.match(await send({ origin }), { status: 415 }, 'a form of another page has no type of ours')
  t.match(await send({ origin: 'https://evil.example' }, 'DELETE', '/v1/sessions/x'), FOREIGN)
  t.match(await ann('GET', '/sessions'), { status: 200 })
  t.match(await ann('GET', '/sessions', { origin: 'https://cors.example' }), FOREIGN, 'reads of a neighbour, too')
  t.match(
    await ann('POST', '/sessions', { body, origin: 'https://cors.example', authorization: 'Bearer token-of-ben' }),
    {
      status: 201,
    },
    'who shows a token is judged by that',
  )
  t.match(await ann('GET', '/sessions', { authorization: 'Bearer wrong' }), UNAUTHENTICATED)
})

t.test('a socket is opened with the cookie from a page of the gateway alone', async (t) => {
  const { ask, signIn, as, origin, api } = await buildConsole(t, { allowedOrigins: ['https://listed.example'] })
  const { cookie } = await signIn('token-of-ann')
  const { id } = (await as(cookie)('POST', '/sessions', { body: { cwd: SOME_CWD } })).json
  const path = `/v1/sessions/${id}/ws`
  const upgrade = (headers: Record<string, string>) => ask({ path, headers: { ...HANDSHAKE, ...headers } })
  t.match(await upgrade({ origin }), UNAUTHENTICATED)
  t.match(await upgrade({ cookie, origin: 'https://evil.example' }), FOREIGN)
  t.match(await upgrade({ cookie, origin: 'https://listed.example' }), FOREIGN)
  t.match(await upgrade({ cookie, origin: 'null' }), FOREIGN)
  t.match(await upgrade({ cookie }), FOREIGN)
  t.match(await upgrade({ cookie, origin }), { status: 101 })
  // a page that may open sockets does so with its own token, although its neighbour's cookie comes along
  const offered = { 'sec-websocket-protocol': 'session-gateway.bearer.token-of-ben' }
  t.match(await upgrade({ cookie, origin: 'https://listed.example', ...offered }), { status: 101 })
  const client = new TestClient(`${api.replace('http', 'ws')}/sessions/${id}/ws`, { headers: { cookie }, origin })
  await client.untilFrame('synced')
  client.send({ type: 'user_message', text: 'hello', id: 'one' })
  await client.untilFrame('ack')
})

t.test(
  'a socket is opened as the token stands for that it offers, also beside the cookie of somebody else',
  async (t) => {
    const tokens = TOKENS.map((token) => ({ ...token, ...(token.name === 'ben' && { allowedProfiles: [] }) }))
    const { ask, signIn, as, origin } = await buildConsole(t, { tokens })
    const { cookie } = await signIn('token-of-ann')
    const { id } = (await as(cookie)('POST', '/sessions', { body: { cwd: SOME_CWD } })).json
    const path = `/v1/sessions/${id}`
    const asBen = { cookie, origin, authorization: 'Bearer token-of-ben' }
    t.match(await ask({ path, headers: asBen }), { status: 404 })
    const offered = { 'sec-websocket-protocol': 'session-gateway, session-gateway.bearer.token-of-ben' }
    t.match(await ask({ path: `${path}/ws`, headers: { ...HANDSHAKE, cookie, origin, ...offered } }), { status: 404 })
    const nobody = { 'sec-websocket-protocol': 'session-gateway.bearer.token-of-nobody' }
    t.match(await ask({ path: `${path}/ws`, headers: { ...HANDSHAKE, cookie, origin, ...nobody } }), UNAUTHENTICATED)
  },
)

t.test('a caller sees and ends its own sign-ins, and its open streams end with them', async (t) => {
  const { signIn, as, origin, api } = await buildConsole(t)
  const [first, second] = [await signIn('token-of-ann'), await signIn('token-of-ann')]
  const other = await signIn('token-of-ben')
  const [here, there, ben] = [as(first.cookie), as(second.cookie), as(other.cookie)]
  const listed = (await here('GET', '/console/sessions')).json as { id: string; current?: true }[]
  t.same(new Set(listed.map(({ id }) => id)), new Set([first.id, second.id]))
  t.same(
    listed.filter(({ current }) => current).map(({ id }) => id),
    [first.id],
  )
  t.same(
    (await ben('GET', '/console/sessions')).json.map(({ id }: { id: string }) => id),
    [other.id],
  )
  t.match(await ben('DELETE', `/console/sessions/${first.id}`), NOT_FOUND)
  t.match(await ben('DELETE', '/console/sessions/nothing'), NOT_FOUND)

  const { id } = (await here('POST', '/sessions', { body: { cwd: SOME_CWD } })).json
  const socket = (cookie: string) =>
    new TestClient(`${api.replace('http', 'ws')}/sessions/${id}/ws`, { headers: { cookie }, origin })
  const [mine, theirs, bens] = [socket(first.cookie), socket(second.cookie), socket(other.cookie)]
  const feed = await fetch(`${api}/notifications/events`, {
    headers: { cookie: second.cookie, accept: 'text/event-stream' },
  })
  for (const client of [mine, theirs, bens]) await client.untilFrame('synced')
  t.match(await here('DELETE', `/console/sessions/${second.id}`), { status: 204, text: '' })
  t.match(await theirs.untilClosed(), { code: 4401 })
  await feed.text()
  t.pass('the event stream has ended')
  t.match(await there('GET', '/sessions'), UNAUTHENTICATED)
  t.match(await here('DELETE', `/console/sessions/${second.id}`), NOT_FOUND)
  t.equal(mine.closed, undefined)
  t.equal(bens.closed, undefined)

  const out = await here('DELETE', '/console/sessions/current')
  t.match(out, { status: 204 })
  t.match(out.headers['set-cookie']?.[0], new RegExp(`^${first.cookie.split('=')[0]}=; Path=/v1; Max-Age=0; `))
  t.match(await mine.untilClosed(), { code: 4401 })
  t.match(await here('GET', '/sessions'), UNAUTHENTICATED)
  t.equal(bens.closed, undefined)
  t.match(await ben('DELETE', `/console/sessions/${other.id}`), { status: 204 }, 'its own by its id')
})

t.test('a browser that signs in anew is signed in once, and what was open ends', async (t) => {
  const { signIn, as, origin, api } = await buildConsole(t)
  const { cookie: first } = await signIn('token-of-ann')
  const { json } = await as(first)('POST', '/sessions', { body: { cwd: SOME_CWD } })
  const address = `${api.replace('http', 'ws')}/sessions/${json.id}/ws`
  const tab = new TestClient(address, { headers: { cookie: first }, origin })
  await tab.untilFrame('synced')
  t.match((await signIn('token-of-nobody', { cookie: first })).answer, UNAUTHENTICATED)
  t.match(await as(first)('GET', '/console/me'), { json: { caller: { name: 'ann' } } }, 'a try changes nothing')
  const { cookie: second } = await signIn('token-of-ben', { cookie: first })
  t.match(await tab.untilClosed(), { code: 4401 })
  t.match(await as(first)('GET', '/sessions'), UNAUTHENTICATED)
  t.match(await as(second)('GET', '/console/me'), { json: { caller: { name: 'ben' } } })
})

t.test('a sign-in ends when it is not used, however long a page stays open', async (t) => {
  const { signIn, as, origin, api, clock } = await buildConsole(t, { console: { sessionTtlMs: 100_000 } })
  const { cookie, answer } = await signIn('token-of-ann')
  const ann = as(cookie)
  t.equal(answer.json.expiresAt, clock.now() + 100_000)
  const { id } = (await ann('POST', '/sessions', { body: { cwd: SOME_CWD } })).json
  const client = new TestClient(`${api.replace('http', 'ws')}/sessions/${id}/ws`, { headers: { cookie }, origin })
  await client.untilFrame('synced')
  const pongs = () => client.frames.filter(({ type }) => type === 'pong').length
  /** The page is there: it answers pings, and sends its own. */
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 20_000) {
      const before = pongs()
      await clock.advance(20_000)
      client.send({ type: 'ping' })
      await client.until(() => client.closed || pongs() > before, 'the pong')
    }
  }
  await pass(60_000)
  // what a person says there is use
  client.send({ type: 'user_message', text: 'hello', id: 'one' })
  await client.untilFrame('ack')
  await pass(80_000)
  t.equal(client.closed, undefined)
  await pass(40_000)
  t.match(await client.untilClosed(), { code: 4401 })
  t.match(await ann('GET', '/sessions'), UNAUTHENTICATED)
})

t.test('a sign-in that is used ends after a week, as it does after half a day without use', async (t) => {
  const { signIn, as, clock } = await buildConsole(t)
  const unused = as((await signIn('token-of-ann')).cookie)
  const used = as((await signIn('token-of-ann')).cookie)
  for (let hour = 0; hour < 7 * 24; hour += 6) {
    t.match(await used('GET', '/sessions'), { status: 200 })
    await clock.advance(6 * HOUR)
  }
  t.match(await used('GET', '/sessions'), UNAUTHENTICATED)
  t.match(await unused('GET', '/sessions'), UNAUTHENTICATED)
})

t.test('sign-ins outlive a restart, as long as their token does', async (t) => {
  const storage = createMemoryStorage()
  const clock = new VirtualClock()
  const first = await buildConsole(t, { storage, clock })
  const [ann, ben] = [await first.signIn('token-of-ann'), await first.signIn('token-of-ben')]
  await first.worker.close()
  const [, bensEntry] = TOKENS
  const second = await buildConsole(t, { storage, clock, tokens: [bensEntry!] })
  t.match(await second.as(ben.cookie)('GET', '/sessions'), { status: 200 })
  t.match(await second.as(ann.cookie)('GET', '/sessions'), UNAUTHENTICATED, 'its token is gone')
  await until(async () => (await storage.signIns!.list()).length === 1, 'its end')
  await second.worker.close()
  await clock.advance(13 * HOUR)
  const third = await buildConsole(t, { storage, clock })
  t.match(await third.as(ben.cookie)('GET', '/sessions'), UNAUTHENTICATED, 'it was not used for too long')
  t.match(await third.as(ann.cookie)('GET', '/sessions'), UNAUTHENTICATED, 'it does not come back with its token')
  t.same(await storage.signIns!.list(), [])
})

t.test('a token that expires ends what was signed in with it', async (t) => {
  const clock = new VirtualClock()
  const [entry] = TOKENS
  const { signIn, as, origin, api } = await buildConsole(t, {
    clock,
    tokens: [{ ...entry!, expiresAt: clock.now() + 20_000 } as never],
  })
  const { cookie } = await signIn('token-of-ann')
  const { id } = (await as(cookie)('POST', '/sessions', { body: { cwd: SOME_CWD } })).json
  const client = new TestClient(`${api.replace('http', 'ws')}/sessions/${id}/ws`, { headers: { cookie }, origin })
  await client.untilFrame('synced')
  await clock.advance(30_000)
  t.match(await client.untilClosed(), { code: 4401 })
  t.match(await as(cookie)('GET', '/sessions'), UNAUTHENTICATED)
})

t.test("a host's own hook is asked about the token at every request, and its failure lets nobody in", async (t) => {
  let mood: 'well' | 'failing' | 'revoked' = 'well'
  const seen: unknown[] = []
  const { signIn, as } = await buildConsole(t, {
    authenticate: (request) => {
      seen.push([request.headers.authorization, request.raw.headers.authorization, request.ip])
      if (mood === 'failing') throw new Error('down')
      return mood === 'well' && request.headers.authorization === 'Bearer host-token'
    },
  })
  const { cookie } = await signIn('host-token')
  const caller = as(cookie)
  t.match(await caller('GET', '/sessions'), { status: 200 })
  t.same(seen.at(-1), ['Bearer host-token', 'Bearer host-token', '127.0.0.1'])
  mood = 'failing'
  t.match(await caller('GET', '/sessions'), { status: 500, json: { code: 'SG_ERR_AUTHENTICATE_FAILED' } })
  mood = 'well'
  t.match(await caller('GET', '/sessions'), { status: 200 }, 'a failure ends no sign-in')
  mood = 'revoked'
  t.match(await caller('GET', '/sessions'), UNAUTHENTICATED)
  mood = 'well'
  t.match(await caller('GET', '/sessions'), UNAUTHENTICATED, 'it has ended')
})

t.test('a secret that somebody invents stands for nobody', async (t) => {
  const { signIn, as } = await buildConsole(t)
  const { cookie } = await signIn('token-of-ann')
  const [name] = cookie.split('=')
  for (const value of ['', 'x', 'A'.repeat(43), `${cookie.split('=')[1]}x`, '__proto__'])
    t.match(await as(`${name}=${value}`)('GET', '/sessions'), UNAUTHENTICATED, value)
  t.match(await as(`other=1; ${name}=wrong; ${cookie}`)('GET', '/sessions'), { status: 200 }, 'several of one name')
})

t.test('the cookie is for https when the page is, and for the path that the page knows', async (t) => {
  const { ask, signIn } = await buildConsole(t, { notifications: { publicUrl: 'https://gateway.example' } })
  const { setCookie } = await signIn('token-of-ann', { origin: 'https://gateway.example' })
  t.match(setCookie, /; Path=\/v1; .*; HttpOnly; SameSite=Strict; Secure$/)
  t.match((await signIn('token-of-ann', {})).setCookie, /; Secure$/, 'as the operator said')
  const answer = await ask({
    ...{ method: 'POST', path: '/v1/console/sessions' },
    headers: { 'content-type': 'application/json', origin: 'https://gateway.example' },
    body: JSON.stringify({ token: 'token-of-ann', path: '/agents/v1/' }),
  })
  t.match(answer.headers['set-cookie']?.[0], /; Path=\/agents\/v1; /)
})

t.test('how the gateway is, is told to callers without limits', async (t) => {
  const { signIn, as } = await buildConsole(t, {
    notifications: { webhook: { url: 'http://127.0.0.1:9/secret-path' }, attempts: 1 },
  })
  const ann = as((await signIn('token-of-ann')).cookie)
  const created = await ann('POST', '/sessions', { body: { cwd: SOME_CWD } })
  const status = () => ann('GET', '/console/status').then(({ json }) => json)
  t.match(await status(), {
    ...{ version: /^\d+\./, node: process.versions.node, storage: { outlasts: false, writable: true } },
    ...{ sessions: { live: 1 }, agents: [], webhooks: [{ name: 'notifications.webhook', state: 'ok' }] },
  })
  await ann('DELETE', `/sessions/${created.json.id}`)
  await until(async () => (await status()).webhooks[0].state === 'failing')
  const { webhooks } = await status()
  t.match(webhooks, [{ origin: 'http://127.0.0.1:9', failures: 1, error: /./ }])
  t.notMatch(JSON.stringify(webhooks), 'secret-path')
  const ben = as((await signIn('token-of-ben')).cookie)
  t.match(await ben('GET', '/console/status'), { status: 403 })
})
