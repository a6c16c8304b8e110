import { mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { cliEngine } from '../../../src/engines/cli/index.js'
import { createWorkerServer } from '../../../src/server.js'
import { attach } from '../../fixtures/client.js'
import { startAcp } from '../../fixtures/scripted-acp.js'

const AGENT = fileURLToPath(new URL('../../fixtures/scripted-acp-agent.mjs', import.meta.url))

/** A gateway whose agent speaks the Agent Client Protocol, and callers of it. */
async function build(t: Test, args: string[] = [AGENT], name = 'scripted') {
  const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'acp-refusals-')))
  const agents = [{ name, command: process.execPath, args, modes: { default: 'ask' } }]
  const worker = createWorkerServer(
    { allowUnauthenticated: true, profiles: [{ name: 'scripted', agent: name }], agents },
    { createCliRunner: cliEngine({ agents }), env: {} },
  )
  t.teardown(() => worker.close())
  const api = `${(await worker.listen(0)).url}/v1`
  const post = async (path: string, body: object) => {
    const response = await fetch(`${api}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return { status: response.status, json: (await response.json()) as { id: string; errors?: object[] } }
  }
  const create = (request: object) => post('/sessions', { cwd, ...request })
  return { api, post, create }
}

t.test('a fork is refused of an agent that is known to make none', async (t) => {
  const { api, create } = await build(t, [AGENT], 'gemini')
  t.match(await create({ resume: 'earlier', forkSession: true }), {
    status: 400,
    json: { code: 'SG_ERR_UNSUPPORTED', errors: [{ path: 'forkSession', message: /cannot fork/ }] },
  })
  t.strictSame(await (await fetch(`${api}/sessions`)).json(), [], 'and nothing is left')
})

t.test(
  'an answer to a question of the agent, which it could not take, is refused, and the question stays',
  async (t) => {
    const { api, post, create } = await build(t)
    const questions = [{ question: 'Which?', header: 'h', options: [{ label: 'a' }, { label: 'b' }] }]
    const prompt = JSON.stringify([{ tool: 'AskUserQuestion', input: { questions }, ask: true, result: 'asked' }])
    const { json } = await create({ prompt })
    const client = await attach(t, api, json.id)
    await client.untilEvent('permission_requested')
    const asked = client.events.find((event) => event.type === 'permission_requested')
    if (asked?.type !== 'permission_requested') throw new Error('unreachable')
    const decide = (decision: object) => post(`/sessions/${json.id}/permissions/${asked.request.id}`, decision)
    const answered = { behavior: 'allow', updatedInput: { questions, answers: { 'Which?': 'a' } } }
    t.match(await decide(answered), {
      status: 400,
      json: {
        code: 'SG_ERR_UNSUPPORTED',
        errors: [{ path: 'updatedInput', message: /only run the input that it showed/ }],
      },
    })
    t.match(await decide({ behavior: 'allow' }), { status: 200 })
    await client.untilEvent('turn_completed')
  },
)

t.test('an agent that dies while it starts is told of with its last words', async (t) => {
  const { api, create } = await build(t, ['-e', 'console.error("no credentials"); process.exit(1)'])
  const { json } = await create({ prompt: 'hello' })
  const client = await attach(t, api, json.id)
  await client.until(() => client.events.some(({ type }) => type === 'session_closed'))
  t.match(
    client.events.filter(({ type }) => type === 'session_error'),
    [{ message: 'The agent exited with code 1. It said: no credentials' }],
  )
})

/** @param answer an expression: what the agent answers to a request */
async function notBegunWith(t: Test, answer: string, message: string): Promise<void> {
  const lines = `require('node:readline').createInterface({ input: process.stdin })`
  const { api, create } = await build(t, [
    '-e',
    `${lines}.on('line', (line) => console.log(JSON.stringify((${answer})(JSON.parse(line)))))`,
  ])
  const { json } = await create({ prompt: 'hi' })
  const client = await attach(t, api, json.id)
  await client.untilEvent('session_error')
  t.match(
    client.events.filter(({ type }) => type === 'session_error'),
    [{ code: 'SG_ERR_ENGINE_START', message }],
  )
}

const HELLO = { protocolVersion: 1, agentCapabilities: {} }

for (const reason of ['Sign in again', 'Sign in again.'])
  t.test(`a login that the agent asks for with ${JSON.stringify(reason)} is told in whole sentences`, async (t) => {
    const refusal = JSON.stringify({ code: -32000, message: reason })
    const said = `method === 'initialize' ? { result: ${JSON.stringify(HELLO)} } : { error: ${refusal} }`
    const remedy = 'Log in with the agent itself, or name one of its methods in agents[].auth: it offers none.'
    const message = `The agent is not logged in: Sign in again. ${remedy}`
    await notBegunWith(t, `({ id, method }) => ({ jsonrpc: '2.0', id, ...(${said}) })`, message)
  })

for (const [code, message] of [
  [-32603, 'The agent could not begin: its database is locked'],
  [-32601, 'The agent does not speak the Agent Client Protocol: its database is locked'],
] as const)
  t.test(`an agent that answers initialize with the error ${code} is told of with its reason`, async (t) => {
    const error = { code, message: 'its database is locked' }
    await notBegunWith(t, `({ id }) => ({ jsonrpc: '2.0', id, error: ${JSON.stringify(error)} })`, message)
  })

t.test(
  'an agent that answers with an error and no word about it is told of with what there is, its number',
  async (t) => {
    const message = 'The agent could not begin: the agent gave no reason for its error -32603.'
    const error = { code: -32603, message: '' }
    await notBegunWith(t, `({ id }) => ({ jsonrpc: '2.0', id, error: ${JSON.stringify(error)} })`, message)
  },
)

for (const [what, answers, message] of [
  [
    'is nobody',
    { initialize: null },
    'The agent does not speak the Agent Client Protocol: its answer to initialize is null.',
  ],
  [
    'speaks another version',
    { initialize: { protocolVersion: 2 } },
    'The agent speaks version 2 of the Agent Client Protocol; the gateway speaks version 1.',
  ],
  ['opens nothing', { initialize: HELLO, 'session/new': null }, 'The agent opened a session and gave it no sessionId.'],
  [
    'opens a session without a name',
    { initialize: HELLO, 'session/new': { sessionId: 5 } },
    'The agent opened a session and gave it no sessionId.',
  ],
  [
    'has modes of its own kind',
    { initialize: HELLO, 'session/new': { sessionId: 's', configOptions: 'y' } },
    'What the agent says of its modes and models is not of the Agent Client Protocol.',
  ],
] as const)
  t.test(`an agent that ${what} is not begun with, and that is said`, async (t) => {
    await notBegunWith(
      t,
      `({ id, method }) => ({ jsonrpc: '2.0', id, result: (${JSON.stringify(answers)})[method] })`,
      message,
    )
  })

t.test('what an agent asked in a turn that it has ended is not asked any more', async (t) => {
  const { api, post, create } = await build(t)
  const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }]
  const toolCall = { toolCallId: 'call', title: 'run', status: 'pending', kind: 'execute', rawInput: {} }
  const { json } = await create({ prompt: JSON.stringify([{ leaves: { toolCall, options } }, { text: 'done' }]) })
  const client = await attach(t, api, json.id)
  await client.untilEvent('turn_completed')
  const told = client.events.flatMap((event) =>
    ['permission_requested', 'permission_resolved', 'turn_completed'].includes(event.type) ? [event] : [],
  )
  t.match(told, [
    { type: 'permission_requested' },
    { type: 'permission_resolved', behavior: 'deny', resolvedBy: 'policy' },
    { type: 'turn_completed', subtype: 'success' },
  ])
  t.match(await (await fetch(`${api}/sessions/${json.id}`)).json(), { status: 'idle', pendingPermissions: 0 })
  const [asked] = told
  if (asked?.type !== 'permission_requested') throw new Error('unreachable')
  const late = await post(`/sessions/${json.id}/permissions/${asked.request.id}`, { behavior: 'allow' })
  t.match(late, { status: 404, json: { code: 'SG_ERR_PERMISSION_NOT_FOUND' } })
})

for (const [permissionMode, options] of [
  ['default', []],
  ['default', [{ optionId: 'no', name: 'Reject', kind: 'reject_once' }]],
  ['bypassPermissions', []],
] as const)
  t.test(
    `what an agent offers no way to allow is told as denied, and nobody is asked: ${permissionMode}, ${options.length}`,
    async (t) => {
      const modes = { default: 'ask', bypassPermissions: 'free' }
      const { runner, host } = await startAcp(t, { modes, config: { permissionMode } })
      host.answer = () => ({ behavior: 'allow' })
      const toolCall = { toolCallId: 'call', title: 'run', status: 'pending', kind: 'execute', rawInput: {} }
      const end = await host.turn(runner, JSON.stringify([{ asks: { toolCall, options } }, { text: 'well then' }]))
      t.match(end, { subtype: 'success', result: 'well then' })
      t.strictSame(host.asks, [])
      const message = /offered no way to allow it, so it was denied/
      t.match(host.of('engine_event'), [{ payload: { type: 'permission_unallowable', toolUseId: 'call', message } }])
      t.match(host.of('user_message'), [
        { message: { content: [{ tool_use_id: 'call', content: message, is_error: true }] } },
      ])
    },
  )
