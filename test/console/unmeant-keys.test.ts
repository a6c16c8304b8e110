import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { allAnswered, openConsole, withBrowser } from '../fixtures/console-browser.js'

const skip = withBrowser()

/** A session that asks what the test has it ask. */
async function world(t: Test) {
  const { url, call, engine } = await buildServer(t, { console: true, script: {} })
  await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', approvalTimeoutMs: 0 })
  const { host } = engine.last
  const answers: Record<string, unknown> = {}
  const ask = async (command: string) => {
    answers[command] = await host.requestPermission({ toolName: 'Bash', toolUseId: command, input: { command } })
  }
  return { ask, answers, consoleUrl: `${url}/v1/console/` }
}

const row = (page: Page, text: string) => page.locator('.ask', { hasText: text })
const allow = (page: Page) => page.getByRole('button', { name: 'Allow', exact: true })

/** So that no time passes between two presses, however slow the machine is. */
async function timeOf(page: Page) {
  const animations = await page.context().newCDPSession(page)
  await animations.send('Animation.enable')
  return (rate: 0 | 1) => animations.send('Animation.setPlaybackRate', { playbackRate: rate })
}

t.test('a key that is pressed twice answers no request that it has led to', { skip }, async (t) => {
  const { ask, answers, consoleUrl } = await world(t)
  for (const command of ['npm test', 'npm publish', 'npm start']) void ask(command)
  const { page } = await openConsole(t, consoleUrl, { at: 'inbox' })
  await row(page, 'npm test').locator('.ask-head').click()
  const setTime = await timeOf(page)
  await allow(page).waitFor()
  await setTime(0)
  await page.keyboard.press('a')
  await row(page, 'npm publish').and(page.locator('[data-open="true"]')).waitFor()
  await page.keyboard.press('a')
  await row(page, 'npm test').getByText('Allowed by you').waitFor()
  await allAnswered(page)
  t.strictSame(Object.keys(answers), ['npm test'])
  // whoever has gone there themselves knows where they are
  await page.keyboard.press('j')
  await page.keyboard.press('a')
  await row(page, 'npm start').getByText('Allowed by you').waitFor()
  // and so does whoever has seen it
  await setTime(1)
  await row(page, 'npm publish').and(page.locator('[data-open="true"]')).waitFor()
  await allow(page).click({ trial: true })
  await page.keyboard.press('a')
  await row(page, 'npm publish').getByText('Allowed by you').waitFor()
  t.strictSame(Object.keys(answers), ['npm test', 'npm start', 'npm publish'])
})

t.test('a file that is dropped takes nobody away from the page', { skip }, async (t) => {
  const { consoleUrl } = await world(t)
  const { page } = await openConsole(t, consoleUrl, { at: 'inbox' })
  await page.getByRole('heading', { name: 'Inbox' }).waitFor()
  // whoever takes it says so: the browser opens what nobody takes
  const isTaken = (kind: string) =>
    page.evaluate<boolean[]>(`['dragover', 'drop'].map((type) => {
      const dataTransfer = new DataTransfer()
      dataTransfer.items.add(${kind})
      return !document.querySelector('h1').dispatchEvent(
        new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer }),
      )
    })`)
  t.strictSame(await isTaken('new File(["x"], "x.html", { type: "text/html" })'), [true, true])
  t.strictSame(await isTaken('"words", "text/plain"'), [false, false], 'words can be dropped into a field')
})
