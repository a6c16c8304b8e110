import t, { type Test } from 'tap'
import { SignIns } from '../../src/console/sign-ins.js'
import type { SignInStore } from '../../src/console/store.js'
import { silentLogger } from '../../src/lib/logger.js'
import type { Principal } from '../../src/principal.js'
import { createMemorySignInStore } from '../../src/storage/memory/sign-in-store.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const HOUR = 3_600_000
const ANN: Principal = { allowedProfiles: undefined, canManageProfiles: false, claims: { sub: 'ann' } }

/** One store of several processes. */
function sharedStore(): SignInStore {
  const inner = createMemorySignInStore()
  let version = 0
  return {
    list: () => inner.list(),
    version: async () => version,
    async save(signIn) {
      version++
      await inner.save(signIn)
    },
    async renew(signIn) {
      version++
      if ((await inner.list()).some(({ id }) => id === signIn.id)) await inner.save(signIn)
    },
    async remove(id) {
      version++
      await inner.remove(id)
    },
  }
}

async function build(_t: Test) {
  const clock = new VirtualClock()
  const store = sharedStore()
  const node = async () => {
    const signIns = new SignIns({
      ...{ clock, store, shared: true, logger: silentLogger, sessionTtlMs: HOUR, sessionMaxAgeMs: 24 * HOUR },
      retryAfter: (ms, run) => clock.after(ms, run),
      keyOnce: async () => 'the same key',
    })
    await signIns.open()
    return signIns
  }
  return { a: await node(), b: await node(), clock }
}

t.test('a browser that is signed in at one node is signed in at all, and signed out of all', async (t) => {
  const { a, b } = await build(t)
  t.equal(a.cookieName, b.cookieName)
  const { secret, signIn } = await a.create('token', ANN, 'A browser')
  await b.refreshed()
  t.match(b.find(secret), { id: signIn.id, token: 'token' })
  t.match(b.list(ANN, signIn.id), [{ id: signIn.id, current: true }])
  const ended: string[] = []
  a.onEnded((id) => ended.push(id))
  await b.end(signIn.id, ANN, undefined)
  await a.refreshed()
  t.equal(a.find(secret), undefined)
  t.same(ended, [signIn.id], 'its streams end there, too')
})

t.test('a use that one node writes down does not bring back what another one has ended', async (t) => {
  const { a, b, clock } = await build(t)
  const { secret, signIn } = await a.create('token', ANN, undefined)
  await b.end(signIn.id, ANN, undefined)
  await clock.advance(2 * 60_000)
  a.use(signIn.id)
  await new Promise(setImmediate)
  for (const node of [a, b]) {
    await node.refreshed()
    t.equal(node.find(secret), undefined)
  }
})

t.test('what is used at one node does not run out at another', async (t) => {
  const { a, b, clock } = await build(t)
  const { secret, signIn } = await a.create('token', ANN, undefined)
  for (let hour = 0; hour < 4; hour++) {
    await clock.advance(HOUR / 2)
    a.use(signIn.id)
    await new Promise(setImmediate)
  }
  await b.refreshed()
  t.match(b.find(secret), { id: signIn.id })
})

for (const canRenew of [true, false]) {
  const of = canRenew ? 'a store that renews' : 'a store that cannot renew'
  t.test(`a use while its browser is signed out does not bring the sign-in back: ${of}`, async (t) => {
    const clock = new VirtualClock()
    const { renew, ...inner } = createMemorySignInStore()
    let answer = () => {}
    const store: SignInStore = {
      ...inner,
      ...(canRenew && { renew: renew! }),
      async remove(id) {
        await inner.remove(id)
        await new Promise<void>((resolve) => {
          answer = resolve
        })
      },
    }
    const signIns = new SignIns({
      ...{ clock, store, logger: silentLogger, sessionTtlMs: HOUR, sessionMaxAgeMs: 24 * HOUR },
      retryAfter: (ms, run) => clock.after(ms, run),
      keyOnce: async () => 'a key',
    })
    await signIns.open()
    const { signIn } = await signIns.create('token', ANN, undefined)
    await clock.advance(2 * 60_000)
    const ended = signIns.end(signIn.id, ANN, undefined)
    await new Promise(setImmediate)
    signIns.use(signIn.id)
    await new Promise(setImmediate)
    answer()
    await ended
    t.same(await store.list(), [], 'nothing is left for the next process')
  })
}
