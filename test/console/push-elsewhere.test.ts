import t from 'tap'
import { buildConsole } from '../fixtures/console.js'
import { goTo, isLive, openConsole, withBrowser } from '../fixtures/console-browser.js'

const skip = withBrowser()

const WEB_PUSH = {
  notifications: { channels: [{ format: 'web_push' as const }], publicUrl: 'https://gateway.example' },
}

/** A browser as far as a page sees it, whose permission and subscription the test changes. */
const CHANGING = `
  globalThis.told = { permission: 'granted', isSubscribed: true }
  Object.defineProperty(Notification, 'permission', { get: () => told.permission })
  navigator.serviceWorker.getRegistration = async () => ({
    pushManager: { getSubscription: async () => (told.isSubscribed ? { toJSON: () => ({}) } : null) },
  })
`

t.test('whoever comes back to the settings sees what was changed of notifications elsewhere', { skip }, async (t) => {
  const { origin } = await buildConsole(t, { script: {}, ...WEB_PUSH })
  const { page } = await openConsole(t, `${origin}/v1/console/`, { at: 'usage', loses: true })
  await page.getByLabel('Token').fill('token-of-ann')
  await page.keyboard.press('Enter')
  await isLive(page)
  await page.evaluate(CHANGING)
  await goTo(page, '#/settings')
  await page.getByText('This browser is told.').waitFor()
  // in another window
  await page.evaluate("told.isSubscribed = false; void dispatchEvent(new Event('focus'))")
  await page.getByRole('button', { name: 'Turn on' }).waitFor()
  // in the settings of the browser
  await page.evaluate("told.permission = 'denied'; void dispatchEvent(new Event('focus'))")
  await page.getByText('This browser does not let this site').waitFor()
  t.equal(await page.getByRole('button', { name: 'Turn on' }).count(), 0)
})

t.test('that the browser was not told whether it may show notifications is said', { skip }, async (t) => {
  const { origin } = await buildConsole(t, { script: {}, ...WEB_PUSH })
  const { page } = await openConsole(t, `${origin}/v1/console/`, { at: 'settings', loses: true })
  await page.addInitScript(`{
    let permission = 'default'
    const answers = ['default', 'denied']
    Object.defineProperty(Notification, 'permission', { get: () => permission })
    Notification.requestPermission = async () => (permission = answers.shift())
    navigator.serviceWorker.getRegistration = async () => undefined
  }`)
  await page.reload()
  await page.getByLabel('Token').fill('token-of-ann')
  await page.keyboard.press('Enter')
  const turnOn = page.getByRole('button', { name: 'Turn on' })
  const dismissed = page.getByText('The browser was not told')
  await turnOn.click()
  await dismissed.waitFor()
  await turnOn.press('Enter')
  await page.getByText('This browser does not let this site').waitFor()
  t.equal(await dismissed.count(), 0)
  // what it was on has gone
  await page.getByRole('heading', { name: 'Notifications' }).and(page.locator(':focus')).waitFor()
})

t.test('a press on a notification leads to its place also where one has to sign in first', { skip }, async (t) => {
  const { origin } = await buildConsole(t, { script: {} })
  const { page } = await openConsole(t, `${origin}/v1/console/`, { at: 'usage', loses: true })
  await page.getByLabel('Token').waitFor()
  // as the worker tells it
  await page.evaluate(
    "void navigator.serviceWorker.dispatchEvent(new MessageEvent('message', { data: { go: '#/inbox' } }))",
  )
  await page.getByLabel('Token').fill('token-of-ann')
  await page.keyboard.press('Enter')
  await page.getByText('Signed in as ann').waitFor()
  t.match(page.url(), /#\/inbox$/)
})
