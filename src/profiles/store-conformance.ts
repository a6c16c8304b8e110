import assert from 'node:assert/strict'
import type { StoredProfile } from '../../schemas/profiles.js'
import { type ConformanceCase, versionCase } from '../lib/conformance.js'
import type { ProfileStore } from './store.js'

/** One thing that every ProfileStore does. */
export type ProfileStoreCase = ConformanceCase<ProfileStore>

const cli = (name: string, configDir = '/srv/agents/one'): StoredProfile => ({ name, engine: 'cli', configDir })

const FULL: StoredProfile = {
  name: 'Full.profile_1-x',
  engine: 'provider',
  provider: {
    id: 'acme',
    model: 'm-1',
    models: ['m-1', 'm-2'],
    baseUrl: 'https://models.example/v1',
    apiKeyEnv: 'ACME_API_KEY',
  },
  description: 'Zwölf "Boxkämpfer"\n\u2028 🥊',
  defaults: { model: 'm-2', permissionMode: 'dontAsk' },
  session: { capabilities: ['web_fetch'], mcpServers: [], instructions: '' },
  generation: 'b3f0c1d2-0000-4000-8000-000000000000',
}

const names = async (store: ProfileStore) => (await store.list()).map(({ name }) => name).sort()

/** For authors of profile stores: run every case on a new, empty store. The bundled stores run the same ones. */
export const profileStoreConformance: readonly ProfileStoreCase[] = [
  {
    name: 'is empty at first',
    async run(store) {
      assert.deepEqual(await store.list(), [])
    },
  },
  {
    name: 'keeps every field as it was, empty lists and texts included',
    async run(store, reopen) {
      await store.save(FULL)
      assert.deepEqual(await store.list(), [FULL])
      const seen = reopen ? await reopen() : store
      assert.deepEqual(await seen.list(), [FULL])
      const long = { ...FULL, session: { ...FULL.session, instructions: 'ü'.repeat(100_000) } }
      await seen.save(long)
      assert.deepEqual(await seen.list(), [long])
    },
  },
  {
    name: 'replaces a profile as a whole when its name is saved again',
    async run(store, reopen) {
      await store.save(FULL)
      await store.save({ name: FULL.name, engine: 'provider' })
      assert.deepEqual(await store.list(), [{ name: FULL.name, engine: 'provider' }])
      if (reopen) assert.deepEqual(await (await reopen()).list(), [{ name: FULL.name, engine: 'provider' }])
    },
  },
  {
    name: 'deletes the one that is named, and takes an unknown name for deleted',
    async run(store, reopen) {
      await store.save(cli('one'))
      await store.save(cli('two'))
      await store.delete('one')
      await store.delete('one')
      await store.delete('three')
      assert.deepEqual(await names(store), ['two'])
      if (reopen) assert.deepEqual(await names(await reopen()), ['two'])
    },
  },
  {
    name: 'takes names exactly, and none for something of its own',
    async run(store) {
      const given = ['a', 'A', 'a.b', 'constructor', 'hasOwnProperty', 'toString', '0']
      for (const name of given) await store.save(cli(name))
      await store.delete('valueOf')
      await store.delete('__proto__')
      assert.deepEqual(await names(store), [...given].sort())
      await store.delete('A')
      assert.deepEqual(await names(store), given.filter((name) => name !== 'A').sort())
    },
  },
  {
    name: 'shares no object with its caller',
    async run(store) {
      const given = structuredClone(FULL)
      await store.save(given)
      given.provider!.models!.push('m-3')
      const [listed] = await store.list()
      listed!.description = 'changed'
      assert.deepEqual(await store.list(), [FULL])
    },
  },
  {
    name: 'loses nothing of what is saved and deleted at the same time',
    async run(store, reopen) {
      await store.save(cli('gone'))
      const many = Array.from({ length: 25 }, (_, index) => `p${index}`)
      await Promise.all([...many.map((name) => store.save(cli(name))), store.delete('gone')])
      assert.deepEqual(await names(store), [...many].sort())
      if (reopen) assert.deepEqual(await names(await reopen()), [...many].sort())
    },
  },
  {
    name: 'creates a profile where its name is free, once, if it can tell',
    async run(store, reopen) {
      if (!store.create) return
      const made = await Promise.all([store.create(cli('one', '/srv/a')), store.create(cli('one', '/srv/b'))])
      assert.deepEqual(made.toSorted(), [false, true])
      assert.deepEqual(await store.list(), [cli('one', made[0] ? '/srv/a' : '/srv/b')])
      await store.delete('one')
      assert.equal(await store.create(FULL), true)
      const again = reopen ? await reopen() : store
      assert.equal(await again.create!(FULL), false)
      assert.deepEqual(await again.list(), [FULL])
    },
  },
  {
    name: 'replaces exactly what was there before, if it can tell',
    async run(store) {
      if (!store.replace) return
      const changed = { ...FULL, description: 'changed' }
      assert.equal(await store.replace(changed, FULL), false)
      await store.save(FULL)
      const [known] = await store.list()
      assert.equal(await store.replace(changed, known!), true)
      assert.equal(await store.replace({ ...FULL, description: 'changed too' }, known!), false)
      assert.deepEqual(await store.list(), [changed])
      const texts = ['one', 'two', 'three']
      const replaced = await Promise.all(texts.map((description) => store.replace!({ ...FULL, description }, changed)))
      assert.equal(replaced.filter(Boolean).length, 1)
      assert.equal((await store.list())[0]?.description, texts[replaced.indexOf(true)])
      await store.delete(FULL.name)
      assert.equal(await store.replace(FULL, changed), false)
      assert.deepEqual(await store.list(), [])
    },
  },
  versionCase((store) => [
    () => store.save(cli('one')),
    ...(store.create ? [() => store.create!(cli('two'))] : []),
    ...(store.create && store.replace ? [() => store.replace!(cli('two', '/srv/b'), cli('two'))] : []),
    () => store.delete('one'),
  ]),
]
