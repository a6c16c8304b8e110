import t, { type Test } from 'tap'
import { silentLogger } from '../../../src/lib/logger.js'
import { PushSubscriptions } from '../../../src/notifications/channels/subscriptions.js'
import type { CallerNamed, Principal } from '../../../src/principal.js'
import { refusing } from '../../../src/storage/availability.js'
import { createMemoryChannelStore } from '../../../src/storage/memory/channel-store.js'
import { EgressGuard } from '../../../src/webhooks/egress.js'
import { until } from '../../fixtures/build.js'
import { PushService } from '../../fixtures/push-service.js'
import { VirtualClock } from '../../fixtures/virtual-clock.js'

const named = (name: string, allowedProfiles?: string[]): Principal => ({ claims: { name }, allowedProfiles })
const ANN = named('ann')
const DAY = 24 * 60 * 60_000

interface World {
  store?: ReturnType<typeof createMemoryChannelStore>
  callerNamed?: CallerNamed
}

async function world(t: Test, { store = createMemoryChannelStore(), callerNamed }: World = {}) {
  const service = await PushService.start(t)
  const guard = new EgressGuard({ allowedHosts: [service.host] })
  const clock = new VirtualClock()
  const parts = {
    store: refusing(store),
    clock,
    logger: silentLogger,
    retryAfter: (ms: number, run: () => void) => clock.after(ms, run),
    guard,
  }
  const subscriptions = new PushSubscriptions({ ...parts, callerNamed })
  await subscriptions.load()
  const reopen = async () => {
    const next = new PushSubscriptions(parts)
    await next.load()
    return next
  }
  return { service, clock, subscriptions, reopen, store }
}

t.test('a browser is subscribed once, renewed by its own page, and gone when it says so', async (t) => {
  const { service, subscriptions, reopen, clock } = await world(t)
  const { request } = service.subscribe()
  const first = await subscriptions.subscribe(request, ANN)
  t.equal(first.isNew, true)
  await clock.advance(DAY)
  const again = await subscriptions.subscribe({ ...request, events: ['session_error'] }, ANN)
  t.equal(again.isNew, false)
  t.equal(again.subscription.id, first.subscription.id)
  t.equal(again.subscription.expiresAt, first.subscription.expiresAt + DAY)
  t.match((await reopen()).ofProfile('one'), [
    { id: first.subscription.id, principal: 'ann', events: ['session_error'] },
  ])
  await t.rejects(subscriptions.unsubscribe(request.endpoint, named('bob')), { code: 'SG_ERR_SUBSCRIPTION_NOT_FOUND' })
  await subscriptions.unsubscribe(request.endpoint, ANN)
  await t.rejects(subscriptions.unsubscribe(request.endpoint, ANN), { code: 'SG_ERR_SUBSCRIPTION_NOT_FOUND' })
  t.same((await reopen()).ofProfile('one'), [])
})

t.test(
  'whose name lets nobody in any more is told nothing, and whose limits have changed is held to them',
  async (t) => {
    const letIn = new Map<string | undefined, Principal>([
      ['ann', ANN],
      ['bob', named('bob')],
    ])
    const { service, subscriptions } = await world(t, { callerNamed: (name) => letIn.get(name) })
    const [ann, bob] = [service.subscribe().request, service.subscribe().request]
    const { subscription } = await subscriptions.subscribe(ann, ANN)
    const bobs = await subscriptions.subscribe(bob, named('bob'))
    const told = (profile: string) => subscriptions.ofProfile(profile).map(({ principal }) => principal)
    t.same(told('one'), ['ann', 'bob'])
    letIn.set('bob', named('bob', ['two']))
    t.same([told('one'), told('two')], [['ann'], ['ann', 'bob']])
    const seen = (profile: string) => subscriptions.get(bobs.subscription.id, profile)?.principal
    t.same([seen('one'), seen('two')], [undefined, 'bob'], 'nor is he told what waits')
    letIn.delete('ann')
    t.same([told('one'), told('two')], [[], ['bob']])
    t.equal(subscriptions.get(subscription.id), undefined, 'nor do links that it was sent lead anywhere')
    letIn.set('ann', ANN)
    t.same(told('one'), ['ann'], 'a token that is renewed under its name')
  },
)

t.test('each is told of the profiles that its principal may see', async (t) => {
  const { service, subscriptions, reopen } = await world(t)
  await subscriptions.subscribe(service.subscribe().request, ANN)
  await subscriptions.subscribe(service.subscribe().request, named('bob', ['one']))
  await subscriptions.subscribe(service.subscribe().request, named('eve', []))
  for (const seen of [subscriptions, await reopen()]) {
    t.same(
      seen.ofProfile('one').map(({ principal }) => principal),
      ['ann', 'bob'],
    )
    t.same(
      seen.ofProfile('two').map(({ principal }) => principal),
      ['ann'],
    )
  }
})

t.test('the next who signs in with a browser takes it over, and nobody else can', async (t) => {
  const { service, subscriptions } = await world(t)
  const { request } = service.subscribe()
  await subscriptions.subscribe(request, ANN)
  const stolen = { ...request, keys: service.subscribe().request.keys }
  await t.rejects(subscriptions.subscribe(stolen, named('bob')), { code: 'SG_ERR_SUBSCRIPTION_EXISTS' })
  await subscriptions.subscribe(request, named('bob', ['one']))
  t.same(
    subscriptions.ofProfile('one').map(({ principal }) => principal),
    ['bob'],
  )
})

t.test('a caller has room for twenty; what has expired takes none', async (t) => {
  const { service, subscriptions, clock } = await world(t)
  const many = Array.from({ length: 21 }, () => service.subscribe().request)
  const outcomes = await Promise.allSettled(many.map((request) => subscriptions.subscribe(request, ANN)))
  t.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 20)
  t.match(outcomes.at(-1), { reason: { code: 'SG_ERR_TOO_MANY' } })
  await subscriptions.subscribe(service.subscribe().request, named('bob'))
  await clock.advance(61 * DAY)
  t.same(subscriptions.ofProfile('one'), [], 'nobody is told for ever')
  t.equal((await subscriptions.subscribe(many[20]!, ANN)).isNew, true)
})

t.test('callers are told apart by what authenticate calls them, with a name or without one', async (t) => {
  const { service, subscriptions, reopen } = await world(t)
  const called: ((n: number) => object)[] = [
    (id) => ({ id }),
    (n) => ({ sub: `${n}` }),
    (n) => ({ id: n + 9, name: 'Ann' }),
  ]
  for (const claims of called) {
    const [one, other] = [1, 2].map((n): Principal => ({ claims: claims(n) })) as [Principal, Principal]
    const mine = service.subscribe().request
    await subscriptions.subscribe(mine, one)
    const rekeyed = { ...mine, keys: service.subscribe().request.keys }
    await t.rejects(subscriptions.subscribe(rekeyed, other), { code: 'SG_ERR_SUBSCRIPTION_EXISTS' })
    await t.rejects(subscriptions.unsubscribe(mine.endpoint, other), { code: 'SG_ERR_SUBSCRIPTION_NOT_FOUND' })
    for (let count = 1; count < 20; count++) await subscriptions.subscribe(service.subscribe().request, one)
    await t.rejects(subscriptions.subscribe(service.subscribe().request, one), { code: 'SG_ERR_TOO_MANY' })
    await subscriptions.subscribe(service.subscribe().request, other)
    await (await reopen()).unsubscribe(mine.endpoint, one)
    await subscriptions.load()
  }
})

t.test('what a caller had subscribed by its name alone is still its own', async (t) => {
  const { service, subscriptions } = await world(t)
  const { request } = service.subscribe()
  await subscriptions.subscribe(request, ANN)
  const known: Principal = { claims: { id: 7, name: 'ann' } }
  t.equal((await subscriptions.subscribe(request, known)).isNew, false)
  await t.rejects(subscriptions.unsubscribe(request.endpoint, ANN), { code: 'SG_ERR_SUBSCRIPTION_NOT_FOUND' })
  await subscriptions.unsubscribe(request.endpoint, known)
})

t.test('what cannot be one is refused with its field', async (t) => {
  const { service, subscriptions } = await world(t)
  const { request } = service.subscribe()
  const { p256dh, auth } = request.keys
  const bad: [field: string, wrong: object][] = [
    ...[
      'http://127.0.0.1:1/x',
      'https://10.0.0.8/',
      'http://[::1]/',
      'http://169.254.169.254/',
      'http://2130706433/',
    ].map((endpoint): [string, object] => ['endpoint', { endpoint }]),
    ...['nowhere', 'ftp://push.example/', 'https://user:pass@push.example/', 'javascript:alert(1)'].map(
      (endpoint): [string, object] => ['endpoint', { endpoint }],
    ),
    ['keys.p256dh', { keys: { p256dh: p256dh.slice(1), auth } }],
    ['keys.p256dh', { keys: { p256dh: Buffer.alloc(65, 4).toString('base64url'), auth } }],
    ['keys.p256dh', { keys: { p256dh: `${p256dh}=`, auth } }],
    ['keys.auth', { keys: { p256dh, auth: 'AAAA' } }],
    ['keys.auth', { keys: { p256dh, auth: '!'.repeat(22) } }],
    ['expirationTime', { expirationTime: 1 }],
  ]
  for (const [path, wrong] of bad)
    try {
      await subscriptions.subscribe({ ...request, ...wrong }, ANN)
      t.fail(`${JSON.stringify(wrong)} was taken`)
    } catch (error) {
      t.match(error, { statusCode: 400, errors: [{ path }] }, JSON.stringify(wrong))
    }
  t.same(subscriptions.ofProfile('one'), [], 'and changes nothing')
})

t.test('what the store does not take is refused, and nothing is told to it', async (t) => {
  const store = createMemoryChannelStore()
  const { service, subscriptions } = await world(t, { store })
  store.saveSubscription = async () => {
    throw new Error('disk full')
  }
  await t.rejects(subscriptions.subscribe(service.subscribe().request, ANN), { code: 'SG_ERR_STORE_UNAVAILABLE' })
  t.same(subscriptions.ofProfile('one'), [])
})

t.test('one that is gone is forgotten once the store takes that', async (t) => {
  const store = createMemoryChannelStore()
  const { service, subscriptions, clock } = await world(t, { store })
  const { request } = service.subscribe()
  const { subscription } = await subscriptions.subscribe(request, ANN)
  const { removeSubscription } = store
  let refusals = 0
  store.removeSubscription = async () => {
    refusals++
    throw new Error('the disk is full')
  }
  const forgotten = subscriptions.forget(subscription)
  await until(() => refusals === 1, 'the refusal')
  t.same((await subscriptions.subscribe(request, ANN)).isNew, false, 'nobody waits for it')
  store.removeSubscription = removeSubscription
  await clock.advance(60_000)
  await forgotten
  t.same([subscriptions.ofProfile('one'), await store.subscriptions()], [[], []])
})

t.test('and is left to the next process by one that stops', async (t) => {
  const store = createMemoryChannelStore()
  const { service, subscriptions, clock } = await world(t, { store })
  const { subscription } = await subscriptions.subscribe(service.subscribe().request, ANN)
  let refusals = 0
  store.removeSubscription = async () => {
    refusals++
    throw new Error('the storage is closed')
  }
  const refused = t.rejects(subscriptions.forget(subscription), { code: 'SG_ERR_STORE_UNAVAILABLE' })
  await until(() => refusals === 1, 'the refusal')
  subscriptions.stop()
  await refused
  t.equal(clock.pendingTimers, 0, 'nothing is tried again')
})

t.test('a browser that subscribes at one node is told by all, and by none once it is gone', async (t) => {
  const { service, clock, store } = await world(t)
  let version = 0
  const shared: typeof store = {
    ...store,
    version: async () => version,
    async saveSubscription(subscription) {
      version++
      await store.saveSubscription(subscription)
    },
    async removeSubscription(id) {
      version++
      await store.removeSubscription(id)
    },
  }
  const nodes: PushSubscriptions[] = []
  const tellOthers = async () => void (await Promise.all(nodes.map((node) => node.refreshed())))
  for (let n = 0; n < 2; n++)
    nodes.push(
      new PushSubscriptions({
        ...{ store: shared, shared: true, tellOthers, clock, logger: silentLogger },
        retryAfter: (ms: number, run: () => void) => clock.after(ms, run),
        guard: new EgressGuard({ allowedHosts: [service.host] }),
      }),
    )
  for (const node of nodes) await node.load()
  const [a, b] = nodes as [PushSubscriptions, PushSubscriptions]
  const { request } = service.subscribe()
  const both = await Promise.all([a.subscribe(request, ANN), b.subscribe(request, ANN)])
  t.equal(both[0].subscription.id, both[1].subscription.id, 'asked of two at once, it is one')
  for (const node of nodes) t.equal(node.ofProfile('work').length, 1)
  await b.unsubscribe(request.endpoint, ANN)
  for (const node of nodes) t.same(node.ofProfile('work'), [])
  const again = await b.subscribe(request, ANN)
  await a.forget(again.subscription)
  await b.refreshed()
  t.same(b.ofProfile('work'), [])
  await clock.advance(1)
  const { subscription } = await b.subscribe(request, ANN)
  t.equal(subscription.id, again.subscription.id)
  await a.forget(again.subscription)
  await b.refreshed()
  t.same(b.ofProfile('work'), [subscription], 'told late that the one before is gone')
})
