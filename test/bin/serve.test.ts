import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { WebSocket } from 'ws'
import { DEMO, runDaemon, startDaemon, TOKEN } from '../fixtures/daemon-process.js'

t.test('serves sessions to who has the token, logs JSON only, and stops at SIGTERM with 0', async (t) => {
  const { daemon, url, call, createSession } = await startDaemon(t, {}, { args: ['--log-level', 'debug'] })
  t.match(url, /^http:\/\/127\.0\.0\.1:\d+\/v1$/)
  t.equal((await call('/sessions', undefined, {})).status, 401)
  t.equal(
    (await call('/sessions?token=canary-query', undefined, { authorization: 'Bearer canary-header' })).status,
    401,
  )
  const { id } = await createSession('canary-prompt')
  const listed = (await (await call('/sessions')).json()) as { id: string }[]
  t.match(listed, [{ id }])
  for (const path of ['/healthz', '/readyz']) t.equal((await fetch(new URL(path, url))).status, 200, path)
  t.equal((await fetch(new URL('/metrics', url))).status, 401)

  daemon.child.kill('SIGTERM')
  t.same(await daemon.exited, { code: 0, signal: null })
  t.match(daemon.lines().at(-1), { level: 'info', msg: 'stopped' })
  t.notMatch(daemon.stdout + daemon.stderr, TOKEN)
  t.notMatch(daemon.stdout + daemon.stderr, /canary/)
})

t.test('serves only Host headers of this machine and of the configuration', async (t) => {
  const { url } = await startDaemon(t, { allowedHosts: ['gateway.example'] })
  const { port } = new URL(url)
  const status = async (host: string) => {
    const sent = request(`${url}/sessions`, { headers: { host, authorization: `Bearer ${TOKEN}` } }).end()
    const [answer] = await once(sent, 'response')
    answer.resume()
    return answer.statusCode as number
  }
  for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`, 'gateway.example'])
    t.equal(await status(host), 200, host)
  for (const host of ['evil.example', '127.evil.example', `localhost.evil.example:${port}`, 'localhost@evil.example'])
    t.equal(await status(host), 403, host)
})

const ownOnLinux = { skip: process.platform !== 'linux' && 'only 127.0.0.1 is this machine here' }
t.test('serves the address that it says it listens on, also another one of loopback', ownOnLinux, async (t) => {
  for (const host of ['127.0.0.2', '::ffff:127.0.0.1']) {
    const { url, call } = await startDaemon(t, { listen: { host, port: 0 } })
    t.equal((await call('/sessions')).status, 200, url)
  }
})

t.test('a browser brings its token as a subprotocol', async (t) => {
  const { url, createSession } = await startDaemon(t)
  const { id } = await createSession('hello')
  const address = `${url.replace('http', 'ws')}/sessions/${id}/ws`
  const socket = new WebSocket(address, ['session-gateway', `session-gateway.bearer.${TOKEN}`])
  const [frame] = await once(socket, 'message')
  t.match(JSON.parse(String(frame)), { type: 'attached', session: { id } })
  t.equal(socket.protocol, 'session-gateway', 'the token is not sent back')
  socket.terminate()
  const stranger = new WebSocket(address, ['session-gateway', 'session-gateway.bearer.nope'])
  const [error] = await once(stranger, 'error')
  t.match(error, { message: /401/ })
})

t.test('a profile store that another daemon holds exits with 3, and says who holds it', async (t) => {
  const config = { profileStore: { file: 'profiles.json' } }
  const { daemon, cwd } = await startDaemon(t, config)
  const other = { ...config, listen: { port: 0 }, allowUnauthenticated: true, profiles: [DEMO] }
  writeFileSync(join(cwd, 'other.json'), JSON.stringify(other))
  const second = runDaemon(t, ['--config', 'other.json'], { cwd })
  t.match(await second.exited, { code: 3 })
  t.match(second.stderr, `${daemon.child.pid}`)
})

t.test('for people it prints lines and the first commands to try', async (t) => {
  const cwd = t.testdir({
    'gateway.json': JSON.stringify({
      listen: { port: 0 },
      allowUnauthenticated: true,
      profiles: [DEMO],
      log: { pretty: true },
    }),
  })
  const daemon = runDaemon(t, [], { cwd })
  await daemon.printed(/curl -N \S+\/events/)
  t.match(daemon.stdout, /INFO: listening/)
  t.match(daemon.stdout, /No authentication: everybody on this machine/)
  t.match(daemon.stdout, /"profile":"demo"/)
  daemon.child.kill('SIGTERM')
  t.same(await daemon.exited, { code: 0, signal: null })
})
