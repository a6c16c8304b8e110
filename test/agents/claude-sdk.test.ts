import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { cliEngine } from '../../src/engines/cli/index.js'
import { createWorkerServer } from '../../src/server.js'
import { attach } from '../fixtures/client.js'
import { ScriptedHost } from '../fixtures/scripted-host.js'
import { AGENTS, CLAUDE_SDK } from './installed.js'

const CLI = new URL('../fixtures/scripted-claude.mjs', import.meta.url)

/** The real SDK, driving a scripted agent that keeps what it reads. */
function build(t: Test, account?: object) {
  const home = t.testdir({ '.claude': {} })
  const log = join(home, 'log')
  const command = join(home, 'claude.mjs')
  writeFileSync(command, `import '${CLI}'\n`, { mode: 0o755 })
  const agents = [{ name: 'claude', command }]
  const env = {
    ...{ PATH: process.env.PATH, HOME: home, CLAUDE_SCRIPT_LOG: log },
    ...(account && { CLAUDE_SCRIPT_ACCOUNT: JSON.stringify(account) }),
  }
  const engine = cliEngine({ agents, env, claudeSdk: CLAUDE_SDK })
  const read = () =>
    readFileSync(log, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
  return { home, engine, agents, read }
}

const isPrompt = (line: { type?: string; shouldQuery?: boolean }) => line.type === 'user' && line.shouldQuery !== false

t.test('the real SDK', { skip: AGENTS.claude.missing ?? false }, async (t) => {
  t.test('reports before the first prompt, asks, and carries the input that was allowed', async (t) => {
    const { home, engine, read } = build(t)
    const runner = await engine({
      sessionId: 's',
      config: {
        cwd: home,
        mcpServers: { m: { type: 'http', url: 'http://127.0.0.1:9' } },
        allowedTools: ['Read'],
        disallowedTools: ['Write'],
        maxTurns: 3,
      },
      profile: { name: 'p', engine: 'cli' },
      bridge: { execute: () => Promise.reject(new Error('not here')) },
    })
    t.teardown(() => runner.close())
    const host = new ScriptedHost()
    host.answer = ({ input }) => ({ behavior: 'allow', updatedInput: { ...input, more: true } })
    await runner.start(host)
    t.match(host.of('system_init')[0], {
      model: 'scripted',
      tools: ['Bash'],
      apiKeySource: 'ANTHROPIC_API_KEY',
      engineVersion: '2.1.329',
    })
    t.equal(read().filter(isPrompt).length, 0)
    const { argv } = read()[0]
    t.ok(argv.includes('--permission-mode=default') && argv.includes('--setting-sources=user'), JSON.stringify(argv))

    t.match(await host.turn(runner, 'hi'), {
      subtype: 'success',
      result: 'pong',
      usage: { inputTokens: 1, outputTokens: 2 },
    })
    await host.turn(runner, 'ask')
    t.match(host.asks, [{ toolName: 'Bash', toolUseId: 'toolu_1', input: { command: 'ls' } }])
    t.match(JSON.stringify(host.of('user_message')[0]?.message.content), '"more\\":true')
    t.equal(host.of('system_init').length, 1)
  })

  t.test('goes on whatever its agent says', async (t) => {
    const { home, engine } = build(t)
    const runner = await engine({
      ...{ sessionId: 's', config: { cwd: home }, profile: { name: 'p', engine: 'cli' } },
      bridge: { execute: () => Promise.reject(new Error('not here')) },
    })
    t.teardown(() => runner.close())
    const host = new ScriptedHost()
    await runner.start(host)
    const ask = { type: 'control_request', request_id: 'x' }
    const request = { subtype: 'can_use_tool', tool_name: 'Bash', input: {}, tool_use_id: 'toolu_1' }
    const failed = { type: 'result', subtype: 'error_during_execution', is_error: true }
    // what it asks for a second time, while it waits, the SDK would reject where nobody hears
    const said = [null, 5, { type: 'control_response' }, { ...ask, request }, ask, { ...ask, request: null }]
    t.match(await host.turn(runner, JSON.stringify(said)), { subtype: 'success', result: 'pong' })
    await host.asked()
    t.match(await host.turn(runner, JSON.stringify([failed])), { errors: ['error_during_execution'] })
    t.match(await host.next('turn_completed'), { result: 'pong' })
    t.strictSame(host.of('session_error'), [])
  })

  t.test('with requireApiKey a session on a subscription ends before anything is asked of it', async (t) => {
    const { home, engine, agents, read } = build(t, { subscriptionType: 'Claude Max', apiProvider: 'firstParty' })
    const worker = createWorkerServer(
      { allowUnauthenticated: true, requireApiKey: true, agents, profiles: [] },
      { createCliRunner: engine, env: {} },
    )
    t.teardown(() => worker.close())
    const { url } = await worker.listen(0)
    const created = await fetch(`${url}/v1/sessions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ cwd: home, prompt: 'do something' }),
    })
    const { id } = (await created.json()) as { id: string }
    const client = await attach(t, `${url}/v1`, id)
    await client.untilEvent('session_error')
    t.match(
      client.events.find(({ type }) => type === 'system_init'),
      { apiKeySource: 'oauth' },
    )
    t.equal(read().filter(isPrompt).length, 0)
  })
})
