import { mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import type { CreateSessionRequest } from '../../../schemas/sessions.js'
import { type AgentDeclaration, agentTable, cliEngine } from '../../../src/engines/cli/index.js'
import type { HostedTools } from '../../../src/engines/hosted-tools.js'
import { ProfileCatalog } from '../../../src/profiles/catalog.js'
import { catalogOptions } from '../../fixtures/profiles.js'
import { ScriptedHost } from '../../fixtures/scripted-host.js'

const AGENT = fileURLToPath(new URL('../../fixtures/scripted-acp-agent.mjs', import.meta.url))
const mine: AgentDeclaration = { name: 'mine', command: process.execPath, args: [AGENT] }

/** A runner of a declared agent; not started. */
async function build(
  t: Test,
  declaration: Partial<AgentDeclaration>,
  env: Record<string, string> = {},
  config: Partial<CreateSessionRequest> = {},
  hostedTools?: HostedTools,
) {
  const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'acp-declared-')))
  const engine = cliEngine({ agents: [{ ...mine, ...declaration }], env: { PATH: process.env.PATH, ...env } })
  const runner = await engine({
    sessionId: 'session-1',
    config: { cwd, ...config },
    ...(hostedTools && { hostedTools }),
    profile: { name: 'p', engine: 'cli', agent: declaration.name ?? 'mine' },
    bridge: { execute: () => Promise.reject(new Error('not here')) },
  })
  t.teardown(() => runner.close())
  return { runner, host: new ScriptedHost() }
}

t.test('an agent that wants a login gets the method and the key that were declared', async (t) => {
  const env = { ACP_LOGIN: 'its-key' }
  const auth = { method: 'its-key', apiKeyEnv: 'ITS_KEY' }
  const { runner, host } = await build(t, { auth, env }, { ITS_KEY: 'secret', OTHER_KEY: 'secret' })
  await runner.start(host)
  const { result = '' } = await host.turn(runner, JSON.stringify([{ tell: 'env' }]))
  t.match(JSON.parse(result), { ITS_KEY: 'secret', OTHER_KEY: undefined })
  t.match(host.of('system_init')[0], { apiKeySource: 'ITS_KEY' })

  const noKey = await build(t, { auth, env })
  await t.rejects(noKey.runner.start(noKey.host), { message: /not logged in.*Set ITS_KEY/ })
  const none = await build(t, { env })
  await t.rejects(none.runner.start(none.host), { message: /agents\[\]\.auth: it offers its-key/ })
  const other = await build(t, { auth: { method: 'oauth' }, env })
  await t.rejects(other.runner.start(other.host), { message: /It offers its-key, not oauth/ })
  const own = await build(t, { auth: { method: 'its-key' }, env })
  await own.runner.start(own.host)
})

t.test('an agent is given no MCP server by a transport that it does not have, and that is said', async (t) => {
  const stdio = { command: 'x' }
  const http = { type: 'http' as const, url: 'http://127.0.0.1:1/mcp' }
  const sse = { ...http, type: 'sse' as const }
  const given = async (
    env: Record<string, string>,
    mcpServers: NonNullable<CreateSessionRequest['mcpServers']>,
    own = false,
  ) => {
    const hostedTools = { server: 'gateway', tools: [], listed: Promise.resolve() } as unknown as HostedTools
    const { runner, host } = await build(t, { env }, {}, { mcpServers }, own ? hostedTools : undefined)
    await runner.start(host)
    const { result = '' } = await host.turn(runner, JSON.stringify([{ tell: 'request' }]))
    return { host, names: JSON.parse(result).mcpServers.map(({ name }: { name: string }) => name) }
  }
  t.strictSame((await given({}, { stdio, http })).names, ['stdio', 'http'])
  await t.rejects(given({}, { stdio, sse }), { message: /no MCP servers over sse, and sse is one/ })
  const none = { ACP_NO_HTTP: '1' }
  await t.rejects(given(none, { docs: http }), { code: 'SG_ERR_ENGINE_START', message: /over http, and docs is one/ })

  const { host, names } = await given(none, { stdio, gateway: http }, true)
  t.strictSame(names, ['stdio'], 'the gateway’s own is left out')
  t.match(host.of('system_init')[0]?.mcpServers, [
    { name: 'stdio', status: 'unknown' },
    { name: 'gateway', status: 'failed' },
  ])
  t.match(host.of('engine_event')[0]?.payload, { type: 'tools_missing', message: /takes no MCP servers over http/ })
  t.strictSame((await given({}, { gateway: http }, true)).host.of('engine_event'), [])
})

t.test('of a declared agent nobody knows that it asks: that is said, and dontAsk is refused', async (t) => {
  const { runner } = await build(t, {})
  t.strictSame(runner.capabilities.permissionModes, ['default', 'bypassPermissions'])
  const named = await build(t, { modes: { default: 'ask', dontAsk: 'ask' } })
  t.strictSame(named.runner.capabilities.permissionModes, ['default', 'dontAsk'])

  const warned: object[] = []
  const logger = { ...silent, warn: (about: object) => void warned.push(about) }
  const agents = [mine, { ...mine, name: 'known', modes: { default: 'ask' } }, { name: 'gemini', command: 'g' }]
  new ProfileCatalog(catalogOptions({ agents, logger }))
  t.strictSame(warned, [{ agent: 'mine' }])
})
const silent = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, fatal() {} }

t.test('kilo, which asks nothing by itself, is told to ask', (t) => {
  const kilo = agentTable().get('kilo')!
  const opencode = agentTable().get('opencode')!
  t.strictSame(JSON.parse(kilo.env.KILO_PERMISSION!), JSON.parse(opencode.env.OPENCODE_PERMISSION!))
  t.match(kilo.permissionModes, opencode.permissionModes)
  t.notOk(kilo.modesUnknown)
  t.equal(kilo.env.KILO_DISABLE_SESSION_INGEST, '1', 'and to keep what is said to itself')
  t.end()
})

t.test('what the operator says in the settings of opencode and kilo stays, but for what would break a promise', (t) => {
  const operators = {
    model: 'm',
    lsp: true,
    agent: { plan: { model: 'p', permission: { bash: 'allow', read: 'deny' } } },
  }
  for (const name of ['opencode', 'kilo']) {
    const { settings } = agentTable().get(name)!
    const variable = `${name.toUpperCase()}_CONFIG_CONTENT`
    const said = (env: Record<string, string>, trusted: boolean) => JSON.parse(settings!(env, trusted)[variable]!)
    const asked = { bash: 'ask', edit: 'ask' }
    t.match(said({}, false), { lsp: false, formatter: false, agent: { plan: { permission: asked } } })
    const env = { [variable]: JSON.stringify(operators) }
    t.match(said(env, true), {
      ...operators,
      agent: { plan: { model: 'p', permission: { ...asked, read: 'deny' } } },
      formatter: undefined,
    })
    t.match(said(env, false), { model: 'm', lsp: false })
    const experimental = { mcp_timeout: 5 }
    t.strictSame(
      said({ [variable]: JSON.stringify({ experimental }) }, true).experimental,
      { ...experimental, continue_loop_on_deny: true },
      'a deny ends no turn',
    )
    const ending = { [variable]: '{ "experimental": { "continue_loop_on_deny": false } }' }
    t.strictSame(said(ending, true).experimental, { continue_loop_on_deny: false }, 'unless the operator says so')
    // of the rules that fit the last one holds
    for (const [permission, rest] of [
      ['allow', { '*': 'allow' }],
      [
        { bash: 'allow', '*': 'allow', edit: 'deny', read: 'deny' },
        { '*': 'allow', read: 'deny' },
      ],
    ]) {
      const ours = said({ [variable]: JSON.stringify({ agent: { plan: { permission } } }) }, true).agent.plan.permission
      t.strictSame(
        Object.entries(ours),
        Object.entries({
          ...(rest as object),
          bash: 'ask',
          edit: 'ask',
          task: 'ask',
          webfetch: 'ask',
          websearch: 'ask',
        }),
      )
    }
    for (const broken of ['{ // why', '[]', '1'])
      t.throws(() => settings!({ [variable]: broken }, true), { code: 'SG_ERR_ENGINE_START', message: variable })
  }
  t.end()
})

t.test('an id that qwen opens as an empty session is refused, and not a session in disguise', async (t) => {
  const qwen = { name: 'qwen', modes: { default: 'ask' } }
  const { runner, host } = await build(t, qwen, {}, { resume: 'disguised' })
  await t.rejects(runner.start(host), { code: 'SG_ERR_ENGINE_START', message: /knows no session disguised/ })
  const earlier = await build(t, qwen, {}, { resume: 'earlier' })
  await earlier.runner.start(earlier.host)
  t.match(earlier.host.of('user_message'), [{ replay: true }])
})

t.test('opencode goes on with a session only where it was begun', async (t) => {
  for (const more of [{}, { forkSession: true }]) {
    const elsewhere = { env: { ACP_LISTS: '["later","earlier"]', ACP_LISTS_IN: '/elsewhere' } }
    const begin = (declared: object) => build(t, { name: 'opencode', ...declared }, {}, { resume: 'earlier', ...more })
    const { runner, host } = await begin(elsewhere)
    await t.rejects(runner.start(host), {
      code: 'SG_ERR_ENGINE_START',
      message: /where it was begun.*name its own as cwd/,
    })
    const here = await begin({ env: { ACP_LISTS: '["later","earlier"]' } })
    await here.runner.start(here.host)
    t.match(here.host.of('user_message'), [{ replay: true }])
    const another = await build(t, elsewhere, {}, { resume: 'earlier', ...more })
    await another.runner.start(another.host)
  }
})

t.test('a copy of a session is gone on with where the agent makes one', async (t) => {
  const { runner, host } = await build(t, { name: 'opencode' }, {}, { resume: 'earlier', forkSession: true })
  await runner.start(host)
  t.match(host.of('system_init')[0], { sdkSessionId: 'copy-of-earlier' })
  t.match(host.of('user_message'), [{ replay: true }], 'with its history')
  const declared = await build(t, {}, {}, { resume: 'earlier', forkSession: true })
  await declared.runner.start(declared.host)
  t.match(declared.host.of('system_init')[0], { sdkSessionId: 'copy-of-earlier' })
  const none = await build(t, { env: { ACP_NO_FORK: '1' } }, {}, { resume: 'earlier', forkSession: true })
  await t.rejects(none.runner.start(none.host), { code: 'SG_ERR_UNSUPPORTED', message: /mine cannot fork/ })
})

t.test(
  'the death of one that has a turn behind it is told with how to go on, if it can load its sessions',
  async (t) => {
    for (const [env, message] of [
      [{}, ' A new session with "resume": "scripted-session" goes on from there.'],
      [{ ACP_NO_LOAD: '1' }, /SIGKILL, as .* memory\.$/],
    ] as const) {
      const { runner, host } = await build(t, { env })
      await runner.start(host)
      await host.turn(runner, 'hi')
      const died = host.next('session_error')
      runner.send(JSON.stringify([{ crash: true }]))
      t.match(await died, { message })
    }
  },
)
