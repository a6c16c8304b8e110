import type { Page } from 'playwright-core'
import t from 'tap'
import { consoleWorld, openConsole, skipWithoutChromium } from '../fixtures/console-browser.js'

const skip = skipWithoutChromium

/** What the page shows only after a while is shown at once. */
async function hurry(page: Page): Promise<void> {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('Animation.enable')
  await devtools.send('Animation.setPlaybackRate', { playbackRate: 1_000 })
}

t.test('a page whose script never comes says so', { skip }, async (t) => {
  const { consoleUrl } = await consoleWorld(t)
  const { page, context } = await openConsole(t, consoleUrl, { loses: true })
  await context.route('**/assets/index-*.js', (route) => route.fulfill({ status: 404, body: 'Not here' }))
  await hurry(page)
  await page.reload({ waitUntil: 'commit' })
  await page.getByText('The console has not begun. Load the page anew').waitFor()
})

t.test('one whose first answer never comes can be loaded anew', { skip }, async (t) => {
  const { consoleUrl } = await consoleWorld(t)
  const { page, context } = await openConsole(t, consoleUrl, { loses: true })
  let isAway = true
  await context.route('**/console/me', (route) => (isAway ? undefined : route.continue()))
  await hurry(page)
  await page.reload({ waitUntil: 'commit' })
  const anew = page.getByRole('button', { name: 'Load the page anew' })
  await anew.waitFor()
  isAway = false
  await anew.click()
  await page.locator('nav').getByText('Live', { exact: true }).waitFor()
})

t.test('one whose first answer fails begins by itself once the gateway is there', { skip }, async (t) => {
  const { consoleUrl } = await consoleWorld(t)
  const { page, context, complaints } = await openConsole(t, consoleUrl, { loses: true })
  await context.route('**/console/me', (route) => route.abort())
  await page.reload()
  await page.getByRole('button', { name: 'Try again' }).waitFor()
  await context.unroute('**/console/me')
  await page.locator('nav').getByText('Live', { exact: true }).waitFor()
  t.strictSame(complaints, [])
})

t.test('it does so at once when the device is online again', { skip }, async (t) => {
  const { consoleUrl } = await consoleWorld(t)
  const { page, context } = await openConsole(t, consoleUrl, { loses: true })
  // what would be tried again after a while is not
  await page.addInitScript(
    `{ const { setTimeout } = globalThis; globalThis.setTimeout = (run, ms, ...rest) => setTimeout(run, ms >= 500 && ms <= 30_000 ? 2 ** 30 : ms, ...rest) }`,
  )
  await context.route('**/console/me', (route) => route.abort())
  await page.reload()
  await page.getByRole('button', { name: 'Try again' }).waitFor()
  await context.unroute('**/console/me')
  await page.evaluate("dispatchEvent(new Event('online'))")
  await page.locator('nav').getByText('Live', { exact: true }).waitFor()
})
