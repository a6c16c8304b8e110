import { join } from 'node:path'
import t, { type Test } from 'tap'
import { buildGateway, buildServer, SOME_CWD } from '../fixtures/build.js'
import { isProblem } from '../fixtures/problem.js'

const PROFILES = [
  {
    name: 'narrow',
    engine: 'provider' as const,
    provider: { id: 'x' },
    session: { capabilities: ['web_fetch' as const] },
  },
  { name: 'undeclared', engine: 'provider' as const, provider: { id: 'x' } },
  { name: 'agent', engine: 'cli' as const },
]

/** Roots, what lies beside them, and a gateway of three profiles whose callers are `all` or may use `narrow` only. */
async function buildWorld(t: Test) {
  const directory = t.testdir({
    root: {
      inside: { deep: {} },
      file: 'x',
      out: t.fixture('symlink', '../other'),
      loop: t.fixture('symlink', 'loop'),
    },
    'root-2': {},
    other: {},
  })
  const root = join(directory, 'root')
  const server = await buildServer(t, {
    profiles: PROFILES,
    allowedCwdRoots: [root],
    disableBypassPermissions: true,
    authenticate: ({ headers }) => headers.caller && (headers.caller === 'all' ? {} : { allowedProfiles: ['narrow'] }),
  })
  const create = (body: object, caller = 'all') => server.call('POST', '/sessions', body, { caller })
  return { ...server, create, root, directory }
}

t.test('what is refused whatever room there is says so also where there is none', async (t) => {
  const { call, engine, registry } = await buildServer(t, { profiles: PROFILES, maxSessions: 1 })
  const create = (body: object) => call('POST', '/sessions', { cwd: SOME_CWD, profile: 'narrow', ...body })
  const { id } = (await create({})).json
  const rows: [body: object, status: number, code: string][] = [
    [{ titel: 'x' }, 400, 'SG_ERR_VALIDATION'],
    [{ profile: 'nobody' }, 400, 'SG_ERR_PROFILE_UNKNOWN'],
    [{ cwd: '/does/not/exist' }, 400, 'SG_ERR_CWD_INVALID'],
    [{ capabilities: ['download'] }, 400, 'SG_ERR_CAPABILITY_NOT_GRANTED'],
    [{ meta: { x: 'm'.repeat(17_000) } }, 400, 'SG_ERR_VALIDATION'],
    [{}, 429, 'SG_ERR_TOO_MANY'],
  ]
  for (const [body, status, code] of rows) {
    const answer = await create(body)
    t.same([answer.status, answer.json.code], [status, code], JSON.stringify(body).slice(0, 80))
  }
  t.equal(engine.runners.length, 1, 'nothing was built for any of them')
  await registry.close(id)
  t.equal((await create({})).status, 201)
  t.equal((await create({})).status, 429)
})

t.test('a job that is refused whatever room there is says so also where the queue is full', async (t) => {
  const { call } = await buildServer(t, { profiles: PROFILES, maxSessions: 1, queue: { maxQueuedJobs: 1 } })
  const submit = (session: object, more: object = {}) =>
    call('POST', '/jobs', { session: { cwd: SOME_CWD, profile: 'narrow', prompt: 'x', ...session }, ...more })
  // takes the one place, so that no job begins
  await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'narrow' })
  t.equal((await submit({})).status, 201)
  isProblem(t, await submit({ profile: 'nobody' }), 400, 'SG_ERR_PROFILE_UNKNOWN')
  isProblem(t, await submit({ cwd: '/does/not/exist' }), 400, 'SG_ERR_CWD_INVALID')
  isProblem(t, await submit({}, { webhook: { url: 'http://169.254.169.254/' } }), 400, 'SG_ERR_VALIDATION')
  isProblem(t, await submit({}), 429, 'SG_ERR_TOO_MANY')
})

t.test('every refusal of a create', async (t) => {
  const { create, call, engine, root, directory } = await buildWorld(t)
  const rows: [body: object, status: number, code: string, path?: string][] = [
    // cwd
    [{ cwd: undefined }, 400, 'SG_ERR_VALIDATION', 'cwd'],
    ...[null, 1, true, [root], { path: root }].map((cwd): (typeof rows)[number] => [
      { cwd },
      400,
      'SG_ERR_VALIDATION',
      'cwd',
    ]),
    ...[
      '',
      '.',
      '..',
      'inside',
      '~',
      './',
      `${root}\0/inside`,
      `\0${root}`,
      `file://${root}`,
      `${root}/${'a/'.repeat(3_000)}`,
    ].map((cwd): (typeof rows)[number] => [{ cwd }, 400, 'SG_ERR_CWD_INVALID', 'cwd']),
    ...['nowhere', 'file', 'loop', 'inside/../nowhere', 'file/..', 'inside/%2e%2e'].map(
      (path): (typeof rows)[number] => [{ cwd: `${root}/${path}` }, 400, 'SG_ERR_CWD_INVALID', 'cwd'],
    ),
    ...[
      '/',
      directory,
      `${root}-2`,
      `${root}/..`,
      `${root}/../other`,
      `${root}/inside/../../root-2`,
      `${root}/out`,
      `${root}/out/.`,
    ].map((cwd): (typeof rows)[number] => [{ cwd }, 403, 'SG_ERR_CWD_FORBIDDEN', 'cwd']),
    [{ cwd: '/proc/self/root' }, 403, 'SG_ERR_CWD_FORBIDDEN', 'cwd'],
    [{ cwd: `${directory}/nobody-knows` }, 403, 'SG_ERR_CWD_FORBIDDEN', 'cwd'],
    // profile
    [{ profile: undefined }, 400, 'SG_ERR_PROFILE_REQUIRED', 'profile'],
    [{ profile: null }, 400, 'SG_ERR_VALIDATION', 'profile'],
    ...['', 'Narrow', 'narrow ', 'narro', 'nárrow', '__proto__', 'constructor', '../narrow', '*'].map(
      (profile): (typeof rows)[number] => [{ profile }, 400, 'SG_ERR_PROFILE_UNKNOWN', 'profile'],
    ),
    // permissionMode
    [{ permissionMode: 'bypassPermissions' }, 403, 'SG_ERR_BYPASS_DISABLED', 'permissionMode'],
    [{ profile: 'agent', permissionMode: 'bypassPermissions' }, 403, 'SG_ERR_BYPASS_DISABLED'],
    ...['acceptEdits', 'plan', 'auto'].map((permissionMode): (typeof rows)[number] => [
      { permissionMode },
      400,
      'SG_ERR_PERMISSION_MODE',
      'permissionMode',
    ]),
    ...['yolo', '', 'BypassPermissions', 'bypassPermissions ', null, ['default']].map(
      (permissionMode): (typeof rows)[number] => [{ permissionMode }, 400, 'SG_ERR_VALIDATION', 'permissionMode'],
    ),
    ...['true', 1, [true], null].map((allowDangerouslySkipPermissions): (typeof rows)[number] => [
      { allowDangerouslySkipPermissions },
      400,
      'SG_ERR_VALIDATION',
      'allowDangerouslySkipPermissions',
    ]),
    // grants
    [{ capabilities: ['web_search'] }, 400, 'SG_ERR_CAPABILITY_NOT_GRANTED', 'capabilities'],
    [{ capabilities: ['web_fetch', 'deliver_file'] }, 400, 'SG_ERR_CAPABILITY_NOT_GRANTED', 'capabilities'],
    [{ profile: 'undeclared', capabilities: ['web_fetch'] }, 400, 'SG_ERR_CAPABILITY_NOT_GRANTED', 'capabilities'],
    [{ profile: 'agent', capabilities: [] }, 400, 'SG_ERR_VALIDATION', 'capabilities'],
    [{ capabilities: 'web_fetch' }, 400, 'SG_ERR_VALIDATION', 'capabilities'],
    [{ capabilities: ['shell'] }, 400, 'SG_ERR_VALIDATION', 'capabilities.0'],
    [{ capabilities: Array(65).fill('web_fetch') }, 400, 'SG_ERR_VALIDATION', 'capabilities'],
    [{ mcpServers: {} }, 400, 'SG_ERR_MCP_SERVERS_NOT_ALLOWED', 'mcpServers'],
    [{ mcpServers: { a: { command: 'x' } } }, 400, 'SG_ERR_MCP_SERVERS_NOT_ALLOWED', 'mcpServers'],
    ...[
      [{ a: {} }, 'mcpServers.a'],
      [{ a: { command: '' } }, 'mcpServers.a.command'],
      [{ a: { command: 'x', args: 'y' } }, 'mcpServers.a.args'],
      [{ a: { command: 'x', cwd: '/' } }, 'mcpServers.a.cwd'],
      [{ a: { type: 'http', url: 'x', headers: { b: 1 } } }, 'mcpServers.a.headers.b'],
      [{ a: { type: 'ws', url: 'x' } }, 'mcpServers.a'],
    ].map(([mcpServers, path]): (typeof rows)[number] => [
      { profile: 'agent', mcpServers },
      400,
      'SG_ERR_VALIDATION',
      path as string,
    ]),
    // the rest
    [{ forkSession: true }, 400, 'SG_ERR_VALIDATION', 'forkSession'],
    [{ resume: 'earlier' }, 400, 'SG_ERR_UNSUPPORTED', 'resume'],
    ...[
      ['prompt', ''],
      ['title', ''],
      ['title', 'x'.repeat(501)],
      ['model', ''],
      ['maxTurns', 0],
      ['maxTurns', 1.5],
      ['maxTurns', 1e21],
      ['maxTurns', '5'],
      ['maxBudgetUsd', 0],
      ['maxBudgetUsd', -1],
      ['approvalTimeoutMs', -1],
      ['approvalTimeoutMs', 1e300],
      ['questionBehavior', 'never'],
      ['settingSources', ['home']],
      ['allowedTools', [null]],
      ['meta', null],
      ['meta', []],
      ['meta', 'x'],
      // what only the host sets
      ['env', { PATH: '/' }],
      ['agentOptions', {}],
      ['defaultApprovalTimeoutMs', 1],
      ['jobId', 'x'],
      ['id', 'x'],
    ].map(([name, value]): (typeof rows)[number] => [
      { [name as string]: value },
      400,
      'SG_ERR_VALIDATION',
      name as string,
    ]),
  ]
  const refused = async (body: object, status: number, code: string, path?: string) => {
    const built = engine.runners.length
    const answer = await create({ cwd: root, profile: 'narrow', ...body })
    const what = JSON.stringify(body).slice(0, 80)
    isProblem(t, answer, status, code, what)
    if (path)
      t.match(
        answer.json.errors?.[0].path,
        path === 'settingSources' || path === 'allowedTools' ? `${path}.0` : path,
        what,
      )
    t.notOk(
      engine.runners.slice(built).some(({ closed }) => !closed),
      'no engine is left running',
    )
  }
  for (const row of rows) await refused(...row)
  t.same((await call('GET', '/sessions', undefined, { caller: 'all' })).json, [], 'nothing was registered')
  const { json } = await create({
    cwd: `${root}/inside/../inside/./deep//`,
    profile: 'narrow',
    capabilities: ['web_fetch'],
  })
  t.match(json, { cwd: join(root, 'inside', 'deep') }, 'what is inside is resolved and goes on resolved')
})

t.test('a caller with allowedProfiles is told the same of every other name', async (t) => {
  const { create, root } = await buildWorld(t)
  const answers = await Promise.all(
    ['undeclared', 'agent', 'nobody', '__proto__', ''].map((profile) => create({ cwd: root, profile }, 'limited')),
  )
  for (const answer of answers) isProblem(t, answer, 403, 'SG_ERR_PROFILE_FORBIDDEN')
  t.equal(new Set(answers.map(({ text }) => text.replace(/"instance":"[^"]*"/, ''))).size, 1)
  isProblem(t, await create({ cwd: root }, 'limited'), 400, 'SG_ERR_PROFILE_REQUIRED')
  t.match(await create({ cwd: root, profile: 'narrow' }, 'limited'), { status: 201 })
})

t.test('no root allows nothing, and nobody falls into an implicit profile that is not theirs', async (t) => {
  const none = await buildServer(t, { allowedCwdRoots: [] })
  isProblem(t, await none.call('POST', '/sessions', { cwd: SOME_CWD }), 403, 'SG_ERR_CWD_FORBIDDEN')
  for (const profiles of [[], [PROFILES[0]!]]) {
    const { call } = await buildServer(t, { profiles, authenticate: () => ({ allowedProfiles: [] }) })
    isProblem(t, await call('POST', '/sessions', { cwd: SOME_CWD }), 403, 'SG_ERR_PROFILE_FORBIDDEN')
  }
})

t.test('what the host hook returns, or writes into what it is given, passes the policy of a request', async (t) => {
  const { root } = await buildWorld(t)
  const rows: [what: string, patch: object, status: number, code: string][] = [
    ['cwd', { cwd: SOME_CWD }, 403, 'SG_ERR_CWD_FORBIDDEN'],
    ['no cwd', { cwd: undefined }, 400, 'SG_ERR_CWD_INVALID'],
    ['bypass', { permissionMode: 'bypassPermissions' }, 403, 'SG_ERR_BYPASS_DISABLED'],
    ['a mode of another engine', { permissionMode: 'plan' }, 400, 'SG_ERR_PERMISSION_MODE'],
    ['a capability', { capabilities: ['download'] }, 400, 'SG_ERR_CAPABILITY_NOT_GRANTED'],
    ['mcpServers', { mcpServers: {} }, 400, 'SG_ERR_MCP_SERVERS_NOT_ALLOWED'],
    ['profile', { profile: 'another' }, 403, 'SG_ERR_PROFILE_FORBIDDEN'],
  ]
  for (const [what, patch, status, code] of rows) {
    for (const [how, buildRunnerConfig] of [
      ['returns', (request: object) => ({ ...request, ...patch })],
      ['writes', (request: object) => Object.assign(request, patch)],
    ] as const) {
      const options = { profiles: [PROFILES[0]!], allowedCwdRoots: [root], disableBypassPermissions: true }
      const world = await buildServer(t, { ...options, buildRunnerConfig: buildRunnerConfig as never })
      isProblem(t, await world.call('POST', '/sessions', { cwd: root }), status, code, `${how} ${what}`)
      t.same(world.engine.runners, [], 'no engine was started')
    }
  }
})

t.test('the engine is told a mode even when the host hook drops it, and no pre-authorisation', async (t) => {
  const { registry, engine } = await buildGateway(t, {
    disableBypassPermissions: true,
    profiles: [{ ...PROFILES[0]!, defaults: { permissionMode: 'dontAsk' } }],
    buildRunnerConfig: ({ cwd }) => ({ cwd, allowDangerouslySkipPermissions: true }),
  })
  await registry.create({ cwd: SOME_CWD })
  t.same(engine.last.context.config, { cwd: engine.last.context.config.cwd, permissionMode: 'dontAsk' })
})

t.test('a host that fails is a 502 without its words, and leaves nothing behind', async (t) => {
  const secret = () => {
    throw Object.assign(new Error('password is hunter2'), { statusCode: 403, code: 'hunter2' })
  }
  for (const options of [
    { createEngineRunner: secret },
    { createEngineRunner: async () => secret() },
    { buildRunnerConfig: secret },
    { buildRunnerConfig: async () => secret() },
    { buildRunnerConfig: () => undefined as never },
    { buildRunnerConfig: () => 'config' as never },
    {
      buildRunnerConfig: () =>
        ({
          cwd: SOME_CWD,
          get model() {
            return secret()
          },
        }) as never,
    },
    {
      buildRunnerConfig: () =>
        ({
          cwd: SOME_CWD,
          env: {
            get TOKEN() {
              return secret()
            },
          },
        }) as never,
    },
  ]) {
    const { call } = await buildServer(t, options)
    const answer = await call('POST', '/sessions', { cwd: SOME_CWD })
    isProblem(t, answer, 502, 'SG_ERR_ENGINE_START')
    t.notMatch(answer.text, /hunter2/)
    t.same((await call('GET', '/sessions')).json, [])
  }
})

t.test('what is no config is said to be none, a list too', async (t) => {
  for (const none of [undefined, null, 'config', []]) {
    const { call } = await buildServer(t, { buildRunnerConfig: () => none as never })
    const { json } = await call('POST', '/sessions', { cwd: SOME_CWD })
    t.equal(json.detail, 'buildRunnerConfig returned no config.')
  }
})

t.test('a limit that the host hook returns in a form that nothing reads starts no engine', async (t) => {
  for (const [field, patch] of [
    ['maxTurns', { maxTurns: '40' }],
    ['maxBudgetUsd', { maxBudgetUsd: 0 }],
    ['disallowedTools', { disallowedTools: 'download' }],
    ['capabilities', { capabilities: 'download' }],
    ['defaultApprovalTimeoutMs', { defaultApprovalTimeoutMs: '5 min' }],
    ['env.RETRIES', { env: { RETRIES: 5 } }],
    ['prompt', { prompt: 5 }],
    ['meta', { meta: { count: 5n } }],
    ['meta', { meta: { long: 'x'.repeat(20_000) } }],
  ] as const) {
    const { call, engine } = await buildServer(t, {
      buildRunnerConfig: (request) => ({ ...request, ...patch }) as never,
    })
    const answer = await call('POST', '/sessions', { cwd: SOME_CWD })
    isProblem(t, answer, 502, 'SG_ERR_ENGINE_START', field)
    t.match(answer.json.detail, `buildRunnerConfig returned a config that cannot be used: ${field}: `)
    t.same(engine.runners, [])
    t.same((await call('GET', '/sessions')).json, [])
  }
  const allowed = { agentOptions: { any: 1 }, env: { LEFT_OUT: undefined }, model: undefined, ofTheHost: true }
  const { call, engine } = await buildServer(t, {
    buildRunnerConfig: (request) => ({ ...request, ...allowed }) as never,
  })
  t.equal((await call('POST', '/sessions', { cwd: SOME_CWD })).status, 201)
  t.match(engine.last.context.config, { agentOptions: { any: 1 }, ofTheHost: true })
})

t.test('requireApiKey holds the first prompt until the engine said whose credentials it uses', async (t) => {
  for (const [apiKeySource, status, prompts] of [
    ['oauth', 'failed', 0],
    ['env', 'running', 1],
  ] as const) {
    const { call, engine } = await buildServer(t, { requireApiKey: true, script: { apiKeySource, start: () => {} } })
    const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
    await call('POST', `/sessions/${json.id}/commands`, { type: 'user_message', text: 'and on' })
    t.equal(engine.last.sent.length, 0, 'nothing was sent while it is unknown')
    engine.last.init()
    t.equal(engine.last.sent.length, prompts)
    const { json: after } = await call('GET', `/sessions/${json.id}`)
    t.match(after, { status, apiKeySource })
    const { events } = (await call('GET', `/sessions/${json.id}/events`)).json
    t.equal(events.filter((event: { code?: string }) => event.code === 'SG_ERR_API_KEY_REQUIRED').length, 1 - prompts)
  }
})
