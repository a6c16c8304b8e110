import { mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { cliEngine } from '../../../src/engines/cli/index.js'
import { createWorkerServer } from '../../../src/server.js'
import { until } from '../../fixtures/build.js'
import { attach } from '../../fixtures/client.js'
import { SlowStore } from '../../fixtures/parked.js'

const SDK = new URL('../../fixtures/scripted-claude-sdk.mjs', import.meta.url).href
const sdk = (await import(SDK)) as { queries: { takeBack(): void; asks: boolean; calls: unknown[]; closed: boolean }[] }
const CALL = ['Bash', { command: 'make' }]
const DECLARED = ['mcp__session-gateway__deploy', {}]
const tools = [{ name: 'deploy', description: 'Deploys.', inputSchema: { type: 'object' } }]

async function begin(t: Test) {
  const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'claude-taken-back-')))
  const store = new SlowStore()
  const parking = { store, parkDelayMs: 0 }
  const worker = createWorkerServer(
    { allowUnauthenticated: true, profiles: [{ name: 'claude', agent: 'claude' }], parking, executions: { tools } },
    { createCliRunner: cliEngine({ claudeSdk: SDK, env: { HOME: cwd } }), env: {} },
  )
  t.teardown(() => worker.close())
  const api = `${(await worker.listen(0)).url}/v1`
  const response = await fetch(`${api}/sessions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ cwd, approvalTimeoutMs: 0 }),
  })
  const { id } = (await response.json()) as { id: string }
  const send = (step: object) => {
    const text = JSON.stringify([step, { type: 'result', result: 'went on' }])
    return worker.registry.send(id, { type: 'user_message', text })
  }
  return { client: () => attach(t, api, id), get: () => worker.registry.get(id), send, store }
}

for (const [what, step, denial] of [
  ['a question', { ask: CALL }, { behavior: 'deny' }],
  ['one that could be put off', { before: CALL }, { hookSpecificOutput: { permissionDecision: 'deny' } }],
] as const)
  t.test(`${what} that the agent takes back is denied, and nobody can answer it`, async (t) => {
    const { client: attached, get, send } = await begin(t)
    const client = await attached()
    await send(step)
    await client.until(({ events }) => events.some(({ type }) => type === 'permission_requested'))
    const request = client.events.flatMap((event) => (event.type === 'permission_requested' ? event.request : []))[0]!
    sdk.queries.at(-1)!.takeBack()
    await client.until(({ events }) => events.some(({ type }) => type === 'turn_completed'))
    t.match(
      client.events.filter(({ type }) => type === 'permission_resolved'),
      [{ requestId: request.id, behavior: 'deny', resolvedBy: 'policy', message: 'The agent does not ask any more.' }],
    )
    t.match(sdk.queries.at(-1)!.calls, [denial])
    t.match(await get(), { status: 'idle', pendingPermissions: 0 })
    client.send({ type: 'permission_decision', requestId: request.id, behavior: 'allow', id: 'late' })
    await client.until(({ frames }) => frames.some((frame) => frame.type === 'command_error'))
    t.match(
      client.frames.filter((frame) => frame.type === 'command_error'),
      [{ id: 'late', code: 'SG_ERR_PERMISSION_NOT_FOUND' }],
    )
  })

t.test('what an agent takes back because it is put off goes on waiting', async (t) => {
  const { get, send } = await begin(t)
  await send({ before: CALL })
  const query = () => sdk.queries.at(-1)!
  await until(async () => (await get())?.status === 'parked', 'the park')
  await until(() => query().closed, 'the end of the agent')
  t.match(await get(), { pendingPermissions: 1, parked: { permissions: [{ toolName: 'Bash' }] } })
})

t.test('a declared call that the agent takes back fails, and the turn goes on', async (t) => {
  const { client: attached, send } = await begin(t)
  const client = await attached()
  await send({ before: DECLARED })
  await client.until(({ events }) => events.some(({ type }) => type === 'execution_dispatched'))
  sdk.queries.at(-1)!.takeBack()
  await client.until(({ events }) => events.some(({ type }) => type === 'turn_completed'))
  t.match(
    client.events.filter(({ type }) => type === 'execution_failed'),
    [{ reason: 'withdrawn' }],
  )
  t.match(sdk.queries.at(-1)!.calls, [{ hookSpecificOutput: { permissionDecision: 'deny' } }])
})

t.test('so does one whose agent is another one than it was made by', async (t) => {
  const before = sdk.queries.length
  const { client: attached, send, store } = await begin(t)
  store.broken = true
  await send({ before: DECLARED })
  await until(() => sdk.queries.length > before + 1, 'the next agent, since the park cannot be written')
  await until(() => sdk.queries.at(-1)!.asks, 'its call')
  const client = await attached()
  sdk.queries.at(-1)!.takeBack()
  await client.until(({ events }) => events.some(({ type }) => type === 'turn_completed'))
  t.match(
    client.events.filter(({ type }) => type === 'execution_failed'),
    [{ reason: 'withdrawn' }],
  )
})
