import type { Page } from 'playwright-core'
import t from 'tap'
import { closeBrowserAfter, consoleWorld, openConsole, skipWithoutChromium } from '../fixtures/console-browser.js'

const skip = skipWithoutChromium
closeBrowserAfter(t)

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
