import { setTimeout as sleep } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import t from 'tap'
import { foldTranscript } from '../../client/index.js'
import {
  allAnswered,
  buildConsole,
  isLive,
  openConsole,
  shot,
  skipWithoutChromium,
} from '../fixtures/console-browser.js'
import { cuttingProxy } from '../fixtures/cutting-proxy.js'
import { mortalDaemon, TOKEN } from '../fixtures/daemon-process.js'
import { rounds } from '../fixtures/rounds.js'

const CUTS = rounds(8, 50)
const skip = skipWithoutChromium

/** A durable gateway behind a proxy, and a window that is signed in. */
async function world(t: Parameters<typeof openConsole>[0]) {
  buildConsole()
  const gateway = await mortalDaemon(t)
  const proxy = await cuttingProxy(t)
  proxy.target = gateway.port
  const open = async () => {
    const window = await openConsole(t, `${proxy.origin}/v1/console/`, { at: 'sessions', loses: true })
    await window.page.getByLabel('Token').fill(TOKEN)
    await window.page.getByRole('button', { name: 'Sign in' }).click()
    await window.page.getByRole('heading', { name: 'Sessions' }).waitFor()
    return window
  }
  return { gateway, proxy, open }
}

/** The lines of the transcript that is on the page, by the numbers that they have. */
const linesOn = (page: Page): Promise<number[]> =>
  page
    .locator('[role=log] > [data-seq]')
    .evaluateAll((lines) => lines.map((line) => Number((line as unknown as { dataset: { seq: string } }).dataset.seq)))

t.test(
  'a gateway that is killed in mid-stream: the page says so, stays readable, and catches up',
  { skip },
  async (t) => {
    const { gateway, proxy, open } = await world(t)
    const { page, complaints } = await open()
    const { id } = await gateway.client.sessions.create({
      cwd: gateway.work,
      // it is being written for as long as it takes to look at it
      prompt: `@@[{"text":${JSON.stringify('Many words. '.repeat(400))},"hang":true}]@@`,
    })
    await page.evaluate((hash) => {
      ;(globalThis as unknown as { location: { hash: string } }).location.hash = hash
    }, `#/sessions/${id}`)
    const log = page.getByRole('log')
    await log
      .locator('.streaming')
      .getByText(/Many words/)
      .waitFor()
    proxy.target = undefined
    await gateway.restart()
    const bar = page.locator('.transcript .connection-bar')
    await bar
      .getByText(/Reconnecting/)
      .first()
      .waitFor()
    await bar.getByText(/^The connection to .+ failed\.$/).waitFor()
    await shot(page, 'transcript-away')
    t.ok(await log.getByText(/Many words/).count(), 'what was known stays')
    // what is said meanwhile waits, and says so
    await page.getByRole('textbox', { name: 'Message' }).fill('Are you back?')
    await page.keyboard.press('Enter')
    await log.getByText('On its way…').waitFor()
    proxy.target = gateway.port
    await page.getByText('Caught up, nothing missed').first().waitFor()
    await log.getByText('On its way…').waitFor({ state: 'detached' })
    await log.getByText(/Your message had 3 words/).waitFor()
    await log.getByText('Turn interrupted').first().waitFor()
    t.equal(await log.getByText('Are you back?', { exact: true }).count(), 1, 'once')
    t.strictSame(complaints, [])
  },
)

t.test(`a socket that is cut ${CUTS} times: what is shown is the log`, { skip }, async (t) => {
  const { gateway, proxy, open } = await world(t)
  const { page, complaints } = await open()
  const script = Array.from({ length: CUTS }, (_, index) => ({
    text: `Step ${index}. ${'More words follow here. '.repeat(12)}`,
    tools: [{ tool: 'fs_list', input: {} }],
  }))
  const { id } = await gateway.client.sessions.create({
    cwd: gateway.work,
    prompt: `@@${JSON.stringify([...script, { text: 'All steps are done.' }])}@@`,
  })
  await page.evaluate((hash) => {
    ;(globalThis as unknown as { location: { hash: string } }).location.hash = hash
  }, `#/sessions/${id}`)
  await page.getByRole('log').waitFor()
  const live = page.locator('.link-mark')
  for (let cut = 0; cut < CUTS; cut++) {
    proxy.cut()
    await live.getByText(/Live|nothing missed/).waitFor()
    await sleep(50)
  }
  await page
    .getByRole('log')
    .getByText(/^Turn over/)
    .waitFor()
  // what is read anew is drawn from its end
  await page.getByRole('log').getByText('The session begins here.').waitFor()
  const events = await gateway.client.sessions.events(id).toArray()
  const items = foldTranscript(events).items.toArray()
  t.strictSame(
    await linesOn(page),
    items.map(({ seq }) => seq),
  )
  // not the inner text: of lines that are out of sight there is none
  const text = (await page.locator('[role=log] > .line-assistant').allTextContents()).join('\n')
  for (const step of script)
    t.equal(text.split(step.text.slice(0, 40)).length, 2, `${step.text.slice(0, 8)} is there once`)
  t.equal(proxy.cuts, CUTS)
  t.strictSame(complaints, [])
})

t.test('whoever comes back to the window as the connection does sees what is new', { skip }, async (t) => {
  const { proxy, open } = await world(t)
  const { page } = await open()
  await isLive(page)
  proxy.cut()
  await page.locator('nav').getByText('Caught up, nothing missed').waitFor()
  await allAnswered(page)
  await page.route('**/v1/sessions?*', () => {})
  await page.evaluate("void document.dispatchEvent(new Event('visibilitychange'))")
  t.equal(await page.evaluate('new Promise((resolve) => setTimeout(() => resolve(requestsUnderWay)))'), 1)
})

t.test('two windows answer the same request: the first wins, the other is told', { skip }, async (t) => {
  const { gateway, open } = await world(t)
  const windows = [await open(), await open()]
  const { id } = await gateway.client.sessions.create({ cwd: gateway.work, prompt: 'Please write a report.' })
  for (const { page } of windows) {
    await page.evaluate((hash) => {
      ;(globalThis as unknown as { location: { hash: string } }).location.hash = hash
    }, `#/sessions/${id}`)
    await page.getByRole('region', { name: 'What is waited for' }).getByText('Write report.md').waitFor()
  }
  // both are about to answer: one that hears of the other in time has no button any more
  const buttons = await Promise.all(
    windows.map(async ({ page }) => {
      await page.getByRole('button', { name: 'Deny…' }).click()
      return page.getByRole('button', { name: 'Deny', exact: true }).elementHandle()
    }),
  )
  await Promise.all(buttons.map((button) => button!.evaluate((it) => (it as unknown as { click(): void }).click())))
  for (const { page, complaints } of windows) {
    await page.getByRole('log').getByText('The report stays undone').first().waitFor()
    await page.getByRole('region', { name: 'What is waited for' }).waitFor({ state: 'detached' })
    t.strictSame(complaints, [])
  }
  const resolved = (await gateway.client.sessions.events(id).toArray()).filter(
    ({ type }) => type === 'permission_resolved',
  )
  t.equal(resolved.length, 1)
})
