import t from 'tap'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { buildConsole } from '../fixtures/console.js'
import { allAnswered, goTo, isLive, openConsole, withBrowser } from '../fixtures/console-browser.js'
import { cuttingProxy } from '../fixtures/cutting-proxy.js'

const skip = withBrowser()

t.test('what is about to be pressed stays where it is while the connection goes and comes', { skip }, async (t) => {
  const { port, call, engine } = await buildServer(t, { console: true, script: {} })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', approvalTimeoutMs: 0 })
  void engine.last.host.requestPermission({ toolName: 'Bash', toolUseId: 'call', input: { command: 'ls' } })
  const proxy = await cuttingProxy(t)
  proxy.target = port
  const { page } = await openConsole(t, `${proxy.origin}/v1/console/`, { at: 'inbox', loses: true })
  const allow = page.getByRole('button', { name: 'Allow', exact: true })
  const places: Record<string, unknown> = {}
  const noteAll = async (screen: string, connection: ReturnType<typeof page.locator>) => {
    const note = async (when: string) => (places[`${screen} ${when}`] = await allow.boundingBox())
    await allow.waitFor()
    await note('live')
    proxy.target = undefined
    proxy.cut()
    await connection.getByText('Offline. You see what was last known.').waitFor()
    await note('away')
    proxy.target = port
    await connection.getByText('Caught up').first().waitFor()
    await note('back')
    await until(async () => !(await connection.isVisible()))
    await note('live again')
  }
  await isLive(page)
  await page.locator('.ask-head').click()
  await noteAll('inbox', page.locator('main > .connection-bar'))
  await goTo(page, `#/sessions/${json.id}`)
  await noteAll('transcript', page.locator('.transcript > .connection-bar'))
  for (const screen of ['inbox', 'transcript'])
    for (const when of ['away', 'back', 'live again'])
      t.strictSame(places[`${screen} ${when}`], places[`${screen} live`], `${screen}, ${when}`)
})

t.test('a press that is meant for one request answers no other that has come into its place', { skip }, async (t) => {
  const { url, call, engine } = await buildServer(t, { console: true, script: {} })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', approvalTimeoutMs: 0 })
  const { host } = engine.last
  const ask = (command: string) => host.requestPermission({ toolName: 'Bash', toolUseId: command, input: { command } })
  const first = ask('npm test')
  let isAnswered = false
  const second = ask('npm publish').finally(() => {
    isAnswered = true
  })
  const { page, context } = await openConsole(t, `${url}/v1/console/`, { at: `sessions/${json.id}` })
  const allow = page.getByRole('button', { name: 'Allow', exact: true })
  const { x, y, width, height } = (await allow.boundingBox())!
  const press = () => page.mouse.click(x + width / 2, y + height / 2)
  const asked = page.locator('.waited-for')
  const animations = await context.newCDPSession(page)
  await allow.click({ trial: true })
  // so that no time passes between the two presses, however slow the machine is
  await animations.send('Animation.enable')
  await animations.send('Animation.setPlaybackRate', { playbackRate: 0 })
  await press()
  t.match(await first, { behavior: 'allow' })
  await asked.getByText('npm publish').waitFor()
  await allow.waitFor()
  t.strictSame(await allow.boundingBox(), { x, y, width, height }, 'it stands where the other did')
  await press()
  await allAnswered(page)
  await call('GET', `/sessions/${json.id}`)
  if (!t.equal(isAnswered, false)) return
  await animations.send('Animation.setPlaybackRate', { playbackRate: 1 })
  await allow.click()
  t.match(await second, { behavior: 'allow' })
})

t.test(
  'nor does it move when the last approval beside it is answered, or the list cannot be read',
  { skip },
  async (t) => {
    const { url, call, engine } = await buildServer(t, { console: true, script: {} })
    await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', approvalTimeoutMs: 0 })
    const { host } = engine.last
    const questions = [{ question: 'Which?', header: 'Which', options: [{ label: 'This' }, { label: 'That' }] }]
    void host.requestPermission({ toolName: 'AskUserQuestion', toolUseId: 'q', input: { questions } })
    const approval = host.requestPermission({ toolName: 'Bash', toolUseId: 'call', input: { command: 'ls' } })
    const { page } = await openConsole(t, `${url}/v1/console/`, { at: 'inbox', loses: true })
    await isLive(page)
    await page.locator('.ask-head').first().click()
    const answer = page.getByRole('button', { name: 'Answer', exact: true })
    const place = await answer.boundingBox()
    const { json } = await call('GET', '/inbox?kind=permission')
    const [{ session, request }] = json
    await call('POST', `/sessions/${session.id}/permissions/${request.id}`, { behavior: 'allow' })
    await approval
    await page.locator('.ask[data-fate="elsewhere"]').waitFor()
    t.strictSame(await answer.boundingBox(), place, 'answered')
    await page.route(
      ({ pathname }) => pathname.endsWith('/v1/inbox'),
      (route) =>
        route.fulfill({
          status: 409,
          json: { status: 409, code: 'SG_ERR_CONFLICT', title: 'Conflict', detail: 'It broke.' },
        }),
    )
    void host.requestPermission({ toolName: 'Bash', toolUseId: 'next', input: { command: 'ls' } })
    await page.getByText('It broke.').waitFor()
    t.strictSame(await answer.boundingBox(), place, 'not read')
  },
)

t.test('a second press ends no other sign-in than the first', { skip }, async (t) => {
  const { origin, signIn, as } = await buildConsole(t, { script: {} })
  const { cookie } = await signIn('token-of-ann')
  for (let count = 0; count < 2; count++) await signIn('token-of-ann')
  const { page, context } = await openConsole(t, `${origin}/v1/console/`, { at: 'settings' })
  await page.getByLabel('Token').fill('token-of-ann')
  await page.keyboard.press('Enter')
  const rows = page.locator('.sign-in-row')
  await rows.nth(3).waitFor()
  const end = rows.filter({ hasNotText: 'this' }).first().getByRole('button')
  await end.click({ trial: true })
  const { x, y, width, height } = (await end.boundingBox())!
  const press = () => page.mouse.click(x + width / 2, y + height / 2)
  const animations = await context.newCDPSession(page)
  await animations.send('Animation.enable')
  await animations.send('Animation.setPlaybackRate', { playbackRate: 0 })
  await press()
  await until(async () => (await rows.count()) === 3, 'that one has gone')
  await press()
  await allAnswered(page)
  t.equal(await rows.count(), 3)
  t.ok((await as(cookie)('GET', '/console/me')).json)
})

t.test('nor does a second press end another where the first could not be', { skip }, async (t) => {
  const { origin, signIn } = await buildConsole(t, { script: {} })
  for (let count = 0; count < 3; count++) await signIn('token-of-ann')
  const { page } = await openConsole(t, `${origin}/v1/console/`, { at: 'settings', loses: true })
  await page.getByLabel('Token').fill('token-of-ann')
  await page.keyboard.press('Enter')
  const rows = page.locator('.sign-in-row')
  await rows.nth(3).waitFor()
  await page.route(/\/console\/sessions\/[^/]+$/, (route) =>
    route.fulfill({
      status: 409,
      json: { status: 409, code: 'SG_ERR_CONFLICT', title: 'Conflict', detail: 'It broke.' },
    }),
  )
  const end = rows.nth(2).getByRole('button')
  await end.click({ trial: true })
  const place = await end.boundingBox()
  await end.click()
  await page.getByText('It broke.').waitFor()
  t.strictSame(await end.boundingBox(), place)
})

t.test('what interrupts stands where it did, whatever the button beside it says', { skip }, async (t) => {
  const { url, call } = await buildServer(t, { console: true, script: {} })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted' })
  const { page } = await openConsole(t, `${url}/v1/console/`, { at: `sessions/${json.id}` })
  const press = page.locator('.composer [type=submit]')
  await press.getByText('Send').waitFor()
  const place = await press.boundingBox()
  await call('POST', `/sessions/${json.id}/commands`, { type: 'user_message', text: 'Begin' })
  await press.getByText('Queue').waitFor()
  t.strictSame(await press.boundingBox(), place)
})

t.test('a press that is meant for the end of a job opens no form that has come into its place', { skip }, async (t) => {
  const { url, call } = await buildServer(t, { console: true, script: {}, queue: {} })
  const { json } = await call('POST', '/jobs', { session: { cwd: SOME_CWD, profile: 'scripted', prompt: 'Tides' } })
  const { page, context } = await openConsole(t, `${url}/v1/console/`, { at: `queue/${json.id}` })
  const cancel = page.getByRole('button', { name: 'Cancel job' })
  const again = page.getByRole('button', { name: 'Submit again…' })
  await page.locator('.job-head').getByText('Running').waitFor()
  const { x, y, width, height } = (await cancel.boundingBox())!
  const animations = await context.newCDPSession(page)
  await animations.send('Animation.enable')
  await animations.send('Animation.setPlaybackRate', { playbackRate: 0 })
  await call('DELETE', `/jobs/${json.id}`)
  await cancel.waitFor({ state: 'detached' })
  const place = (await again.boundingBox())!
  t.ok(place.x < x + width / 2 && place.x + place.width > x + width / 2, 'it stands where the other did')
  await page.mouse.click(x + width / 2, y + height / 2)
  await allAnswered(page)
  if (!t.equal(await page.getByRole('dialog').count(), 0)) return
  await animations.send('Animation.setPlaybackRate', { playbackRate: 1 })
  await again.click()
  await page.getByRole('dialog').waitFor()
})
