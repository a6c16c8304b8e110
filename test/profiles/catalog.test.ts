import t from 'tap'
import { normalizePrincipal, UNLIMITED } from '../../src/principal.js'
import { createMemoryProfileStore } from '../../src/storage/memory/profile-store.js'
import { buildCatalog, buildManaged, codeOf, MANAGER, only, provider, refusal } from '../fixtures/profiles.js'

const REQUIRED = 'SG_ERR_PROFILE_REQUIRED'
const FORBIDDEN = 'SG_ERR_PROFILE_FORBIDDEN'
const UNKNOWN = 'SG_ERR_PROFILE_UNKNOWN'

t.test('which profile a request gets', async (t) => {
  const none = await buildCatalog()
  const one = await buildCatalog({ declared: [provider('a')] })
  const two = await buildCatalog({ declared: [provider('a'), provider('b')] })
  const nobody = only()
  const cases: [string, typeof one, string | undefined, typeof nobody, string][] = [
    ['none declared, none named', none, undefined, UNLIMITED, ''],
    ['none declared, none named, limited', none, undefined, only('a'), FORBIDDEN],
    ['none declared, one named', none, 'a', UNLIMITED, UNKNOWN],
    ['none declared, one named, limited to it', none, 'a', only('a'), UNKNOWN],
    ['none declared, one named, limited', none, 'a', nobody, FORBIDDEN],
    ['the empty name is no profile’s', none, '', UNLIMITED, ''],
    ['one declared, none named', one, undefined, UNLIMITED, 'a'],
    ['one declared, none named, allowed', one, undefined, only('a', 'b'), 'a'],
    ['one declared, none named, not allowed', one, undefined, only('b'), FORBIDDEN],
    ['one declared, none named, nothing allowed', one, undefined, nobody, FORBIDDEN],
    ['one declared, named', one, 'a', UNLIMITED, 'a'],
    ['one declared, the empty name', one, '', UNLIMITED, UNKNOWN],
    ['one declared, another named', one, 'b', UNLIMITED, UNKNOWN],
    ['two declared, none named', two, undefined, UNLIMITED, REQUIRED],
    ['two declared, none named, one allowed', two, undefined, only('a'), REQUIRED],
    ['two declared, named', two, 'b', UNLIMITED, 'b'],
    ['two declared, named, allowed', two, 'b', only('b'), 'b'],
    ['not allowed, and there', two, 'b', only('a'), FORBIDDEN],
    ['not allowed, and not there', two, 'c', only('a'), FORBIDDEN],
    ['allowed, and not there', two, 'c', only('c'), UNKNOWN],
    ['no prefix', two, 'b', only('bb'), FORBIDDEN],
    ['no other case', two, 'b', only('B'), FORBIDDEN],
    ['no other case, by name', two, 'B', UNLIMITED, UNKNOWN],
    ['no name that objects have', two, 'constructor', UNLIMITED, UNKNOWN],
    ['no prototype', two, '__proto__', UNLIMITED, UNKNOWN],
  ]
  for (const [what, catalog, name, principal, expected] of cases) {
    let got = ''
    const code = codeOf(() => {
      got = catalog.resolve(name, principal).info.name
    })
    t.equal(code ?? got, expected, what)
  }
})

t.test('a refusal names the field, and no more of what is there than of what is not', async (t) => {
  const catalog = await buildCatalog({ declared: [provider('a'), provider('b')] })
  const errors = [{ path: 'profile', message: 'This caller may not use that profile.' }]
  for (const name of ['b', 'c'])
    t.throws(() => catalog.resolve(name, only('a')), { ...refusal(FORBIDDEN), errors }, name)
})

t.test('a limit that cannot be read lets nobody in', async (t) => {
  for (const allowedProfiles of ['a', null, { a: true }, ['a', 1], 7])
    t.equal(
      codeOf(() => normalizePrincipal({ allowedProfiles })),
      'SG_ERR_AUTHENTICATE_FAILED',
      JSON.stringify(allowedProfiles),
    )
})

t.test('managed profiles count: with the first one a name may become necessary', async (t) => {
  const { catalog } = await buildManaged(t, { declared: [provider('a')] })
  t.equal(catalog.resolve(undefined, UNLIMITED).info.name, 'a')
  await catalog.create(provider('b'), MANAGER)
  t.equal(
    codeOf(() => catalog.resolve(undefined, UNLIMITED)),
    REQUIRED,
  )
  await catalog.remove('b', MANAGER)
  t.equal(catalog.resolve(undefined, UNLIMITED).info.name, 'a')
})

t.test('without a declaration the first managed profile becomes the implicit one', async (t) => {
  const { catalog } = await buildManaged(t)
  await catalog.create(provider('b'), MANAGER)
  t.equal(catalog.resolve(undefined, UNLIMITED).info.name, 'b')
  t.equal(
    codeOf(() => catalog.resolve('', UNLIMITED)),
    UNKNOWN,
  )
})

t.test('the list is what the caller may see', async (t) => {
  const { catalog } = await buildManaged(t, { declared: [provider('a'), provider('b')] })
  await catalog.create(provider('m'), MANAGER)
  const listed = (principal: typeof MANAGER) => {
    const { profiles, canManage } = catalog.list(principal)
    return [profiles.map(({ name }) => name).join(), canManage]
  }
  t.strictSame(listed(UNLIMITED), ['a,b,m', false])
  t.strictSame(listed(MANAGER), ['a,b,m', true])
  t.strictSame(listed(only('m', 'a')), ['a,m', false])
  t.strictSame(listed(only()), ['', false])
  t.equal(catalog.list(UNLIMITED).profiles[2]!.managed, true)
  t.notOk('managed' in catalog.list(UNLIMITED).profiles[0]!)
  const unmanaged = await buildCatalog({ declared: [provider('a')] })
  t.equal(unmanaged.list(MANAGER).canManage, false, 'nothing can be managed without a store')
})

t.test('one profile is shown to who may see it', async (t) => {
  const catalog = await buildCatalog({ declared: [provider('a'), provider('b')] })
  const empty = { hasUserMemory: false, skills: [], agents: [], commands: [] }
  t.strictSame(await catalog.describe('a', only('a')), { profile: provider('a'), config: empty })
  await t.rejects(catalog.describe('b', only('a')), refusal(FORBIDDEN))
  await t.rejects(catalog.describe('c', only('a')), refusal(FORBIDDEN))
  await t.rejects(catalog.describe('c', only('c')), refusal('SG_ERR_PROFILE_NOT_FOUND'))
  await t.rejects(catalog.describe('', UNLIMITED), refusal('SG_ERR_PROFILE_NOT_FOUND'))
})

t.test('a verdict on credentials is shown until the profile runs as someone else', async (t) => {
  const { catalog, directory } = await buildManaged(t)
  await catalog.create({ name: 'm', configDir: directory('one') }, MANAGER)
  const shown = () => catalog.list(UNLIMITED).profiles[0]!.credentials
  t.equal(shown(), undefined)
  const probed = catalog.get('m')!
  catalog.reportCredentials(probed, 'logged_out')
  t.equal(shown(), 'logged_out')
  t.equal((await catalog.describe('m', UNLIMITED)).profile.credentials, 'logged_out')
  await catalog.update('m', { description: 'x' }, MANAGER)
  t.equal(shown(), 'logged_out')
  await catalog.update('m', { configDir: directory('two') }, MANAGER)
  t.equal(shown(), undefined)
  catalog.reportCredentials(probed, 'logged_in')
  t.equal(shown(), undefined, 'a verdict that comes late is about somebody else')
})

t.test('who a name stands for', async (t) => {
  const { catalog, directory } = await buildManaged(t, { declared: [provider('d')] })
  const generation = () => catalog.get('m')!.generation
  const request = { name: 'm', configDir: directory('one') }
  await catalog.create(request, MANAGER)
  const first = generation()
  t.equal(catalog.recall('m', first).info.name, 'm')
  await catalog.update('m', { description: 'new', defaults: { model: 'x', permissionMode: 'plan' } }, MANAGER)
  t.equal(catalog.recall('m', first).info.description, 'new', 'what merely shapes a session may change')
  for (const change of [{ configDir: directory('two') }, { agent: 'codex' }]) {
    const before = generation()
    await catalog.update('m', change, MANAGER)
    t.throws(
      () => catalog.recall('m', before),
      refusal('SG_ERR_PROFILE_CHANGED', /runs as someone else/),
      JSON.stringify(change),
    )
  }
  await catalog.update('m', { configDir: request.configDir, agent: null }, MANAGER)
  t.equal(catalog.recall('m', first).generation, first, 'it is who it was')
  await catalog.remove('m', MANAGER)
  t.throws(() => catalog.recall('m', first), refusal('SG_ERR_PROFILE_CHANGED', /no longer exists/))
  await catalog.create(request, MANAGER)
  t.throws(() => catalog.recall('m', first), refusal('SG_ERR_PROFILE_CHANGED'), 'the same again is another one')
  t.throws(() => catalog.recall('d', first), refusal('SG_ERR_PROFILE_CHANGED'))
})

t.test('a generation outlasts the process', async (t) => {
  const configDir = t.testdir()
  const store = createMemoryProfileStore()
  const open = () => buildCatalog({ declared: [{ name: 'd', configDir }], store })
  const before = await open()
  await before.create(provider('m'), MANAGER)
  const after = await open()
  for (const name of ['d', 'm']) t.equal(after.recall(name, before.get(name)!.generation).info.name, name)
  const moved = await buildCatalog({ declared: [{ name: 'd', configDir: `${configDir}/..` }], store })
  t.throws(() => moved.recall('d', before.get('d')!.generation), refusal('SG_ERR_PROFILE_CHANGED'))
  const respelt = await buildCatalog({
    declared: [{ name: 'd', engine: 'cli', agent: 'claude', configDir: `${configDir}/` }],
  })
  t.equal(respelt.get('d')!.generation, before.get('d')!.generation, 'another spelling is nobody else')
})

t.test('a session without a profile is recalled as long as nothing is declared', async (t) => {
  const { catalog, store } = await buildManaged(t)
  const { info, generation } = catalog.resolve(undefined, UNLIMITED)
  await catalog.create(provider('m'), MANAGER)
  t.equal(catalog.recall(info.name, generation).info, info)
  const declared = await buildCatalog({ declared: [provider('a')], store })
  t.throws(() => declared.recall(info.name, generation), refusal('SG_ERR_PROFILE_CHANGED'))
})

t.test('a session runs in its profile’s directory, whichever agent it is', async (t) => {
  const dir = t.testdir({ one: {}, two: {} })
  const catalog = await buildCatalog({
    declared: [
      { name: 'one', configDir: `${dir}/one` },
      { name: 'two', configDir: `${dir}/two`, agent: 'mine' },
      provider('api'),
    ],
    agents: [{ name: 'mine', command: 'mine', configDirEnv: 'MINE_HOME' }],
  })
  const pinned = (name: string) => catalog.pin({ cwd: dir }, catalog.resolve(name, UNLIMITED)).env
  t.same(pinned('one'), { AGENT_CONFIG_DIR: `${dir}/one`, CLAUDE_CONFIG_DIR: `${dir}/one` })
  t.same(pinned('two'), { AGENT_CONFIG_DIR: `${dir}/two`, MINE_HOME: `${dir}/two` })
  t.equal(pinned('api'), undefined)
})

t.test('two agents of one name are refused: which of them asks before it acts would not be known', async (t) => {
  const agents = [
    { name: 'mine', command: 'mine' },
    { name: 'opencode', command: 'oc' },
    { name: 'mine', args: ['--acp'] },
  ]
  const error = { code: 'SG_ERR_OPTION', errors: [{ path: 'agents.2.name', message: /has this name already/ }] }
  await t.rejects(buildCatalog({ declared: [provider('a')], agents }), error)
  t.ok(await buildCatalog({ declared: [provider('a')], agents: agents.slice(0, 2) }))
})
