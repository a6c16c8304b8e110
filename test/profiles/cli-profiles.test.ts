import { existsSync, mkdtempSync, readFileSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { gatewayPlugin } from '../../plugins/gateway.js'
import type { SdkSession } from '../../schemas/sdk-sessions.js'
import type { Environment } from '../../src/engines/cli/environment.js'
import { createGateway } from '../../src/gateway.js'
import { deferred } from '../../src/lib/deferred.js'
import { silentLogger } from '../../src/lib/logger.js'
import { buildGateway, buildServer, SOME_CWD, until } from '../fixtures/build.js'
import fastify from '../fixtures/host.js'
import type { ScriptedRunner } from '../fixtures/scripted-engine.js'

const ACP_AGENT = fileURLToPath(new URL('../fixtures/scripted-acp-agent.mjs', import.meta.url))

const profiles = (t: Test) => {
  const dir = t.testdir({ one: {}, two: {} })
  return ['one', 'two'].map((name) => ({ name, configDir: `${dir}/${name}` }))
}
const row = (sessionId: string, profile?: string): SdkSession => ({
  sessionId,
  summary: 'x',
  lastModified: 1,
  ...(profile !== undefined && { profile }),
})

t.test('GET /sdk-sessions lists what the lister finds, of the profiles that the caller may see', async (t) => {
  const asked: object[] = []
  const { call } = await buildServer(t, {
    authenticate: () => ({ allowedProfiles: ['one'] }),
    profiles: profiles(t),
    listSdkSessions: (query) => {
      asked.push(query)
      return [row('a', 'one'), row('b', 'two'), row('c')]
    },
  })
  const { status, json } = await call('GET', `/sdk-sessions?dir=${SOME_CWD}&limit=5&offset=2&profile=one`)
  t.equal(status, 200)
  t.same(
    json.map(({ sessionId }: SdkSession) => sessionId),
    ['a', 'c'],
  )
  t.match(asked, [{ limit: 5, offset: 2, profile: 'one' }])
  t.match(await call('GET', '/sdk-sessions?profile=two'), { status: 403, json: { code: 'SG_ERR_PROFILE_FORBIDDEN' } })
})

t.test('who may use no profile is shown no session, of nobody in particular either', async (t) => {
  let asked = 0
  const { call } = await buildServer(t, {
    authenticate: () => ({ allowedProfiles: [] }),
    profiles: profiles(t),
    listSdkSessions: () => {
      asked++
      return [row('a', 'one'), row('c')]
    },
  })
  t.match(await call('GET', '/sdk-sessions'), { status: 200, text: '[]' })
  t.match(await call('GET', '/sdk-sessions?profile=one'), { status: 403, json: { code: 'SG_ERR_PROFILE_FORBIDDEN' } })
  t.match(await call('GET', '/sdk-sessions?dir=relative'), { status: 400 })
  t.equal(asked, 0)
})

t.test('the log says what a lister gives that is no list of sessions', async (t) => {
  const cases: [given: unknown, cause: RegExp][] = [
    [null, /listSdkSessions: Expected array/],
    [{ sessions: [] }, /listSdkSessions: Expected array/],
    [[{ sessionId: 'a', lastModified: 1 }], /listSdkSessions\.0\.summary: Required/],
  ]
  const logged: Error[] = []
  const logger = { ...silentLogger, error: ({ err }: { err: Error }) => void logged.push(err.cause as Error) }
  let given: unknown
  const { call } = await buildServer(t, { logger, listSdkSessions: () => given as SdkSession[] })
  for (const [lists, cause] of cases) {
    given = lists
    t.match(await call('GET', '/sdk-sessions'), { status: 500, json: { code: 'SG_ERR_INTERNAL' } })
    t.match(logged.splice(0), [{ message: cause }], JSON.stringify(lists))
  }
  given = [{ ...row('a'), more: 1 }]
  t.same((await call('GET', '/sdk-sessions')).json, [row('a')], 'what is more is left out')
  given = [{ ...row('a'), gitBranch: null, createdAt: null, profile: null }]
  t.same((await call('GET', '/sdk-sessions')).json, [row('a')], 'what is null is not there')
})

t.test('with roots, dir is required and must lie inside them', async (t) => {
  const root = t.testdir({ in: {} })
  const { call } = await buildServer(t, { allowedCwdRoots: [root], listSdkSessions: () => [] })
  t.match(await call('GET', '/sdk-sessions'), { status: 400, json: { errors: [{ path: 'dir' }] } })
  t.match(await call('GET', '/sdk-sessions?dir=/'), { status: 403 })
  t.match(await call('GET', `/sdk-sessions?dir=${root}/missing`), { status: 400 })
  t.match(await call('GET', `/sdk-sessions?dir=${root}/in`), { status: 200 })
  t.match(await call('GET', `/sdk-sessions?dir=${root}/in&limit=0`), { status: 400 })
})

/** An agent that keeps sessions, all of one directory, and what it deleted of them. */
function keeper(ids: string[], cwd: string) {
  const deleted = join(mkdtempSync(join(tmpdir(), 'keeper-')), 'deleted')
  const env = { ACP_LISTS: JSON.stringify(ids), ACP_LISTS_IN: cwd, ACP_DELETES: deleted }
  const agents = [{ name: 'keeper', command: process.execPath, args: [ACP_AGENT], env }]
  return { agents, deleted: () => (existsSync(deleted) ? readFileSync(deleted, 'utf8').trim().split('\n') : []) }
}

t.test('DELETE /sdk-sessions/:sessionId deletes for who may use the profile, inside the roots', async (t) => {
  const root = realpathSync(t.testdir({ in: {} }))
  const { agents, deleted } = keeper(['one'], `${root}/in`)
  const kept = { name: 'kept', agent: 'keeper', trustWorkspace: true }
  const { call } = await buildServer(t, {
    ...{ agents, allowedCwdRoots: [root], profiles: [kept, { ...kept, name: 'other' }] },
    authenticate: () => ({ allowedProfiles: ['kept'] }),
  })
  const remove = (id: string, query: string) => call('DELETE', `/sdk-sessions/${id}?${query}`)
  const dir = `dir=${root}/in`
  t.match(await remove('one', 'profile=kept'), { status: 400, json: { errors: [{ path: 'dir' }] } })
  t.match(await remove('one', 'profile=kept&dir=/'), { status: 403, json: { code: 'SG_ERR_CWD_FORBIDDEN' } })
  t.match(await remove('one', `profile=other&${dir}`), { status: 403, json: { code: 'SG_ERR_PROFILE_FORBIDDEN' } })
  t.match(await remove('one', dir), { status: 400, json: { code: 'SG_ERR_PROFILE_REQUIRED' } })
  t.match(await remove('one', `profile=kept&dir=${root}`), {
    status: 404,
    json: { code: 'SG_ERR_SDK_SESSION_NOT_FOUND' },
  })
  t.match(await remove('two', `profile=kept&${dir}`), { status: 404, json: { code: 'SG_ERR_SDK_SESSION_NOT_FOUND' } })
  t.match(await remove('one', `profile=kept&${dir}&force=1`), { status: 400, json: { errors: [{ path: 'force' }] } })
  t.strictSame(deleted(), [], 'what was refused changed nothing')
  t.match(await remove('one', `profile=kept&${dir}`), { status: 204, text: '' })
  t.strictSame(deleted(), ['one'])
})

t.test('what a session of the gateway goes on from is not deleted under it', async (t) => {
  const ids = ['0', '1', '2'].map((at) => `sdk-${at}`)
  const { agents, deleted } = keeper(ids, SOME_CWD)
  let opened = () => {}
  const opening = new Promise<void>((done) => {
    opened = done
  })
  const start = ({ context: { config }, host }: ScriptedRunner) => {
    if (config.resume !== undefined) return opening
    const lists = { tools: [], skills: [], slashCommands: [], mcpServers: [] }
    const said = { model: 'm', cwd: config.cwd, apiKeySource: 'none', permissionMode: 'default' as const, ...lists }
    host.emit({ type: 'system_init', sdkSessionId: 'sdk-0', ...said })
  }
  const { call } = await buildServer(t, {
    ...{ agents, profiles: [{ name: 'kept', agent: 'keeper', trustWorkspace: true }] },
    script: { capabilities: { resume: true }, start },
  })
  t.teardown(() => opened())
  const { json: session } = await call('POST', '/sessions', { cwd: SOME_CWD })
  const { json: resuming } = await call('POST', '/sessions', { cwd: SOME_CWD, resume: 'sdk-1' })
  await until(async () => (await call('GET', `/sessions/${session.id}`)).json.status === 'idle')
  for (const id of ['sdk-0', 'sdk-1'])
    t.match(await call('DELETE', `/sdk-sessions/${id}`), { status: 409, json: { code: 'SG_ERR_SDK_SESSION_IN_USE' } })
  t.strictSame(deleted(), [])
  t.match(await call('DELETE', '/sdk-sessions/sdk-2'), { status: 204 })
  for (const { id } of [session, resuming]) await call('DELETE', `/sessions/${id}`)
  t.strictSame(deleted(), ['sdk-2'], 'a session of the gateway goes alone')
  for (const id of ['sdk-0', 'sdk-1']) t.match(await call('DELETE', `/sdk-sessions/${id}`), { status: 204 })
  t.strictSame(deleted(), ['sdk-2', 'sdk-0', 'sdk-1'])
})

t.test('nor is one under a session that is being built from it', async (t) => {
  const { agents, deleted } = keeper(['sdk-0'], SOME_CWD)
  const asked = deferred()
  const built = deferred()
  const { call } = await buildServer(t, {
    ...{ agents, profiles: [{ name: 'kept', agent: 'keeper', trustWorkspace: true }] },
    script: { capabilities: { resume: true } },
    buildRunnerConfig: async (request) => {
      asked.resolve()
      await built.promise
      return request
    },
  })
  const opening = call('POST', '/sessions', { cwd: SOME_CWD, resume: 'sdk-0' })
  await asked.promise
  t.match(await call('DELETE', '/sdk-sessions/sdk-0'), { status: 409, json: { code: 'SG_ERR_SDK_SESSION_IN_USE' } })
  t.strictSame(deleted(), [])
  built.resolve()
  t.match(await opening, { status: 201 })
})

t.test(
  'of an engine or an agent that deletes none, and of one that is not installed, deleting is refused',
  async (t) => {
    const agents = [
      { name: 'mine', command: process.execPath, args: [ACP_AGENT] },
      { name: 'gone', command: '/no/such/agent' },
    ]
    const { call } = await buildServer(t, {
      agents,
      profiles: [
        { name: 'scripted', engine: 'provider', provider: { id: 'scripted' } },
        { name: 'mine', agent: 'mine', trustWorkspace: true },
        { name: 'gone', agent: 'gone', trustWorkspace: true },
      ],
    })
    for (const profile of ['scripted', 'mine'])
      t.match(await call('DELETE', `/sdk-sessions/x?profile=${profile}`), {
        status: 400,
        json: { code: 'SG_ERR_UNSUPPORTED', errors: [{ path: 'profile' }] },
      })
    t.match(await call('DELETE', '/sdk-sessions/x?profile=gone'), {
      status: 502,
      json: { code: 'SG_ERR_ENGINE_START' },
    })
  },
)

t.test('an agent that is not installed has nothing to list, and that is no failure of the caller', async (t) => {
  const { call } = await buildServer(t, { profiles: profiles(t) })
  t.match(await call('GET', '/sdk-sessions'), { status: 200, json: [] })
})

t.test('without cli profiles the built-in lister has nothing to list', async (t) => {
  const { call } = await buildServer(t)
  t.match(await call('GET', '/sdk-sessions'), { status: 200, json: [] })
})

t.test('checkCredentials warns once about each logged-out profile and shows the verdicts', async (t) => {
  const warnings: object[] = []
  const logger = { info() {}, error() {}, warn: (fields: object) => void warnings.push(fields) }
  const { gateway } = await buildGateway(t, {
    logger,
    profiles: profiles(t),
    checkCredentials: { probe: ({ name }) => name === 'one' },
  })
  await gateway.cliProfiles.checkCredentials()
  t.match(warnings, [{ profile: 'two' }])
  const shown = gateway.profiles.list({ allowedProfiles: undefined, canManageProfiles: false }).profiles
  t.match(shown, [
    { name: 'one', credentials: 'logged_in' },
    { name: 'two', credentials: 'logged_out' },
  ])
})

t.test('a profile whose credentials buildRunnerConfig brings is not called logged out', async (t) => {
  const warnings: object[] = []
  const logger = { info() {}, error() {}, warn: (fields: object) => void warnings.push(fields) }
  const root = t.testdir({})
  const over = new AbortController()
  t.teardown(() => over.abort())
  const { gateway } = await buildGateway(t, {
    logger,
    allowedCwdRoots: [root],
    profiles: ['works', 'fails', 'throws', 'hangs'].map((name) => ({ name, defaults: { model: `${name}-1` } })),
    buildRunnerConfig: ({ profile, ...request }) => {
      if (profile === 'throws') throw new Error('unknown project')
      if (profile === 'hangs') return sleep(600_000, request, { signal: over.signal })
      const isKnown = request.cwd === root && request.model === 'works-1'
      return { ...request, env: { ...(isKnown && { AGENT_OAUTH_TOKEN: 'token' }) } }
    },
    checkCredentials: { probe: (_profile, env) => env.CLAUDE_CODE_OAUTH_TOKEN === 'token', timeoutMs: 200 },
  })
  await gateway.cliProfiles.checkCredentials()
  t.match(warnings, [{ profile: 'fails' }])
  t.equal(warnings.length, 1)
  const shown = gateway.profiles.list({ allowedProfiles: undefined, canManageProfiles: false }).profiles
  t.match(shown, [
    { name: 'works', credentials: 'logged_in' },
    { name: 'fails', credentials: 'logged_out' },
    { name: 'throws', credentials: 'unknown' },
    { name: 'hangs', credentials: 'unknown' },
  ])
})

t.test(
  'without a logger the console says which profile is logged out, and once that sessions run on oauth',
  async (t) => {
    const silent = fastify()
    await silent.register(gatewayPlugin, { allowUnauthenticated: true, profiles: [] })
    t.teardown(() => silent.close())
    const { gateway, registry } = await buildGateway(t, {
      profiles: profiles(t),
      checkCredentials: { probe: ({ name }) => name === 'one' },
      script: { apiKeySource: 'oauth' },
    })
    const warned = t.capture(console, 'warn')
    await gateway.cliProfiles.checkCredentials()
    silent.gateway.options.notices.warn({ profile: 'x' }, 'from a host that has no logger')
    for (const profile of ['one', 'two']) await registry.create({ cwd: SOME_CWD, profile })
    await until(async () => (await registry.list()).every(({ status }) => status === 'idle'))
    const lines = warned().map(({ args }) => args.join(' '))
    t.match(lines, [/logged out.*profile: two/, /a host that has no logger.*profile: x/, /oauth.*requireApiKey/])
    t.equal(lines.length, 3)
  },
)

t.test('a probe that cannot run is silent, and the check never fails the start', async (t) => {
  const warnings: object[] = []
  const logger = { info() {}, error() {}, warn: (fields: object) => void warnings.push(fields) }
  const probe = () => {
    throw new Error('no such command')
  }
  const { worker } = await buildServer(t, { logger, profiles: profiles(t), checkCredentials: { probe } })
  await until(() => worker.server.listening)
  t.same(
    warnings.filter((fields) => 'profile' in fields),
    [],
  )
})

t.test(
  'an agent does not get the key of a provider profile, nor what the configuration took its secrets from',
  async (t) => {
    const envs: Environment[] = []
    const gateway = createGateway(
      {
        allowUnauthenticated: true,
        profiles: [
          { name: 'code', agent: 'opencode', configDir: t.testdir({}) },
          { name: 'chat', engine: 'provider', provider: { id: 'x', apiKeyEnv: 'CHAT_API_KEY' } },
        ],
        createEngineRunner: () => Promise.reject(new Error('not here')),
        checkCredentials: { probe: (_profile, env) => void envs.push(env) },
      },
      { env: { CHAT_API_KEY: 'a', SIGNING_API_KEY: 'b', MODEL_API_KEY: 'c' }, secretEnv: ['SIGNING_API_KEY'] },
    )
    t.teardown(() => gateway.close())
    await gateway.cliProfiles.checkCredentials()
    t.match(envs, [{ MODEL_API_KEY: 'c', CHAT_API_KEY: undefined, SIGNING_API_KEY: undefined }])
  },
)
