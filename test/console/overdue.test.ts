import t from 'tap'
import { closeBrowserAfter, consoleWorld, openConsole, skipWithoutChromium } from '../fixtures/console-browser.js'

const skip = skipWithoutChromium
closeBrowserAfter(t)

t.test('a page whose script never comes says so', { skip }, async (t) => {
  const { consoleUrl } = await consoleWorld(t)
  const { page, context } = await openConsole(t, consoleUrl, { loses: true })
  await context.route('**/assets/index-*.js', (route) => route.fulfill({ status: 404, body: 'Not here' }))
  await page.reload({ waitUntil: 'commit' })
  await page.getByText('The console has not begun. Load the page anew').waitFor()
})

t.test('one whose first answer never comes can be loaded anew', { skip }, async (t) => {
  const { consoleUrl } = await consoleWorld(t)
  const { page, context } = await openConsole(t, consoleUrl, { loses: true })
  let isAway = true
  await context.route('**/console/me', (route) => (isAway ? undefined : route.continue()))
  await page.reload({ waitUntil: 'commit' })
  const anew = page.getByRole('button', { name: 'Load the page anew' })
  await anew.waitFor()
  isAway = false
  await anew.click()
  await page.locator('nav').getByText('Live', { exact: true }).waitFor()
})
