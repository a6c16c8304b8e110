import { renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { CreateProfileRequest, UpdateProfileRequest } from '../../schemas/profiles.js'
import { UNLIMITED } from '../../src/principal.js'
import type { ProfileStore } from '../../src/profiles/store.js'
import { createMemoryProfileStore } from '../../src/storage/memory/profile-store.js'
import { buildCatalog, buildManaged, MANAGER, managerOf, only, provider, refusal } from '../fixtures/profiles.js'

const NOT_MANAGEABLE = 'SG_ERR_PROFILES_NOT_MANAGEABLE'
const FORBIDDEN = 'SG_ERR_PROFILE_FORBIDDEN'
const EXISTS = 'SG_ERR_PROFILE_EXISTS'
const DIR_FORBIDDEN = 'SG_ERR_CONFIG_DIR_FORBIDDEN'
const INVALID = 'SG_ERR_PROFILE_INVALID'

const namesIn = async (store: ProfileStore) => (await store.list()).map(({ name }) => name)

t.test('a profile is created, stored with its generation, and there', async (t) => {
  const { catalog, store, directory } = await buildManaged(t)
  const configDir = directory('one')
  const created = await catalog.create({ name: 'm', configDir, description: 'd', defaults: { model: 'x' } }, MANAGER)
  t.strictSame(created, {
    name: 'm',
    engine: 'cli',
    configDir,
    description: 'd',
    defaults: { model: 'x' },
    managed: true,
  })
  t.strictSame(catalog.list(UNLIMITED).profiles, [created])
  const [stored] = await store.list()
  t.match(stored, { name: 'm', configDir, generation: /^[0-9a-f-]{36}$/ })
  t.notOk('managed' in stored!)
  const again = await buildCatalog({ store, allowedConfigDirRoots: [configDir] })
  t.strictSame(again.list(UNLIMITED).profiles, [created])
})

t.test('who may create what, and in which order it is refused', async (t) => {
  const { catalog, directory, roots } = await buildManaged(t, {
    declared: [provider('declared')],
    disableBypassPermissions: true,
  })
  await catalog.create(provider('taken'), MANAGER)
  const cli = (name: string, configDir: string): CreateProfileRequest => ({ name, configDir })
  const cases: [string, CreateProfileRequest, typeof MANAGER, string, RegExp?][] = [
    ['not a manager', provider('m'), UNLIMITED, NOT_MANAGEABLE],
    ['not a manager, a name that is taken', provider('taken'), UNLIMITED, NOT_MANAGEABLE],
    ['not a manager, a name that is not allowed', provider('m'), only('x'), NOT_MANAGEABLE],
    ['a name outside the limits', provider('m'), managerOf('x'), FORBIDDEN],
    ['a name outside the limits that is taken', provider('taken'), managerOf('x'), FORBIDDEN],
    ['a name outside the limits, invalid besides', { ...provider('m'), configDir: '/x' }, managerOf(), FORBIDDEN],
    ['taken', provider('taken'), MANAGER, EXISTS],
    ['taken, invalid besides', { name: 'taken' }, MANAGER, EXISTS],
    ['taken by a declared one', provider('declared'), managerOf('declared'), EXISTS],
    ['cli without configDir', { name: 'm' }, MANAGER, INVALID, /^configDir: /],
    ['outside the roots', cli('m', '/'), MANAGER, DIR_FORBIDDEN],
    ['above the roots', cli('m', join(roots, '..')), MANAGER, DIR_FORBIDDEN],
    ['outside, and not there', cli('m', '/nowhere/at/all'), MANAGER, DIR_FORBIDDEN],
    ['inside, and not there', cli('m', join(roots, 'gone')), MANAGER, INVALID, /^configDir: .*exists/],
    ['relative', cli('m', 'one'), MANAGER, INVALID, /^configDir: .*absolute/],
    ['a home sign', cli('m', '~/one'), MANAGER, INVALID, /^configDir: .*absolute/],
    ['a NUL', cli('m', `${directory('one')}\0`), MANAGER, INVALID, /^configDir: /],
    ['invalid', { ...provider('m'), configDir: '/x' }, MANAGER, INVALID, /^configDir: /],
    ['a provider mode', { ...provider('m'), defaults: { permissionMode: 'plan' } }, MANAGER, INVALID, /plan/],
    [
      'bypass while disabled',
      { ...provider('m'), defaults: { permissionMode: 'bypassPermissions' } },
      MANAGER,
      'SG_ERR_BYPASS_DISABLED',
    ],
  ]
  for (const [what, request, principal, code, detail] of cases)
    await t.rejects(catalog.create(request, principal), refusal(code, detail), what)
  await t.rejects(catalog.create(cli('m', '/'), MANAGER), { errors: [{ path: 'configDir' }] }, 'the field is named')
  t.same(
    catalog.list(UNLIMITED).profiles.map(({ name }) => name),
    ['declared', 'taken'],
    'nothing of it is left',
  )
  t.equal((await catalog.create(provider('x'), managerOf('x'))).name, 'x')
})

t.test('a refusal of a name says the same of one that exists and one that does not', async (t) => {
  const { catalog } = await buildManaged(t, { declared: [provider('declared')] })
  await catalog.create(provider('managed'), MANAGER)
  const told = async (call: (name: string) => Promise<unknown>) => {
    const answers = new Set<string>()
    for (const name of ['declared', 'managed', 'unknown', 'constructor'])
      await call(name).catch((error) => answers.add(`${error.code} ${error.message} ${JSON.stringify(error.errors)}`))
    return [...answers]
  }
  const principal = managerOf('mine')
  for (const call of [
    (name: string) => catalog.create(provider(name), principal),
    (name: string) => catalog.update(name, {}, principal),
    (name: string) => catalog.remove(name, principal),
    (name: string) => catalog.describe(name, principal),
  ])
    t.match(await told(call), [/^SG_ERR_PROFILE_FORBIDDEN /])
})

t.test('a merge replaces what is named, clears what is null and keeps the rest', async (t) => {
  const { catalog, store, directory } = await buildManaged(t)
  const [one, two] = [directory('one'), directory('two')]
  await catalog.create(
    { name: 'm', configDir: one, description: 'd', defaults: { model: 'x', permissionMode: 'plan' } },
    MANAGER,
  )
  const steps: [UpdateProfileRequest, object][] = [
    [{}, { configDir: one, description: 'd', defaults: { model: 'x', permissionMode: 'plan' } }],
    [{ description: 'e' }, { configDir: one, description: 'e', defaults: { model: 'x', permissionMode: 'plan' } }],
    [{ defaults: { model: 'y' } }, { configDir: one, description: 'e', defaults: { model: 'y' } }],
    [
      { defaults: null, description: '' },
      { configDir: one, description: '' },
    ],
    [
      { configDir: two, description: null, agent: 'codex' },
      { configDir: two, agent: 'codex' },
    ],
    [{ engine: null, agent: null }, { configDir: two }],
  ]
  for (const [request, expected] of steps) {
    const updated = await catalog.update('m', request, MANAGER)
    t.strictSame(updated, { name: 'm', engine: 'cli', ...expected, managed: true }, JSON.stringify(request))
    const { generation: _, ...stored } = (await store.list())[0]!
    t.strictSame(stored, { name: 'm', engine: 'cli', ...expected })
  }
  const moved: UpdateProfileRequest = {
    engine: 'provider',
    configDir: null,
    provider: { id: 'p' },
    session: { capabilities: [] },
  }
  t.strictSame(await catalog.update('m', moved, MANAGER), {
    name: 'm',
    engine: 'provider',
    provider: { id: 'p' },
    session: { capabilities: [] },
    managed: true,
  })
  t.notOk(
    'session' in (await catalog.update('m', { session: null }, MANAGER)),
    'cleared, it grants whatever the host wired',
  )
})

t.test('what may not be changed, and what a change may not lead to', async (t) => {
  const { catalog, directory } = await buildManaged(t, {
    declared: [provider('declared')],
    disableBypassPermissions: true,
  })
  const configDir = directory('one')
  await catalog.create({ name: 'm', configDir }, MANAGER)
  const cases: [string, string, UpdateProfileRequest, typeof MANAGER, string][] = [
    ['not a manager', 'm', {}, UNLIMITED, NOT_MANAGEABLE],
    ['not a manager, unknown', 'gone', {}, UNLIMITED, NOT_MANAGEABLE],
    ['outside the limits', 'm', {}, managerOf('x'), FORBIDDEN],
    ['outside the limits, declared', 'declared', {}, managerOf('x'), FORBIDDEN],
    ['outside the limits, unknown', 'gone', {}, managerOf('x'), FORBIDDEN],
    ['declared', 'declared', { description: 'x' }, MANAGER, 'SG_ERR_PROFILE_DECLARED'],
    ['unknown', 'gone', {}, MANAGER, 'SG_ERR_PROFILE_NOT_FOUND'],
    ['the empty name', '', {}, MANAGER, 'SG_ERR_PROFILE_NOT_FOUND'],
    ['a prototype', '__proto__', {}, MANAGER, 'SG_ERR_PROFILE_NOT_FOUND'],
    ['out of the roots', 'm', { configDir: '/' }, MANAGER, DIR_FORBIDDEN],
    ['without a directory', 'm', { configDir: null }, MANAGER, INVALID],
    ['the other engine, the rest kept', 'm', { engine: 'provider' }, MANAGER, INVALID],
    ['a mode that the agent lacks', 'm', { agent: 'qwen', defaults: { permissionMode: 'auto' } }, MANAGER, INVALID],
    [
      'bypass while disabled',
      'm',
      { defaults: { permissionMode: 'bypassPermissions' } },
      MANAGER,
      'SG_ERR_BYPASS_DISABLED',
    ],
    ['another name', 'm', { name: 'n' } as never, MANAGER, 'none'],
  ]
  for (const [what, name, request, principal, code] of cases) {
    if (code === 'none') t.equal((await catalog.update(name, request, principal)).name, 'm', what)
    else await t.rejects(catalog.update(name, request, principal), refusal(code), what)
  }
  t.strictSame(catalog.get('m')!.info, { name: 'm', engine: 'cli', configDir, managed: true }, 'nothing of it was done')
})

t.test('a managed profile is deleted, a declared one is not', async (t) => {
  const { catalog, store } = await buildManaged(t, { declared: [provider('declared')] })
  await catalog.create(provider('m'), MANAGER)
  await t.rejects(catalog.remove('m', UNLIMITED), refusal(NOT_MANAGEABLE))
  await t.rejects(catalog.remove('m', managerOf('x')), refusal(FORBIDDEN))
  await t.rejects(catalog.remove('gone', managerOf('x')), refusal(FORBIDDEN))
  await t.rejects(catalog.remove('declared', MANAGER), refusal('SG_ERR_PROFILE_DECLARED'))
  await t.rejects(catalog.remove('gone', MANAGER), refusal('SG_ERR_PROFILE_NOT_FOUND'))
  await catalog.remove('m', managerOf('m'))
  t.equal(catalog.get('m'), undefined)
  t.same(await namesIn(store), [])
  await t.rejects(catalog.remove('m', MANAGER), refusal('SG_ERR_PROFILE_NOT_FOUND'))
})

t.test('without a store there is nothing to manage', async (t) => {
  const catalog = await buildCatalog({ declared: [provider('a')] })
  for (const principal of [MANAGER, UNLIMITED, only()]) {
    await t.rejects(catalog.create(provider('m'), principal), refusal('SG_ERR_NOT_FOUND'))
    await t.rejects(catalog.update('a', {}, principal), refusal('SG_ERR_NOT_FOUND'))
    await t.rejects(catalog.remove('a', principal), refusal('SG_ERR_NOT_FOUND'))
  }
})

t.test(
  'without allowedConfigDirRoots only provider profiles are managed; an empty list allows none either',
  async (t) => {
    const configDir = t.testdir()
    for (const allowedConfigDirRoots of [undefined, []]) {
      const catalog = await buildCatalog({ store: createMemoryProfileStore(), allowedConfigDirRoots })
      await t.rejects(catalog.create({ name: 'm', configDir }, MANAGER), refusal(DIR_FORBIDDEN))
      await t.rejects(catalog.update('m', { configDir }, MANAGER), refusal('SG_ERR_PROFILE_NOT_FOUND'))
      t.equal((await catalog.create(provider('m'), MANAGER)).managed, true)
      await t.rejects(catalog.update('m', { engine: null, provider: null, configDir }, MANAGER), refusal(DIR_FORBIDDEN))
    }
  },
)

t.test('a link is resolved when the profile is made, so that moving it moves nobody', async (t) => {
  const { catalog, roots, directory } = await buildManaged(t)
  const one = directory('one')
  symlinkSync(one, join(roots, 'link'))
  symlinkSync('/', join(roots, 'out'))
  await t.rejects(catalog.create({ name: 'o', configDir: join(roots, 'out') }, MANAGER), refusal(DIR_FORBIDDEN))
  await t.rejects(catalog.create({ name: 'o', configDir: join(roots, 'out', 'etc') }, MANAGER), refusal(DIR_FORBIDDEN))
  await t.rejects(catalog.create({ name: 'o', configDir: `${roots}/one/../../..` }, MANAGER), refusal(DIR_FORBIDDEN))
  t.equal((await catalog.create({ name: 'm', configDir: join(roots, 'link') }, MANAGER)).configDir, one)
})

t.test(
  'a directory that is swapped for a link while its profile is there makes nobody run as somebody else',
  async (t) => {
    const { catalog, directory } = await buildManaged(t)
    const [mine, others] = [directory('mine'), directory('others')]
    writeFileSync(join(others, 'CLAUDE.md'), 'canary')
    await catalog.create({ name: 'm', configDir: mine }, MANAGER)
    const profile = catalog.resolve('m', MANAGER)
    t.match(catalog.pin({ cwd: '/' }, profile), { env: { CLAUDE_CONFIG_DIR: mine } })
    renameSync(mine, `${mine}-kept`)
    symlinkSync(others, mine)
    t.throws(
      () => catalog.pin({ cwd: '/' }, profile),
      refusal('SG_ERR_ENGINE_START', /"m" cannot run: configDir leads/),
    )
    t.notMatch(JSON.stringify(await catalog.describe('m', MANAGER)), /canary/)
    rmSync(mine)
    renameSync(`${mine}-kept`, mine)
    t.match(catalog.pin({ cwd: '/' }, profile), { env: { CLAUDE_CONFIG_DIR: mine } })
  },
)

t.test('a limited manager cannot take over the directory of a profile that is not his', async (t) => {
  const { catalog, directory, roots } = await buildManaged(t)
  const [prod, mine] = [directory('prod'), directory('mine')]
  symlinkSync(prod, join(roots, 'link'))
  await catalog.create({ name: 'prod', configDir: prod }, MANAGER)
  const principal = managerOf('mine')
  for (const configDir of [prod, `${prod}/`, join(roots, 'link')])
    await t.rejects(catalog.create({ name: 'mine', configDir }, principal), refusal(DIR_FORBIDDEN))
  await catalog.create({ name: 'mine', configDir: mine }, principal)
  await t.rejects(catalog.update('mine', { configDir: prod }, principal), refusal(DIR_FORBIDDEN))
  t.equal(
    (await catalog.create({ name: 'twin', configDir: prod }, MANAGER)).configDir,
    prod,
    'who may use both may share',
  )
})

t.test('the same holds for a declared directory', async (t) => {
  const dir = t.testdir({ prod: {} })
  const declared = [{ name: 'prod', configDir: join(dir, 'prod') }]
  const catalog = await buildCatalog({ declared, store: createMemoryProfileStore(), allowedConfigDirRoots: [dir] })
  await t.rejects(
    catalog.create({ name: 'mine', configDir: join(dir, 'prod') }, managerOf('mine')),
    refusal(DIR_FORBIDDEN),
  )
})
