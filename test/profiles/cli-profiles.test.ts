import { setTimeout as sleep } from 'node:timers/promises'
import fastify from 'fastify'
import t, { type Test } from 'tap'
import { gatewayPlugin } from '../../plugins/gateway.js'
import type { SdkSession } from '../../schemas/sdk-sessions.js'
import type { Environment } from '../../src/engines/cli/environment.js'
import { createGateway } from '../../src/gateway.js'
import { buildGateway, buildServer, SOME_CWD, until } from '../fixtures/build.js'

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

t.test('with roots, dir is required and must lie inside them', async (t) => {
  const root = t.testdir({ in: {} })
  const { call } = await buildServer(t, { allowedCwdRoots: [root], listSdkSessions: () => [] })
  t.match(await call('GET', '/sdk-sessions'), { status: 400, json: { errors: [{ path: 'dir' }] } })
  t.match(await call('GET', '/sdk-sessions?dir=/'), { status: 403 })
  t.match(await call('GET', `/sdk-sessions?dir=${root}/missing`), { status: 400 })
  t.match(await call('GET', `/sdk-sessions?dir=${root}/in`), { status: 200 })
  t.match(await call('GET', `/sdk-sessions?dir=${root}/in&limit=0`), { status: 400 })
})

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
