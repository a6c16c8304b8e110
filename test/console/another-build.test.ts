import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { goTo, isLive, openConsole, withBrowser } from '../fixtures/console-browser.js'
import { cuttingProxy } from '../fixtures/cutting-proxy.js'

const skip = withBrowser()

const { url, port, call } = await buildServer(t, { console: true, script: {}, queue: {} })

/** What the page has not fetched by now is gone, as after an upgrade of the gateway: the build of the new one has other names. */
const replaced = (page: Page) => page.route('**/assets/*.js', (route) => route.fulfill({ status: 404, body: '' }))

/** Says what to do, and does it. */
async function loadsAnew(t: Test, page: Page): Promise<void> {
  const alert = page.getByRole('alert').filter({ hasText: 'could not be loaded' })
  t.match(await alert.innerText(), /another version of it by now/)
  await page.unrouteAll()
  await alert.getByRole('button', { name: 'Load the page anew' }).click()
}

t.test(
  'a page that is older than the gateway says so of a screen that is gone, and loads anew',
  { skip },
  async (t) => {
    const { page } = await openConsole(t, `${url}/console/`, { at: 'inbox', loses: true })
    await page.getByRole('heading', { name: 'Inbox' }).waitFor()
    await replaced(page)
    await goTo(page, '#/queue')
    await loadsAnew(t, page)
    await page.getByRole('heading', { name: 'Queue', exact: true }).waitFor()
  },
)

t.test('so it does of what an action would need', { skip }, async (t) => {
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, title: 'Tides' })
  const { page } = await openConsole(t, `${url}/console/`, { at: `sessions/${json.id}`, loses: true })
  await page.getByRole('heading', { name: 'Tides' }).waitFor()
  await replaced(page)
  await page.getByRole('button', { name: 'More actions' }).click()
  await page.getByRole('button', { name: 'Download as Markdown' }).click()
  await loadsAnew(t, page)
  await page.getByRole('button', { name: 'More actions' }).click()
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download as Markdown' }).click(),
  ])
  t.equal(file.suggestedFilename(), 'Tides.md')
})

t.test('a screen that did not come while the line was down comes when it is back', { skip }, async (t) => {
  const { page } = await openConsole(t, `${url}/console/`, { at: 'inbox', loses: true })
  await page.getByRole('heading', { name: 'Inbox' }).waitFor()
  await replaced(page)
  await goTo(page, '#/queue')
  const again = page.getByRole('alert').getByRole('button', { name: 'Try again' })
  await again.waitFor()
  await page.unrouteAll()
  await page.evaluate("dispatchEvent(new Event('online'))")
  await page.getByRole('heading', { name: 'Queue', exact: true }).waitFor()
  await replaced(page)
  await goTo(page, '#/usage')
  await again.waitFor()
  await page.unrouteAll()
  await again.click()
  await page.getByRole('heading', { name: 'Usage', exact: true }).waitFor()
})

t.test('a page hears of another version when its connection is back', { skip }, async (t) => {
  const proxy = await cuttingProxy(t)
  proxy.target = port
  const { page } = await openConsole(t, `${proxy.origin}/v1/console/`, { at: 'inbox', loses: true })
  const said = page.getByText('The gateway has another version of this page')
  const caughtUp = page.getByText('Caught up, nothing missed').first()
  await isLive(page)
  /** The connection is lost, and back. @param answer to whoever asks for the page then */
  const isBack = async (answer: object) => {
    await page.unrouteAll()
    await page.route('**/v1/console/', (route) => route.fulfill(answer))
    const asked = page.waitForResponse('**/v1/console/')
    proxy.cut()
    await asked
    await caughtUp.waitFor()
  }
  await isBack({ contentType: 'text/html', body: '<h1>Accept the terms of this network</h1>' })
  t.equal(await said.count(), 0, 'what is no console says nothing')
  await isBack({ contentType: 'text/html', body: '<script type="module" src="./assets/index-Another1.js"></script>' })
  await said.waitFor()
  await page.unrouteAll()
  await page.getByRole('button', { name: 'Load the page anew' }).click()
  await isLive(page)
  t.equal(await said.count(), 0)
})
