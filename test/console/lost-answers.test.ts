import { realpathSync } from 'node:fs'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { buildServer, until } from '../fixtures/build.js'
import { openConsole, withBrowser } from '../fixtures/console-browser.js'

const skip = withBrowser()

const root = realpathSync(t.testdir({}))
const { url, call } = await buildServer(t, {
  console: true,
  script: {},
  queue: { maxConcurrency: 1 },
  allowedCwdRoots: [root],
  profiles: [
    { name: 'scripted', engine: 'provider', provider: { id: 'scripted' } },
    { name: 'cli', engine: 'cli' },
  ],
})
const open = (t: Test, at: string) => openConsole(t, `${url}/v1/console/`, { at, loses: true })

/** The gateway does what it is asked to by POST, and its first answer is lost. */
async function losesAnswer(page: Page, path: string): Promise<void> {
  let isLost = false
  await page.route(`**/v1/${path}`, async (route) => {
    if (route.request().method() !== 'POST' || isLost) return route.fallback()
    isLost = true
    await route.fetch()
    await route.fulfill({ status: 500, body: 'It broke on its way.' })
  })
}

t.test('whoever presses again after a lost answer gets what was made', { skip }, async (t) => {
  const { page } = await open(t, 'sessions')
  await losesAnswer(page, 'sessions')
  await page.getByRole('button', { name: 'New session' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Directory').fill(root)
  await dialog.getByRole('button', { name: 'Start session' }).click()
  await dialog.getByText('The server answered 500').waitFor()
  await dialog.getByRole('button', { name: 'Start session' }).click()
  await page.getByRole('log').waitFor()
  const { json } = await call('GET', '/sessions')
  t.equal(json.length, 1)
  t.ok(page.url().endsWith(json[0].id))

  await page.goto(`${url}/v1/console/#/queue`)
  await losesAnswer(page, 'jobs')
  await page.getByRole('button', { name: 'Submit a job' }).click()
  await dialog.getByLabel('Prompt').fill('Once')
  await dialog.getByLabel('Directory').fill(root)
  await dialog.getByRole('button', { name: 'Submit', exact: true }).click()
  await dialog.getByText('The server answered 500').waitFor()
  await dialog.getByRole('button', { name: 'Submit', exact: true }).click()
  await dialog.waitFor({ state: 'detached' })
  t.equal((await call('GET', '/jobs')).json.length, 1)
})

for (const [at, path, opens, presses] of [
  ['sessions', 'sessions', 'New session', 'Start session'],
  ['queue', 'jobs', 'Submit a job', 'Submit'],
] as const)
  t.test(`whoever presses "${presses}" before the profiles are there asks for the same again`, { skip }, async (t) => {
    const { url, call } = await buildServer(t, { console: true, script: {}, queue: {}, allowedCwdRoots: [root] })
    const { page } = await openConsole(t, `${url}/v1/console/`, { at, loses: true })
    await losesAnswer(page, path)
    let release = (): void => {}
    const isAsked = new Promise<void>((resolve) => {
      void page.route('**/v1/profiles', (route) => {
        release = () => void route.continue()
        resolve()
      })
    })
    await page.getByRole('button', { name: opens }).click()
    await isAsked
    const dialog = page.getByRole('dialog')
    if (path === 'jobs') await dialog.getByLabel('Prompt').fill('Pressed at once')
    await dialog.getByLabel('Directory').fill(root)
    const press = dialog.getByRole('button', { name: presses, exact: true })
    await press.click()
    release()
    await dialog.getByLabel('Profile').waitFor()
    await dialog.getByText('The server answered 500').waitFor()
    await press.click()
    await dialog.waitFor({ state: 'detached' })
    t.equal((await call('GET', `/${path}`)).json.length, 1)
  })

t.test('a directory that is filled in while somebody begins to write gives way to that', { skip }, async (t) => {
  const { page } = await open(t, 'inbox')
  let release = (): void => {}
  const isAsked = new Promise<void>((resolve) => {
    void page.route('**/v1/directories?prefix=', (route) => {
      release = () => void route.continue()
      resolve()
    })
  })
  await page.goto(`${url}/v1/console/#/queue`)
  await page.getByRole('button', { name: 'Submit a job' }).click()
  const directory = page.getByRole('dialog').getByLabel('Directory')
  await isAsked
  await directory.focus()
  release()
  await until(async () => (await directory.inputValue()) === root)
  await page.keyboard.insertText('/elsewhere')
  t.equal(await directory.inputValue(), '/elsewhere')
})

t.test('a mode that another profile does not have is not asked for', { skip }, async (t) => {
  const { page } = await open(t, 'sessions')
  await page.getByRole('button', { name: 'New session' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Directory').fill(root)
  await dialog.getByLabel('Profile').selectOption('cli')
  await dialog.getByLabel('Permissions').selectOption('plan')
  await dialog.getByLabel('Profile').selectOption('scripted')
  const [request] = await Promise.all([
    page.waitForRequest((request) => request.method() === 'POST'),
    dialog.getByRole('button', { name: 'Start session' }).click(),
  ])
  t.strictSame(request.postDataJSON(), { cwd: root, profile: 'scripted' })
})

t.test('a screen that comes late does not take the place of the one that was gone to since', { skip }, async (t) => {
  const { page } = await open(t, 'sessions')
  await page.getByRole('heading', { name: 'Sessions' }).waitFor()
  let release = (): void => {}
  const held = new Promise<string>((resolve) => {
    void page.route(/assets\/usage-.*\.js$/, (route) => {
      release = () => void route.continue()
      resolve(route.request().url())
    })
  })
  await page.goto(`${url}/v1/console/#/usage`)
  const chunk = await held
  await page.goto(`${url}/v1/console/#/queue`)
  const queue = page.getByRole('heading', { name: 'Queue', exact: true })
  await queue.waitFor()
  release()
  await page.evaluate(`import(${JSON.stringify(chunk)}).then(() => new Promise(requestAnimationFrame))`)
  t.equal(await queue.count(), 1)
})

t.test(
  'a page of the queue that could not be read keeps no other away, and is asked for again',
  { skip },
  async (t) => {
    const [one] = (await call('GET', '/jobs')).json
    const { page } = await open(t, 'inbox')
    let isRefused = false
    await page.route('**/v1/jobs?*', (route) => {
      const { searchParams } = new URL(route.request().url())
      const status = searchParams.get('status')
      if (status !== 'succeeded' && status !== 'failed') return route.fulfill({ json: [] })
      const isSecond = searchParams.has('cursor')
      if (isSecond && status === 'failed' && !isRefused) {
        isRefused = true
        return route.fulfill({ status: 500, json: { code: 'SG_ERR_INTERNAL', detail: 'Not now.' } })
      }
      const json = Array.from({ length: isSecond ? 1 : 50 }, (_, at) => ({
        ...one,
        id: `${status}-${isSecond}-${at}`,
        status,
        prompt: `${status} ${isSecond ? 'late' : at}`,
        finishedAt: one.createdAt + 1,
      }))
      const headers = isSecond ? undefined : { link: `<${url}/v1/jobs?status=${status}&limit=50&cursor=2>; rel="next"` }
      return route.fulfill({ json, ...(headers && { headers }) })
    })
    await page.goto(`${url}/v1/console/#/queue`)
    const done = page.getByRole('region', { name: /^Done/ })
    const more = done.getByRole('button', { name: 'Load earlier' })
    await more.click()
    await page.getByText('Not now.').waitFor()
    await done.getByText('succeeded late').waitFor()
    await more.click()
    await done.getByText('failed late').waitFor()
    await page.getByText('Not now.').waitFor({ state: 'detached' })
    await until(async () => (await more.count()) === 0, 'the end of the list')
    t.equal(await done.getByText('succeeded late').count(), 1)
  },
)
