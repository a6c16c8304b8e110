import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { consoleWorld, goTo, openConsole, withBrowser } from '../fixtures/console-browser.js'

const skip = withBrowser()

/** One session, and approvals of it that wait. */
async function world(t: Test, commands: string[] = []) {
  const { url, call, engine } = await buildServer(t, { console: true, script: {}, allowUnauthenticated: true })
  const body = { cwd: SOME_CWD, profile: 'scripted', title: 'Build', approvalTimeoutMs: 0 }
  const { json } = await call('POST', '/sessions', body)
  const { host } = engine.last
  const answers = commands.map((command) =>
    host.requestPermission({ toolName: 'Bash', toolUseId: command, input: { command } }),
  )
  return { id: json.id as string, answers, runner: engine.last, consoleUrl: `${url}/v1/console/` }
}

const focused = (page: Page) => page.locator(':focus')
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const isAt = (page: Page, name: string) => button(page, name).and(focused(page)).waitFor()

t.test('whoever leaves a screen by keys goes on at the heading of the next', { skip }, async (t) => {
  const { id, consoleUrl } = await world(t)
  const { page, complaints } = await openConsole(t, consoleUrl, { at: 'sessions' })
  await page.getByRole('link', { name: 'Build' }).press('Enter')
  await page.getByRole('heading', { name: 'Build' }).and(focused(page)).waitFor()
  await page.getByRole('link', { name: 'Back to the sessions' }).press('Enter')
  await page.getByRole('heading', { name: 'Sessions', exact: true }).and(focused(page)).waitFor()
  // a link that stays keeps it
  await page.locator('nav').getByRole('link', { name: 'Usage' }).press('Enter')
  await page.getByRole('heading', { name: 'Usage' }).waitFor()
  await page.locator('nav').getByRole('link', { name: 'Usage' }).and(focused(page)).waitFor()
  await page.goBack()
  await page.getByRole('link', { name: 'Build' }).waitFor()
  // and a page that is loaded begins where pages begin
  await page.reload()
  await page.getByRole('link', { name: 'Build' }).waitFor()
  t.equal(await focused(page).count(), 0)
  t.notMatch(page.url(), id)
  t.strictSame(complaints, [])
})

t.test('text that scrolls is reached by keyboard, and what does not scroll is no stop', { skip }, async (t) => {
  const { id, runner, consoleUrl } = await world(t)
  const fenced = (text: string) => `\`\`\`\n${text}\n\`\`\``
  runner.say(fenced('short'))
  runner.say(fenced(Array.from({ length: 300 }, (_, index) => `line ${index}`).join('\n')))
  const { page, complaints } = await openConsole(t, consoleUrl, { at: `sessions/${id}` })
  const stops = page.locator('pre.text[tabindex="0"]')
  await stops.filter({ hasText: 'line 299' }).waitFor()
  await page.locator('pre.text', { hasText: 'short' }).waitFor()
  t.equal(await stops.count(), 1)
  t.strictSame(complaints, [])
})

t.test('what is done in a dialog, and what is not, leads back to where it was opened', { skip }, async (t) => {
  const { id, consoleUrl } = await world(t)
  const { page, complaints } = await openConsole(t, consoleUrl, { at: `sessions/${id}` })
  const menu = page.getByRole('dialog')
  await button(page, 'More actions').press('Enter')
  await menu.getByRole('button', { name: 'Rename' }).press('Enter')
  const name = menu.getByRole('textbox')
  await name.and(focused(page)).waitFor()
  await name.press('Control+A')
  await page.keyboard.type('Named by keys')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Named by keys' }).waitFor()
  await isAt(page, 'More actions')
  await page.keyboard.press('Space')
  await menu.getByRole('button', { name: 'Close session' }).press('Enter')
  await menu.getByRole('button', { name: 'Cancel' }).press('Enter')
  await isAt(page, 'More actions')
  await menu.waitFor({ state: 'detached' })
  t.strictSame(complaints, [])
})

t.test('a search in a session that is given up leads back to where it was begun', { skip }, async (t) => {
  const { id, consoleUrl } = await world(t)
  const { page } = await openConsole(t, consoleUrl, { at: `sessions/${id}` })
  const search = page.getByRole('searchbox')
  await button(page, 'Find in transcript').press('Enter')
  await search.and(focused(page)).waitFor()
  await page.keyboard.press('Escape')
  await isAt(page, 'Find in transcript')
  const composer = page.locator('.composer textarea')
  await composer.press('Control+f')
  await search.and(focused(page)).waitFor()
  await page.keyboard.press('Escape')
  await composer.and(focused(page)).waitFor()
  t.equal(await search.count(), 0)
  await page.reload()
  await page.locator('.lines-begin').waitFor()
  await page.keyboard.press('Control+f')
  await search.and(focused(page)).waitFor()
})

t.test('answering several at once, and hiding them, leads to what is left', { skip }, async (t) => {
  const { answers, consoleUrl } = await world(t, ['npm test', 'npm start', 'rm -r dist'])
  const { page } = await openConsole(t, consoleUrl, { at: 'inbox' })
  const all = page.getByLabel('Choose all approvals')
  await page.locator('.ask-choose').nth(0).press('Space')
  await page.locator('.ask-choose').nth(1).press('Space')
  await button(page, 'Allow 2…').press('Enter')
  await page.getByRole('dialog').getByRole('button', { name: 'Allow', exact: true }).press('Enter')
  t.match(await Promise.all(answers.slice(0, 2)), [{ behavior: 'allow' }, { behavior: 'allow' }])
  await all.and(focused(page)).waitFor()
  await button(page, 'Hide 2 answered').press('Enter')
  await all.and(focused(page)).waitFor()
  await page.keyboard.press('Space')
  await button(page, 'Deny 1…').press('Enter')
  await page.keyboard.type('keep it')
  await page.keyboard.press('Enter')
  t.match(await answers[2], { behavior: 'deny', message: 'keep it' })
  await page.getByRole('heading', { name: 'Inbox' }).and(focused(page)).waitFor()
})

t.test('more than one request takes are answered at once, and whoever did it goes on', { skip }, async (t) => {
  const { answers, consoleUrl } = await world(
    t,
    Array.from({ length: 101 }, (_, at) => `npm run ${at}`),
  )
  const { page } = await openConsole(t, consoleUrl, { at: 'inbox' })
  let goOn = () => {}
  const held = new Promise<void>((resolve) => {
    goOn = resolve
  })
  await page.route('**/v1/inbox/answers', async (route) => {
    await held
    await route.continue()
  })
  await page.locator('.ask').nth(100).waitFor()
  await page.getByLabel('Choose all approvals').press('Space')
  await button(page, 'Allow 101…').press('Enter')
  const first = page.waitForRequest('**/v1/inbox/answers')
  await page.getByRole('dialog').getByRole('button', { name: 'Allow', exact: true }).press('Enter')
  await first
  await page.locator(':focus').waitFor()
  t.equal(await page.locator('.ask[data-fate=sending]').count(), 101)
  goOn()
  await Promise.all(answers)
  await page.getByText('101 answered.').waitFor({ state: 'attached' })
  await page.getByRole('heading', { name: 'Inbox' }).and(focused(page)).waitFor()
})

t.test('what a phone has under "More" is closed again, also where somebody is already', { skip }, async (t) => {
  const { consoleUrl } = await world(t)
  const { page } = await openConsole(t, consoleUrl, { at: 'profiles/scripted', width: 360, height: 640 })
  const more = button(page, 'More')
  const isClosed = async () => {
    await page.locator('nav[data-open=false]').waitFor()
    await more.and(focused(page)).waitFor()
  }
  await page.getByRole('heading', { name: 'scripted' }).waitFor()
  await more.press('Enter')
  await page.keyboard.press('Shift+Tab')
  await page.keyboard.press('Escape')
  await isClosed()
  await page.keyboard.press('Enter')
  await page.locator('nav').getByRole('link', { name: 'Profiles' }).press('Enter')
  await page.getByRole('heading', { name: 'Profiles' }).waitFor()
  await isClosed()
  await more.press('Space')
  await page.locator('nav[data-open=true]').waitFor()
  await page.getByRole('heading', { name: 'Profiles' }).click()
  await page.locator('nav[data-open=false]').waitFor()
  t.equal(await more.and(focused(page)).count(), 0, 'a press elsewhere closes it, and is where one goes on')
  await goTo(page, '#/settings')
  await page.getByRole('heading', { name: 'Settings and health' }).waitFor()
  t.equal(await more.getAttribute('aria-expanded'), 'false')
})

t.test('whoever answers a parked session by keys goes on where it is spoken to', { skip }, async (t) => {
  const { consoleUrl, cwd, call } = await consoleWorld(t)
  const asks = { profile: 'demo', cwd: join(cwd, 'work'), prompt: 'Please write a report.', approvalTimeoutMs: 0 }
  const { id } = (await (await call('/sessions', asks)).json()) as { id: string }
  await until(async () => ((await (await call(`/sessions/${id}`)).json()) as { status: string }).status === 'parked')
  const { page, complaints } = await openConsole(t, consoleUrl, { at: `sessions/${id}` })
  const composer = page.locator('.composer textarea')
  await button(page, 'Allow').waitFor()
  t.equal(await composer.isEditable(), false, 'nothing can be said to it')
  t.match(await composer.getAttribute('placeholder'), /once it goes on/)
  await button(page, 'Allow').press('Enter')
  await composer.and(focused(page)).waitFor()
  await page.locator('.composer textarea:read-write').waitFor()
  await page.keyboard.type('And then?')
  t.equal(await composer.inputValue(), 'And then?')
  t.strictSame(complaints, [])
})

t.test('whoever interrupts by keys goes on where the agent is spoken to', { skip }, async (t) => {
  const { id, runner, consoleUrl } = await world(t)
  const { page, complaints } = await openConsole(t, consoleUrl, { at: `sessions/${id}` })
  const message = page.getByLabel('Message')
  await message.fill('Work')
  await message.press('Enter')
  await until(() => runner.sent.length === 1, 'what was said')
  await page.getByRole('button', { name: 'Interrupt' }).press('Enter')
  await message.and(focused(page)).waitFor()
  await page.getByRole('button', { name: 'Interrupt' }).waitFor({ state: 'detached' })
  t.strictSame(complaints, [])
})

t.test('a session that is not there offers the way back, and nothing to be said to it', { skip }, async (t) => {
  const { consoleUrl } = await world(t)
  const { page } = await openConsole(t, consoleUrl, { at: 'sessions/removed', loses: true })
  await page.getByText('There is no such session.').waitFor()
  await page.getByRole('heading', { level: 1, name: 'Transcript' }).waitFor()
  t.equal((await page.locator('.composer').count()) + (await button(page, 'Try again').count()), 0)
  await page.getByRole('link', { name: 'Back to the sessions' }).press('Enter')
  await page.getByRole('link', { name: 'Build' }).waitFor()
})
