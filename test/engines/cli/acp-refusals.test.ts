import { mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { cliEngine } from '../../../src/engines/cli/index.js'
import { createWorkerServer } from '../../../src/server.js'
import { attach } from '../../fixtures/client.js'

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
