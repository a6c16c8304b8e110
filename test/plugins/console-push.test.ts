import t, { type Test } from 'tap'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { until } from '../fixtures/build.js'
import { buildConsole } from '../fixtures/console.js'
import { PushService } from '../fixtures/push-service.js'
import { turns } from '../fixtures/turns.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const HOUR = 3_600_000

t.test('a browser that is signed out, from another one too, is told nothing more by web push', async (t) => {
  const service = await PushService.start(t)
  const storage = createMemoryStorage()
  const notifications = { channels: [{ format: 'web_push' as const }], publicUrl: 'https://gateway.example' }
  const { signIn, as, call } = await buildConsole(t, {
    ...{ storage, notifications, webhookPolicy: { allowedHosts: [service.host] } },
  })
  const [phone, laptop] = [await signIn('token-of-ann'), await signIn('token-of-ann')]
  const [onPhone, onLaptop, script] = [
    service.subscribe().request,
    service.subscribe().request,
    service.subscribe().request,
  ]
  const path = '/notifications/subscriptions'
  t.match(await as(phone.cookie)('POST', path, { body: onPhone }), { status: 201 })
  t.match(await as(laptop.cookie)('POST', path, { body: onLaptop }), { status: 201 })
  t.match(await call('POST', path, script, { authorization: 'Bearer token-of-ann' }), { status: 201 })
  const left = async () => (await storage.channels!.subscriptions()).map(({ endpoint }) => endpoint)
  t.match(await as(laptop.cookie)('DELETE', `/console/sessions/${phone.id}`), { status: 204 })
  await until(async () => (await left()).length === 2, 'the phone to be forgotten')
  t.same(await left(), [onLaptop.endpoint, script.endpoint])
  t.match(await as(laptop.cookie)('DELETE', '/console/sessions/current'), { status: 204 })
  await until(async () => (await left()).length === 1, 'the laptop to be forgotten')
  t.same(await left(), [script.endpoint])
})

t.test(
  'a browser stays signed in while what it is told by web push cannot be ended, and with another caller who tries',
  async (t) => {
    const service = await PushService.start(t)
    const storage = createMemoryStorage()
    const notifications = { channels: [{ format: 'web_push' as const }], publicUrl: 'https://gateway.example' }
    const { signIn, as } = await buildConsole(t, {
      ...{ storage, notifications, webhookPolicy: { allowedHosts: [service.host] } },
    })
    const [phone, laptop, ben] = [
      await signIn('token-of-ann'),
      await signIn('token-of-ann'),
      await signIn('token-of-ben'),
    ]
    const { request } = service.subscribe()
    await as(phone.cookie)('POST', '/notifications/subscriptions', { body: request })
    const channels = storage.channels!
    const told = async () => (await channels.subscriptions()).length
    const end = (by: { cookie: string }) => as(by.cookie)('DELETE', `/console/sessions/${phone.id}`)
    t.match(await end(ben), { status: 404 })
    t.equal(await told(), 1)
    const { removeSubscription } = channels
    channels.removeSubscription = () => Promise.reject(new Error('full'))
    t.match(await end(laptop), { status: 503, json: { code: 'SG_ERR_STORE_UNAVAILABLE' } })
    t.match(await as(phone.cookie)('GET', '/sessions'), { status: 200 })
    channels.removeSubscription = removeSubscription
    t.match(await end(laptop), { status: 204 })
    t.equal(await told(), 0)
    t.match(await as(phone.cookie)('GET', '/sessions'), { status: 401 })
  },
)

/** A browser that is signed in and told by web push. */
async function told(t: Test, options: Parameters<typeof buildConsole>[1]) {
  const service = await PushService.start(t)
  const storage = createMemoryStorage()
  const notifications = { channels: [{ format: 'web_push' as const }], publicUrl: 'https://gateway.example' }
  const all = { storage, notifications, webhookPolicy: { allowedHosts: [service.host] }, ...options }
  const world = await buildConsole(t, all)
  const phone = await world.signIn('a-token')
  const { request } = service.subscribe()
  const subscribe = () => world.as(phone.cookie)('POST', '/notifications/subscriptions', { body: request })
  t.match(await subscribe(), { status: 201 })
  const channels = storage.channels!
  return {
    ...world,
    options: all,
    storage,
    channels,
    phone,
    subscribe,
    subscribed: async () => (await channels.subscriptions()).length,
  }
}

t.test('a browser whose token is refused is told nothing more by web push', async (t) => {
  let isLetIn = true
  const { as, phone, channels, clock, subscribed } = await told(t, { authenticate: () => isLetIn })
  const { removeSubscription } = channels
  channels.removeSubscription = () => Promise.reject(new Error('full'))
  isLetIn = false
  t.match(await as(phone.cookie)('GET', '/sessions'), { status: 401 })
  channels.removeSubscription = removeSubscription
  await until(async () => {
    await clock.advance(1_000)
    return (await subscribed()) === 0
  }, 'the browser to be forgotten')
})

t.test('a browser that is told anew while it is signed out is told nothing more by web push', async (t) => {
  let asked = 0
  const { as, signIn, phone, channels, subscribe, subscribed } = await told(t, { authenticate: () => ++asked > 0 })
  const laptop = await signIn('a-token')
  const { removeSubscription } = channels
  let remove = (): void => {}
  const isAsked = new Promise<void>((resolve) => {
    channels.removeSubscription = (id) => {
      resolve()
      return new Promise<void>((go) => (remove = go)).then(() => removeSubscription.call(channels, id))
    }
  })
  const ending = as(laptop.cookie)('DELETE', `/console/sessions/${phone.id}`)
  await isAsked
  const before = asked
  const again = subscribe()
  await until(() => asked > before, 'the browser to be let in')
  remove()
  t.match(await ending, { status: 204 })
  t.match(await again, { status: 401 })
  t.equal(await subscribed(), 0)
})

const isToken = ({ headers }: { headers: { authorization?: string | undefined } }) =>
  headers.authorization === 'Bearer a-token'

t.test('a browser whose sign-in has ended by itself can be told nothing more, also after a restart', async (t) => {
  const clock = new VirtualClock()
  const { as, phone, storage, subscribed, options, worker } = await told(t, { authenticate: isToken, clock })
  await clock.advance(13 * HOUR)
  t.match(await as(phone.cookie)('GET', '/sessions'), { status: 401 })
  await worker.close()
  const next = await buildConsole(t, { ...options, storage, clock })
  const laptop = await next.signIn('a-token')
  const list = async () => (await next.as(laptop.cookie)('GET', '/console/sessions')).json
  t.match(await list(), [{ current: true }, { id: phone.id, isOver: true }])
  t.match(await next.as(phone.cookie)('GET', '/sessions'), { status: 401 })
  t.match(await next.as(laptop.cookie)('DELETE', `/console/sessions/${phone.id}`), { status: 204 })
  t.equal(await subscribed(), 0)
  t.match(await list(), [{ current: true }])
  t.equal((await list()).length, 1)
})

t.test(
  'a browser that is signed out for another one of its caller, who has too many, is told nothing more',
  async (t) => {
    const clock = new VirtualClock()
    const { phone, storage, subscribed, options, worker } = await told(t, { authenticate: isToken, clock })
    const signIns = storage.signIns!
    const [kept] = await signIns.list()
    for (let other = 1; other < 50; other++)
      await signIns.save({
        ...kept!,
        id: `other-${other}`,
        secretHash: `hash-${other}`,
        lastSeenAt: kept!.lastSeenAt + 1,
      })
    await worker.close()
    await clock.advance(1_000)
    const next = await buildConsole(t, { ...options, storage, clock })
    t.equal(await subscribed(), 1)
    await next.signIn('a-token')
    t.match(await next.as(phone.cookie)('GET', '/sessions'), { status: 401 })
    await turns(50)
    t.equal(await subscribed(), 0)
  },
)
