import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t from 'tap'
import { cliEngine } from '../../src/engines/cli/index.js'
import { createWorkerServer } from '../../src/server.js'
import { attach } from '../fixtures/client.js'
import { AGENTS, type AgentUnderTest, CLAUDE_SDK } from './installed.js'
import { script, startVendors } from './vendors.js'

const deploy = {
  name: 'deploy',
  description: 'Deploys a branch.',
  inputSchema: { type: 'object', properties: { branch: { type: 'string' } } },
}

for (const agent of Object.values(AGENTS) as AgentUnderTest[])
  t.test(`${agent.name} calls a declared tool and asks nobody`, { skip: agent.missing ?? false }, async (t) => {
    const vendors = await startVendors(t)
    const home = realpathSync(mkdtempSync(join(tmpdir(), `${agent.name}-tools-`)))
    const cwd = join(home, 'work')
    mkdirSync(cwd)
    for (const [path, text] of Object.entries(agent.files(vendors.url))) {
      mkdirSync(dirname(join(home, path)), { recursive: true })
      writeFileSync(join(home, path), text)
    }
    const env = { PATH: process.env.PATH!, HOME: home, ...agent.env(home, vendors.url) }
    const worker = createWorkerServer(
      {
        allowUnauthenticated: true,
        profiles: [{ name: agent.name, engine: 'cli', agent: agent.name }],
        agents: [agent.declaration],
        executions: { tools: [deploy] },
      },
      { createCliRunner: cliEngine({ agents: [agent.declaration], claudeSdk: CLAUDE_SDK, env }), env: {} },
    )
    t.teardown(() => worker.close())
    const api = `${(await worker.listen(0)).url}/v1`
    const post = async (path: string, body: object) => {
      const response = await fetch(`${api}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      return (await response.json()) as { id: string; applied?: boolean }
    }
    for (const permissionMode of ['default', 'dontAsk']) {
      const { id } = await post('/sessions', { cwd, permissionMode })
      const client = await attach(t, api, id)
      await client.untilEvent('system_init')
      client.send({
        type: 'user_message',
        text: script({ ...agent.hosted('deploy'), input: { branch: 'main' } }, { text: 'It is out.' }),
      })
      await client.until(({ events }) =>
        events.some(({ type }) => /execution_dispatched|permission_requested|turn_completed/.test(type)),
      )
      const called = client.events.find((event) => event.type === 'execution_dispatched')
      t.match(called, { toolName: 'deploy' }, `it is called in ${permissionMode}, in the first turn already`)
      if (called?.type !== 'execution_dispatched') return
      const output = { type: 'text', value: 'deployed to the moon' }
      t.match(await post(`/executions/${called.executionId}/result`, { status: 'ok', output }), { applied: true })
      await client.untilEvent('turn_completed')
      t.match(
        client.events.find((event) => event.type === 'turn_completed'),
        { subtype: 'success', result: 'It is out.' },
      )
      t.notOk(client.events.some((event) => event.type === 'permission_requested'))
      t.ok(
        vendors.asked.some(({ body }) => body.includes('deployed to the moon')),
        'its model has the result',
      )
      await fetch(`${api}/sessions/${id}`, { method: 'DELETE' })
      vendors.asked.length = 0
    }
  })
