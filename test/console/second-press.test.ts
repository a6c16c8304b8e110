import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { allAnswered, goTo, isLive, openConsole, withBrowser } from '../fixtures/console-browser.js'
import type { ScriptedRunner } from '../fixtures/scripted-engine.js'

const skip = withBrowser()

/** A session with approvals that wait, looked at. */
async function world(t: Test, commands: readonly string[] = []) {
  const interrupts: unknown[] = []
  const script = { interrupt: (runner: ScriptedRunner) => void interrupts.push(runner) }
  const { url, call, engine } = await buildServer(t, { console: true, script })
  const body = { cwd: SOME_CWD, profile: 'scripted', title: 'Build', prompt: 'Begin', approvalTimeoutMs: 0 }
  const { json } = await call('POST', '/sessions', body)
  const runner = engine.last
  const answers: Record<string, unknown> = {}
  for (const command of commands)
    void runner.host.requestPermission({ toolName: 'Bash', toolUseId: command, input: { command } }).then((answer) => {
      answers[command] = answer
    })
  const { page } = await openConsole(t, `${url}/v1/console/`, { at: `sessions/${json.id}` })
  await isLive(page)
  return { page, call, answers, interrupts, runner, composer: page.getByLabel('Message') }
}

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const hasFocus = (page: Page, what: ReturnType<typeof button>) => what.and(page.locator(':focus')).waitFor()

/** So that no time passes between two presses, however slow the machine is. @returns what lets it pass */
async function stopTime(page: Page): Promise<() => Promise<void>> {
  const animations = await page.context().newCDPSession(page)
  await animations.send('Animation.enable')
  const setRate = (playbackRate: number) => animations.send('Animation.setPlaybackRate', { playbackRate })
  await setRate(0)
  return async () => {
    await setRate(1)
    await until(() => page.evaluate('document.activeElement.getAnimations().length === 0'), 'the end of what is new')
    await setRate(0)
  }
}

t.test('Enter pressed twice on "Allow" allows it, and sends nothing that is being written', { skip }, async (t) => {
  const { page, composer, answers } = await world(t, ['npm test', 'npm start'])
  await composer.fill('Half a mess')
  const pass = await stopTime(page)
  await button(page, 'Allow').press('Enter')
  await hasFocus(page, composer)
  await page.keyboard.press('Enter')
  await until(() => answers['npm test'], 'the answer')
  t.equal(await composer.inputValue(), 'Half a mess')
  // whoever writes on means what they press
  await page.keyboard.type('age')
  await page.keyboard.press('Enter')
  await page.locator('.line-user', { hasText: 'Half a message' }).waitFor()
  // and so does whoever has seen where they are
  await composer.fill('More')
  await button(page, 'Allow').press('Enter')
  await hasFocus(page, composer)
  await pass()
  await page.keyboard.press('Enter')
  await page.locator('.line-user', { hasText: 'More' }).waitFor()
})

t.test('Enter pressed twice on what opens a form sends nothing of it', { skip }, async (t) => {
  for (const [opens, field] of [
    ['Edit input…', 'command'],
    ['Deny…', 'Reason'],
  ] as const) {
    const { page, answers } = await world(t, ['npm test'])
    const pass = await stopTime(page)
    await button(page, opens).press('Enter')
    await hasFocus(page, page.getByLabel(field))
    await page.keyboard.press('Enter')
    t.ok(await page.getByLabel(field).isVisible(), opens)
    await pass()
    await page.keyboard.press('Enter')
    await until(() => answers['npm test'], 'the answer')
  }
})

t.test('Escape that gives up a search interrupts nothing, pressed twice or held down', { skip }, async (t) => {
  const { page, composer, interrupts, runner } = await world(t)
  await button(page, 'Interrupt').waitFor()
  const pass = await stopTime(page)
  await composer.press('Control+f')
  await hasFocus(page, page.getByRole('searchbox'))
  await page.keyboard.down('Escape')
  await hasFocus(page, composer)
  await pass()
  await page.keyboard.down('Escape')
  await page.keyboard.up('Escape')
  await composer.press('Control+f')
  await hasFocus(page, page.getByRole('searchbox'))
  await page.keyboard.press('Escape')
  await hasFocus(page, composer)
  await page.keyboard.press('Escape')
  await pass()
  await page.keyboard.press('Escape')
  await composer.fill('Go on')
  await composer.press('Enter')
  await page.locator('.line-user', { hasText: 'Go on' }).waitFor()
  runner.complete()
  await until(() => runner.sent.at(-1)?.text === 'Go on', 'what was said after all that')
  t.equal(interrupts.length, 1)
})

t.test('a double click on what closes a dialog presses nothing under it', { skip }, async (t) => {
  const { page, call } = await world(t)
  const sessions = Array.from({ length: 20 }, () => call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted' }))
  await Promise.all(sessions)
  await goTo(page, '#/sessions')
  await page.locator('.session-row').nth(20).waitFor()
  await button(page, 'New session').click()
  const close = page.getByRole('dialog').getByRole('button', { name: 'Close' })
  const { x, y, width, height } = (await close.boundingBox())!
  const at = [x + width / 2, y + height / 2] as const
  await page.mouse.dblclick(...at)
  await close.waitFor({ state: 'detached' })
  await allAnswered(page)
  t.match(page.url(), /#\/sessions$/)
  await page.mouse.click(...at)
  await page.waitForURL(/#\/sessions\/./)
})

t.test('a double click on one thing is two', { skip }, async (t) => {
  const { page } = await world(t, ['npm test'])
  await goTo(page, '#/inbox')
  const keys = page.getByLabel('Keys')
  await keys.waitFor()
  const before = await keys.isChecked()
  const changes: unknown[] = []
  await page.exposeFunction('noted', (is: boolean) => changes.push(is))
  await page.evaluate("document.addEventListener('change', ({ target }) => noted(target.checked))")
  await page.getByText('Keys', { exact: true }).dblclick()
  await until(() => changes.length === 2, 'two changes')
  t.strictSame(changes, [!before, before])
})
