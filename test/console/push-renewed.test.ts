import t from 'tap'
import { buildServer, until } from '../fixtures/build.js'
import { buildConsole as buildGuarded } from '../fixtures/console.js'
import { goTo, openConsole, withBrowser } from '../fixtures/console-browser.js'
import { PushService } from '../fixtures/push-service.js'

const skip = withBrowser()

/** A browser that is told, as far as a page sees it. */
const SUBSCRIBED = `
  Object.defineProperty(Notification, 'permission', { get: () => 'granted' })
  const endpoint = 'https://push.example/1'
  const subscription = { endpoint, toJSON: () => ({ endpoint, keys: { p256dh: 'a', auth: 'b' } }) }
  navigator.serviceWorker.getRegistration = async () => ({ pushManager: { getSubscription: async () => subscription } })
`

t.test('a browser is told what it was, whenever the console is opened', { skip }, async (t) => {
  const { url } = await buildServer(t, { console: true, script: {} })
  const { context } = await openConsole(t, `${url}/v1/console/`, { at: 'usage', loses: true })
  const page = await context.newPage()
  await page.addInitScript(SUBSCRIBED)
  await page.route('**/console/me', async (route) => {
    const response = await route.fetch()
    const me = await response.json()
    return route.fulfill({ response, json: { ...me, features: { ...me.features, webPush: true } } })
  })
  const asked: { events?: string[] }[] = []
  await page.route('**/notifications/subscriptions', (route) => {
    asked.push(route.request().postDataJSON())
    return route.fulfill({ status: 201, json: { id: '1' } })
  })
  await page.goto(`${url}/v1/console/#/usage`)
  await until(() => asked.length === 1)
  t.equal(asked[0]?.events, undefined, 'one that has not kept what was chosen is not told nothing')
  await page.evaluate("localStorage.setItem('push-events /v1/console/push/', 'session_error,turn_completed')")
  await page.reload()
  await until(() => asked.length === 2)
  t.strictSame(asked[1]?.events, ['turn_completed', 'session_error'])
})

t.test('a browser whose sign-in has ended by itself is told still, until it is signed out', { skip }, async (t) => {
  const service = await PushService.start(t)
  const notifications = { channels: [{ format: 'web_push' as const }], publicUrl: 'https://gateway.example' }
  const { origin, as, signIn, clock } = await buildGuarded(t, {
    ...{ script: {}, notifications, webhookPolicy: { allowedHosts: [service.host] } },
  })
  const { cookie } = await signIn('token-of-ann')
  await as(cookie)('POST', '/notifications/subscriptions', { body: service.subscribe().request })
  await clock.advance(13 * 3_600_000)
  const { page } = await openConsole(t, `${origin}/v1/console/`, { at: 'settings', loses: true })
  await page.getByLabel('Token').fill('token-of-ann')
  await page.keyboard.press('Enter')
  const lost = page.locator('.sign-in-row', { hasText: 'told by notifications still' })
  await lost.getByRole('button').click()
  await lost.waitFor({ state: 'detached' })
  t.equal(await page.locator('.sign-in-row').count(), 1)
})

/** A browser as far as a page sees it, that keeps a subscription over loading the page again. */
const subscribing = (request: object) => `
  Object.defineProperty(Notification, 'permission', { get: () => 'granted' })
  Notification.requestPermission = async () => 'granted'
  const scope = 'subscribed at ' + location.pathname
  const subscription = {
    toJSON: () => (${JSON.stringify(request)}),
    unsubscribe: async () => localStorage.removeItem(scope),
  }
  const registration = {
    active: {},
    pushManager: {
      getSubscription: async () => (localStorage.getItem(scope) ? subscription : null),
      subscribe: async () => (localStorage.setItem(scope, 'yes'), subscription),
    },
  }
  navigator.serviceWorker.getRegistration = async () => registration
  navigator.serviceWorker.register = async (address) => {
    globalThis.worker = String(address)
    return registration
  }
`

t.test('a browser that one person let be told is not told for the next who signs in', { skip }, async (t) => {
  const service = await PushService.start(t)
  const notifications = { channels: [{ format: 'web_push' as const }], publicUrl: 'https://gateway.example' }
  const { origin, clock } = await buildGuarded(t, {
    ...{ script: {}, notifications, webhookPolicy: { allowedHosts: [service.host] } },
  })
  const { page } = await openConsole(t, `${origin}/v1/console/`, { at: 'usage', loses: true })
  await page.addInitScript(subscribing(service.subscribe().request))
  const comeIn = async (name: string) => {
    await page.reload()
    await page.getByLabel('Token').fill(`token-of-${name}`)
    await page.keyboard.press('Enter')
    await page.getByText(`Signed in as ${name}`).waitFor()
    await goTo(page, '#/settings')
  }
  /** The sign-in ends by itself. */
  const leave = () => clock.advance(13 * 3_600_000)
  await comeIn('ann')
  await page.getByRole('button', { name: 'Turn on' }).click()
  await page.getByText('This browser is told.').waitFor()
  await leave()
  await comeIn('ann')
  await page.getByText('This browser is told.').waitFor()
  await leave()
  const asked: string[] = []
  page.on('request', (request) => {
    if (request.url().endsWith('/notifications/subscriptions')) asked.push(request.method())
  })
  await comeIn('ben')
  await page.getByRole('button', { name: 'Turn on' }).waitFor()
  t.notOk(asked.includes('POST'), 'nor are they told in this browser of what is theirs, who never asked for it')
})

t.test(
  'what a browser is to tell of one gateway is not what was chosen at another one of its origin',
  { skip },
  async (t) => {
    const service = await PushService.start(t)
    const notifications = { channels: [{ format: 'web_push' as const }], publicUrl: 'https://gateway.example' }
    const { url } = await buildServer(t, {
      ...{ console: true, script: {}, notifications, webhookPolicy: { allowedHosts: [service.host] } },
    })
    const { context } = await openConsole(t, `${url}/v1/console/`, { at: 'usage', loses: true })
    const page = await context.newPage()
    await page.addInitScript(subscribing(service.subscribe().request))
    const asked: string[][] = []
    page.on('request', (request) => {
      if (request.method() === 'POST' && request.url().endsWith('/notifications/subscriptions'))
        asked.push(request.postDataJSON().events)
    })
    // the other gateway, as far as this one can be told from it
    await page.route('**/other/**', (route) =>
      route.continue({ url: route.request().url().replace('/other/', '/v1/') }),
    )
    const turnOn = async () => {
      await page.getByRole('button', { name: 'Turn on' }).click()
      await page.getByText('This browser is told.').waitFor()
    }
    await page.goto(`${url}/v1/console/#/settings`)
    await turnOn()
    await page.goto(`${url}/other/console/#/settings`)
    await page.getByLabel('A session has ended').check()
    await turnOn()
    t.strictSame(new URL(await page.evaluate('worker')).searchParams.get('events')?.split(','), asked[1])
    const [first, second] = asked
    t.notSame(first, second)
    await page.goto(`${url}/v1/console/#/settings`)
    await until(() => asked.length === 3)
    t.same(asked[2], first)
  },
)

t.test(
  'whoever turns notifications on again finds what they chose before, and is told what is waited for',
  { skip },
  async (t) => {
    const service = await PushService.start(t)
    const notifications = { channels: [{ format: 'web_push' as const }], publicUrl: 'https://gateway.example' }
    const { origin } = await buildGuarded(t, {
      ...{ script: {}, notifications, webhookPolicy: { allowedHosts: [service.host] } },
    })
    const { page } = await openConsole(t, `${origin}/v1/console/`, { at: 'settings', loses: true })
    await page.addInitScript(subscribing(service.subscribe().request))
    const signIn = async (name: string) => {
      await page.getByLabel('Token').fill(`token-of-${name}`)
      await page.keyboard.press('Enter')
    }
    const ended = page.getByLabel('A session has ended')
    const waits = page.getByText('Waits for the browser and the gateway…')
    await page.reload()
    await signIn('ann')
    await ended.check()
    let isHeld = true
    const held: (() => void)[] = []
    await page.route('**/notifications/subscriptions**', async (route) => {
      if (isHeld) await new Promise<void>((resolve) => held.push(resolve))
      await route.continue()
    })
    for (const name of ['Turn on', 'Turn off']) {
      const press = page.getByRole('button', { name })
      await press.click()
      await waits.waitFor()
      t.ok(await press.isDisabled())
      await until(() => held.length === 1)
      held.shift()!()
      await waits.waitFor({ state: 'detached' })
    }
    isHeld = false
    await page.reload()
    await page.getByRole('button', { name: 'Turn on' }).waitFor()
    t.ok(await ended.isChecked())
    await page.getByRole('button', { name: 'Sign out' }).first().click()
    await signIn('ben')
    await page.getByRole('button', { name: 'Turn on' }).waitFor()
    t.notOk(await ended.isChecked(), 'what one has chosen is nothing to another')
  },
)
