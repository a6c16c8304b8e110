import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { CreateProfileRequest, StoredProfile, UpdateProfileRequest } from '../../schemas/profiles.js'
import { type Logger, silentLogger } from '../../src/lib/logger.js'
import { UNLIMITED } from '../../src/principal.js'
import type { ProfileCatalog, ProfileChange } from '../../src/profiles/catalog.js'
import type { ProfileStore } from '../../src/profiles/store.js'
import { createMemoryProfileStore } from '../../src/storage/memory/profile-store.js'
import { until } from '../fixtures/build.js'
import { buildCatalog, buildManaged, MANAGER, managerOf, only, provider, refusal } from '../fixtures/profiles.js'

const NOT_MANAGEABLE = 'SG_ERR_PROFILES_NOT_MANAGEABLE'
const FORBIDDEN = 'SG_ERR_PROFILE_FORBIDDEN'
const EXISTS = 'SG_ERR_PROFILE_EXISTS'
const DIR_FORBIDDEN = 'SG_ERR_CONFIG_DIR_FORBIDDEN'
const INVALID = 'SG_ERR_PROFILE_INVALID'

const seeded = async (...profiles: StoredProfile[]): Promise<ProfileStore> => {
  const store = createMemoryProfileStore()
  for (const profile of profiles) await store.save(profile)
  return store
}
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

t.test('changes at the same time: one name is created once, and none is lost', async (t) => {
  const { catalog, store } = await buildManaged(t)
  const same = await Promise.allSettled(Array.from({ length: 10 }, () => catalog.create(provider('m'), MANAGER)))
  t.equal(same.filter(({ status }) => status === 'fulfilled').length, 1)
  await Promise.all([
    ...Array.from({ length: 10 }, (_, index) => catalog.create(provider(`p${index}`), MANAGER)),
    catalog.update('m', { description: 'd' }, MANAGER),
    catalog.update('m', { defaults: { model: 'x' } }, MANAGER),
  ])
  t.match(catalog.get('m')!.info, { description: 'd', defaults: { model: 'x' } })
  t.equal((await store.list()).length, 11)
})

t.test('what the store does not take has not happened', async (t) => {
  const inner = createMemoryProfileStore()
  let broken = false
  const failing =
    <Args extends unknown[], Result>(method: (...args: Args) => Result) =>
    async (...args: Args) => {
      if (broken) throw new Error('disk full')
      return method(...args)
    }
  const store = { list: inner.list, save: failing(inner.save), delete: failing(inner.delete) } as ProfileStore
  const changes: ProfileChange[] = []
  const { catalog } = await buildManaged(t, { store })
  catalog.onChange((change) => changes.push(change))
  await catalog.create(provider('m'), MANAGER)
  broken = true
  const before = catalog.get('m')
  await t.rejects(catalog.create(provider('n'), MANAGER), /disk full/)
  await t.rejects(catalog.update('m', { description: 'x' }, MANAGER), /disk full/)
  await t.rejects(catalog.remove('m', MANAGER), /disk full/)
  t.equal(catalog.get('m'), before)
  t.equal(catalog.get('n'), undefined)
  broken = false
  await catalog.remove('m', MANAGER)
  await until(() => changes.length === 2)
  t.strictSame(changes, [
    { type: 'created', name: 'm' },
    { type: 'deleted', name: 'm' },
  ])
})

t.test('nobody sees a profile before it is stored', async (t) => {
  const inner = createMemoryProfileStore()
  let release = () => {}
  const saving = new Promise<void>((resolve) => {
    release = resolve
  })
  const store: ProfileStore = { ...inner, save: (profile) => saving.then(() => inner.save(profile)) }
  const { catalog } = await buildManaged(t, { store })
  const created = catalog.create(provider('m'), MANAGER)
  await new Promise(setImmediate)
  t.equal(catalog.get('m'), undefined)
  release()
  await created
  t.ok(catalog.get('m'))
})

t.test('listeners hear of changes, and one that throws hurts nobody', async (t) => {
  const { catalog } = await buildManaged(t)
  const heard: ProfileChange[] = []
  catalog.onChange(() => {
    throw new Error('no')
  })
  const stop = catalog.onChange((change) => heard.push(change))
  await catalog.create(provider('m'), MANAGER)
  await catalog.update('m', { description: 'x' }, MANAGER)
  await until(() => heard.length === 2)
  stop()
  await catalog.remove('m', MANAGER)
  t.same(
    heard.map(({ type }) => type),
    ['created', 'updated'],
  )
})

t.test('a store that cannot be read keeps the service from starting', async (t) => {
  const cases: [string, () => unknown, RegExp][] = [
    ['it fails', () => Promise.reject(new Error('disk gone')), /^profileStore: disk gone/],
    ['no list', () => ({}), /^profileStore: list\(\) returned no list/],
    ['no profile', () => [null], /^profileStore: .*profile 1/],
    ['an unknown field', () => [provider('a'), { ...provider('b'), secret: 1 }], /^profileStore: .*profile 2\.secret/],
    ['a bad name', () => [{ name: '../a' }], /^profileStore: .*profile 1\.name/],
    ['two of one name', () => [provider('a'), provider('a')], /^profileStore: .*two profiles named a/],
  ]
  for (const [what, list, detail] of cases) {
    const store = { ...createMemoryProfileStore(), list } as ProfileStore
    await t.rejects(buildCatalog({ store }), refusal('SG_ERR_OPTION', detail), what)
  }
})

t.test('a declared profile hides a stored one, which is there again when it is gone', async (t) => {
  const store = await seeded({ ...provider('a'), description: 'stored' })
  const warnings: object[] = []
  const logger: Logger = { ...silentLogger, warn: (fields) => void warnings.push(fields) }
  const hidden = await buildCatalog({ store, declared: [{ ...provider('a'), description: 'declared' }], logger })
  t.equal(hidden.get('a')!.info.description, 'declared')
  t.equal(hidden.list(UNLIMITED).profiles.length, 1)
  t.same(warnings, [{ profile: 'a' }])
  await t.rejects(hidden.remove('a', MANAGER), refusal('SG_ERR_PROFILE_DECLARED'))
  const shown = await buildCatalog({ store, declared: [] })
  t.match(shown.get('a')!.info, { description: 'stored', managed: true })
})

t.test(
  'a stored profile that cannot run here any more is shown, refused, and can be repaired or deleted',
  async (t) => {
    const dir = t.testdir({ roots: { gone: {}, swapped: {}, fine: {} }, elsewhere: {} })
    const roots = join(dir, 'roots')
    const at = (name: string) => join(roots, name)
    const store = await seeded(
      { name: 'gone', configDir: at('gone') },
      { name: 'swapped', configDir: at('swapped') },
      { name: 'outside', configDir: join(dir, 'elsewhere') },
      { name: 'agentless', agent: 'hal', configDir: at('fine') },
      { name: 'modeless', agent: 'qwen', configDir: at('fine'), defaults: { permissionMode: 'auto' } },
      { name: 'bare' },
      { ...provider('engineless'), generation: 'g' },
      { name: 'fine', engine: 'cli', configDir: at('fine') },
    )
    rmSync(at('gone'), { recursive: true })
    renameSync(at('swapped'), at('real'))
    symlinkSync(at('real'), at('swapped'))
    const errors: { profile?: string }[] = []
    const logger: Logger = { ...silentLogger, error: (fields) => void errors.push(fields) }
    const catalog = await buildCatalog({ store, allowedConfigDirRoots: [roots], hasEngineRunner: false, logger })
    const unusable = ['gone', 'swapped', 'outside', 'agentless', 'modeless', 'bare', 'engineless']
    t.same(
      errors.map(({ profile }) => profile),
      unusable,
    )
    t.same(
      catalog.list(UNLIMITED).profiles.map(({ name }) => name),
      [...unusable, 'fine'],
    )
    for (const name of unusable) {
      t.throws(
        () => catalog.resolve(name, UNLIMITED),
        refusal('SG_ERR_ENGINE_START', new RegExp(`"${name}" cannot run`)),
        name,
      )
      t.throws(() => catalog.recall(name, catalog.get(name)!.generation), refusal('SG_ERR_ENGINE_START'), name)
      t.ok((await catalog.describe(name, UNLIMITED)).profile, name)
    }
    t.equal(catalog.resolve('fine', UNLIMITED).info.name, 'fine')
    mkdirSync(at('gone'))
    await catalog.update('gone', { description: 'back' }, MANAGER)
    t.equal(catalog.resolve('gone', UNLIMITED).info.description, 'back')
    await catalog.remove('outside', MANAGER)
    t.equal(catalog.get('outside'), undefined)
  },
)

t.test(
  'a stored default of bypassPermissions does not keep the others from being used once that mode is disabled',
  async (t) => {
    const store = await seeded({ ...provider('a'), defaults: { permissionMode: 'bypassPermissions' } })
    const catalog = await buildCatalog({ store, disableBypassPermissions: true })
    t.equal(catalog.resolve('a', UNLIMITED).info.name, 'a')
    await t.rejects(catalog.update('a', { description: 'x' }, MANAGER), refusal('SG_ERR_BYPASS_DISABLED'))
    t.equal((await catalog.update('a', { defaults: null }, MANAGER)).defaults, undefined)
  },
)

t.test('what was put into the store by hand is taken over', async (t) => {
  const store = await seeded({ ...provider('a'), managed: true })
  const open = (): Promise<ProfileCatalog> => buildCatalog({ store })
  const { generation } = (await open()).get('a')!
  t.equal((await open()).recall('a', generation).info.name, 'a', 'it stays the same one')
  t.equal((await open()).list(UNLIMITED).profiles[0]!.managed, true)
})

t.test('a managed directory that others can write into is told', async (t) => {
  const warnings: object[] = []
  const logger: Logger = { ...silentLogger, warn: (fields) => void warnings.push(fields) }
  const { catalog, directory } = await buildManaged(t, { logger })
  const configDir = directory('one')
  chmodSync(configDir, 0o777)
  await catalog.create({ name: 'm', configDir }, MANAGER)
  t.same(warnings, [{ profile: 'm', configDir }])
})

t.test('the store is closed with the catalog', async (t) => {
  let closed = 0
  const store: ProfileStore = { ...createMemoryProfileStore(), close: () => void closed++ }
  const catalog = await buildCatalog({ store })
  await catalog.close()
  t.equal(closed, 1)
  await (await buildCatalog({ store: createMemoryProfileStore() })).close()
  await (await buildCatalog()).close()
})
