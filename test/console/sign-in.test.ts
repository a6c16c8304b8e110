import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { SOME_CWD, until } from '../fixtures/build.js'
import { buildConsole } from '../fixtures/console.js'
import {
  allAnswered,
  axe,
  buildConsole as build,
  isLive,
  openConsole,
  shot,
  skipWithoutChromium,
  type WindowOptions,
} from '../fixtures/console-browser.js'
import { pathProxy } from '../fixtures/path-proxy.js'
import { PushService } from '../fixtures/push-service.js'

const skip = skipWithoutChromium

const HOUR_MS = 3_600_000
const ANN = 'token-of-ann'
const BEN = 'token-of-ben'

/** A gateway that asks who comes, a session of it, and windows on it. */
async function world(t: Test, options: Parameters<typeof buildConsole>[1] = {}) {
  build()
  const gateway = await buildConsole(t, { script: {}, console: { sessionTtlMs: HOUR_MS }, ...options })
  const api = `/${(options.basePath ?? '/v1').replace(/^\//, '')}`
  const as = (token: string) => ({ authorization: `Bearer ${token}` })
  const session = async (title: string) => {
    const body = { cwd: SOME_CWD, profile: 'scripted', title, approvalTimeoutMs: 0 }
    const { json } = await gateway.call('POST', '/sessions', body, as(ANN))
    return { id: json.id as string, runner: gateway.engine.last }
  }
  const signIns = async () => (await gateway.call('GET', '/console/sessions', undefined, as(ANN))).json
  const open = (t: Test, at: string, { origin = gateway.origin, ...more }: WindowOptions & { origin?: string } = {}) =>
    openConsole(t, `${origin}${api}/console/`, { at, loses: true, ...more })
  return { ...gateway, session, signIns, open, as }
}

async function enter(page: Page, token = ANN): Promise<void> {
  await page.getByLabel('Token').fill(token)
  await page.keyboard.press('Enter')
}
const ended = (page: Page) => page.getByText('Your sign-in has ended.').waitFor()

t.test('who is not let in signs in, is signed out from elsewhere, and goes on', { skip }, async (t) => {
  const { session, signIns, open, call, as, origin } = await world(t)
  const { id, runner } = await session('Tides')
  runner.say('High water at six')
  const { page, context, complaints } = await open(t, 'sessions')
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await shot(page, 'sign-in')
  t.strictSame(await axe(page), [])
  await enter(page, 'not-a-token')
  await page.getByText('The gateway does not take this token.').waitFor()
  t.equal(await page.getByLabel('Token').inputValue(), '', 'what was tried does not stay')
  await enter(page)
  await page.getByRole('link', { name: 'Tides' }).waitFor()
  await page.getByText('Signed in as ann').waitFor()
  await isLive(page)

  const [cookie] = await context.cookies(`${origin}/v1`)
  t.match(cookie, { httpOnly: true, sameSite: 'Strict' })
  t.notOk(cookie?.value.includes(ANN))
  const kept = await page.evaluate<string>('JSON.stringify([document.cookie, localStorage, sessionStorage])')
  t.equal(kept, '["",{},{}]', 'nothing is in reach of a script')

  // what is refused for a moment is asked again
  let reads = 0
  await page.route('**/sessions/*/events?*', (route) =>
    reads++ > 0
      ? route.continue()
      : route.fulfill({
          status: 429,
          headers: { 'retry-after': '0' },
          json: { code: 'SG_ERR_RATE_LIMITED', detail: 'No.' },
        }),
  )
  await page.getByRole('link', { name: 'Tides' }).click()
  const log = page.getByRole('log')
  await log.getByText('High water at six').waitFor()
  const [signIn, ...others] = await signIns()
  t.strictSame(others, [])
  t.equal((await call('DELETE', `/console/sessions/${signIn.id}`, undefined, as(ANN))).status, 204)
  await ended(page)
  t.equal(await log.getByText('High water at six').count(), 1, 'what was shown is still there')
  await page.getByRole('textbox', { name: 'Message' }).fill('And low water?')
  await page.getByRole('button', { name: 'Send' }).click()
  await log.locator('.outgoing[data-failed=true]').getByText('And low water?').waitFor()
  t.strictSame(await axe(page), [])
  await shot(page, 'signed-out-elsewhere')
  runner.say('Meanwhile more')
  await enter(page)
  await isLive(page)
  await log.getByText('Meanwhile more').waitFor()
  await log.getByRole('button', { name: 'Try again' }).click()
  await log.locator('.outgoing').waitFor({ state: 'detached' })
  t.strictSame(
    runner.sent.map(({ text }) => text),
    ['And low water?'],
  )
  t.equal(await log.getByText('And low water?').count(), 1)

  await page.route('**/console/sessions/*', (route) => route.abort())
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByText('The gateway did not answer.').waitFor()
  await page.unroute('**/console/sessions/*')
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  t.strictSame(await signIns(), [])
  t.strictSame(await context.cookies(), [])
  t.equal((await call('GET', `/sessions/${id}`, undefined, as(ANN))).status, 200)
  t.strictSame(complaints, [])
})

t.test(
  'a sign-in that ends behind a dialog is made anew without giving up what is filled in there',
  { skip },
  async (t) => {
    const { signIns, open, call, as } = await world(t)
    const { page, complaints } = await open(t, 'sessions')
    await enter(page)
    await isLive(page)
    await page.getByRole('button', { name: 'New session' }).click()
    const prompt = page.getByLabel('First message')
    await prompt.fill('Look at the tides')
    const [{ id }] = await signIns()
    await call('DELETE', `/console/sessions/${id}`, undefined, as(ANN))
    await ended(page)
    await page.getByLabel('Token').click()
    t.strictSame(await axe(page), [])
    await enter(page)
    await isLive(page)
    await prompt.press('End')
    await prompt.pressSequentially(' again')
    t.equal(await prompt.inputValue(), 'Look at the tides again')
    t.strictSame(complaints, [])
  },
)

t.test('what one person saw is not left to the next', { skip }, async (t) => {
  const { session, signIns, open, call, as } = await world(t, {
    profiles: ['scripted', 'other'].map((name) => ({ name, engine: 'provider', provider: { id: 'scripted' } })),
  })
  await session('Shared')
  const body = { cwd: SOME_CWD, profile: 'other', title: 'Of ann alone' }
  await call('POST', '/sessions', body, as(ANN))
  const { page, complaints } = await open(t, 'sessions')
  await enter(page)
  await page.getByRole('link', { name: 'Of ann alone' }).click()
  await page.getByRole('textbox', { name: 'Message' }).fill('A secret')
  const [{ id }] = await signIns()
  await call('DELETE', `/console/sessions/${id}`, undefined, as(ANN))
  await ended(page)
  await enter(page, BEN)
  await page.getByText('Signed in as ben').waitFor()
  await page.getByText('There is no such session.').waitFor()
  await page.getByRole('navigation').getByRole('link', { name: 'Sessions' }).click()
  await page.getByRole('link', { name: 'Shared' }).click()
  t.equal(await page.getByRole('textbox', { name: 'Message' }).inputValue(), '')
  t.equal(await page.getByText('Of ann alone').count(), 0)
  t.strictSame(complaints, [])
})

t.test('a sign-in that nobody uses ends, and the page that is open says so', { skip }, async (t) => {
  const { session, open, clock } = await world(t)
  const { runner } = await session('Long')
  const { page, complaints } = await open(t, 'sessions')
  await enter(page)
  await page.getByRole('link', { name: 'Long' }).click()
  await isLive(page)
  await clock.advance(HOUR_MS - 60_000)
  // a command is use; looking on is not
  await page.getByRole('textbox', { name: 'Message' }).fill('Are you there?')
  await page.keyboard.press('Enter')
  await page.getByRole('log').getByText('Are you there?').waitFor()
  await page.getByRole('log').locator('.outgoing').waitFor({ state: 'detached' })
  // nobody is there from now on; the page follows the feed and reads its list anew all the same
  await page.evaluate('{ const now = Date.now.bind(Date); Date.now = () => now() + 120_000 }')
  await allAnswered(page)
  await page.evaluate("location.hash = '#/sessions'")
  await page.getByRole('link', { name: 'Long' }).waitFor()
  await clock.advance(HOUR_MS - 60_000)
  runner.complete()
  await page.locator('.session-row', { hasText: 'Idle' }).waitFor()
  const [{ status }] = await Promise.all([
    page.waitForResponse(/sessions\?limit/).then((response) => ({ status: response.status() })),
    page.evaluate("void document.dispatchEvent(new Event('visibilitychange'))"),
  ])
  t.equal(status, 200)
  await clock.advance(120_000)
  await ended(page)
  t.equal(await page.getByRole('link', { name: 'Long' }).count(), 1, 'what was shown is still there')
  t.strictSame(complaints, [])
})

t.test('who signs in again in one window goes on in the one that stands beside it', { skip }, async (t) => {
  const { session, open, signIns, call, as } = await world(t)
  await session('Tides')
  const { page, context, complaints } = await open(t, 'sessions')
  await enter(page)
  await isLive(page)
  const beside = await context.newPage()
  await beside.goto(page.url())
  await isLive(beside)
  const [{ id }] = await signIns()
  await call('DELETE', `/console/sessions/${id}`, undefined, as(ANN))
  await ended(page)
  await ended(beside)
  await enter(page)
  await page.getByText('Signed in as ann').waitFor()
  // both were seen all the time
  await beside.evaluate("void dispatchEvent(new Event('focus'))")
  await isLive(beside)
  t.strictSame(complaints, [])
})

t.test('a browser elsewhere is signed out from the settings', { skip }, async (t) => {
  const { open, signIns } = await world(t)
  const [mine, other] = [await open(t, 'settings'), await open(t, 'sessions')]
  for (const { page } of [other, mine]) {
    await enter(page)
    await isLive(page)
  }
  const { page } = mine
  const rows = page.locator('.sign-in-row')
  await rows.nth(1).waitFor()
  t.equal(await rows.filter({ hasText: 'this browser' }).count(), 1)
  t.strictSame(await axe(page), [])
  await rows
    .filter({ hasNotText: 'this browser' })
    .getByRole('button', { name: /^Sign out/ })
    .click()
  await ended(other.page)
  await rows.nth(1).waitFor({ state: 'detached' })
  t.equal((await signIns()).length, 1)
  await isLive(page)
  await enter(other.page)
  await isLive(other.page)
  for (const { complaints } of [mine, other]) t.strictSame(complaints, [])
})

t.test('sign-ins of one kind of browser are told apart by whoever hears their buttons', { skip }, async (t) => {
  const { open } = await world(t)
  const { page } = await open(t, 'sessions')
  await enter(page)
  await isLive(page)
  const userAgent = 'Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0.0.0'
  const common = { userAgent, lastSeenAt: Date.now(), expiresAt: Date.now() + 60_000 }
  await page.route('**/console/sessions', (route) =>
    route.fulfill({
      json: [
        { ...common, id: '1', createdAt: Date.UTC(2026, 0, 2, 12), current: true },
        { ...common, id: '2', createdAt: Date.UTC(2026, 1, 3, 12) },
        { ...common, id: '3', createdAt: Date.UTC(2026, 2, 4, 12) },
      ],
    }),
  )
  await page.locator('nav').getByRole('link', { name: 'Settings' }).click()
  const buttons = page.locator('.sign-in-row button')
  await buttons.nth(2).waitFor()
  const names = await buttons.evaluateAll((all) => all.map((one) => String(one.getAttribute('aria-label'))))
  for (const [at, name] of [
    /^Sign out Chrome on Linux, this browser$/,
    /^Sign out Chrome on Linux, signed in Feb 3, 2026/,
    /^Sign out Chrome on Linux, signed in Mar 4, 2026/,
  ].entries())
    t.match(names[at], name)
})

t.test('sign-ins that could not be read, and one that could not be ended, can be tried again', { skip }, async (t) => {
  const { open, signIns } = await world(t)
  const [{ page }, other] = [await open(t, 'sessions'), await open(t, 'sessions')]
  for (const entered of [other.page, page]) {
    await enter(entered)
    await isLive(entered)
  }
  const again = page.getByRole('button', { name: 'Try again' })
  const rows = page.locator('.sign-in-row')
  await page.route('**/console/sessions', (route) => route.abort())
  await page.locator('nav').getByRole('link', { name: 'Settings' }).click()
  await again.waitFor()
  t.equal(await rows.count(), 0)
  await page.unroute('**/console/sessions')
  await again.click()
  await rows.nth(1).waitFor()
  await page.route('**/console/sessions/*', (route) => route.abort())
  const theirs = rows.filter({ hasNotText: 'this browser' })
  await theirs.getByRole('button', { name: /^Sign out/ }).click()
  await again.waitFor()
  await page.unroute('**/console/sessions/*')
  await again.click()
  await theirs.waitFor({ state: 'detached' })
  await again.waitFor({ state: 'detached' })
  t.equal((await signIns()).length, 1)
})

for (const { strips, passesHost } of [
  { strips: true, passesHost: true },
  { strips: false, passesHost: false },
])
  t.test(
    `behind a proxy that ${strips ? 'takes its path off' : 'leaves its path on'} and ${passesHost ? 'passes the host' : 'has a public address'}`,
    { skip },
    async (t) => {
      const proxy = await pathProxy(t, { prefix: '/agents', strips, passesHost })
      const { session, open, port } = await world(t, {
        ...(!strips && { basePath: '/agents/v1' }),
        ...(!passesHost && { notifications: { publicUrl: `${proxy.origin}/agents/v1` } }),
      })
      proxy.target = port
      const { runner } = await session('Proxied')
      const origin = strips ? `${proxy.origin}/agents` : proxy.origin
      const { page, context, complaints, strangers } = await open(t, 'sessions', { origin })
      await enter(page)
      await isLive(page)
      const [cookie] = await context.cookies(`${proxy.origin}/agents/v1`)
      t.equal(cookie?.path, '/agents/v1')
      t.strictSame(await context.cookies(`${proxy.origin}/elsewhere`), [])
      const sockets: string[] = []
      page.on('websocket', (socket) => sockets.push(socket.url()))
      await page.getByRole('link', { name: 'Proxied' }).click()
      await page.getByRole('textbox', { name: 'Message' }).fill('Through?')
      await page.keyboard.press('Enter')
      await page.getByRole('log').getByText('Through?').waitFor()
      runner.say('Through.')
      await page.getByRole('log').getByText('Through.', { exact: true }).waitFor()
      await page.reload()
      await page.getByRole('log').getByText('Through.', { exact: true }).waitFor()
      t.ok(
        sockets.some((url) => url.includes('/agents/v1/sessions/')),
        'by a socket',
      )
      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.getByRole('heading', { name: 'Sign in' }).waitFor()
      t.strictSame(await context.cookies(), [], 'the cookie is gone from where it was put')
      t.strictSame(complaints, [])
      t.strictSame(strangers, [])
    },
  )

t.test('over plain http everything works that such a page may', { skip }, async (t) => {
  const { session, open, port } = await world(t)
  const { runner } = await session('Plain')
  const { page, complaints } = await open(t, 'sessions', { origin: `http://gateway.test:${port}` })
  t.equal(await page.evaluate('isSecureContext'), false)
  await enter(page)
  await page.getByRole('link', { name: 'Plain' }).click()
  await page.getByRole('textbox', { name: 'Message' }).fill('Is anybody there?')
  await page.keyboard.press('Enter')
  await page.getByRole('log').getByText('Is anybody there?').waitFor()
  await page.locator('.outgoing').waitFor({ state: 'detached' })
  t.equal(runner.sent.length, 1)
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('button', { name: 'Copy as Markdown' }).click()
  await page.getByText(/copy over https alone/).waitFor()
  // a header that such pages have no use for
  t.strictSame(
    complaints.filter((text) => !/^The Cross-Origin-Opener-Policy header has been ignored/.test(text)),
    [],
  )
})

t.test('a browser is told, of what was chosen, until it is turned off', { skip }, async (t) => {
  const service = await PushService.start(t)
  const { session, open, origin, call, as } = await world(t, {
    notifications: { channels: [{ format: 'web_push', subject: 'mailto:ops@example.com' }] },
    webhookPolicy: { allowedHosts: [service.host] },
  })
  const { runner } = await session('Build')
  const { page, context, complaints } = await open(t, 'settings', { workers: true })
  await context.grantPermissions(['notifications'], { origin })
  // Chromium asks a service of its maker for a place to be told at: here it is the test's
  const { endpoint, keys, received } = service.subscribe()
  await page.evaluate(
    ({ endpoint, keys }) => {
      const page = globalThis as unknown as {
        PushManager: { prototype: Record<string, unknown> }
        asked: { applicationServerKey: Uint8Array; userVisibleOnly: boolean }
      }
      let made: object | null = null
      Object.assign(page.PushManager.prototype, {
        getSubscription: async () => made,
        subscribe: async (options: typeof page.asked) => {
          page.asked = options
          const json = { endpoint, keys, expirationTime: null }
          made = {
            endpoint,
            toJSON: () => json,
            unsubscribe: async () => {
              made = null
              return true
            },
          }
          return made
        },
      })
    },
    { endpoint, keys },
  )
  await enter(page)
  await page.getByRole('checkbox', { name: 'Something waits for me' }).waitFor()
  await page.getByRole('checkbox', { name: 'A session has failed' }).uncheck()
  t.strictSame(await axe(page), [])
  await shot(page, 'push')
  await page.getByRole('button', { name: 'Turn on' }).click()
  await page.getByText('This browser is told.').waitFor()
  const asked = await page.evaluate(
    () =>
      (globalThis as unknown as { asked: { applicationServerKey: Uint8Array; userVisibleOnly: boolean } }).asked
        .applicationServerKey.length,
  )
  t.equal(asked, 65, 'with the key of the gateway')
  void runner.host.requestPermission({ toolName: 'Bash', toolUseId: 't', input: { command: 'ls' } }).catch(() => {})
  await page.locator('nav').getByText('1', { exact: true }).waitFor()
  await until(() => received.length > 0 || service.faults.length > 0, 'the browser is told')
  t.strictSame(service.faults, [])
  t.match(received[0]?.message, { type: 'permission_requested' })
  await page.getByRole('button', { name: 'Turn off' }).click()
  await page.getByRole('button', { name: 'Turn on' }).click()
  await page.getByText('This browser is told.').waitFor()
  await page.getByRole('navigation', { name: 'Screens' }).getByRole('button', { name: 'Sign out' }).click()
  await page.getByLabel('Token').waitFor()
  const { status } = await call('DELETE', '/notifications/subscriptions', { endpoint }, as(ANN))
  t.equal(status, 404, 'who signs out is not told here any more')
  t.strictSame(complaints, [])
})
