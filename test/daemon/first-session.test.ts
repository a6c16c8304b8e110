import { chmodSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { ConfigError } from '../../src/daemon/config-problem.js'
import { prepareServer } from '../../src/daemon/daemon.js'
import { agentWarnings, firstSessionProblems } from '../../src/daemon/first-session.js'
import type { Hooks } from '../../src/daemon/hooks.js'
import { loadConfig } from '../../src/daemon/load-config.js'
import { loadDriver } from '../../src/storage/sqlite/driver.js'
import { APPLICATION_ID, SCHEMA_VERSION } from '../../src/storage/sqlite/schema.js'

const provider = (ref: object, more: object = {}) => ({ name: 'p', engine: 'provider', provider: ref, ...more })
const DEMO = provider({ id: 'demo' })

async function problems(t: Test, config: object, { env = {}, hooks = {} as Hooks, folder = t.testdir() } = {}) {
  const file = join(folder, 'gateway.json')
  const content = { allowUnauthenticated: true, profiles: [DEMO], storage: 'memory', ...config }
  writeFileSync(file, JSON.stringify(content), { mode: 0o600 })
  return firstSessionProblems(loadConfig(file, {}, env), hooks, env)
}

t.test('a provider profile whose first session would be refused is refused by check, with what to do', async (t) => {
  const KEY = { MY_KEY: 'x' }
  const table: [profile: object, path: string, message: RegExp][] = [
    [provider({ id: 'openai', model: 'm', apiKeyEnv: 'NOPE' }), 'provider.apiKeyEnv', /variable NOPE .* is not set/],
    [provider({ id: 'openai', model: 'm' }), 'provider', /variable OPENAI_API_KEY .* is not set/],
    [provider({ id: 'groq', model: 'm', apiKeyEnv: 'MY_KEY' }), 'provider', /Run: npm i @ai-sdk\/groq@/],
    [provider({ id: 'openai-compatible', baseUrl: 'http://127.0.0.1:1/v1' }), 'provider.model', /missing; a session/],
    [provider({ id: 'demo' }, { defaults: { model: 'm' } }), 'defaults.model', /offers demo; a session that names no/],
    [provider({ id: 'demo', models: ['a', 'b'] }, { defaults: { model: 'm' } }), 'defaults.model', /offers a, b;/],
    [provider({ id: 'demo' }, { session: { mcpServers: ['wiki'] } }), 'session.mcpServers', /connects none: .* hooks/],
  ]
  for (const [profile, path, message] of table)
    t.match(await problems(t, { profiles: [profile] }, { env: KEY }), [{ path: `profiles[0].${path}`, message }])
})

t.test('what a first session could use is no problem', async (t) => {
  const local = { id: 'openai-compatible', baseUrl: 'http://127.0.0.1:1/v1' }
  const fine = [
    DEMO,
    provider({ ...local, model: 'm' }, { name: 'a' }),
    provider({ ...local, models: ['m'] }, { name: 'b' }),
    provider(local, { name: 'c', defaults: { model: 'm' } }),
    provider({ id: 'openai', model: 'm', apiKeyEnv: 'MY_KEY' }, { name: 'd' }),
    provider(
      { ...local, model: 'm', models: ['n'] },
      { name: 'e', defaults: { model: 'm' }, session: { mcpServers: [] } },
    ),
  ]
  t.strictSame(await problems(t, { profiles: fine }, { env: { MY_KEY: 'x' } }), [])
  const hooks: Hooks = { createEngineRunner: () => Promise.reject(new Error('not here')) }
  const wired = provider({ id: 'mine' }, { session: { mcpServers: ['wiki'] } })
  t.strictSame(await problems(t, { profiles: [wired] }, { hooks }), [], 'the host’s own runner')
  const choosing: Hooks = { buildRunnerConfig: (request) => ({ ...request, model: 'm' }) }
  const chosen = provider(local)
  const other = provider({ id: 'demo' }, { defaults: { model: 'm' } })
  for (const profile of [chosen, other])
    t.strictSame(await problems(t, { profiles: [profile] }, { hooks: choosing }), [], 'a hook that chooses the model')
})

t.test('an agent that is not installed is named with what installs it', async (t) => {
  const env = { PATH: '/nowhere' }
  const profiles = [
    { name: 'a', agent: 'codex' },
    { name: 'b', agent: 'mine' },
    { name: 'c', agent: 'here' },
    { name: 'd', agent: 'kilo' },
    { name: 'e', agent: 'opencode' },
  ]
  const agents = [
    { name: 'mine', command: 'mine-acp' },
    { name: 'opencode', command: '/nowhere/opencode' },
    { name: 'here', command: process.execPath },
  ]
  t.match(await problems(t, { profiles, agents }, { env }), [
    {
      path: 'profiles[0].agent',
      message: /codex .*needs the command codex-acp.*npm i -g @agentclientprotocol\/codex-acp/,
    },
    { path: 'profiles[1].agent', message: /mine is not installed: it needs the command mine-acp/ },
    { path: 'profiles[3].agent', message: /npm i -g @kilocode\/cli$/ },
    // npm would not put it there
    {
      path: 'profiles[4].agent',
      message: /opencode is not installed: .*\/nowhere\/opencode, which does not exist\.?$/,
    },
  ])
  t.match(await problems(t, { profiles: [] }, { env }), [{ path: 'profiles', message: /claude.*npm i @anthropic-ai/ }])
  t.strictSame(
    await problems(t, { profiles: [{ name: 'a', agent: 'claud' }] }, { env }),
    [],
    'one that nobody knows is refused as such',
  )
  t.strictSame(await problems(t, { profiles: [], profileStore: true }, { env }), [], 'managed ones are to come')
})

t.test('an agent that no profile runs yet is told of when it could not be started', async (t) => {
  const file = join(t.testdir(), 'gateway.json')
  const agents = [
    { name: 'mine', command: '/nowhere/mine-acp' },
    { name: 'here', command: process.execPath },
    { name: 'plain', command: file },
  ]
  writeFileSync(file, JSON.stringify({ allowUnauthenticated: true, profiles: [DEMO], agents }), { mode: 0o600 })
  t.match(await agentWarnings(loadConfig(file, {}, {}), {}), [
    {
      path: 'agents[0]',
      message: /mine is not installed: it needs the command \/nowhere\/mine-acp, which does not exist$/,
    },
    {
      path: 'agents[2]',
      message: /plain cannot be started: its command .*gateway\.json is no file that may be executed$/,
    },
  ])
})

t.test('an address that this machine does not have is told before the start refuses it', async (t) => {
  const auth = { tokens: [{ name: 'a', sha256: '0'.repeat(64) }] }
  const foreign = { allowUnauthenticated: false, auth, listen: { host: '192.0.2.1' } }
  t.match(await problems(t, foreign), [{ path: 'listen.host', message: 'this machine has no such address: 192.0.2.1' }])
  t.strictSame(await problems(t, { listen: { host: 'localhost' } }), [])
})

t.test('what no address, no path and no prefix can be is told before the start meets it', async (t) => {
  const file = join(t.testdir(), 'gateway.json')
  const refusalOf = async (config: object) => {
    writeFileSync(file, JSON.stringify({ allowUnauthenticated: true, profiles: [DEMO], storage: 'memory', ...config }))
    try {
      const { server } = await prepareServer(loadConfig(file, {}, {}), { write: () => {} }, { thorough: true })
      await server.close()
    } catch (error) {
      return (error as ConfigError).problems.map(({ path, message }) => `${path}: ${message}`)
    }
  }
  const cases: [config: object, problem: RegExp][] = [
    [{ listen: { host: '[::1]' } }, /^listen\.host: .*brackets of a URL; write ::1$/],
    [{ storage: { sqlite: 'a\u0000b.db' } }, /^storage\.sqlite: a path has no NUL character/],
    [{ basePath: '/..' }, /^basePath: .*no part is \. or \.\./],
    [{ basePath: '/a/./b' }, /^basePath: /],
  ]
  for (const [config, problem] of cases) {
    const found = await refusalOf(config)
    t.equal(found?.length, 1, JSON.stringify(config))
    t.match(found?.[0], problem)
  }
})

t.test('an origin that no page has is told with the one that was meant', async (t) => {
  const allowedOrigins = ['https://ok.example', 'https://a.example/', 'https://b.example:443', 'c.example', '*', 'null']
  t.match(await problems(t, { allowedOrigins }), [
    { path: 'allowedOrigins[1]', message: /write https:\/\/a\.example$/ },
    { path: 'allowedOrigins[2]', message: /write https:\/\/b\.example$/ },
    { path: 'allowedOrigins[3]', message: /"c\.example"; write it as https:/ },
    { path: 'allowedOrigins[4]', message: /"\*"; write it as/ },
    { path: 'allowedOrigins[5]', message: /"null"/ },
  ])
  const origins = ['https://ok.example', 'https://b.example:443', 'http://[::1]:3000']
  t.match(await problems(t, { cors: { origins } }), [
    { path: 'cors.origins[1]', message: /write https:\/\/b\.example$/ },
  ])
})

t.test('a folder that every account may write to is told before the stores refuse it', async (t) => {
  const folder = t.testdir({ db: {}, parked: {}, profiles: {} })
  for (const name of ['db', 'parked', 'profiles']) chmodSync(join(folder, name), 0o777)
  const config = {
    storage: { sqlite: 'db/gateway.db' },
    parking: { store: { dir: 'parked' } },
    profileStore: { file: 'profiles/profiles.json' },
  }
  const remedy = (name: string) => ({ message: new RegExp(`chmod o-w ${join(folder, name)}$`) })
  t.match(await problems(t, config, { folder }), [
    { path: 'storage.sqlite', ...remedy('db') },
    { path: 'parking.store.dir', ...remedy('parked') },
    { path: 'profileStore.file', ...remedy('profiles') },
  ])
  for (const name of ['db', 'parked', 'profiles']) chmodSync(join(folder, name), 0o755)
  t.strictSame(await problems(t, config, { folder }), [])
})

t.test('a place for the database where none can be made is told', async (t) => {
  const folder = t.testdir({ 'a-file': '', 'a-folder': {}, closed: {} })
  symlinkSync(join(folder, 'nowhere'), join(folder, 'a-link'))
  const told = (sqlite: string) => problems(t, { profiles: [DEMO], storage: { sqlite } }, { folder })
  const at = (message: RegExp) => [{ path: 'storage.sqlite', message }]
  t.strictSame(await told('not/yet/there/gateway.db'), [])
  t.match(await told('a-folder'), at(/a-folder is a directory; name a file in it$/))
  t.match(await told('a-file/gateway.db'), at(/a-file is not a directory$/))
  t.match(await told('a-file/not/yet/gateway.db'), at(/a-file is not a directory$/))
  t.match(await told('a-link/not/yet/gateway.db'), at(/a-link is a link that leads nowhere$/))
  t.match(await told('/dev/null'), at(/^\/dev\/null is no file; name another one$/))
  if (process.platform === 'linux')
    t.match(await told('/proc/not-yet/gateway.db'), at(/^nothing can be made in \/proc: |may not write to \/proc$/))
  if (process.getuid?.() === 0) return
  chmodSync(join(folder, 'closed'), 0o500)
  for (const sqlite of ['closed/gateway.db', 'closed/not/yet/gateway.db'])
    t.match(await told(sqlite), at(/this user may not write to .*closed$/))
})

t.test('what is there and is no database, or no file of profiles, is told as a start tells it, and left', async (t) => {
  const folder = t.testdir({ 'notes.txt': 'not a database, whatever it is called. '.repeat(9), folder: {} })
  const Driver = await loadDriver()
  const make = (name: string, sql: string) => {
    const db = new Driver(join(folder, name))
    db.exec(sql)
    db.close()
  }
  make('foreign.db', 'CREATE TABLE other (n INTEGER)')
  const versions = 'CREATE TABLE schema_versions (version INTEGER PRIMARY KEY, taken_at INTEGER NOT NULL)'
  const of = (version: number) => `${versions}; INSERT INTO schema_versions VALUES (${version}, 1)`
  make('newer.db', `PRAGMA application_id = ${APPLICATION_ID}; ${of(SCHEMA_VERSION + 1)}`)
  make('ours.db', `PRAGMA application_id = ${APPLICATION_ID}; ${of(SCHEMA_VERSION)}`)
  const told = (sqlite: string) => problems(t, { storage: { sqlite } }, { folder })
  const at = (message: RegExp) => [{ path: 'storage.sqlite', message }]
  t.match(await told('notes.txt'), at(/notes\.txt is not a database/))
  t.match(await told('foreign.db'), at(/is an SQLite database of something else/))
  t.match(await told('newer.db'), at(/was written by a newer version/))
  for (const fine of ['ours.db', 'none.db', 'new/none.db']) t.strictSame(await told(fine), [], fine)

  const kept = (file: string) => problems(t, { profileStore: { file } }, { folder })
  const message = /notes\.txt cannot be read as profiles: .*Repair or remove it$/
  t.match(await kept('notes.txt'), [{ path: 'profileStore.file', message }])
  writeFileSync(join(folder, 'twice.json'), '{"version":1,"profiles":[{"name":"a"},{"name":"a"}]}')
  t.match(await kept('twice.json'), [{ path: 'profileStore.file', message: /it holds two profiles named a\. Repair/ }])
  t.match(await kept('folder'), [{ path: 'profileStore.file', message: /folder is a directory; name a file in it$/ }])
  t.strictSame(await kept('none.json'), [])
  t.notOk(readdirSync(folder).some((name) => name.includes('corrupt')))
})
