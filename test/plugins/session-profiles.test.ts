import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { SOME_CWD, until } from '../fixtures/build.js'
import { buildProfiles, type Call, everybody, manager, only, problem } from '../fixtures/profile-server.js'
import { provider } from '../fixtures/profiles.js'

t.test('a list of sessions by profile: of one that is unknown there is none', async (t) => {
  const { call } = await buildProfiles(t)
  const list = (query: string, headers = everybody) => call('GET', `/sessions?${query}`, undefined, headers)
  t.match(await list('profile=a'), { status: 200, json: [] }, 'one without sessions')
  const unknown = { status: 400, json: { code: 'SG_ERR_PROFILE_UNKNOWN', errors: [{ path: 'profile' }] } }
  for (const query of ['profile=m', 'profile=m&status=idle']) t.match(await list(query), unknown, query)
  t.match(await list('profile=m', only('m')), unknown, 'to who may see it')
  for (const profile of ['b', 'm'])
    t.match(await list(`profile=${profile}`, only('a')), { status: 200, json: [] }, 'nobody learns which there are')

  await call('POST', '/profiles', provider('m'), manager)
  const create = async () => (await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'm' }, everybody)).json.id
  const ids = [await create(), await create()]
  const next = /\?([^>]+)>/.exec(String((await list('profile=m&limit=1')).headers.get('link')))![1]!
  await call('DELETE', '/profiles/m', undefined, manager)
  t.match(await list('profile=m'), { status: 200, json: [{ id: ids[1] }, { id: ids[0] }] }, 'its sessions are left')
  t.match(await list('profile=m&status=failed'), { status: 200, json: [] })
  for (const id of ids) await call('DELETE', `/sessions/${id}`, undefined, everybody)
  t.match(await list('profile=m'), unknown)
  t.match(await list(next), { status: 200, json: [] }, 'a list that was begun ends')
})

t.test('which profile a session gets', async (t) => {
  const create = async (call: Call, profile: string | undefined, headers: Record<string, string>) => {
    const { status, json } = await call(
      'POST',
      '/sessions',
      { cwd: SOME_CWD, ...(profile !== undefined && { profile }) },
      headers,
    )
    return [status, json.profile ?? json.code]
  }
  const one = await buildProfiles(t, { profiles: [provider('a')] })
  t.same(await create(one.call, undefined, everybody), [201, 'a'], 'with exactly one it is implicit')
  t.same(await create(one.call, undefined, only('b')), [403, 'SG_ERR_PROFILE_FORBIDDEN'], 'and never by omission')
  const two = await buildProfiles(t)
  t.same(await create(two.call, undefined, everybody), [400, 'SG_ERR_PROFILE_REQUIRED'])
  t.same(await create(two.call, 'b', only('b')), [201, 'b'])
  const none = await buildProfiles(t, { profiles: [], profileStore: undefined as never })
  t.same(await create(none.call, undefined, everybody), [201, ''])
  t.same(await create(none.call, 'a', everybody), [400, 'SG_ERR_PROFILE_UNKNOWN'])
  t.same(await create(none.call, undefined, only('a')), [403, 'SG_ERR_PROFILE_FORBIDDEN'])
})

t.test('defaults fill in, an explicit value wins', async (t) => {
  const profiles = [{ ...provider('a'), defaults: { model: 'small', permissionMode: 'dontAsk' as const } }]
  const { call, engine } = await buildProfiles(t, { profiles })
  const config = async (request: object) => {
    await call('POST', '/sessions', { cwd: SOME_CWD, ...request }, everybody)
    return engine.last.context.config
  }
  t.match(await config({}), { model: 'small', permissionMode: 'dontAsk' })
  t.match(await config({ model: 'big', permissionMode: 'default' }), { model: 'big', permissionMode: 'default' })
})

t.test('a request may only narrow what the profile grants; the engine is shown the profile', async (t) => {
  const session = {
    capabilities: ['web_fetch' as const, 'download' as const],
    mcpServers: ['files'],
    instructions: 'Be brief.',
  }
  const { call, engine } = await buildProfiles(t, {
    profiles: [{ ...provider('some'), session }, { ...provider('none'), session: {} }, provider('silent')],
  })
  const create = (profile: string, more: object) =>
    call('POST', '/sessions', { cwd: SOME_CWD, profile, ...more }, everybody)
  t.equal((await create('some', { capabilities: ['download'] })).status, 201)
  t.match(engine.last.context, { config: { capabilities: ['download'] }, profile: { session } })
  t.equal((await create('some', { capabilities: [] })).status, 201)
  t.equal((await create('none', { capabilities: [] })).status, 201, 'an empty grant can be narrowed to nothing')
  t.match(
    await create('silent', { capabilities: [] }),
    problem(400, 'SG_ERR_CAPABILITY_NOT_GRANTED'),
    'no grant cannot',
  )
  for (const profile of ['some', 'none', 'silent'])
    t.match(
      await create(profile, { capabilities: ['web_search'] }),
      problem(400, 'SG_ERR_CAPABILITY_NOT_GRANTED'),
      profile,
    )
  t.match(await create('some', { mcpServers: {} }), problem(400, 'SG_ERR_MCP_SERVERS_NOT_ALLOWED'))
  await create('none', {})
  t.strictSame(engine.last.context.profile.session, {}, 'declared empty: nothing is granted')
  await create('silent', {})
  t.notOk('session' in engine.last.context.profile, 'not declared: whatever the host wired')
})

t.test(
  'a command to a session without an engine is refused as the documents say, once it may not be as it was created',
  async (t) => {
    const { call, clock, engine } = await buildProfiles(t, { idleReleaseMs: 60_000 })
    const session = { capabilities: ['web_fetch' as const] }
    await call('POST', '/profiles', { ...provider('m'), session }, manager)
    const cwd = t.testdir()
    const requests = [
      { cwd: SOME_CWD, profile: 'm', capabilities: ['web_fetch'] },
      { cwd, profile: 'a' },
    ]
    const ids: string[] = []
    for (const request of requests) ids.push((await call('POST', '/sessions', request, everybody)).json.id)
    await clock.advance(60_000)
    await until(() => engine.runners.every(({ closed }) => closed), 'no engine')

    const [narrowed, homeless] = ids
    const say = (id: string | undefined) =>
      call('POST', `/sessions/${id}/commands`, { type: 'user_message', text: 'go on' }, everybody)
    await call('PATCH', '/profiles/m', { session: {} }, manager)
    const why = /^The engine of this session cannot be started again: /
    const ofNoField = { json: { detail: why, errors: undefined } }
    const refused = await say(narrowed)
    t.match(refused, problem(400, 'SG_ERR_CAPABILITY_NOT_GRANTED'))
    t.match(refused, ofNoField)
    await rm(cwd, { recursive: true })
    const lost = await say(homeless)
    t.match(lost, problem(400, 'SG_ERR_CWD_INVALID'))
    t.match(lost, ofNoField)
    await call('PATCH', '/profiles/m', { session }, manager)
    t.match(await say(narrowed), { status: 200 }, 'and taken once it may be again')
  },
)

t.test('a cli session is pinned to its profile’s directory, after buildRunnerConfig', async (t) => {
  const dir = t.testdir({ work: {}, home: {} })
  const configDir = join(dir, 'work')
  const { call, engine } = await buildProfiles(t, {
    profiles: [{ name: 'work', configDir }],
    buildRunnerConfig: (request) => ({
      ...request,
      env: { AGENT_CONFIG_DIR: '/elsewhere', AGENT_OAUTH_TOKEN: 'token' },
    }),
  })
  t.equal((await call('POST', '/sessions', { cwd: SOME_CWD }, everybody)).status, 201)
  t.strictSame(engine.last.context.config.env, {
    AGENT_CONFIG_DIR: configDir,
    CLAUDE_CONFIG_DIR: configDir,
    AGENT_OAUTH_TOKEN: 'token',
  })
})

t.test('env and the like cannot come from the wire', async (t) => {
  const { call } = await buildProfiles(t, { profiles: [provider('a')] })
  for (const field of ['env', 'agentOptions', 'defaultApprovalTimeoutMs', 'configDir', 'agent', 'provider'])
    t.match(
      await call('POST', '/sessions', { cwd: SOME_CWD, [field]: {} }, everybody),
      problem(400, 'SG_ERR_VALIDATION'),
      field,
    )
})
