import type { Page, Route } from 'playwright-core'
import t from 'tap'
import { buildServer, until } from '../fixtures/build.js'
import { goTo, openConsole, withBrowser } from '../fixtures/console-browser.js'

const skip = withBrowser()

const { url } = await buildServer(t, { console: true, script: {} })
const FIRST = 'usage?from=2026-01-01&to=2026-01-02'

/** What is asked for as a file is held back. */
async function holdsFiles(page: Page): Promise<Route[]> {
  const held: Route[] = []
  await page.route('**/v1/usage?*', (route) => {
    if (route.request().headers().accept !== 'text/csv') return route.fallback()
    held.push(route)
  })
  return held
}
const csv = (page: Page) => page.getByRole('button', { name: 'CSV' })
const waits = (page: Page) => page.getByText('Waits for the gateway…')

t.test('a second press of "CSV" asks for no second file while the first is on its way', { skip }, async (t) => {
  const { page } = await openConsole(t, `${url}/v1/console/`, { at: FIRST })
  const held = await holdsFiles(page)
  await csv(page).press('Enter')
  await waits(page).waitFor()
  await csv(page).press('Enter')
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    until(() => held.length > 0).then(() => held[0]!.continue()),
  ])
  t.equal(file.suggestedFilename(), 'usage-2026-01-01-2026-01-02.csv')
  await waits(page).waitFor({ state: 'detached' })
  t.equal(held.length, 1)
  await csv(page).press('Enter')
  await until(() => held.length === 2, 'what is pressed once it is there asks again')
})

t.test(
  'that a file failed is not said of another range, nor does its wait hinder the file of that',
  { skip },
  async (t) => {
    const { page } = await openConsole(t, `${url}/v1/console/`, { at: FIRST, loses: true })
    const held = await holdsFiles(page)
    const refuse = async () => {
      const refusal = { status: 409, code: 'SG_ERR_CONFLICT', title: 'Conflict', detail: 'No file now.' }
      await held.shift()!.fulfill({ status: 409, json: refusal })
    }
    const choose = (days: string) => page.getByLabel('Range').selectOption(days)
    const refused = page.getByText('No file now.')
    await csv(page).click()
    await until(() => held.length === 1)
    await refuse()
    await refused.waitFor()
    await choose('7')
    await refused.waitFor({ state: 'detached' })
    await csv(page).click()
    await until(() => held.length === 1)
    await choose('90')
    await waits(page).waitFor({ state: 'detached' })
    await csv(page).click()
    await until(() => held.length === 2)
    await refuse()
    const [file] = await Promise.all([page.waitForEvent('download'), held.shift()!.continue()])
    t.match(file.suggestedFilename(), /^usage-/)
    await waits(page).waitFor({ state: 'detached' })
    t.equal(await refused.count(), 0)
  },
)

t.test('who looks at another range and comes back asks for no second file of the first', { skip }, async (t) => {
  const { page } = await openConsole(t, `${url}/v1/console/`, { at: FIRST })
  const held = await holdsFiles(page)
  for (const at of [FIRST, 'usage?from=2026-02-01&to=2026-02-02']) {
    await goTo(page, `#/${at}`)
    await waits(page).waitFor({ state: 'detached' })
    const before = held.length
    await csv(page).press('Enter')
    await waits(page).waitFor()
    await until(() => held.length === before + 1)
  }
  await goTo(page, `#/${FIRST}`)
  await page.getByLabel('Range').getByText('2026-01-01').waitFor({ state: 'attached' })
  t.ok(await csv(page).isDisabled(), 'it is on its way still')
  await waits(page).waitFor()
  const [file] = await Promise.all([page.waitForEvent('download'), held[1]!.continue()])
  t.match(file.suggestedFilename(), /2026-02-01/)
  t.ok(await csv(page).isDisabled(), 'the end of the other one is none of this one')
})
