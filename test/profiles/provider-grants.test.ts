import t, { type Test } from 'tap'
import type { ProviderRef } from '../../schemas/profiles.js'
import { createProviderRunner, providerEngine } from '../../src/engines/provider/index.js'
import type { ManagedProfileGrants } from '../../src/profiles/provider-grants.js'
import { createMemoryProfileStore } from '../../src/storage/memory/profile-store.js'
import { type BuildOptions, buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { startModelEndpoint } from '../fixtures/model-endpoint.js'
import { buildManaged, MANAGER, refusal } from '../fixtures/profiles.js'
import { ScriptedEngine } from '../fixtures/scripted-engine.js'

const INVALID = 'SG_ERR_PROFILE_INVALID'
const VENDOR = 'https://models.example/v1'
const env = { TEAM_KEY: 'sk-team', OPENAI_API_KEY: 'sk-vendor', AZURE_API_KEY: 'sk-azure', DATABASE_URL: 'secret' }

const create = async (t: Test, provider: ProviderRef, managedProfiles?: ManagedProfileGrants) => {
  const { catalog } = await buildManaged(t, { isHostsEngine: false, env, managedProfiles })
  return catalog.create({ name: 'm', engine: 'provider', provider }, MANAGER)
}

t.test('who may manage profiles gets no variable of the gateway by naming it', async (t) => {
  const listed = { apiKeyEnvs: ['TEAM_KEY', 'LISTED_BUT_UNSET'] }
  const told = new Set<string>()
  const name = async (apiKeyEnv: string, grants?: ManagedProfileGrants) =>
    create(t, { id: 'openai', model: 'm', apiKeyEnv }, grants).then(
      () => told.add('created'),
      (error) => told.add(`${error.code} ${error.message} ${JSON.stringify(error.errors)}`),
    )
  await name('DATABASE_URL')
  await name('TEAM_KEY')
  for (const apiKeyEnv of ['DATABASE_URL', 'NOT_SET', 'LISTED_BUT_UNSET', 'constructor']) await name(apiKeyEnv, listed)
  const unnamed = (id: string) => create(t, { id, model: 'm' }, listed)
  await t.rejects(unnamed('openai'), refusal(INVALID, /^provider\.apiKeyEnv: /), 'nor by naming whose it is')
  await t.rejects(unnamed('azure'), refusal(INVALID, /^provider\.apiKeyEnv: /), 'which finds it by itself')
  t.match([...told], [/^SG_ERR_PROFILE_INVALID provider\.apiKeyEnv: /], 'set, unset and not allowed: one answer')
  t.match(await create(t, { id: 'openai', model: 'm', apiKeyEnv: 'TEAM_KEY' }, listed), {
    provider: { apiKeyEnv: 'TEAM_KEY' },
  })
})

t.test('a key goes nowhere but where the operator sends it', async (t) => {
  const grants = {
    apiKeyEnvs: ['TEAM_KEY', 'OPENAI_API_KEY'],
    endpoints: [{ baseUrl: `${VENDOR}/`, apiKeyEnv: 'TEAM_KEY' }, { baseUrl: 'http://10.0.0.7:8000/v1' }],
  }
  const own = { model: 'm', baseUrl: 'https://attacker.example/v1' }
  const refused: [string, ProviderRef, RegExp][] = [
    ['a listed key', { id: 'openai-compatible', ...own, apiKeyEnv: 'TEAM_KEY' }, /^provider\.baseUrl: /],
    ['a vendor’s own key', { id: 'openai', ...own }, /^provider\.baseUrl: /],
    ['a key that the package finds by itself', { id: 'azure', ...own }, /^provider\.baseUrl: /],
    [
      'the same at an endpoint without a key',
      { id: 'azure', model: 'm', baseUrl: 'http://10.0.0.7:8000/v1' },
      /baseUrl: /,
    ],
    ['another key at a listed endpoint', { id: 'openai', model: 'm', baseUrl: VENDOR }, /^provider\.baseUrl: /],
    [
      'a listed pair under another path',
      { id: 'openai-compatible', model: 'm', baseUrl: `${VENDOR}/../x`, apiKeyEnv: 'TEAM_KEY' },
      /^provider\.baseUrl: /,
    ],
  ]
  for (const [what, provider, detail] of refused)
    await t.rejects(create(t, provider, grants), refusal(INVALID, detail), what)
  for (const provider of [
    { id: 'openai', model: 'm' },
    { id: 'openai', model: 'm', apiKeyEnv: 'OPENAI_API_KEY' },
    { id: 'openai-compatible', model: 'm', baseUrl: VENDOR, apiKeyEnv: 'TEAM_KEY' },
    { id: 'openai', model: 'm', baseUrl: VENDOR, apiKeyEnv: 'TEAM_KEY' },
    { id: 'openai-compatible', model: 'm', baseUrl: 'http://10.0.0.7:8000/v1' },
    { id: 'openai-compatible', ...own },
  ])
    t.match(await create(t, provider, grants), { provider }, JSON.stringify(provider))
})

t.test('an address inside is refused at once when it is written out', async (t) => {
  for (const host of [
    '127.0.0.1:6379',
    '10.1.2.3',
    '169.254.169.254',
    '[::1]',
    '2130706433',
    '[::ffff:169.254.169.254]',
  ])
    await t.rejects(
      create(t, { id: 'openai-compatible', model: 'm', baseUrl: `http://${host}/v1` }),
      refusal(INVALID, /^provider\.baseUrl: /),
      host,
    )
})

t.test('a change, and a list that became shorter, are held to the same', async (t) => {
  const { catalog, store } = await buildManaged(t, {
    isHostsEngine: false,
    env,
    managedProfiles: { apiKeyEnvs: ['TEAM_KEY'] },
  })
  const provider = { id: 'openai', model: 'm', apiKeyEnv: 'TEAM_KEY' }
  await catalog.create({ name: 'm', engine: 'provider', provider }, MANAGER)
  const stolen = { ...provider, apiKeyEnv: 'DATABASE_URL' }
  await t.rejects(catalog.update('m', { provider: stolen }, MANAGER), refusal(INVALID, /apiKeyEnv/))
  t.match(catalog.resolve('m', MANAGER).info.provider, provider, 'nothing was changed')
  const { catalog: later } = await buildManaged(t, { isHostsEngine: false, env, store })
  t.throws(() => later.resolve('m', MANAGER), refusal('SG_ERR_ENGINE_START', /provider\.apiKeyEnv/))
})

t.test('an endpoint that is no URL is refused with its place', async (t) => {
  const managedProfiles = { endpoints: [{ baseUrl: VENDOR }, { baseUrl: 'ftp://x' }] }
  await t.rejects(buildManaged(t, { managedProfiles }), refusal('SG_ERR_OPTION', /managedProfiles\.endpoints\[1\]/))
  for (const baseUrl of ['https://me:canary@models.example/v1', 'https://models.example/v1?key=canary']) {
    const error = await buildManaged(t, { managedProfiles: { endpoints: [{ baseUrl }] } }).catch((refused) => refused)
    t.match(error, {
      code: 'SG_ERR_OPTION',
      message: /endpoints\[0\]\.baseUrl: must carry no user name, password, query/,
    })
    t.notMatch(error.message, 'canary', 'no profile could ever name it')
  }
})

const buildWorld = async (t: Test, options: BuildOptions) => {
  const world = await buildServer(t, {
    authenticate: () => ({ canManageProfiles: true }),
    createEngineRunner: createProviderRunner,
    profiles: [],
    profileStore: createMemoryProfileStore(),
    webhookPolicy: { allowPrivateNetworks: false },
    ...options,
  })
  /** Runs one turn of a managed profile. */
  const turn = async (provider: ProviderRef) => {
    const made = await world.call('POST', '/profiles', { name: 'm', engine: 'provider', provider })
    if (made.status !== 201) return made.json
    const { json } = await world.call('POST', '/sessions', { cwd: SOME_CWD, profile: 'm', prompt: 'ping' })
    let turn: { type: string; isError?: boolean; result?: string; errors?: string[] } | undefined
    await until(async () => {
      const { events } = (await world.call('GET', `/sessions/${json.id}/events`)).json
      turn = events.find(({ type }: { type: string }) => type === 'turn_completed')
      return turn !== undefined
    }, 'the end of the turn')
    return turn!
  }
  return { ...world, turn }
}

t.test('a name that leads inside is refused when it is connected to', async (t) => {
  const model = await startModelEndpoint(t)
  const inside = model.url.replace('127.0.0.1', 'localhost')
  const { turn } = await buildWorld(t, {})
  t.match(await turn({ id: 'openai-compatible', model: 'm', baseUrl: inside }), {
    isError: true,
    errors: [/private address/],
  })
  t.equal(model.requests.length, 0, 'nothing was sent')
})

t.test('an endpoint of the operator’s is reached with the key that belongs to it', async (t) => {
  const model = await startModelEndpoint(t)
  const provider = { id: 'openai-compatible', model: 'm', baseUrl: model.url, apiKeyEnv: 'TEAM_KEY' }
  const { turn } = await buildWorld(t, {
    env,
    createEngineRunner: providerEngine({ env }),
    managedProfiles: { endpoints: [{ baseUrl: model.url, apiKeyEnv: 'TEAM_KEY' }] },
  })
  t.match(await turn(provider), { isError: false, result: 'pong' })
  t.equal(model.requests[0]?.headers.authorization, 'Bearer sk-team')
})

t.test('a session does not tell which variables are set', async (t) => {
  const { call } = await buildWorld(t, {
    env,
    createEngineRunner: providerEngine({ env: {} }),
    managedProfiles: { apiKeyEnvs: ['OPENAI_API_KEY'] },
  })
  await call('POST', '/profiles', { name: 'm', engine: 'provider', provider: { id: 'openai', model: 'm' } })
  const { status, text } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'm' })
  t.equal(status, 502)
  t.notMatch(text, /OPENAI_API_KEY|not set/)
})

const NAMED = { id: 'openai', model: 'm', models: ['m', 'n'], apiKeyEnv: 'OPENAI_API_KEY' }

t.test('an engine of the host’s resolves the keys of managed profiles as those of declared ones', async (t) => {
  const engine = new ScriptedEngine()
  const { call } = await buildWorld(t, { env: {}, createEngineRunner: engine.create })
  const created = await call('POST', '/profiles', { name: 'm', engine: 'provider', provider: NAMED })
  t.match(created, { status: 201, json: { provider: NAMED, managed: true } })
  t.match(await call('PATCH', '/profiles/m', { provider: { id: 'azure', model: 'm' } }), { status: 200 })
  t.match(await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'm' }), { status: 201 })
  t.match(
    engine.last.context,
    { profile: { provider: { id: 'azure' } }, mayReadKey: false },
    'and is told whose word it is',
  )
  const elsewhere = { ...NAMED, baseUrl: 'https://attacker.example/v1' }
  t.match(await call('PATCH', '/profiles/m', { provider: elsewhere }), { status: 400 }, 'a key and an address: as ever')
})

t.test('what the operator lists holds for an engine of the host’s too', async (t) => {
  const engine = new ScriptedEngine()
  const managedProfiles = { apiKeyEnvs: ['TEAM_KEY'] }
  const { call } = await buildWorld(t, { env, createEngineRunner: engine.create, managedProfiles })
  const create = (name: string, apiKeyEnv: string) =>
    call('POST', '/profiles', { name, engine: 'provider', provider: { ...NAMED, apiKeyEnv } })
  t.match(await create('a', 'OPENAI_API_KEY'), { status: 400, json: { code: INVALID } })
  t.match(await create('b', 'TEAM_KEY'), { status: 201 })
  await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'b' })
  t.equal(engine.last.context.mayReadKey, true)
})

t.test('the bundled engine behind a function of the host’s reads no key that is not listed', async (t) => {
  const model = await startModelEndpoint(t)
  const bundled = providerEngine({ env })
  const { call } = await buildWorld(t, {
    env,
    createEngineRunner: (context) => bundled({ ...context, fetch: () => fetch(model.url) }),
  })
  for (const [name, provider] of Object.entries({
    named: NAMED,
    unnamed: { id: 'openai', model: 'm' },
    own: { id: 'azure', model: 'm' },
  })) {
    t.match(await call('POST', '/profiles', { name, engine: 'provider', provider }), { status: 201 })
    t.match(await call('POST', '/sessions', { cwd: SOME_CWD, profile: name, prompt: 'ping' }), {
      status: 502,
      json: { code: 'SG_ERR_ENGINE_START', detail: /none that managed profiles may use/ },
    })
  }
  t.equal(model.requests.length, 0)
})
