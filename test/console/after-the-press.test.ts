import type { Locator, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { buildConsole as buildGuarded } from '../fixtures/console.js'
import { allAnswered, isLive, openConsole, withBrowser } from '../fixtures/console-browser.js'

const skip = withBrowser()

const { url, call, engine } = await buildServer(t, { console: true, script: {}, queue: { maxConcurrency: 1 } })
const open = (t: Test, at: string) => openConsole(t, `${url}/v1/console/`, { at })
const focused = (page: Page, what: Locator) => what.and(page.locator(':focus')).waitFor()
const underway = (page: Page) => page.getByText('Waits for the gateway…')

/** Keeps back what is asked in this way. @returns what lets it go */
async function holds(page: Page, pattern: string, isMeant: (method: string, url: URL) => boolean): Promise<() => void> {
  let release = (): void => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  await page.route(pattern, async (route) => {
    if (isMeant(route.request().method(), new URL(route.request().url()))) await released
    await route.continue()
  })
  return release
}

/** A job that goes on until the test ends it, with its page. */
async function job(t: Test) {
  const session = { cwd: SOME_CWD, profile: 'scripted', prompt: 'Tides' }
  const { json } = await call('POST', '/jobs', { session })
  const { page } = await open(t, `queue/${json.id}`)
  await page.locator('.job-running').waitFor()
  return { page, cancel: page.getByRole('button', { name: 'Cancel job' }) }
}

t.test('canceling a job says that it waits, and the focus goes on when it is canceled', { skip }, async (t) => {
  const { page, cancel } = await job(t)
  const release = await holds(page, '**/v1/jobs/*', (method) => method === 'DELETE')
  await cancel.press('Enter')
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel job' }).press('Enter')
  await underway(page).waitFor()
  await focused(page, cancel)
  release()
  await page.locator('.job-canceled').waitFor()
  await focused(page, page.getByRole('heading', { name: 'Job', exact: true }))
  t.equal(await underway(page).count(), 0)
})

t.test('a job that is canceled waits no more, also where the answer to it is late', { skip }, async (t) => {
  const { page, cancel } = await job(t)
  let answered = (): void => {}
  const isAnswered = new Promise<void>((resolve) => {
    answered = resolve
  })
  await page.route('**/v1/jobs/*', async (route) => {
    if (route.request().method() !== 'DELETE') return route.fallback()
    const response = await route.fetch()
    await isAnswered
    await route.fulfill({ response })
  })
  await isLive(page)
  await cancel.click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel job' }).click()
  await page.locator('.job-canceled').waitFor()
  t.equal(await underway(page).count(), 0)
  answered()
})

t.test(
  'the focus goes on when a job ends by itself, also while it is asked whether to cancel it',
  { skip },
  async (t) => {
    for (const isAsked of [false, true]) {
      const { page, cancel } = await job(t)
      await isLive(page)
      if (isAsked) await cancel.press('Enter')
      else await cancel.focus()
      engine.last.complete()
      await page.locator('.job-succeeded').waitFor()
      if (isAsked) await page.keyboard.press('Escape')
      await focused(page, page.getByRole('heading', { name: 'Job', exact: true }))
    }
  },
)

t.test('why a job was not canceled stays said when it goes on to its next attempt', { skip }, async (t) => {
  const { url, call, engine } = await buildServer(t, { console: true, script: {}, queue: {} })
  const session = { cwd: SOME_CWD, profile: 'scripted', prompt: 'Tides' }
  const { json } = await call('POST', '/jobs', { session, attempts: 2 })
  const { page } = await openConsole(t, `${url}/v1/console/`, { at: `queue/${json.id}`, loses: true })
  await page.locator('.job-running').waitFor()
  await page.route('**/v1/jobs/*', (route) =>
    route.request().method() === 'DELETE'
      ? route.fulfill({ status: 409, json: { code: 'SG_ERR_CONFLICT', detail: 'Not now.' } })
      : route.fallback(),
  )
  await page.getByRole('button', { name: 'Cancel job' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel job' }).click()
  const said = page.getByText('Not now.')
  await said.waitFor()
  engine.last.complete({ isError: true, subtype: 'error_during_execution' })
  await page.locator('.job-queued').waitFor()
  await allAnswered(page)
  t.equal(await said.count(), 1)
  await page.unroute('**/v1/jobs/*')
  await call('DELETE', `/jobs/${json.id}`)
  await page.locator('.job-canceled').waitFor()
  t.equal(await said.count(), 0, 'what is over is not to be canceled')
})

t.test('signing out says that it waits', { skip }, async (t) => {
  const { url } = await buildGuarded(t)
  const { page } = await openConsole(t, `${url}/v1/console/`)
  await page.getByLabel('Token').fill('token-of-ann')
  await page.keyboard.press('Enter')
  await isLive(page)
  const release = await holds(page, '**/v1/console/sessions/*', (method) => method === 'DELETE')
  await page.getByRole('button', { name: 'Sign out' }).click()
  await underway(page).waitFor()
  release()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
})

t.test('what is opened while the beginning of a session is fetched stays', { skip }, async (t) => {
  const body = { cwd: SOME_CWD, profile: 'scripted', title: 'Long', prompt: 'Begin' }
  const { json } = await call('POST', '/sessions', body)
  for (let line = 0; line < 300; line++) engine.last.say(`Line ${line}`)
  const { page } = await open(t, `sessions/${json.id}`)
  await page.getByText('Line 299').waitFor()
  await allAnswered(page)
  const release = await holds(page, '**/events?*', (_, { searchParams }) => searchParams.get('afterSeq') === '0')
  const dialog = page.getByRole('dialog')
  const actions = page.getByRole('button', { name: 'Actions' })
  await actions.click()
  await dialog.getByRole('button', { name: 'Go to the beginning' }).click()
  if (await dialog.isVisible()) await page.keyboard.press('Escape')
  await actions.click()
  await dialog.getByRole('button', { name: 'Rename' }).click()
  await dialog.getByLabel('Title').fill('Half a na')
  release()
  await page.getByText('Line 0', { exact: true }).waitFor()
  t.equal(await dialog.getByLabel('Title').inputValue(), 'Half a na')
})

t.test('Escape that gives up what is being composed gives up nothing else', { skip }, async (t) => {
  const body = { cwd: SOME_CWD, profile: 'scripted', prompt: 'Begin', approvalTimeoutMs: 0 }
  const { json } = await call('POST', '/sessions', body)
  const request = { toolName: 'Bash', toolUseId: 't', input: { command: 'npm test' } }
  void engine.last.host.requestPermission(request).catch(() => {})
  const { page } = await open(t, `sessions/${json.id}`)
  await page.getByRole('button', { name: 'Deny…' }).click()
  const composes = (field: Locator) =>
    field.dispatchEvent('keydown', { key: 'Escape', isComposing: true, bubbles: true, cancelable: true })
  const reason = page.getByLabel('Reason')
  await composes(reason)
  t.ok(await reason.isVisible())
  await reason.press('Escape')
  await reason.waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Find in transcript' }).click()
  const search = page.getByRole('searchbox')
  await composes(search)
  t.ok(await search.isVisible())
})

t.test('Ctrl+F in a dialog opens no search behind it', { skip }, async (t) => {
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', prompt: 'Begin' })
  const { page } = await open(t, `sessions/${json.id}`)
  await page.getByRole('button', { name: 'Actions' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Rename' }).click()
  await page.getByRole('dialog').getByLabel('Title').press('Control+f')
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  t.equal(await page.locator('.find').count(), 0)
  await page.keyboard.press('Control+f')
  await page.locator('.find').waitFor()
})

t.test('what is canceled while it waits for the gateway is not done when that answers again', { skip }, async (t) => {
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', title: 'To be kept' })
  const { page } = await openConsole(t, `${url}/v1/console/`, { at: `sessions/${json.id}`, loses: true })
  let tries = 0
  await page.route(`**/v1/sessions/${json.id}`, async (route) => {
    if (route.request().method() !== 'DELETE' || ++tries > 1) return route.continue()
    const json = { type: 'about:blank', status: 503, code: 'SG_ERR_SHUTTING_DOWN', detail: 'It goes away.' }
    await route.fulfill({ status: 503, json, headers: { 'retry-after': '5' }, contentType: 'application/problem+json' })
  })
  await isLive(page)
  await page.clock.install()
  await page.getByRole('button', { name: 'More actions' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await dialog.getByRole('button', { name: 'Remove' }).click()
  await underway(page).waitFor()
  await allAnswered(page)
  await dialog.getByRole('button', { name: 'Cancel' }).click()
  await dialog.waitFor({ state: 'detached' })
  await page.clock.fastForward(60_000)
  await allAnswered(page)
  t.equal(tries, 1)
  t.equal((await call('GET', `/sessions/${json.id}`)).status, 200)
})
