import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { ProfileInfo } from '../../schemas/profiles.js'
import { agentTable, BUILT_IN_AGENTS } from '../../src/engines/cli/agent-table.js'
import { configDirOf, sessionEnvironment } from '../../src/engines/cli/environment.js'
import { pinConfigDir } from '../../src/profiles/pin.js'

const claude = BUILT_IN_AGENTS.get('claude')!
const opencode = BUILT_IN_AGENTS.get('opencode')!

/** A home with the agent's default directory, another directory, and a link to each. */
function places(t: Test) {
  const home = t.testdir()
  const [standard, other] = [join(home, '.claude'), join(home, 'other')]
  for (const directory of [standard, other]) mkdirSync(directory)
  const [toStandard, toOther] = [join(home, 'to-standard'), join(home, 'to-other')]
  symlinkSync(standard, toStandard)
  symlinkSync(other, toOther)
  return { home, standard, other, toStandard, toOther }
}

type Env = Record<string, string | undefined>
interface Case {
  configDir: string
  env?: Env
  hook?: Env
  row?: typeof claude
  home: string
}

function pin({ configDir, env = {}, hook, row = claude, home }: Case) {
  const profile: ProfileInfo = { name: 'p', engine: 'cli', configDir }
  const config = { cwd: '/', ...(hook && { env: hook }) }
  const options = { agentRow: row, env, home }
  const pinned = pinConfigDir(config, profile, options)
  // What the agent really gets, and where it then goes.
  const child = sessionEnvironment({ row, gatewayEnv: { HOME: home, ...env }, sessionEnv: pinned.env, secrets: [] })
  return { config, pinned, child, directory: configDirOf(row, child) }
}

t.test('the profile’s directory becomes the session’s', async (t) => {
  const { home, other } = places(t)
  const { pinned, directory } = pin({ configDir: other, home })
  t.same(pinned.env, { AGENT_CONFIG_DIR: other, CLAUDE_CONFIG_DIR: other })
  t.equal(directory, other)
})

t.test('it wins over what buildRunnerConfig set, under either name, and touches nothing else', async (t) => {
  const { home, other, standard } = places(t)
  for (const hook of [
    { AGENT_CONFIG_DIR: standard, FOO: '1', ANTHROPIC_API_KEY: 'key' },
    { CLAUDE_CONFIG_DIR: standard, FOO: '1', ANTHROPIC_API_KEY: 'key' },
    { AGENT_CONFIG_DIR: undefined, CLAUDE_CONFIG_DIR: undefined, FOO: '1', ANTHROPIC_API_KEY: 'key' },
  ]) {
    const given = structuredClone(hook)
    const { pinned, child, directory } = pin({ configDir: other, hook, home })
    t.strictSame(pinned.env, { AGENT_CONFIG_DIR: other, CLAUDE_CONFIG_DIR: other, FOO: '1', ANTHROPIC_API_KEY: 'key' })
    t.equal(directory, other)
    t.equal(child.ANTHROPIC_API_KEY, 'key', 'credentials are not the profile’s')
    t.strictSame(hook, given, 'the hook’s object is left alone')
  }
})

t.test('nothing is pinned where the agent goes by itself', async (t) => {
  const { home, other, standard, toStandard, toOther } = places(t)
  const cases: [string, Omit<Case, 'home'>][] = [
    ['the default directory', { configDir: standard }],
    ['a link to it', { configDir: toStandard }],
    ['with a slash at the end', { configDir: `${standard}/` }],
    ['the operator’s variable names it', { configDir: other, env: { CLAUDE_CONFIG_DIR: other } }],
    ['the operator’s variable leads there by a link', { configDir: other, env: { CLAUDE_CONFIG_DIR: toOther } }],
    ['the hook led there', { configDir: other, hook: { CLAUDE_CONFIG_DIR: toOther } }],
    [
      'the hook took the operator’s variable away',
      { configDir: standard, env: { CLAUDE_CONFIG_DIR: other }, hook: { CLAUDE_CONFIG_DIR: undefined } },
    ],
    ['an empty variable counts as none', { configDir: standard, env: { CLAUDE_CONFIG_DIR: '' } }],
  ]
  for (const [what, given] of cases) {
    const { config, pinned } = pin({ ...given, home })
    t.equal(pinned, config, what)
  }
})

t.test('the home that counts is the session’s', async (t) => {
  const { home, standard } = places(t)
  const elsewhere = t.testdir({ away: { '.claude': {} } })
  const moved = pin({ configDir: standard, hook: { HOME: join(elsewhere, 'away') }, home })
  t.equal(moved.directory, standard)
  t.equal(moved.pinned.env?.CLAUDE_CONFIG_DIR, standard)
  const there = pin({ configDir: join(elsewhere, 'away', '.claude'), hook: { HOME: join(elsewhere, 'away') }, home })
  t.equal(there.pinned, there.config)
})

t.test('a directory that the operator’s variable leads away from is pinned', async (t) => {
  const { home, standard, other } = places(t)
  const led = pin({ configDir: standard, env: { CLAUDE_CONFIG_DIR: other }, home })
  t.equal(led.directory, standard)
  const neutral = pin({ configDir: standard, env: { AGENT_CONFIG_DIR: other }, home })
  t.equal(neutral.directory, standard)
  t.notOk(neutral.child.CLAUDE_CONFIG_DIR, 'setting it to the default would move the credentials')
  const both = pin({ configDir: other, env: { CLAUDE_CONFIG_DIR: other, AGENT_CONFIG_DIR: standard }, home })
  t.equal(both.directory, other)
})

t.test('a directory that is gone is still told from others', async (t) => {
  const { home } = places(t)
  const gone = join(home, 'gone')
  t.equal(pin({ configDir: gone, home }).directory, gone)
  const there = pin({ configDir: gone, env: { CLAUDE_CONFIG_DIR: gone }, home })
  t.equal(there.pinned, there.config)
})

t.test('an agent that keeps its state in two places finds both', async (t) => {
  const { home, other } = places(t)
  const row = opencode
  t.same(pin({ configDir: other, row, home }).pinned.env, {
    AGENT_CONFIG_DIR: other,
    XDG_CONFIG_HOME: other,
    XDG_DATA_HOME: other,
  })
  const half = pin({ configDir: other, row, hook: { XDG_CONFIG_HOME: other }, home })
  t.equal(half.pinned.env?.XDG_DATA_HOME, other)
  const whole = pin({ configDir: other, row, hook: { XDG_CONFIG_HOME: other, XDG_DATA_HOME: other }, home })
  t.equal(whole.pinned, whole.config)
})

t.test('every agent of the table lands in the profile’s directory', async (t) => {
  const { home, other } = places(t)
  const rows = agentTable([
    { name: 'own', command: 'own' },
    { name: 'moved', command: 'm', configDirEnv: 'MOVED_HOME' },
  ])
  for (const row of rows.values()) t.equal(pin({ configDir: other, row, home }).directory, other, row.name)
})

t.test(
  'what leads there in the gateway’s environment alone, or is led away by the agent’s own, is pinned',
  async (t) => {
    const { home, standard, other } = places(t)
    const rows = agentTable([
      { name: 'own', command: 'own' },
      { name: 'moved', command: 'm', configDirEnv: 'MOVED_HOME' },
      { name: 'claude', env: { CLAUDE_CONFIG_DIR: other } },
    ])
    const env = { AGENT_CONFIG_DIR: other, MOVED_HOME: other }
    for (const name of ['own', 'moved'])
      t.equal(pin({ configDir: other, row: rows.get(name)!, env, home }).directory, other, name)
    t.equal(pin({ configDir: standard, row: rows.get('claude')!, home }).directory, standard)
  },
)

t.test('a provider profile, and one without a directory, pin nothing', async (t) => {
  const config = { cwd: '/', env: { CLAUDE_CONFIG_DIR: '/x' } }
  const options = { agentRow: claude, env: {}, home: '/nowhere' }
  t.equal(pinConfigDir(config, { name: 'p', engine: 'provider' }, options), config)
  t.equal(pinConfigDir(config, { name: 'p', engine: 'cli' }, options), config)
})
