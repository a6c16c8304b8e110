import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { cliEngine } from '../../src/engines/cli/index.js'
import { ScriptedHost } from '../fixtures/scripted-host.js'
import { AGENTS } from './installed.js'
import { showAgent } from './show-agent.js'
import { script, startVendors } from './vendors.js'

const TOOLS = fileURLToPath(new URL('../fixtures/mcp-tools.mjs', import.meta.url))
const { qwen } = AGENTS

showAgent(qwen)

t.test('qwen asks for a tool of a server by its name', { skip: qwen.missing ?? false }, async (t) => {
  const vendors = await startVendors(t)
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'qwen-server-')))
  const cwd = join(home, 'work')
  mkdirSync(cwd)
  for (const [path, text] of Object.entries(qwen.files())) {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), text)
  }
  const env = { PATH: process.env.PATH!, ...qwen.env(home, vendors.url) }
  const runner = await cliEngine({ agents: [qwen.declaration], env })({
    ...{ sessionId: crypto.randomUUID(), bridge: { execute: () => Promise.reject(new Error('not here')) } },
    // it starts no servers elsewhere
    profile: { name: 'qwen', engine: 'cli', agent: 'qwen', trustWorkspace: true },
    config: { cwd, mcpServers: { tools: { command: process.execPath, args: [TOOLS] } } },
  })
  t.teardown(() => runner.close())
  const host = new ScriptedHost()
  host.answer = () => ({ behavior: 'allow' })
  await runner.start(host)
  await host.turn(runner, script({ tool: 'mcp__tools__echo', input: { words: 'hello' } }, { text: 'done' }))
  t.match(host.asks, [{ toolName: 'mcp__?__echo', input: { words: 'hello' } }])
  t.match(JSON.stringify(host.of('user_message')), /hello/)
})
