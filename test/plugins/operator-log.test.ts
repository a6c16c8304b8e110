import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { createLogger } from '../../src/daemon/logger.js'
import { cliEngine } from '../../src/engines/cli/index.js'
import { createWorkerServer } from '../../src/server.js'
import { type BuildOptions, buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { attach } from '../fixtures/client.js'
import { failingDisk } from '../fixtures/failing-disk.js'
import { ok } from '../fixtures/parked.js'
import type { ScriptedRunner } from '../fixtures/scripted-engine.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const AGENT = fileURLToPath(new URL('../fixtures/scripted-acp-agent.mjs', import.meta.url))

function keepLines(level: string) {
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  const logger = createLogger({ level, pretty: false, secrets: [], destination })
  const said = (msg?: string) =>
    lines.map((line) => JSON.parse(line) as Record<string, unknown>).filter((line) => !msg || line.msg === msg)
  return { logger, said, text: () => lines.join('') }
}

/** A gateway of ada and bob, who say so in a header; everything they and the engine say has the word canary in it. */
async function build(t: Test, level: string, options: BuildOptions = {}) {
  const log = keepLines(level)
  const clock = new VirtualClock()
  const server = await buildServer(t, {
    authenticate: ({ headers }) => (headers['x-user'] ? { name: String(headers['x-user']) } : undefined),
    logger: log.logger,
    clock,
    ...options,
  })
  const as = (user: string) => (method: string, path: string, body?: object) =>
    server.call(method, path, body, { 'x-user': user })
  const create = async (more: object = {}) =>
    (await as('ada')('POST', '/sessions', { cwd: SOME_CWD, prompt: 'canary prompt', ...more })).json.id as string
  return { ...server, ...log, as, create, clock }
}

const ask = (runner: ScriptedRunner) =>
  runner.host.requestPermission({
    toolName: 'Write',
    toolUseId: 'canary-use',
    input: { text: 'canary input' },
    title: 'canary title',
    description: 'canary description',
  })

t.test('who operates it can read what became of every session, and who decided what', async (t) => {
  const { said, text, as, create, clock, engine, api } = await build(t, 'info')
  const id = await create({ approvalTimeoutMs: 1_000 })
  const runner = engine.last
  const first = ask(runner)
  const [asked] = said('approval asked')
  t.match(asked, { level: 'info', sessionId: id, toolName: 'Write', expiresAt: Number })
  await as('bob')('POST', `/sessions/${id}/permissions/${asked?.requestId}`, { behavior: 'allow' })
  await first
  const second = ask(runner)
  const client = await attach(t, api, id, '', { headers: { 'x-user': 'eve' } })
  const { requestId } = said('approval asked')[1] as { requestId: string }
  client.send({ type: 'permission_decision', id: 'c1', requestId, behavior: 'deny', message: 'canary message' })
  await second
  await until(() => said('approval answered').length === 2)
  t.match(said('approval answered'), [
    { level: 'info', sessionId: id, requestId: asked?.requestId, behavior: 'allow', by: 'bob' },
    { level: 'info', sessionId: id, requestId, behavior: 'deny', by: 'eve' },
  ])
  const third = ask(runner)
  await clock.advance(1_000)
  await third
  t.match(said('approval timed out'), [{ level: 'info', sessionId: id, behavior: 'deny', by: 'timeout' }])
  runner.complete({
    subtype: 'error_during_execution',
    isError: true,
    errors: ['the endpoint is down'],
    result: 'canary',
  })
  t.match(said('turn failed'), [{ level: 'warn', sessionId: id, reason: 'the endpoint is down' }])
  await as('ada')('DELETE', `/sessions/${id}`)
  const failing = await create()
  engine.last.host.emit({ type: 'session_error', message: 'the agent died' })
  t.match(said('session created'), [
    { level: 'info', sessionId: id, profile: 'scripted', engine: 'provider', cwd: SOME_CWD, by: 'ada' },
    { sessionId: failing },
  ])
  t.match(said('session ended'), [{ level: 'info', sessionId: id, reason: 'client' }])
  t.match(said('session failed'), [{ level: 'warn', sessionId: failing, reason: 'the agent died' }])
  t.notMatch(text(), /canary/)
})

t.test('a session that parks and wakes is told with what it waits for', async (t) => {
  const script = { capabilities: { parking: 'native' as const }, send: (runner: ScriptedRunner) => runner.defer('e1') }
  const { said, as, create } = await build(t, 'info', { script })
  const id = await create()
  await until(() => said('session parked').length === 1)
  t.match(said('session parked'), [{ level: 'info', sessionId: id, executions: ['e1'] }])
  await as('ada')('POST', '/executions/e1/result', ok)
  t.match(said('session woken'), [{ level: 'info', sessionId: id }])
})

t.test('a request is told with its caller, address and the code of its refusal', async (t) => {
  const { said, as, call } = await build(t, 'info')
  await as('ada')('GET', '/sessions/none')
  await call('GET', '/sessions')
  t.match(said('request'), [
    { level: 'info', caller: 'ada', address: '127.0.0.1', status: 404, code: 'SG_ERR_SESSION_NOT_FOUND' },
    { level: 'warn', address: '127.0.0.1', status: 401, code: 'SG_ERR_UNAUTHENTICATED' },
  ])
  t.notOk('caller' in said('request')[1]!)
})

t.test('what refuses every request is told once while it lasts, and only when it has a cause', async (t) => {
  const { disk, storage } = failingDisk()
  let closed = () => {}
  const close = () =>
    new Promise<void>((resolve) => {
      closed = resolve
    })
  const { said, as, create, clock, worker, api } = await build(t, 'info', { storage, script: { close } })
  const failed = () => said('request failed').map(({ code }) => code)
  const tryToCreate = async () => (await as('ada')('POST', '/sessions', { cwd: SOME_CWD })).status
  const client = await attach(t, api, await create(), '', { headers: { 'x-user': 'ada' } })
  disk.fails = 'SQLITE_FULL'
  for (const _ of [1, 2, 3]) t.equal(await tryToCreate(), 503)
  t.strictSame(failed(), ['SG_ERR_STORE_UNAVAILABLE'])
  await clock.advance(60_000)
  for (const _ of [1, 2]) t.equal(await tryToCreate(), 503)
  t.strictSame(failed(), ['SG_ERR_STORE_UNAVAILABLE', 'SG_ERR_STORE_UNAVAILABLE'], 'it lasts')
  t.equal(said('request').filter(({ code }) => code === 'SG_ERR_STORE_UNAVAILABLE').length, 5)
  disk.fails = undefined
  const closing = worker.close()
  await client.untilClosed()
  t.equal(await tryToCreate(), 503)
  t.match(said('request').at(-1), { level: 'info', status: 503, code: 'SG_ERR_SHUTTING_DOWN' })
  t.equal(failed().length, 2)
  closed()
  await closing
})

t.test('debug tells every event without its content; what was said is in a trace alone', async (t) => {
  for (const level of ['debug', 'trace']) {
    const { said, text, create, engine } = await build(t, level)
    const sessionId = await create()
    void ask(engine.last)
    engine.last.say('canary answer')
    t.match(
      said('event').map(({ type }) => type),
      ['user_message', 'system_init', 'status_changed', 'permission_requested', 'status_changed', 'assistant_message'],
    )
    t.match(said('event')[0], { level: 'debug', sessionId, seq: 1 })
    if (level === 'debug') t.notMatch(text(), /canary/)
    else t.match(String(said('event in full').at(-1)?.event), /canary answer/)
  }
})

t.test('the process of an agent is told with its pid when it starts, and how it ended', async (t) => {
  const { logger, said } = keepLines('info')
  const agents = [{ name: 'scripted', command: process.execPath, args: [AGENT], modes: { default: 'ask' } }]
  const worker = createWorkerServer(
    { allowUnauthenticated: true, profiles: [{ name: 'scripted', agent: 'scripted' }], agents, logger },
    { createCliRunner: cliEngine({ agents, logger }), env: {} },
  )
  t.teardown(() => worker.close())
  const { id } = await worker.registry.create({ cwd: SOME_CWD })
  await until(async () => (await worker.registry.get(id))?.status === 'idle', 'the agent')
  const [started] = said('agent started')
  t.match(started, { level: 'info', sessionId: id, agent: 'scripted', pid: Number })
  process.kill(Number(started?.pid), 'SIGKILL')
  await until(() => said('agent ended').length === 1, 'its end')
  t.match(said('agent ended'), [{ level: 'info', sessionId: id, pid: started?.pid, signal: 'SIGKILL' }])
  await until(() => said('session failed').some(({ sessionId }) => sessionId === id), 'the end of its session')
})
