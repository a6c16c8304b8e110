import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { ProfileOptions } from '../../schemas/profiles.js'
import { agentTable } from '../../src/engines/cli/agent-table.js'
import { cliEngine } from '../../src/engines/cli/index.js'
import { isTrusted, workspaceEnv } from '../../src/engines/cli/workspace/trust.js'
import { UNLIMITED } from '../../src/principal.js'
import { buildServer } from '../fixtures/build.js'
import { buildCatalog, buildManaged, MANAGER, refusal } from '../fixtures/profiles.js'

const agents = [{ name: 'mine', command: '/opt/mine' }]
const tools = [{ name: 'deploy', description: 'deploys', inputSchema: { type: 'object' } }]

/** The environment that says to a built-in agent what to think of its working directory. */
const envOf = (agent: string, trusted: boolean, place: { env?: Record<string, string>; cwd?: string } = {}) =>
  workspaceEnv(agentTable().get(agent)!, trusted, { env: {}, cwd: '/work', ...place })

t.test(
  'an agent that cannot be kept from what a repository says is told of, in the profile and at start',
  async (t) => {
    const warned: object[] = []
    const warn = (fields: object) => void ('profile' in fields && warned.push(fields))
    const logger = { info() {}, error() {}, warn }
    const declared: ProfileOptions[] = [
      { name: 'claude' },
      { name: 'gemini', agent: 'gemini' },
      { name: 'unknown', agent: 'mine' },
      { name: 'meant', agent: 'mine', trustWorkspace: true },
    ]
    const told = async (servesTools: boolean) => {
      warned.length = 0
      const catalog = await buildCatalog({ declared, agents, logger, servesTools })
      const { profiles } = catalog.list(UNLIMITED)
      t.match((await catalog.describe('unknown', UNLIMITED)).profile, { trustsWorkspace: true })
      return profiles.filter(({ trustsWorkspace }) => trustsWorkspace).map(({ name }) => name)
    }
    t.strictSame(await told(false), ['unknown', 'meant'])
    t.match(warned, [{ profile: 'unknown', agent: 'mine' }])
    t.equal(warned.length, 1, 'who said so knows')
    t.strictSame(await told(true), ['gemini', 'unknown', 'meant'], 'gemini has tools of ours only where it trusts')
    t.equal(warned.length, 2)
  },
)

t.test('trustWorkspace is declared, managed, shown and cleared like any other field', async (t) => {
  const { catalog, directory } = await buildManaged(t)
  const configDir = directory('one')
  await catalog.create({ name: 'm', configDir, trustWorkspace: true }, MANAGER)
  t.match(catalog.list(UNLIMITED).profiles, [{ trustWorkspace: true, trustsWorkspace: undefined }])
  t.notOk('trustWorkspace' in (await catalog.update('m', { trustWorkspace: null }, MANAGER)))
  const provider = { name: 'p', engine: 'provider' as const, provider: { id: 'x' }, trustWorkspace: true }
  await t.rejects(catalog.create(provider, MANAGER), refusal('SG_ERR_PROFILE_INVALID', /^trustWorkspace: /))
  const { call } = await buildServer(t, { profiles: [{ name: 'cli', trustWorkspace: true }] })
  t.match((await call('GET', '/profiles/cli')).json, { profile: { trustWorkspace: true } })
})

t.test('what each agent is told, and that nothing else may say otherwise', async (t) => {
  const rows = agentTable()
  const trusted = (agent: string, trustWorkspace?: boolean, servesTools = false) =>
    isTrusted(
      rows.get(agent)!,
      { name: agent, engine: 'cli', ...(trustWorkspace !== undefined && { trustWorkspace }) },
      servesTools,
    )
  for (const agent of ['claude', 'codex', 'gemini', 'opencode', 'qwen']) {
    t.equal(trusted(agent), false, agent)
    t.equal(trusted(agent, false, true), false, agent)
    t.equal(trusted(agent, true), true, agent)
  }
  t.equal(trusted('gemini', undefined, true), true)
  t.strictSame(await envOf('gemini', false), { GEMINI_CLI_TRUST_WORKSPACE: 'false' })
  t.strictSame(await envOf('gemini', true), { GEMINI_CLI_TRUST_WORKSPACE: 'true' })
  t.match(await envOf('opencode', false), { OPENCODE_DISABLE_PROJECT_CONFIG: '1', OPENCODE_PURE: '1' })
  t.strictSame(await envOf('opencode', true), {})
})

t.test('gemini takes no key and no project from an .env of a repository, and its user keeps theirs', async (t) => {
  const dir = t.testdir({
    home: { '.env': 'GEMINI_API_KEY=of-the-user', repo: { inner: {} } },
    link: t.fixture('symlink', 'home'),
  })
  const home = join(dir, 'home')
  const cwd = join(home, 'repo/inner')
  const told = (env: Record<string, string> = {}) => envOf('gemini', false, { env: { HOME: home, ...env }, cwd })
  t.strictSame(await told(), { GEMINI_CLI_TRUST_WORKSPACE: 'false' })
  t.strictSame(
    await told({ HOME: join(dir, 'link') }),
    { GEMINI_CLI_TRUST_WORKSPACE: 'false' },
    'whatever their home is called',
  )
  const none = { GEMINI_API_KEY: '', GOOGLE_API_KEY: '', GOOGLE_CLOUD_PROJECT: '', GOOGLE_CLOUD_LOCATION: '' }
  for (const folder of ['repo', 'repo/inner']) {
    writeFileSync(join(home, folder, '.env'), 'GEMINI_API_KEY=of-somebody-else')
    t.strictSame(await told(), { GEMINI_CLI_TRUST_WORKSPACE: 'false', ...none })
  }
  const { GEMINI_API_KEY: _key, ...others } = none
  t.strictSame(await told({ GEMINI_API_KEY: 'k' }), { GEMINI_CLI_TRUST_WORKSPACE: 'false', ...others })
  t.strictSame(await envOf('gemini', true, { cwd }), { GEMINI_CLI_TRUST_WORKSPACE: 'true' })
})

t.test('qwen distrusts the directory, and what its operator set goes on to hold', async (t) => {
  const home = t.testdir({
    'system.json': JSON.stringify({ security: { auth: { useExternal: true } }, ui: { theme: 'x' } }),
  })
  const system = join(home, 'system.json')
  const told = await envOf('qwen', false, { env: { QWEN_CODE_SYSTEM_SETTINGS_PATH: system }, cwd: '/work' })
  const read = (name: string) => JSON.parse(readFileSync(told[name]!, 'utf8'))
  t.strictSame(read('QWEN_CODE_SYSTEM_SETTINGS_PATH'), {
    security: { auth: { useExternal: true }, folderTrust: { enabled: true } },
    ui: { theme: 'x' },
  })
  t.strictSame(read('QWEN_CODE_TRUSTED_FOLDERS_PATH'), { '/work': 'DO_NOT_TRUST' })
  t.equal(told.QWEN_CODE_SYSTEM_DEFAULTS_PATH, join(home, 'system-defaults.json'))
  writeFileSync(join(home, 'settings.json'), JSON.stringify({ security: { folderTrust: { enabled: false } } }))
  await t.rejects(
    envOf('qwen', false, { env: { QWEN_HOME: home } }),
    refusal('SG_ERR_ENGINE_START', /folderTrust.*trustWorkspace/),
  )
})

t.test('opencode is not started where a repository has plugins, in its root too', async (t) => {
  const start = (files: Record<string, string>) => {
    const root = t.testdir({ inner: {} })
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(join(root, path, '..'), { recursive: true })
      writeFileSync(join(root, path), text)
    }
    return envOf('opencode', false, { env: { HOME: root }, cwd: join(root, 'inner') })
  }
  const refused = refusal('SG_ERR_ENGINE_START', /plugins.*trustWorkspace/)
  await t.rejects(start({ 'inner/.opencode/plugin/a.js': '' }), refused)
  await t.rejects(start({ 'inner/.opencode/plugins/a.ts': '' }), refused)
  await t.rejects(start({ 'inner/opencode.json': '{ "plugin" : ["./a.js"] }' }), refused)
  await t.rejects(start({ 'inner/.opencode/opencode.jsonc': '{ "\\u0070lugins": [] }' }), refused)
  for (const key of ['"plugin" /* : */ ', '"plugin" // \n', '"plu{env:UNSET}gin"', '"{file:./name}" /**/'])
    await t.rejects(start({ 'inner/opencode.json': `{ "model": "x", ${key}: ["./a.js"] }` }), refused, key)
  const odd = async (make: (path: string) => void) => {
    const root = t.testdir({ inner: {} })
    make(join(root, 'inner/opencode.json'))
    await envOf('opencode', false, { env: { HOME: root }, cwd: join(root, 'inner') })
  }
  // what is never read to its end takes nobody’s thread or memory
  await t.rejects(
    odd((path) => execFileSync('mkfifo', [path])),
    refused,
  )
  await t.rejects(
    odd((path) => symlinkSync('/dev/zero', path)),
    refused,
  )
  await t.rejects(start({ 'inner/opencode.json': `{ "model": "x"${' '.repeat(2 ** 24)}}` }), refused)
  const prompts = { build: { prompt: '{file:./build.txt}' }, plan: { prompt: 'As {env:USER}: "{file:./plan.txt}"' } }
  await t.resolves(start({ 'inner/opencode.json': JSON.stringify({ agent: prompts, instructions: ['{file:a}'] }) }))
  await t.resolves(
    start({ 'inner/opencode.json': '{ "model": "x" }', '.opencode/plugin/mine.js': '' }),
    'the user’s own',
  )
})

t.test('what would need trust is refused where there is none', async (t) => {
  const start = async (test: Test, agent: string, config: object) => {
    const engine = cliEngine({ agents: [{ name: agent, command: process.execPath }], env: { HOME: test.testdir() } })
    const bridge = { execute: () => Promise.reject(new Error('not here')) }
    await engine({
      ...{ sessionId: 's', bridge, profile: { name: agent, engine: 'cli', agent } },
      config: { cwd: '/', ...config },
    })
  }
  await t.rejects(start(t, 'claude', { settingSources: ['user', 'project'] }), {
    statusCode: 400,
    message: /^settingSources: .*trustWorkspace/,
  })
  await t.rejects(start(t, 'gemini', { mcpServers: { m: { command: 'x' } } }), {
    statusCode: 400,
    message: /^mcpServers: .*trustWorkspace/,
  })
})

t.test('declared tools are told to the catalog', async (t) => {
  const { call } = await buildServer(t, { profiles: [{ name: 'g', agent: 'gemini' }], executions: { tools } })
  t.match((await call('GET', '/profiles')).json.profiles, [{ name: 'g', trustsWorkspace: true }])
})
