import { mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { WorkerServerOptions } from '../../src/options.js'
import { createWorkerServer } from '../../src/server.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'

/** A gateway with the bundled agents, none of which can be started. */
async function build(t: Test, more: Partial<WorkerServerOptions> = {}) {
  const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'unsuited-')))
  const worker = createWorkerServer(
    {
      allowUnauthenticated: true,
      profiles: ['codex', 'gemini'].map((agent) => ({ name: agent, agent })),
      queue: {},
      ...more,
    },
    { env: {} },
  )
  t.teardown(() => worker.close())
  const { url } = await worker.listen(0)
  const submit = async (profile: string, more: object) => {
    const body = JSON.stringify({ session: { cwd, prompt: 'hello', profile, ...more } })
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${url}/v1/jobs`, { method: 'POST', headers, body })
    return { status: response.status, json: (await response.json()) as object }
  }
  const jobs = async () => ((await (await fetch(`${url}/v1/jobs`)).json()) as object[]).length
  return { submit, jobs }
}

const UNSUITED: [profile: string, more: object, code: string, field: string, message: RegExp][] = [
  ['codex', { maxTurns: 3 }, 'SG_ERR_UNSUPPORTED', 'maxTurns', /agent codex has no such setting/],
  ['codex', { maxBudgetUsd: 1 }, 'SG_ERR_UNSUPPORTED', 'maxBudgetUsd', /agent codex/],
  [
    'gemini',
    { permissionMode: 'auto' },
    'SG_ERR_PERMISSION_MODE',
    'permissionMode',
    /gemini has default, .*, not auto/,
  ],
  ['gemini', { mcpServers: { m: { command: 'x' } } }, 'SG_ERR_UNSUPPORTED', 'mcpServers', /set trustWorkspace/],
]

t.test('a job whose agent does not have what it asks for is refused as it is submitted', async (t) => {
  const { submit, jobs } = await build(t)
  for (const [profile, more, code, field, message] of UNSUITED) {
    const errors = [{ path: `session.${field}`, message }]
    t.match(await submit(profile, more), { status: 400, json: { code, errors } }, field)
  }
  t.equal(await jobs(), 0)
  t.equal((await submit('codex', {})).status, 201, 'others are taken')
})

t.test('what a hook of the host may take out is not refused before the hook was asked', async (t) => {
  const { submit, jobs } = await build(t, { buildRunnerConfig: ({ maxTurns: _none, ...request }) => request })
  t.equal((await submit('codex', { maxTurns: 3 })).status, 201)
  t.equal(await jobs(), 1)
})

t.test('a server of a job that is named as the one of the gateway is refused as it is submitted', async (t) => {
  const tool = { name: 'deploy', description: 'Deploys.', inputSchema: { type: 'object' } }
  const { submit, jobs } = await build(t, { executions: { tools: [tool] } })
  const named = (name: string) => ({ mcpServers: { [name]: { command: 'x' } } })
  for (const name of ['session-gateway', 'Session Gateway', 'session.gateway']) {
    const errors = [{ path: 'session.mcpServers', message: /the gateway's own/ }]
    t.match(await submit('codex', named(name)), { status: 400, json: { code: 'SG_ERR_VALIDATION', errors } }, name)
  }
  t.equal(await jobs(), 0)
  t.equal((await submit('codex', named('mine'))).status, 201, 'others are taken')
  const without = await build(t)
  t.equal(
    (await without.submit('codex', named('session-gateway'))).status,
    201,
    'as is that name where there is no such server',
  )
})

t.test('a job whose prompt the hook leaves out fails and says so: nothing would ever end its run', async (t) => {
  const { call, engine } = await buildServer(t, {
    queue: { maxConcurrency: 1 },
    buildRunnerConfig: (request) => (request.meta ? { cwd: request.cwd } : request),
  })
  const submit = async (more: object) => (await call('POST', '/jobs', { session: { cwd: SOME_CWD, ...more } })).json.id
  const id = await submit({ prompt: 'go', meta: { left: 'out' } })
  await until(async () => (await call('GET', `/jobs/${id}`)).json.finishedAt)
  const error = 'buildRunnerConfig returned a config without the prompt of the job.'
  t.match((await call('GET', `/jobs/${id}`)).json, { status: 'failed', error })
  t.same(engine.runners, [], 'no engine was started')
  t.same((await call('GET', '/sessions')).json, [])
  const next = await submit({ prompt: 'go' })
  await until(() => engine.runners.length === 1, 'the place is free')
  engine.last.complete({ result: 'done' })
  await until(async () => (await call('GET', `/jobs/${next}`)).json.status === 'succeeded')
})
