import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pino from 'pino'
import t from 'tap'
import { createFileProfileStore } from '../../src/storage/file/profile-store.js'
import { createMemoryProfileStore } from '../../src/storage/memory/profile-store.js'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { buildProfiles, everybody, manager, managerOf, only, problem } from '../fixtures/profile-server.js'
import { provider } from '../fixtures/profiles.js'

t.test('profiles are listed and shown, as the caller may see them', async (t) => {
  const { call } = await buildProfiles(t)
  const list = async (headers: Record<string, string>) => (await call('GET', '/profiles', undefined, headers)).json
  t.strictSame(await list(everybody), {
    profiles: [provider('a'), { ...provider('b'), session: { capabilities: ['web_fetch'] } }],
    canManage: false,
  })
  t.match(await list(manager), { canManage: true })
  t.strictSame(await list(only('a')), { profiles: [provider('a')], canManage: false })
  t.strictSame(await list(only()), { profiles: [], canManage: false })
  t.match(await call('GET', '/profiles'), problem(401, 'SG_ERR_UNAUTHENTICATED'))

  const one = await call('GET', '/profiles/a', undefined, only('a'))
  t.equal(one.status, 200)
  t.strictSame(one.json, {
    profile: provider('a'),
    config: { hasUserMemory: false, skills: [], agents: [], commands: [] },
  })
  t.match(await call('GET', '/profiles/b', undefined, only('a')), problem(403, 'SG_ERR_PROFILE_FORBIDDEN'))
  t.match(await call('GET', '/profiles/c', undefined, everybody), problem(404, 'SG_ERR_PROFILE_NOT_FOUND'))
  t.equal((await call('HEAD', '/profiles', undefined, everybody)).status, 200)
})

t.test('a managed profile from its creation to its end', async (t) => {
  const { call } = await buildProfiles(t)
  const created = await call('POST', '/profiles', { ...provider('m'), description: 'd' }, manager)
  t.equal(created.status, 201)
  t.equal(created.headers.get('location'), '/v1/profiles/m')
  t.strictSame(created.json, { ...provider('m'), description: 'd', managed: true })
  t.strictSame((await call('GET', '/profiles/m', undefined, everybody)).json.profile, created.json)

  const merged = await call('PATCH', '/profiles/m', { description: null, defaults: { model: 'n' } }, manager)
  t.equal(merged.status, 200)
  t.strictSame(merged.json, { ...provider('m'), defaults: { model: 'n' }, managed: true })

  const session = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'm' }, everybody)
  t.match(session, { status: 201, json: { profile: 'm', model: 'n', engine: 'provider' } })

  const deleted = await call('DELETE', '/profiles/m', undefined, { ...manager, 'content-type': 'application/json' })
  t.match(deleted, { status: 204, text: '' })
  t.match(await call('GET', '/profiles/m', undefined, everybody), problem(404, 'SG_ERR_PROFILE_NOT_FOUND'))
  t.match(await call('DELETE', '/profiles/m', undefined, manager), problem(404, 'SG_ERR_PROFILE_NOT_FOUND'))
  const again = { cwd: SOME_CWD, profile: 'm' }
  t.match(await call('POST', '/sessions', again, everybody), problem(400, 'SG_ERR_PROFILE_UNKNOWN'))
  const running = await call('GET', `/sessions/${session.json.id}`, undefined, everybody)
  t.match(running, { status: 200, json: { profile: 'm', status: 'idle' } }, 'the session that runs goes on')
})

t.test('every refusal of a create', async (t) => {
  const { call } = await buildProfiles(t, { disableBypassPermissions: true })
  await call('POST', '/profiles', provider('taken'), manager)
  const bypass = { ...provider('m'), defaults: { permissionMode: 'bypassPermissions' } }
  const cases: [string, unknown, Record<string, string>, number, string][] = [
    ['nobody', provider('m'), {}, 401, 'SG_ERR_UNAUTHENTICATED'],
    ['no manager', provider('m'), everybody, 403, 'SG_ERR_PROFILES_NOT_MANAGEABLE'],
    [
      'no manager, nonsense',
      '{',
      { ...everybody, 'content-type': 'application/json' },
      403,
      'SG_ERR_PROFILES_NOT_MANAGEABLE',
    ],
    ['no manager, taken', provider('taken'), everybody, 403, 'SG_ERR_PROFILES_NOT_MANAGEABLE'],
    ['outside the limits', provider('m'), managerOf('x'), 403, 'SG_ERR_PROFILE_FORBIDDEN'],
    ['outside the limits, taken', provider('taken'), managerOf('x'), 403, 'SG_ERR_PROFILE_FORBIDDEN'],
    ['outside the limits, declared', provider('a'), managerOf('x'), 403, 'SG_ERR_PROFILE_FORBIDDEN'],
    ['taken', provider('taken'), manager, 409, 'SG_ERR_PROFILE_EXISTS'],
    ['declared', provider('a'), manager, 409, 'SG_ERR_PROFILE_EXISTS'],
    ['no body', undefined, manager, 400, 'SG_ERR_VALIDATION'],
    ['no object', [], manager, 400, 'SG_ERR_VALIDATION'],
    ['no name', { engine: 'provider' }, manager, 400, 'SG_ERR_VALIDATION'],
    ['an unknown field', { ...provider('m'), apiKey: 'x' }, manager, 400, 'SG_ERR_VALIDATION'],
    ['said to be managed', { ...provider('m'), managed: true }, manager, 400, 'SG_ERR_VALIDATION'],
    ['with a verdict', { ...provider('m'), credentials: 'logged_in' }, manager, 400, 'SG_ERR_VALIDATION'],
    ['with a generation', { ...provider('m'), generation: 'x' }, manager, 400, 'SG_ERR_VALIDATION'],
    ['a null', { ...provider('m'), description: null }, manager, 400, 'SG_ERR_VALIDATION'],
    ['a number', { ...provider('m'), description: 7 }, manager, 400, 'SG_ERR_VALIDATION'],
    [
      'a prototype',
      `{"name":"m","__proto__":{"engine":"provider"}}`,
      { ...manager, 'content-type': 'application/json' },
      400,
      'SG_ERR_INVALID_JSON',
    ],
    [
      'a provider mode',
      { ...provider('m'), defaults: { permissionMode: 'acceptEdits' } },
      manager,
      400,
      'SG_ERR_PROFILE_INVALID',
    ],
    [
      'a credential in an address',
      { ...provider('m'), provider: { id: 'p', baseUrl: 'http://u:p@h' } },
      manager,
      400,
      'SG_ERR_PROFILE_INVALID',
    ],
    ['an agent on provider', { ...provider('m'), agent: 'claude' }, manager, 400, 'SG_ERR_PROFILE_INVALID'],
    ['cli without roots', { name: 'm', configDir: SOME_CWD }, manager, 403, 'SG_ERR_CONFIG_DIR_FORBIDDEN'],
    ['bypass while disabled', bypass, manager, 403, 'SG_ERR_BYPASS_DISABLED'],
  ]
  for (const [what, body, headers, status, code] of cases)
    t.match(await call('POST', '/profiles', body, headers), problem(status, code), what)
  const { profiles } = (await call('GET', '/profiles', undefined, everybody)).json
  t.same(
    profiles.map(({ name }: { name: string }) => name),
    ['a', 'b', 'taken'],
  )
})

t.test('every refusal of a change and of a deletion', async (t) => {
  const { call } = await buildProfiles(t)
  await call('POST', '/profiles', provider('m'), manager)
  const change = { description: 'x' }
  const cases: [string, string, string, unknown, Record<string, string>, number, string][] = [
    ['nobody', 'PATCH', 'm', change, {}, 401, 'SG_ERR_UNAUTHENTICATED'],
    ['no manager', 'PATCH', 'm', change, everybody, 403, 'SG_ERR_PROFILES_NOT_MANAGEABLE'],
    ['outside the limits', 'PATCH', 'm', change, managerOf('x'), 403, 'SG_ERR_PROFILE_FORBIDDEN'],
    ['outside the limits, unknown', 'PATCH', 'gone', change, managerOf('x'), 403, 'SG_ERR_PROFILE_FORBIDDEN'],
    ['outside the limits, nonsense', 'PATCH', 'm', { no: 1 }, managerOf('x'), 403, 'SG_ERR_PROFILE_FORBIDDEN'],
    ['declared', 'PATCH', 'a', change, manager, 403, 'SG_ERR_PROFILE_DECLARED'],
    ['declared, a new name', 'PATCH', 'a', { name: 'n' }, manager, 403, 'SG_ERR_PROFILE_DECLARED'],
    ['declared, no body', 'PATCH', 'a', undefined, manager, 403, 'SG_ERR_PROFILE_DECLARED'],
    ['unknown', 'PATCH', 'gone', change, manager, 404, 'SG_ERR_PROFILE_NOT_FOUND'],
    ['a new name', 'PATCH', 'm', { name: 'n' }, manager, 400, 'SG_ERR_VALIDATION'],
    ['the same name', 'PATCH', 'm', { name: 'm' }, manager, 400, 'SG_ERR_VALIDATION'],
    ['an unknown field', 'PATCH', 'm', { managed: false }, manager, 400, 'SG_ERR_VALIDATION'],
    ['no body', 'PATCH', 'm', undefined, manager, 400, 'SG_ERR_VALIDATION'],
    ['to nothing that runs', 'PATCH', 'm', { engine: 'cli' }, manager, 400, 'SG_ERR_PROFILE_INVALID'],
    ['nobody', 'DELETE', 'm', undefined, {}, 401, 'SG_ERR_UNAUTHENTICATED'],
    ['no manager', 'DELETE', 'm', undefined, everybody, 403, 'SG_ERR_PROFILES_NOT_MANAGEABLE'],
    ['no manager, unknown', 'DELETE', 'gone', undefined, everybody, 403, 'SG_ERR_PROFILES_NOT_MANAGEABLE'],
    ['outside the limits', 'DELETE', 'm', undefined, managerOf('x'), 403, 'SG_ERR_PROFILE_FORBIDDEN'],
    ['declared', 'DELETE', 'a', undefined, manager, 403, 'SG_ERR_PROFILE_DECLARED'],
    ['declared, within the limits', 'DELETE', 'a', undefined, managerOf('a'), 403, 'SG_ERR_PROFILE_DECLARED'],
    ['unknown', 'DELETE', 'gone', undefined, manager, 404, 'SG_ERR_PROFILE_NOT_FOUND'],
    ['no manager, a broken body', 'DELETE', 'm', '{', everybody, 403, 'SG_ERR_PROFILES_NOT_MANAGEABLE'],
    ['outside the limits, a broken body', 'DELETE', 'gone', '{', managerOf('x'), 403, 'SG_ERR_PROFILE_FORBIDDEN'],
    ['declared, a broken body', 'DELETE', 'a', '{', manager, 403, 'SG_ERR_PROFILE_DECLARED'],
    ['a broken body', 'DELETE', 'm', '{', manager, 400, 'SG_ERR_INVALID_JSON'],
  ]
  for (const [what, method, name, body, headers, status, code] of cases)
    t.match(await call(method, `/profiles/${name}`, body, headers), problem(status, code), `${method} ${what}`)
  t.strictSame((await call('GET', '/profiles/m', undefined, everybody)).json.profile, {
    ...provider('m'),
    managed: true,
  })
})

t.test('names in a path: none leads anywhere', async (t) => {
  const { call } = await buildProfiles(t)
  await call('POST', '/profiles', provider('constructor'), manager)
  t.equal((await call('GET', '/profiles/constructor', undefined, everybody)).status, 200)
  const hostile = [
    ...[
      '__proto__',
      'prototype',
      'toString',
      'hasOwnProperty',
      'A',
      'a%20',
      '%20a',
      'a%00',
      'a%0a',
      'a%2f',
      '%2e%2e%2fa',
    ],
    ...[
      '..%2f..%2fetc%2fpasswd',
      'a%5cb',
      '%ef%bd%81',
      'a%cc%81',
      '%d0%b0',
      `${'x'.repeat(65)}`,
      'x'.repeat(90),
      'a*',
      'a;b',
      'a%3fb',
      'a%23b',
    ],
  ]
  for (const name of hostile) {
    t.match(
      await call('GET', `/profiles/${name}`, undefined, everybody),
      problem(404, 'SG_ERR_PROFILE_NOT_FOUND'),
      name,
    )
    t.match(await call('PATCH', `/profiles/${name}`, {}, manager), problem(404, 'SG_ERR_PROFILE_NOT_FOUND'), name)
    t.match(
      await call('DELETE', `/profiles/${name}`, undefined, manager),
      problem(404, 'SG_ERR_PROFILE_NOT_FOUND'),
      name,
    )
    t.match(
      await call('GET', `/profiles/${name}`, undefined, only('a')),
      problem(403, 'SG_ERR_PROFILE_FORBIDDEN'),
      name,
    )
    const create = { cwd: SOME_CWD, profile: decodeURIComponent(name) }
    t.match(await call('POST', '/sessions', create, everybody), problem(400, 'SG_ERR_PROFILE_UNKNOWN'), name)
    t.match(await call('POST', '/sessions', create, only('a')), problem(403, 'SG_ERR_PROFILE_FORBIDDEN'), name)
    const made = { ...provider('a'), name: decodeURIComponent(name) }
    if (!/^[A-Za-z]+$/.test(name) || name.length > 64)
      t.match(await call('POST', '/profiles', made, manager), problem(400, 'SG_ERR_VALIDATION'), name)
  }
})

t.test('without a store nothing is managed, whoever asks', async (t) => {
  const { call } = await buildProfiles(t, { profileStore: undefined as never })
  for (const headers of [manager, everybody, only()]) {
    t.match(await call('POST', '/profiles', provider('m'), headers), problem(404, 'SG_ERR_NOT_FOUND'))
    t.match(await call('POST', '/profiles', { nonsense: 1 }, headers), problem(404, 'SG_ERR_NOT_FOUND'))
    for (const name of ['a', 'gone']) {
      t.match(await call('PATCH', `/profiles/${name}`, {}, headers), problem(404, 'SG_ERR_NOT_FOUND'))
      for (const body of [undefined, '{'])
        t.match(await call('DELETE', `/profiles/${name}`, body, headers), problem(404, 'SG_ERR_NOT_FOUND'))
    }
  }
  t.match(await call('POST', '/profiles', provider('m')), problem(401, 'SG_ERR_UNAUTHENTICATED'))
  t.equal((await call('GET', '/profiles/a', undefined, everybody)).status, 200)
  for (const path of ['/profiles', '/profiles/a'])
    t.equal((await call('PUT', path, undefined, everybody)).headers.get('allow'), 'GET, HEAD', 'nor offered')
})

t.test('an open gateway has no managers', async (t) => {
  const { call } = await buildServer(t, { profileStore: createMemoryProfileStore() })
  t.match(await call('GET', '/profiles'), { status: 200, json: { canManage: false } })
  t.match(await call('POST', '/profiles', provider('m')), problem(403, 'SG_ERR_PROFILES_NOT_MANAGEABLE'))
})

t.test('secrets in a config directory are found in no answer, no file and no log', async (t) => {
  const dir = t.testdir({ roots: { m: {} } })
  const configDir = join(dir, 'roots', 'm')
  const SECRET = 'canary-5ec7e7'
  const files: Record<string, string> = {
    'settings.json': JSON.stringify({
      model: 'opus',
      [SECRET]: SECRET,
      apiKeyHelper: `echo ${SECRET}`,
      awsAuthRefresh: SECRET,
      env: { TOKEN: SECRET, [`${SECRET}=x`]: SECRET },
      hooks: { PreToolUse: [{ matcher: SECRET, hooks: [{ type: 'command', command: SECRET }] }], [`${SECRET} x`]: [] },
      permissions: { allow: [`Bash(curl -H ${SECRET})`], deny: [SECRET], defaultMode: { x: SECRET } },
      statusLine: { type: 'command', command: SECRET },
      mcpServers: { x: { headers: { Authorization: SECRET }, url: `https://u:${SECRET}@h` } },
    }),
    'settings.local.json': JSON.stringify({ model: SECRET, env: { A: SECRET } }),
    '.credentials.json': JSON.stringify({ token: SECRET }),
    '.claude.json': JSON.stringify({ oauthAccount: SECRET, mcpServers: { x: { headers: { k: SECRET } } } }),
    '.env': `KEY=${SECRET}`,
    'CLAUDE.md': `# Memory\n${'Nothing of note. '.repeat(40)}${SECRET}`,
    'CLAUDE.local.md': SECRET,
    'skills/review/SKILL.md': `---\nname: ${SECRET}\n---\n${SECRET}`,
    'skills/review/key.txt': SECRET,
    'agents/critic.md': `---\ndescription: ${SECRET}\n---\n`,
    'commands/ship.md': SECRET,
    [`commands/.${SECRET}.md`]: SECRET,
    [`projects/${SECRET}.jsonl`]: SECRET,
  }
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(configDir, path, '..'), { recursive: true })
    writeFileSync(join(configDir, path), text)
  }
  const store = join(dir, 'profiles.json')
  let log = ''
  const logger = pino(
    { level: 'trace' },
    {
      write(line) {
        log += line
      },
    },
  )
  const { call } = await buildProfiles(t, {
    profiles: [],
    profileStore: createFileProfileStore(store),
    allowedConfigDirRoots: [join(dir, 'roots')],
    logger,
  })
  const answers = [
    await call('POST', '/profiles', { name: 'm', configDir }, manager),
    await call('GET', '/profiles', undefined, everybody),
    await call('GET', '/profiles/m', undefined, everybody),
    await call('PATCH', '/profiles/m', { description: 'x' }, manager),
    await call('PATCH', '/profiles/m', { configDir: join(configDir, 'CLAUDE.md') }, manager),
    await call('POST', '/sessions', { cwd: SOME_CWD }, everybody),
    await call('GET', '/sessions', undefined, everybody),
    await call('GET', '/openapi.json', undefined, everybody),
  ]
  t.match(
    answers.map(({ status }) => status),
    [201, 200, 200, 200, 400, 201, 200, 200],
  )
  t.match(answers[2]!.json.config, {
    settings: {
      model: 'opus',
      permissionRules: { allow: 1, ask: 0, deny: 1 },
      envKeys: ['TOKEN'],
      hooks: ['PreToolUse'],
    },
    skills: ['review'],
    agents: ['critic'],
    commands: ['ship'],
  })
  for (const { text } of answers) t.notMatch(text, SECRET)
  t.notMatch(readFileSync(store, 'utf8'), SECRET)
  t.notMatch(log, SECRET)
})

t.test('a store that fails is told without its words', async (t) => {
  const profileStore = { ...createMemoryProfileStore(), save: () => Promise.reject(new Error('secret path')) }
  const { call } = await buildProfiles(t, { profileStore })
  const answer = await call('POST', '/profiles', provider('m'), manager)
  t.match(answer, problem(503, 'SG_ERR_STORE_UNAVAILABLE'))
  t.notMatch(answer.text, 'secret path')
})
