import t from 'tap'
import { until } from '../fixtures/build.js'
import { buildConsole } from '../fixtures/console.js'
import { allAnswered, goTo, isLive, openConsole, withBrowser } from '../fixtures/console-browser.js'
import { cuttingProxy } from '../fixtures/cutting-proxy.js'

const skip = withBrowser()

const SIGN_IN = { token: 'token-of-ann', path: '/v1' }

t.test('settings that were opened while the gateway was away are read once it is back', { skip }, async (t) => {
  const { port, call } = await buildConsole(t, { script: {} })
  const proxy = await cuttingProxy(t)
  proxy.target = port
  const { page, complaints } = await openConsole(t, `${proxy.origin}/v1/console/`, { at: 'usage', loses: true })
  await page.getByLabel('Token').fill(SIGN_IN.token)
  await page.keyboard.press('Enter')
  await isLive(page)
  // its parts were loaded
  await goTo(page, '#/settings')
  await page.locator('.sign-in-row').waitFor()
  await goTo(page, '#/usage')
  await page.locator('.sign-in-row').waitFor({ state: 'detached' })
  proxy.target = undefined
  proxy.cut()
  await page.locator('nav').getByText('Reconnecting').waitFor()
  // the health is asked for again by itself, a quarter of a minute later
  await page.evaluate('globalThis.setInterval = () => 0')
  await goTo(page, '#/settings')
  const failures = page.locator('.settings').getByRole('alert')
  await until(async () => (await failures.count()) === 2, 'what cannot be read told')
  await call('POST', '/console/sessions', SIGN_IN)
  proxy.target = port
  await page.locator('nav').getByText('Caught up, nothing missed').waitFor()
  await until(async () => (await failures.count()) === 0, 'that nothing is wrong any more')
  t.equal(await page.locator('.sign-in-row').count(), 2)
  t.strictSame(complaints, [])
})

t.test('whoever comes back to the settings sees who has signed in meanwhile', { skip }, async (t) => {
  const { origin, call } = await buildConsole(t, { script: {} })
  const { page } = await openConsole(t, `${origin}/v1/console/`, { at: 'settings', loses: true })
  await page.getByLabel('Token').fill(SIGN_IN.token)
  await page.keyboard.press('Enter')
  const rows = page.locator('.sign-in-row')
  await rows.waitFor()
  await isLive(page)
  await call('POST', '/console/sessions', SIGN_IN)
  await page.evaluate("void dispatchEvent(new Event('focus'))")
  await until(async () => (await rows.count()) === 2, 'the other sign-in')
  const sees = page.locator('.settings').getByText('all profiles', { exact: true })
  await sees.waitFor()
  await page.evaluate("void fetch('sessions/current', { method: 'DELETE' })")
  await page.getByLabel('Token').waitFor()
  t.equal(await page.locator('.settings').count(), 1)
  t.equal(await sees.count(), 0, 'of nobody it is said what they see')
})

t.test('that a sign-in could not be ended stays said when the list of them is read again', { skip }, async (t) => {
  const { origin, call } = await buildConsole(t, { script: {} })
  await call('POST', '/console/sessions', SIGN_IN)
  const { page } = await openConsole(t, `${origin}/v1/console/`, { at: 'settings', loses: true })
  await page.getByLabel('Token').fill(SIGN_IN.token)
  await page.keyboard.press('Enter')
  const others = page.locator('.sign-in-row').filter({ hasNotText: 'this browser' })
  await page.route('**/console/sessions/*', (route) => route.abort())
  await others.getByRole('button').click()
  const failure = page.locator('.settings').getByRole('alert')
  await failure.waitFor()
  const listed = page.waitForRequest((request) => request.url().endsWith('/console/sessions'))
  await page.evaluate("void dispatchEvent(new Event('focus'))")
  await listed
  await allAnswered(page)
  t.equal(await failure.count(), 1)
  await page.unrouteAll()
  await failure.getByRole('button', { name: 'Try again' }).click()
  await others.waitFor({ state: 'detached' })
  t.equal(await failure.count(), 0)
})
