import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, request as httpRequest, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import WebSocket from 'ws'
import { hashToken } from '../../src/daemon/tokens.js'
import { DEMO, runDaemon, startDaemon, TOKEN } from '../fixtures/daemon-process.js'
import { rawRequest } from '../fixtures/raw-http.js'

const JSON_TYPE = { 'content-type': 'application/json' }
const OTHER = 'token-of-bea'

/** A browser, as far as cookies go. */
class Browser {
  #cookie = ''
  /** Of the API. A browser keeps its cookies for every port of a host. */
  base: string

  constructor(base: string) {
    this.base = base
  }

  get page(): string {
    return new URL(this.base).origin
  }

  async ask(method: string, path: string, body?: object, headers: Record<string, string> = {}) {
    const response = await fetch(`${this.base}${path}`, {
      method,
      headers: {
        ...(this.#cookie && { cookie: this.#cookie }),
        ...(method !== 'GET' && { origin: this.page }),
        ...(body && JSON_TYPE),
        ...headers,
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    const [set] = response.headers.getSetCookie()
    if (set) this.#cookie = set.split(';', 1)[0]!
    const text = await response.text()
    return { status: response.status, set, json: text ? JSON.parse(text) : undefined }
  }

  open(path: string): WebSocket {
    return new WebSocket(`${this.base.replace('http', 'ws')}${path}`, {
      headers: { cookie: this.#cookie },
      origin: this.page,
    })
  }
}

const closeOf = (socket: WebSocket) => new Promise<number>((resolve) => socket.on('close', (code) => resolve(code)))
const opened = (socket: WebSocket) =>
  new Promise((resolve, reject) => {
    socket.once('message', resolve)
    socket.once('error', reject)
  })

/** Puts a path before the gateway, and passes the Host on. */
async function proxyTo(t: Test, port: number, prefix: string): Promise<string> {
  const server: Server = createServer((incoming, answer) => {
    const { method, headers, url = '' } = incoming
    if (!url.startsWith(prefix)) return void answer.writeHead(404).end()
    const onward = httpRequest(
      { port, host: '127.0.0.1', method, headers, path: url.slice(prefix.length) },
      (given) => {
        answer.writeHead(given.statusCode ?? 502, given.headers)
        given.pipe(answer)
      },
    )
    incoming.pipe(onward)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}${prefix}`
}

t.test(
  'two people sign in at the daemon, and stay so over a restart for as long as their tokens are there',
  async (t) => {
    const ada = { name: 'ada', sha256: hashToken(TOKEN) }
    const bea = { name: 'bea', sha256: hashToken(OTHER), allowedProfiles: [] }
    const config = { profiles: [DEMO], auth: { tokens: [ada, bea] } }
    const first = await startDaemon(t, config)
    const page = await rawRequest(Number(new URL(first.url).port), { path: '/console' })
    t.match(page, { status: 308, headers: { location: './v1/console/' } })

    const [adas, beas] = [new Browser(first.url), new Browser(first.url)]
    t.match(await adas.ask('POST', '/console/sessions', { token: 'wrong' }), { status: 401, set: undefined })
    t.match(await adas.ask('POST', '/console/sessions', { token: TOKEN }), { status: 201, set: /HttpOnly/ })
    t.match(await beas.ask('POST', '/console/sessions', { token: OTHER }), { status: 201 })
    const created = await adas.ask('POST', '/sessions', {
      cwd: join(first.cwd, 'work'),
      prompt: 'Please write a report.',
    })
    t.equal(created.status, 201)
    t.match(await adas.ask('GET', '/sessions'), { json: [{ id: created.json.id }] })
    t.same((await beas.ask('GET', '/sessions')).json, [])
    t.equal((await adas.ask('GET', '/console/sessions')).json.length, 1)
    const socket = adas.open(`/sessions/${created.json.id}/ws`)
    await opened(socket)
    first.daemon.child.kill('SIGTERM')
    t.equal(await closeOf(socket), 1001)
    await first.daemon.exited

    const file = join(first.cwd, 'gateway.json')
    const content = JSON.parse(readFileSync(file, 'utf8'))
    writeFileSync(file, JSON.stringify({ ...content, auth: { tokens: [ada] } }), { mode: 0o600 })
    const second = runDaemon(t, ['--config', file], { cwd: first.cwd })
    const { url } = (await second.logged('listening')) as { url: string }
    for (const browser of [adas, beas]) browser.base = url
    t.match(await adas.ask('GET', '/sessions'), { status: 200, json: [{ id: created.json.id }] })
    t.match(await beas.ask('GET', '/sessions'), { status: 401 })
    const again = adas.open(`/sessions/${created.json.id}/ws`)
    await opened(again)
    t.equal((await adas.ask('DELETE', '/console/sessions/current')).status, 204)
    t.equal(await closeOf(again), 4401)
    t.match(await adas.ask('GET', '/sessions'), { status: 401 })
    for (const { stdout, stderr } of [first.daemon, second]) {
      t.notMatch(stdout + stderr, TOKEN)
      t.notMatch(stdout + stderr, OTHER)
    }
  },
)

t.test('behind a path of a proxy the cookie goes where the page says', async (t) => {
  const { url } = await startDaemon(t, { profiles: [DEMO] })
  const base = await proxyTo(t, Number(new URL(url).port), '/agents')
  const found = await fetch(`${base}/console`, { redirect: 'manual' })
  t.equal(new URL(found.headers.get('location')!, `${base}/console`).pathname, '/agents/v1/console/')
  const browser = new Browser(`${base}/v1`)
  const signedIn = await browser.ask('POST', '/console/sessions', { token: TOKEN, path: '/agents/v1/' })
  t.match(signedIn, { status: 201, set: /; Path=\/agents\/v1; / })
  t.match(await browser.ask('GET', '/console/me'), { json: { authenticated: true, caller: { name: 'ada' } } })
  t.match(await browser.ask('POST', '/sessions', { cwd: '/nowhere' }), {
    status: 403,
    json: { code: 'SG_ERR_CWD_FORBIDDEN' },
  })
})
