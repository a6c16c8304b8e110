import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { openConsole, withBrowser } from '../fixtures/console-browser.js'

const skip = withBrowser()

const { url, call, engine } = await buildServer(t, { console: true, script: {} })
const made = async (prompt: string) => {
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', title: 'Long', prompt })
  return json
}
const open = (t: Test, at: string) => openConsole(t, `${url}/v1/console/`, { at })
/** What has the focus, once it is what is meant. */
const isAt = (page: Page, place: string) => page.locator(place).and(page.locator(':focus')).waitFor()

t.test('the focus is at a text when all of it is shown', { skip }, async (t) => {
  const { id } = await made(`${'A line that goes on. '.repeat(500)}The end`)
  const items = Array.from({ length: 900 }, (_, index) => ({ index }))
  const content = [{ type: 'tool_use', id: 'c', name: 'Count', input: { items } }]
  const message = { role: 'assistant', content } as never
  engine.last.host.emit({ type: 'assistant_message', uuid: 'm', parentToolUseId: null, message })
  const { page } = await open(t, `sessions/${id}`)
  const more = (place: string) => page.locator(place).getByRole('button', { name: /^Show more/ })
  await more('.line-user').press('Enter')
  await page.getByText('The end').waitFor()
  await isAt(page, '.line-user pre')
  await page.getByRole('button', { name: 'Count' }).click()
  await more('.card-body').press('Enter')
  await more('.card-body').waitFor({ state: 'detached' })
  await isAt(page, '.card-body pre')
})

t.test('the focus is at a list when all of it is loaded', { skip }, async (t) => {
  const known = await made('Go on')
  const { page } = await open(t, 'inbox')
  await page.route('**/v1/sessions?*', (route) => {
    const isFirst = !route.request().url().includes('cursor')
    const json = [
      { ...known, id: isFirst ? 's2' : 's1', title: isFirst ? 'Later' : 'Earlier', createdAt: isFirst ? 2 : 1 },
    ]
    return route.fulfill({ json, ...(isFirst && { headers: { link: '<sessions?cursor=1>; rel="next"' } }) })
  })
  await page.goto(`${url}/v1/console/#/sessions`)
  await page.getByRole('button', { name: 'Load earlier' }).press('Enter')
  await page.getByRole('link', { name: 'Earlier' }).waitFor()
  await isAt(page, '.session-list')
})

t.test('the focus goes on when what failed is there', { skip }, async (t) => {
  const { page } = await openConsole(t, `${url}/v1/console/`, { at: 'inbox', loses: true })
  await page.route('**/v1/usage?*', (route) => route.fulfill({ status: 500, body: 'It broke.' }))
  await page.goto(`${url}/v1/console/#/usage`)
  const again = page.getByRole('button', { name: 'Try again' })
  await again.waitFor()
  await page.unrouteAll()
  await again.press('Enter')
  await again.waitFor({ state: 'detached' })
  await isAt(page, 'main h1')
})
