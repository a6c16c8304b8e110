import { once } from 'node:events'
import t from 'tap'
import { WebSocket } from 'ws'
import { DEMO, runDaemon, startDaemon, TOKEN } from '../fixtures/daemon-process.js'

t.test('a turn in progress does not keep it from stopping; clients are told to come back', async (t) => {
  const { daemon, url, createSession } = await startDaemon(t, { shutdownTimeoutMs: 2000 })
  const { id } = await createSession('@@[{"hang": true}]@@')
  const socket = new WebSocket(`${url.replace('http', 'ws')}/sessions/${id}/ws`, {
    headers: { authorization: `Bearer ${TOKEN}` },
  })
  await once(socket, 'message')
  daemon.child.kill('SIGINT')
  t.equal((await once(socket, 'close'))[0], 1001)
  t.same(await daemon.exited, { code: 0, signal: null })
})

t.test('a second signal exits at once', async (t) => {
  const hooks = `export const createEngineRunner = () => ({
    capabilities: { permissionModes: ['default'], parking: 'none', setModel: false, resume: false, fork: false, files: false },
    start: async () => {}, send() {}, interrupt: async () => {}, close: () => new Promise(() => {}),
  })`
  const { daemon, createSession } = await startDaemon(t, { shutdownTimeoutMs: 600_000 }, { hooks })
  await createSession('hello')
  daemon.child.kill('SIGTERM')
  await daemon.logged('stopping')
  daemon.child.kill('SIGTERM')
  t.same(await daemon.exited, { code: 1, signal: null })
  t.match(daemon.lines().at(-1), { msg: 'second signal, exiting at once' })
})

t.test('a signal that is sent to have a log rotated opens no inspector, and ends nothing', async (t) => {
  const { daemon, call } = await startDaemon(t)
  daemon.child.kill('SIGUSR1')
  await daemon.printed(/SIGUSR1 does nothing|Debugger listening/)
  t.notMatch(daemon.stderr, /Debugger listening/)
  t.match(await call('/sessions'), { status: 200 })
})

t.test('an error nobody caught is logged and ends it with 1', async (t) => {
  const hooks = `export const buildRunnerConfig = (request) => {
    if (request.prompt === 'throw') setTimeout(() => { throw new Error('boom') })
    else if (request.prompt === 'reject') Promise.reject(new Error('boom'))
    else Promise.reject()
    return request
  }`
  for (const prompt of ['throw', 'reject', 'reject with nothing']) {
    const { daemon, cwd, call } = await startDaemon(t, {}, { hooks })
    // refused or cut off, as far as it came
    await call('/sessions', { profile: 'demo', cwd: `${cwd}/work`, prompt }).catch(() => {})
    t.same(await daemon.exited, { code: 1, signal: null }, prompt)
    t.match(
      daemon.lines().find(({ level }) => level === 'fatal'),
      { msg: 'uncaught error, stopping', err: { message: prompt === 'reject with nothing' ? 'undefined' : 'boom' } },
    )
  }
})

t.test('a signal during the start is no failure of it', async (t) => {
  const cwd = t.testdir({
    'gateway.json': JSON.stringify({
      listen: { port: 0 },
      allowUnauthenticated: true,
      hooks: 'hooks.mjs',
      profiles: [DEMO],
    }),
    'hooks.mjs': `export const createEngineRunner = () => {}
      process.nextTick(() => setImmediate(() => process.kill(process.pid, 'SIGTERM')))`,
  })
  const { code, signal } = await runDaemon(t, [], { cwd }).exited
  // before the handlers stand, the signal itself ends the process
  t.ok(code === 0 || signal === 'SIGTERM', `exit ${code} ${signal}`)
})
