import { chmodSync, mkdirSync, realpath, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { StoredProfile } from '../../schemas/profiles.js'
import { type Logger, silentLogger } from '../../src/lib/logger.js'
import { UNLIMITED } from '../../src/principal.js'
import type { ProfileCatalog } from '../../src/profiles/catalog.js'
import { CliProfiles } from '../../src/profiles/cli-profiles.js'
import type { ProfileStore } from '../../src/profiles/store.js'
import { createMemoryProfileStore } from '../../src/storage/memory/profile-store.js'
import { buildCatalog, buildManaged, MANAGER, provider, refusal } from '../fixtures/profiles.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const seeded = async (...profiles: StoredProfile[]): Promise<ProfileStore> => {
  const store = createMemoryProfileStore()
  for (const profile of profiles) await store.save(profile)
  return store
}

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
  const { catalog } = await buildManaged(t, { store })
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
  t.equal(catalog.get('m'), undefined)
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
  'a stored profile of a provider that the engine does not have is shown, says why it cannot run, and can be mended',
  async (t) => {
    const store = await seeded(
      { ...provider('unknown'), generation: 'g' },
      { name: 'none', engine: 'provider' },
      { name: 'other-model', engine: 'provider', provider: { id: 'demo' }, defaults: { model: 'm' } },
    )
    const catalog = await buildCatalog({ store, isHostsEngine: false })
    t.same(
      catalog.list(UNLIMITED).profiles.map(({ name }) => name),
      ['unknown', 'none', 'other-model'],
    )
    for (const [name, why] of Object.entries({ unknown: /unknown provider/, none: /provider: missing/ }))
      t.throws(() => catalog.resolve(name, UNLIMITED), refusal('SG_ERR_ENGINE_START', why), name)
    t.ok(catalog.resolve('other-model', UNLIMITED), 'who names a model can use it')
    await catalog.update('none', { provider: { id: 'demo' } }, MANAGER)
    t.ok(catalog.resolve('none', UNLIMITED))
  },
)

t.test('a stored profile whose directory was not mounted at the start can be used as soon as it is', async (t) => {
  const roots = t.testdir({ late: {}, never: {} })
  const at = (name: string) => join(roots, name)
  const store = await seeded(
    { name: 'late', configDir: at('late'), generation: 'g' },
    { name: 'never', configDir: at('never') },
  )
  const open = () => buildCatalog({ store, allowedConfigDirRoots: [roots] })
  const { generation } = (await open()).get('late')!
  rmSync(at('late'), { recursive: true })
  rmSync(at('never'), { recursive: true })
  const catalog = await open()
  t.ok(catalog.refreshed())
  await catalog.refreshed()
  t.throws(() => catalog.resolve('late', UNLIMITED), refusal('SG_ERR_ENGINE_START', /no directory that exists/))
  mkdirSync(at('late'))
  await Promise.all([catalog.refreshed(), catalog.refreshed()])
  t.equal(catalog.resolve('late', UNLIMITED).info.configDir, at('late'))
  t.equal(catalog.recall('late', generation).info.name, 'late', 'it is who it was')
  t.throws(() => catalog.resolve('never', UNLIMITED), refusal('SG_ERR_ENGINE_START'))
  await catalog.remove('never', MANAGER)
  t.equal(catalog.refreshed(), undefined, 'nothing is looked at any more')
})

t.test('a directory that never answers holds up no other that is back', async (t) => {
  const roots = t.testdir({})
  const at = (name: string) => join(roots, name)
  const store = await seeded({ name: 'dead', configDir: at('dead') }, { name: 'late', configDir: at('late') })
  const clock = new VirtualClock()
  const catalog = await buildCatalog({ store, allowedConfigDirRoots: [roots], clock })
  const { native } = realpath
  t.teardown(() => {
    realpath.native = native
  })
  let looks = 0
  const hanging = (...args: Parameters<typeof native>) =>
    String(args[0]).startsWith(at('dead')) ? void looks++ : native(...args)
  realpath.native = hanging as typeof native
  const first = catalog.refreshed()
  await clock.advance(1000)
  await first
  mkdirSync(at('late'))
  await catalog.refreshed()
  t.equal(catalog.resolve('late', UNLIMITED).info.configDir, at('late'))
  t.equal(looks, 1, 'and it is asked no more while it has not answered')
})

t.test('no agent is asked anything in a directory that is no longer allowed', async (t) => {
  const dir = t.testdir({ roots: { inside: {} }, outside: {} })
  const [inside, outside] = [join(dir, 'roots', 'inside'), join(dir, 'outside')]
  const store = await seeded({ name: 'inside', configDir: inside }, { name: 'outside', configDir: outside })
  const profiles = await buildCatalog({ store, allowedConfigDirRoots: [join(dir, 'roots')] })
  const asked: string[] = []
  const probe = ({ name }: { name: string }) => {
    asked.push(name)
    return true
  }
  const cliProfiles = new CliProfiles({
    ...{ profiles, env: {}, secretEnv: [], logger: silentLogger, notices: silentLogger, checkIn: '/' },
    ...{ agents: undefined, roots: undefined, buildRunnerConfig: undefined, checkCredentials: { probe } },
    ...{ listSdkSessions: undefined, isContinued: async () => false },
  })
  await cliProfiles.checkCredentials()
  t.same(asked, ['inside'])
  t.throws(() => profiles.pin({ cwd: '/' }, profiles.get('outside')!), refusal('SG_ERR_ENGINE_START', /outside/))
})

t.test('nor does anybody see what is in one', async (t) => {
  const memory = () => ({ 'CLAUDE.md': 'what it says' })
  const dir = t.testdir({ roots: { inside: memory() }, outside: memory() })
  const [inside, outside] = [join(dir, 'roots', 'inside'), join(dir, 'outside')]
  const store = await seeded({ name: 'inside', configDir: inside }, { name: 'outside', configDir: outside })
  const catalog = await buildCatalog({ store, allowedConfigDirRoots: [join(dir, 'roots')] })
  t.match((await catalog.describe('inside', UNLIMITED)).config, { memory: { preview: 'what it says' } })
  t.match(await catalog.describe('outside', UNLIMITED), {
    profile: { configDir: outside },
    config: { hasUserMemory: false, memory: undefined },
  })
})

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

t.test('nothing is told again and again of one that cannot be used', async (t) => {
  const warnings: object[] = []
  const logger: Logger = { ...silentLogger, warn: (fields) => void warnings.push(fields) }
  const roots = t.testdir({ open: {} })
  const [open, swapped] = [join(roots, 'open'), join(roots, 'swapped')]
  chmodSync(open, 0o777)
  symlinkSync(open, swapped)
  const store = await seeded({ name: 'm', configDir: swapped })
  const catalog = await buildCatalog({ store, allowedConfigDirRoots: [roots], logger })
  for (let times = 0; times < 3; times++) await catalog.refreshed()
  t.same(warnings, [])
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

/** A store that several processes have, and where the next write waits until it is let go. */
function sharedStore() {
  const inner = createMemoryProfileStore()
  let version = 0
  const changed = <Result>(result: Result) => {
    version++
    return result
  }
  const of = (name: string) => (inner.list() as StoredProfile[]).find((one) => one.name === name)
  const store: ProfileStore = {
    ...inner,
    version: async () => version,
    save: async (profile) => changed(inner.save(profile)),
    async create(profile) {
      if (of(profile.name)) return false
      await inner.save(profile)
      return changed(true)
    },
    async replace(profile, before) {
      if (JSON.stringify(of(profile.name)) !== JSON.stringify(before)) return false
      await inner.save(profile)
      return changed(true)
    },
    delete: async (name) => changed(inner.delete(name)),
  }
  return store
}

t.test('what one of several processes changes, all others see with the next question', async (t) => {
  const store = sharedStore()
  const { catalog: one } = await buildManaged(t, { store, shared: true })
  const { catalog: other } = await buildManaged(t, { store, shared: true })
  await one.create(provider('m'), MANAGER)
  await other.refreshed()
  t.equal(other.resolve('m', UNLIMITED).generation, one.resolve('m', UNLIMITED).generation)
  await other.update('m', { description: 'changed' }, MANAGER)
  await one.refreshed()
  t.match(one.get('m')!.info, { description: 'changed' })
  await one.remove('m', MANAGER)
  await other.refreshed()
  t.equal(other.get('m'), undefined)
})

t.test('what an agent keeps on disk is asked of the profiles as another process has made them', async (t) => {
  const store = sharedStore()
  const { catalog: one } = await buildManaged(t, { store, shared: true })
  const { catalog: other } = await buildManaged(t, { store, shared: true })
  const asked: (string | undefined)[] = []
  const cliProfiles = new CliProfiles({
    ...{ profiles: other, env: {}, secretEnv: [], logger: silentLogger, notices: silentLogger, checkIn: '/' },
    ...{ agents: undefined, roots: undefined, buildRunnerConfig: undefined, checkCredentials: undefined },
    listSdkSessions: ({ profile }) => {
      asked.push(profile)
      return []
    },
    isContinued: async () => false,
  })
  await one.create(provider('m'), MANAGER)
  t.same(await cliProfiles.listSdkSessions({ profile: 'm' }, UNLIMITED), [])
  t.same(asked, ['m'])
  await one.remove('m', MANAGER)
  await t.rejects(cliProfiles.deleteSdkSession('x', { profile: 'm' }, UNLIMITED), refusal('SG_ERR_PROFILE_UNKNOWN'))
})

t.test('several processes create one name once, and lose no change of each other', async (t) => {
  const store = sharedStore()
  const catalogs = await Promise.all(
    [1, 2, 3].map(async () => (await buildManaged(t, { store, shared: true })).catalog),
  )
  const made = await Promise.allSettled(catalogs.map((catalog) => catalog.create(provider('m'), MANAGER)))
  t.equal(made.filter(({ status }) => status === 'fulfilled').length, 1)
  for (const one of made)
    if (one.status === 'rejected') t.equal((one.reason as { code: string }).code, 'SG_ERR_PROFILE_EXISTS')
  await Promise.all([
    catalogs[0]!.update('m', { description: 'd' }, MANAGER),
    catalogs[1]!.update('m', { defaults: { model: 'x' } }, MANAGER),
  ])
  await catalogs[2]!.refreshed()
  t.match(catalogs[2]!.get('m')!.info, { description: 'd', defaults: { model: 'x' } })
})
