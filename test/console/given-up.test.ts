import type { Page } from 'playwright-core'
import t from 'tap'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { allAnswered, openConsole, withBrowser } from '../fixtures/console-browser.js'

const skip = withBrowser()

const { url, call } = await buildServer(t, { console: true, script: {}, queue: {} })

/** The gateway is full, for as long as the client waits by itself. @returns how often it was asked */
async function isFull(page: Page, path: string): Promise<() => number> {
  let asked = 0
  await page.route(`**/v1/${path}`, (route) => {
    if (route.request().method() !== 'POST' || ++asked > 1) return route.fallback()
    const json = { status: 429, code: 'SG_ERR_SESSION_LIMIT', detail: 'Too many sessions are open.' }
    return route.fulfill({ status: 429, headers: { 'retry-after': '20' }, json })
  })
  return () => asked
}

const WAYS: Record<string, (page: Page) => Promise<unknown>> = {
  'closes the dialog': (page) => page.getByRole('dialog').getByRole('button', { name: 'Close' }).click(),
  'presses Escape': (page) => page.keyboard.press('Escape'),
  'goes back': (page) => page.goBack(),
}

for (const [at, path, opens, presses] of [
  ['sessions', 'sessions', 'New session', 'Start session'],
  ['queue', 'jobs', 'Submit a job', 'Submit'],
] as const)
  t.test(`"${presses}" that waits for a full gateway is given up`, { skip }, async (t) => {
    const listed = async (): Promise<number> => (await call('GET', `/${path}`)).json.length
    for (const [way, leave] of Object.entries(WAYS))
      await t.test(`by whoever ${way}`, async (t) => {
        const { page } = await openConsole(t, `${url}/v1/console/`, { at: 'usage', loses: true })
        await page.getByRole('heading', { name: 'Usage' }).waitFor()
        const asked = await isFull(page, path)
        await page.clock.install()
        await page.getByRole('link', { name: at, exact: false }).first().click()
        await page.getByRole('button', { name: opens }).click()
        const dialog = page.getByRole('dialog')
        await dialog.getByLabel('Profile', { exact: true }).waitFor()
        await dialog.getByLabel(path === 'jobs' ? 'Prompt' : 'First message').fill('Nobody waits for me')
        await dialog.getByLabel('Directory').fill(SOME_CWD)
        await dialog.getByRole('button', { name: presses, exact: true }).click()
        await until(() => asked() === 1, 'the press')
        await allAnswered(page)
        await dialog.getByText('Waits for the gateway…').waitFor()
        await leave(page)
        await dialog.waitFor({ state: 'detached' })
        await page.clock.fastForward(30_000)
        await allAnswered(page)
        t.equal(asked(), 1)
        t.equal(await listed(), 0)
      })
  })
