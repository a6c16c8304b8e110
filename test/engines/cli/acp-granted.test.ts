import t, { type Test } from 'tap'
import type { PermissionMode } from '../../../schemas/permissions.js'
import { GrantedTools } from '../../../src/engines/cli/acp/granted.js'
import { BUILT_IN_AGENTS, cliEngine } from '../../../src/engines/cli/index.js'
import type { HostedTools } from '../../../src/engines/hosted-tools.js'
import { createWorkerServer } from '../../../src/server.js'
import { acpFolder, SCRIPTED_ACP, startAcp } from '../../fixtures/scripted-acp.js'

const hostedTools: HostedTools = {
  server: 'session-gateway',
  tools: [{ name: 'deploy', description: 'Deploys.', inputSchema: {} }],
  listed: Promise.resolve(),
  find: () => undefined,
  execution: () => ({ executionId: 'e' }),
  answer: () => {},
}

/** A runner of the scripted agent, under the name of the row that is to be applied to it. */
function start(t: Test, name: string, permissionMode: PermissionMode) {
  const modes = { default: 'ask', dontAsk: 'ask', plan: 'plan' }
  return startAcp(t, {
    ...{ name, modes, config: { permissionMode }, hostedTools },
    answer: () => ({ behavior: 'deny' }),
  })
}

const options = [
  { optionId: 'yes', name: 'Allow', kind: 'allow_once' },
  { optionId: 'no', name: 'Reject', kind: 'reject_once' },
]
const ask = (toolCall: object) => ({ asks: { toolCall: { status: 'pending', kind: 'other', ...toolCall }, options } })

/** How each agent asks for a call of the tool, and for one that only looks like it. */
const ASKS: Record<string, { own: object[]; other: object[] }> = {
  opencode: {
    own: [ask({ toolCallId: 'c1', title: 'session-gateway_deploy', rawInput: {} })],
    other: [
      ask({ toolCallId: 'c2', title: 'other_deploy' }),
      ask({ toolCallId: 'c3', title: 'session-gateway_deploy', kind: 'execute', rawInput: { command: 'rm' } }),
    ],
  },
  gemini: {
    own: [ask({ toolCallId: 'mcp_session-gateway_deploy__call_1', title: 'deploy (session-gateway MCP Server)' })],
    other: [
      ask({ toolCallId: 'mcp_other_deploy__call_1', title: 'deploy (session-gateway MCP Server)' }),
      ask({ toolCallId: 'run_shell_command__mcp_session-gateway_deploy__call_1', kind: 'execute' }),
    ],
  },
  codex: {
    own: [
      {
        raw: {
          ...{ sessionUpdate: 'tool_call', toolCallId: 'c1', kind: 'execute', title: 'mcp.session-gateway.deploy' },
          rawInput: { server: 'session-gateway', tool: 'deploy', arguments: { branch: 'main' } },
          ...{ status: 'in_progress', _meta: { is_mcp_tool_call: true } },
        },
      },
      ask({ toolCallId: 'c1', kind: 'execute' }),
    ],
    other: [
      ask({ toolCallId: 'c2', kind: 'execute', rawInput: { server: 'session-gateway', tool: 'deploy' } }),
      ask({ toolCallId: 'c3', kind: 'execute', title: 'mcp.session-gateway.deploy' }),
    ],
  },
  declared: {
    own: [ask({ toolCallId: 'c1', _meta: { claudeCode: { toolName: 'mcp__session-gateway__deploy' } } })],
    other: [ask({ toolCallId: 'c2', title: 'session-gateway_deploy' })],
  },
}

for (const [name, { own, other }] of Object.entries(ASKS))
  t.test(`a declared tool of ${name} waits for nobody, and nothing else goes with it`, async (t) => {
    for (const mode of ['default', 'dontAsk', 'plan'] as const) {
      const { runner, host } = await start(t, name, mode)
      await host.turn(runner, JSON.stringify(own))
      t.equal(host.asks.length, 0, `not asked in ${mode}`)
      t.notOk(JSON.stringify(host.events).includes('does not allow'), `not refused in ${mode}`)
      await host.turn(runner, JSON.stringify([...other, { text: 'after' }]))
      t.equal(host.asks.length, mode === 'default' ? other.length : 0)
      t.equal(
        JSON.stringify(host.events).split('does not allow').length - 1,
        other.length,
        `the others are, in ${mode}`,
      )
      await runner.close()
    }
  })

t.test('qwen, which asks without a name, is told at its start', (t) => {
  const granted = new GrantedTools({ hostedTools, row: BUILT_IN_AGENTS.get('qwen')! })
  t.strictSame(granted.args, ['--allowed-tools', 'mcp__session-gateway__deploy'])
  t.strictSame(new GrantedTools({ hostedTools: undefined, row: BUILT_IN_AGENTS.get('qwen')! }).args, [])
  t.end()
})

t.test('a server of a caller that could be taken for the gateway’s own is refused', async (t) => {
  const agents = [{ name: 'scripted', command: process.execPath, args: [SCRIPTED_ACP] }]
  const worker = createWorkerServer(
    {
      ...{ allowUnauthenticated: true, profiles: [{ name: 'scripted', agent: 'scripted' }], agents },
      executions: { tools: [{ name: 'deploy_now', description: 'Deploys.', inputSchema: {} }] },
    },
    { createCliRunner: cliEngine({ agents }), env: {} },
  )
  t.teardown(() => worker.close())
  const { url } = await worker.listen(0)
  const statusWith = async (name: string) => {
    const response = await fetch(`${url}/v1/sessions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ cwd: acpFolder(), mcpServers: { [name]: { command: 'x' } } }),
    })
    const { errors } = (await response.json()) as { errors?: { path: string }[] }
    return [response.status, errors?.[0]?.path]
  }
  t.strictSame(await statusWith('Session_Gateway'), [400, 'mcpServers'])
  t.strictSame(await statusWith('session-gateway_deploy'), [400, 'mcpServers'], 'its tool now would be deploy_now')
  for (const name of ['session', 'session-gateway_dep', 'session-gateway-docs'])
    t.strictSame(await statusWith(name), [201, undefined], name)
})
