import type { Locator, Page } from 'playwright-core'
import t from 'tap'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { axe, goTo, isLive, openConsole, shot, withBrowser } from '../fixtures/console-browser.js'
import { cuttingProxy } from '../fixtures/cutting-proxy.js'

const skip = withBrowser()

const { url, port, call, engine } = await buildServer(t, { console: true, script: {} })
const consoleUrl = `${url}/v1/console/`

/** A session, and the agent that the test speaks for. */
async function session(more: object = {}) {
  const { json } = await call('POST', '/sessions', {
    cwd: SOME_CWD,
    profile: 'scripted',
    approvalTimeoutMs: 0,
    ...more,
  })
  return { id: json.id as string, runner: engine.runners.at(-1)! }
}

const logOf = (page: Page): Locator => page.getByRole('log')
const messageOf = (page: Page): Locator => page.getByRole('textbox', { name: 'Message' })

t.test(
  'away: what was known stays readable, and what is answered is sent when the gateway is back',
  { skip },
  async (t) => {
    const proxy = await cuttingProxy(t)
    proxy.target = port
    const [one, two] = [await session({ title: 'Asks one' }), await session({ title: 'Never looked at' })]
    two.runner.say('There after all')
    const settled = one.runner.host.requestPermission({
      toolName: 'Bash',
      toolUseId: 't',
      input: { command: 'make it' },
    })
    const { page, complaints } = await openConsole(t, `${proxy.origin}/v1/console/`, { at: 'sessions', loses: true })
    await page.getByRole('link', { name: 'Never looked at' }).waitFor()
    await goTo(page, '#/inbox')
    await page.locator('.ask-head', { hasText: 'make it' }).waitFor()
    let failed = 0
    page.on('requestfailed', (request) => void (/inbox\/answers/.test(request.url()) && failed++))
    proxy.target = undefined
    proxy.cut()
    await page.getByText('Your answers are sent when the connection is back.').waitFor()
    await page.locator('.ask-head', { hasText: 'make it' }).click()
    await page.getByRole('button', { name: 'Allow', exact: true }).click()
    await page.getByText('Sending: allow…').waitFor()
    t.strictSame(await axe(page), [])
    await shot(page, 'inbox-away')
    // as often as the client tries by itself
    await until(() => failed === 5, 'the last try')
    t.equal(await page.getByText('Sending: allow…').count(), 1)
    await goTo(page, '#/sessions')
    await page.getByRole('link', { name: 'Asks one' }).waitFor()
    await page.getByRole('link', { name: 'Never looked at' }).click()
    await page.locator('.transcript').getByRole('button', { name: 'Try again' }).waitFor()
    proxy.target = port
    t.match(await settled, { behavior: 'allow' })
    await logOf(page).getByText('There after all').waitFor()
    t.equal(await page.locator('.transcript').getByRole('button', { name: 'Try again' }).count(), 0)
    t.strictSame(complaints, [])
  },
)

t.test('a message that is on its way gets there when another screen is looked at', { skip }, async (t) => {
  const proxy = await cuttingProxy(t)
  proxy.target = port
  const { id, runner } = await session({ title: 'Left' })
  const { page, complaints } = await openConsole(t, `${proxy.origin}/v1/console/`, {
    at: 'inbox',
    loses: true,
  })
  // what shows a screen has to be there before the gateway is away
  await page.getByRole('heading', { name: 'Inbox' }).waitFor()
  await goTo(page, `#/sessions/${id}`)
  await isLive(page)
  await messageOf(page).waitFor()
  proxy.target = undefined
  proxy.cut()
  await page
    .locator('nav')
    .getByText(/Reconnecting/)
    .first()
    .waitFor()
  await messageOf(page).fill('Wait for me')
  await messageOf(page).press('Enter')
  await logOf(page).getByText('On its way…').waitFor()
  await goTo(page, '#/inbox')
  await page.getByRole('heading', { name: 'Inbox' }).waitFor()
  await goTo(page, `#/sessions/${id}`)
  await logOf(page).getByText('Wait for me').waitFor()
  await goTo(page, '#/inbox')
  proxy.target = port
  await until(() => runner.sent.length === 1, 'the message')
  t.equal(runner.sent[0]!.text, 'Wait for me')
  t.strictSame(complaints, [])
})

t.test('what is tried again after a failure is followed once', { skip }, async (t) => {
  const { id, runner } = await session({ title: 'Long' })
  for (let n = 0; n < 400; n++) runner.say(`Line ${n}`)
  const { page } = await openConsole(t, consoleUrl, { at: 'sessions', loses: true })
  const open = new Set<object>()
  page.on('websocket', (socket) => {
    if (!socket.url().includes(id)) return
    open.add(socket)
    socket.on('close', () => open.delete(socket))
  })
  await goTo(page, `#/sessions/${id}`)
  await logOf(page).getByText('Line 399', { exact: true }).waitFor()
  await until(() => open.size === 1, 'a socket')
  // where the move begins to read, and no step from where the window is
  const atBegin = (url: URL) => url.pathname.endsWith('/events') && Number(url.searchParams.get('afterSeq')) < 2
  await page.route(atBegin, (route) =>
    route.fulfill({ status: 500, json: { code: 'SG_ERR_INTERNAL', detail: 'Not now.' } }),
  )
  await goTo(page, `#/sessions/${id}/1`)
  const again = page.locator('.transcript').getByRole('button', { name: 'Try again' })
  await again.waitFor()
  await page.unroute(atBegin)
  const sockets = new Set(open)
  page.on('websocket', (socket) => socket.url().includes(id) && sockets.add(socket))
  await again.click()
  await logOf(page).getByText('Line 0', { exact: true }).waitFor()
  runner.say('One more')
  await page.getByRole('button', { name: /1 new/ }).waitFor()
  t.equal(open.size, 1)
  t.strictSame([...sockets], [...open], 'the part of the log is read again, and the session followed as before')
})

t.test('a form says that it waits for a gateway that is away, and goes on when that is back', { skip }, async (t) => {
  const proxy = await cuttingProxy(t)
  proxy.target = port
  const { page, complaints } = await openConsole(t, `${proxy.origin}/v1/console/`, { at: 'sessions', loses: true })
  const begin = page.getByRole('button', { name: 'New session' }).first()
  await begin.waitFor()
  await isLive(page)
  proxy.target = undefined
  proxy.cut()
  await begin.click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('The profiles are being read…').waitFor()
  await dialog.getByLabel('Directory').fill(SOME_CWD)
  await dialog.getByLabel('First message').fill('Said while it was away')
  const start = dialog.getByRole('button', { name: 'Start session' })
  await start.click()
  await dialog.getByText('Waits for the gateway…').waitFor()
  t.strictSame(await axe(page), [])
  await shot(page, 'start-away')
  // as often as the client tries by itself
  await dialog.getByRole('button', { name: 'Try again' }).waitFor()
  t.equal(await start.isEnabled(), true)
  t.equal(await dialog.getByText('Waits for the gateway…').count(), 0)
  proxy.target = port
  await dialog.getByLabel('Profile', { exact: true }).waitFor()
  await start.click()
  await logOf(page).getByText('Said while it was away').waitFor()
  t.strictSame(complaints, [])
})

t.test(
  'closing a session waits for a gateway that is away, and says so; whoever cancels gives it up',
  { skip },
  async (t) => {
    const proxy = await cuttingProxy(t)
    proxy.target = port
    const { id } = await session({ title: 'To be closed' })
    const at = `sessions/${id}`
    const { page, complaints } = await openConsole(t, `${proxy.origin}/v1/console/`, { at, loses: true })
    await page.getByRole('heading', { name: 'To be closed' }).waitFor()
    await isLive(page)
    proxy.target = undefined
    proxy.cut()
    const dialog = page.getByRole('dialog')
    const ask = async (what: string) => {
      await page.getByRole('button', { name: 'Actions' }).click()
      await dialog.getByRole('button', { name: what }).click()
    }
    await ask('Close session')
    const end = dialog.getByRole('button', { name: 'Close session' })
    await end.click()
    await dialog.getByText('Waits for the gateway…').waitFor()
    t.ok(await end.isDisabled())
    t.strictSame(await axe(page), [])
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await ask('Rename')
    await dialog.getByLabel('Title').fill('Goes on')
    proxy.target = port
    await dialog.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('heading', { name: 'Goes on' }).waitFor()
    t.not((await call('GET', `/sessions/${id}`)).json.status, 'closed', 'what was canceled is given up')
    t.strictSame(complaints, [])
  },
)
