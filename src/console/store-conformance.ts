import assert from 'node:assert/strict'
import { type ConformanceCase, versionCase } from '../lib/conformance.js'
import type { KeptSignIn, SignInStore } from './store.js'

/** One promise of a SignInStore. `reopen` gives what the next process finds; absent: nothing outlives this one. */
export type SignInStoreCase = ConformanceCase<SignInStore>

const signIn = (id: string, more: Partial<KeptSignIn> = {}): KeptSignIn => ({
  ...{ id, secretHash: `hash of ${id}`, sealedToken: 'sealed', owner: 'ann', createdAt: 1, lastSeenAt: 1, endsAt: 9 },
  ...more,
})

/** What every SignInStore promises: run each on an empty one. */
export const signInStoreConformance: readonly SignInStoreCase[] = [
  {
    name: 'keeps sign-ins in their first order, each once, until they are removed',
    async run(store, reopen) {
      await store.save(signIn('1'))
      await store.save(signIn('2', { userAgent: 'A browser/1.0 (🥊)' }))
      await store.save(signIn('3'))
      await store.save(signIn('1', { lastSeenAt: 5 }))
      await store.remove('3')
      await store.remove('nobody')
      const seen = reopen ? await reopen() : store
      assert.deepEqual(await seen.list(), [
        signIn('1', { lastSeenAt: 5 }),
        signIn('2', { userAgent: 'A browser/1.0 (🥊)' }),
      ])
    },
  },
  {
    name: 'is not affected by what happens to what it took or gave',
    async run(store) {
      const mine = signIn('1')
      await store.save(mine)
      mine.endsAt = 100
      for (const theirs of await store.list()) theirs.endsAt = 100
      assert.deepEqual(await store.list(), [signIn('1')])
    },
  },
  {
    name: 'renews those that are there, and brings none back that was removed, if it can',
    async run(store) {
      if (!store.renew) return
      await store.save(signIn('1'))
      await store.save(signIn('2'))
      await store.remove('2')
      await store.renew(signIn('1', { lastSeenAt: 5 }))
      await store.renew(signIn('2', { lastSeenAt: 5 }))
      assert.deepEqual(await store.list(), [signIn('1', { lastSeenAt: 5 })])
    },
  },
  versionCase((store) => [
    () => store.save(signIn('1')),
    ...(store.renew ? [() => store.renew!(signIn('1', { lastSeenAt: 5 }))] : []),
    () => store.remove('1'),
  ]),
]
