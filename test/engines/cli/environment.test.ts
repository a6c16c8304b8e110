import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { agentTable } from '../../../src/engines/cli/agent-table.js'
import { configDirOf, findExecutable, sessionEnvironment } from '../../../src/engines/cli/environment.js'

const rowOf = (name: string) => agentTable().get(name)!
const build = (agent: string, gatewayEnv: object, sessionEnv?: object, secrets: string[] = []) =>
  sessionEnvironment({
    row: rowOf(agent),
    gatewayEnv: gatewayEnv as Record<string, string>,
    sessionEnv: sessionEnv as Record<string, string | undefined>,
    secrets,
  })

t.test('an agent gets the common variables, its own, and what was set for the session', async (t) => {
  const gateway = {
    ...{ PATH: '/bin', HOME: '/home/x', LC_ALL: 'C', https_proxy: 'p', NODE_OPTIONS: '--inspect', OTHER: 'x' },
    ...{ ANTHROPIC_API_KEY: 'a', OPENAI_API_KEY: 'o', GEMINI_API_KEY: 'g', GATEWAY_TOKEN: 's' },
  }
  const env = build('claude', gateway, { EXTRA: '1', LC_ALL: undefined })
  t.match(env, { PATH: '/bin', HOME: '/home/x', https_proxy: 'p', ANTHROPIC_API_KEY: 'a', EXTRA: '1' })
  for (const name of ['OTHER', 'OPENAI_API_KEY', 'GATEWAY_TOKEN', 'NODE_OPTIONS', 'LC_ALL']) t.notOk(name in env, name)
  t.equal(build('codex', gateway).OPENAI_API_KEY, 'o')
  t.notOk('ANTHROPIC_API_KEY' in build('codex', gateway))
})

t.test('nobody passes on what is the gateway’s or the service manager’s', async (t) => {
  const gateway = {
    NOTIFY_SOCKET: '/n',
    WATCHDOG_USEC: '1',
    CREDENTIALS_DIRECTORY: '/c',
    MY_API_KEY: 'k',
    NODE_OPTIONS: '--x',
  }
  const env = build('opencode', gateway, { ...gateway, LISTEN_FDS: '1', KEPT: '1' }, ['MY_API_KEY'])
  t.equal(env.KEPT, '1')
  for (const name of [...Object.keys(gateway), 'LISTEN_FDS']) t.notOk(name in env, name)
  t.equal(build('claude', gateway, { NODE_OPTIONS: '--own' }).NODE_OPTIONS, '--own', 'a flag that a hook sets is meant')
})

t.test(
  'a secret of the gateway stays where it is, unless it is the agent’s own credential or is given to it',
  async (t) => {
    const gateway = { ACME_API_KEY: 'k', OPENCODE_SIGNING: 's', ANTHROPIC_API_KEY: 'a', GROQ_API_KEY: 'g' }
    const secrets = ['ACME_API_KEY', 'OPENCODE_SIGNING', 'ANTHROPIC_API_KEY']
    const env = build('opencode', gateway, { OPENCODE_SIGNING: 'of this session' }, secrets)
    t.match(env, { GROQ_API_KEY: 'g', ANTHROPIC_API_KEY: 'a', OPENCODE_SIGNING: 'of this session' })
    t.notOk('ACME_API_KEY' in env)
    t.notOk('OPENCODE_SIGNING' in build('opencode', gateway, gateway, secrets))
    const row = agentTable([{ name: 'opencode', env: { ACME_API_KEY: 'k' } }]).get('opencode')!
    t.equal(sessionEnvironment({ row, gatewayEnv: gateway, sessionEnv: {}, secrets }).ACME_API_KEY, 'k')
  },
)

t.test('the row’s variables give way to the operator’s and the session’s', async (t) => {
  t.equal(build('claude', {}).CLAUDE_CODE_MAX_RETRIES, '3')
  t.equal(build('claude', { CLAUDE_CODE_MAX_RETRIES: '7' }).CLAUDE_CODE_MAX_RETRIES, '7')
  t.equal(build('claude', {}, { CLAUDE_CODE_MAX_RETRIES: '0' }).CLAUDE_CODE_MAX_RETRIES, '0')
})

t.test('what the operator declares of an agent stands, whatever the gateway’s own environment says', async (t) => {
  const gatewayEnv = {
    HOME: '/root',
    ANTHROPIC_API_KEY: 'of the gateway',
    ANTHROPIC_MODEL: 'm',
    AGENT_CONFIG_DIR: '/g',
    AGENT_OAUTH_TOKEN: 'of the gateway',
  }
  const keys = { ANTHROPIC_API_KEY: 'of the agent', CLAUDE_CODE_OAUTH_TOKEN: 'of the agent' }
  const env = { HOME: '/srv/agent', ...keys, AGENT_CONFIG_DIR: '/d' }
  const row = agentTable([{ name: 'claude', env }]).get('claude')!
  const built = (sessionEnv: object) =>
    sessionEnvironment({ row, gatewayEnv, sessionEnv: { ...sessionEnv }, secrets: [] })
  t.match(built({}), {
    HOME: '/srv/agent',
    ...keys,
    ANTHROPIC_MODEL: 'm',
    CLAUDE_CONFIG_DIR: '/d',
  })
  t.equal(built({ HOME: '/of/the/session' }).HOME, '/of/the/session')
  t.equal(built({ AGENT_OAUTH_TOKEN: 'of it' }).CLAUDE_CODE_OAUTH_TOKEN, 'of it')
})

t.test('the neutral names become the agent’s own', async (t) => {
  const env = build('claude', {}, { AGENT_CONFIG_DIR: '/d', AGENT_OAUTH_TOKEN: 'token', CLAUDE_CONFIG_DIR: '/hook' })
  t.match(env, { CLAUDE_CONFIG_DIR: '/d', CLAUDE_CODE_OAUTH_TOKEN: 'token' })
  t.notOk('AGENT_CONFIG_DIR' in env || 'AGENT_OAUTH_TOKEN' in env)
  t.match(build('opencode', {}, { AGENT_CONFIG_DIR: '/d' }), { XDG_CONFIG_HOME: '/d', XDG_DATA_HOME: '/d' })
  t.match(build('codex', {}, { AGENT_CONFIG_DIR: '/d' }), { CODEX_HOME: '/d' })
  t.throws(() => build('gemini', {}, { AGENT_OAUTH_TOKEN: 'token' }), { code: 'SG_ERR_ENGINE_START' })
})

t.test('the operator’s own directory is the default agent’s, and no other’s', async (t) => {
  const gateway = { AGENT_CONFIG_DIR: '/d', AGENT_OAUTH_TOKEN: 'token' }
  t.match(build('claude', gateway), { CLAUDE_CONFIG_DIR: '/d', CLAUDE_CODE_OAUTH_TOKEN: 'token' })
  t.notOk('CODEX_HOME' in build('codex', gateway))
})

t.test('a directory that is in use already is not pinned', async (t) => {
  const home = t.testdir({ '.claude': {} })
  symlinkSync(join(home, '.claude'), join(home, 'link'))
  for (const directory of [join(home, '.claude'), join(home, 'link')])
    t.notOk('CLAUDE_CONFIG_DIR' in build('claude', { HOME: home }, { AGENT_CONFIG_DIR: directory }), directory)
  t.equal(configDirOf(rowOf('claude'), { HOME: home }), join(home, '.claude'))
  t.equal(configDirOf(rowOf('claude'), { HOME: home, CLAUDE_CONFIG_DIR: '/d' }), '/d')
})

t.test('an executable is found in PATH, never in a relative place', async (t) => {
  const folder = t.testdir({ 'not-executable': '' })
  mkdirSync(join(folder, 'sh'))
  t.equal(findExecutable('sh', { PATH: `relative:${folder}:/bin` }), '/bin/sh')
  t.equal(findExecutable('/bin/sh', {}), '/bin/sh')
  t.equal(findExecutable('not-executable', { PATH: folder }), undefined)
  t.equal(findExecutable('sh', {}), undefined)
})

t.test('a declared agent overrides a built-in row field by field, or stands for itself', async (t) => {
  const table = agentTable([
    { name: 'gemini', command: '/opt/gemini', env: { A: '1' } },
    { name: 'mine', command: 'mine', modes: { plan: 'look', acceptEdits: 'edit' } },
  ])
  t.match(table.get('gemini'), {
    command: '/opt/gemini',
    args: ['--acp'],
    env: { A: '1', GEMINI_CLI_TRUST_WORKSPACE: 'true' },
    permissionModes: rowOf('gemini').permissionModes,
  })
  t.match(table.get('mine'), {
    driver: 'acp',
    configDirEnv: 'AGENT_CONFIG_DIR',
    permissionModes: ['acceptEdits', 'plan'],
    modes: { plan: { id: 'look', asks: 'deny' }, acceptEdits: { id: 'edit', asks: 'edits' } },
  })
  t.equal(agentTable().get('gemini')!.command, 'gemini', 'the built-in table is untouched')
})

t.test('what a program needs is no secret where a secret of the configuration has it in its text', async (t) => {
  const gateway = { PATH: '/bin', HOME: '/home/me', USER: 'me', LC_ALL: 'C.UTF-8', DATABASE_PASSWORD: 'p' }
  // as of postgres://${USER}:${DATABASE_PASSWORD}@localhost/gateway?sslrootcert=${HOME}/ca.pem
  const env = build('opencode', gateway, {}, ['USER', 'DATABASE_PASSWORD', 'HOME', 'LC_ALL'])
  t.match(env, { PATH: '/bin', HOME: '/home/me', USER: 'me', LC_ALL: 'C.UTF-8' })
  t.notOk('DATABASE_PASSWORD' in env)
})
