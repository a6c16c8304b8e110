import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { allAnswered, isLive, openConsole, withBrowser } from '../fixtures/console-browser.js'

const skip = withBrowser()

const { url, call } = await buildServer(t, { console: true, script: {}, queue: { maxConcurrency: 1 } })

/** Answers a list of `length` things, the newest first, in pages that hold no more than `most`. */
async function lists(page: Page, path: string, thing: (at: number) => object, given: { length: number; most: number }) {
  await page.route(`**/v1/${path}?*`, async (route) => {
    const { searchParams } = new URL(route.request().url())
    const status = searchParams.get('status')
    if (status !== null && status !== 'succeeded') return route.fulfill({ json: [] })
    const before = Number(searchParams.get('cursor') ?? given.length)
    const count = Math.min(before, given.most, Number(searchParams.get('limit')))
    const json = Array.from({ length: count }, (_, n) => thing(before - 1 - n))
    const next = new URLSearchParams({ ...Object.fromEntries(searchParams), cursor: String(before - count) })
    await route.fulfill({ json, ...(before > count && { headers: { link: `<${path}?${next}>; rel="next"` } }) })
  })
}

/** Presses it for as long as there is more. @returns how often */
async function loadAll(page: Page): Promise<number> {
  const more = page.getByRole('button', { name: 'Load earlier' })
  for (let presses = 0; ; presses++) {
    if ((await more.count()) === 0) return presses
    const answered = page.waitForResponse(/cursor=/)
    await more.click()
    await answered
    await allAnswered(page)
  }
}

const { json: known } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', title: 'Known' })
const session = (at: number) => ({ ...known, id: `s${at}`, title: `Session ${at}.`, createdAt: 1_000 + at })
const rows = (page: Page) => page.locator('.session-row')
/** Comes back to the window, which makes it read the list again. */
const looks = (page: Page) => page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")

/** The first page of a list that has one and a half. */
async function onPage(t: Test) {
  const { page } = await openConsole(t, `${url}/v1/console/`, { at: 'inbox' })
  const given = { length: 150, most: 100 }
  await lists(page, 'sessions', session, given)
  await isLive(page)
  await page.goto(`${url}/v1/console/#/sessions`)
  await rows(page).nth(99).waitFor()
  return { page, given }
}

t.test('a list of sessions that somebody leaves open does not grow without an end', { skip }, async (t) => {
  const { page, given } = await onPage(t)
  const counts: number[] = []
  for (let times = 0; times < 13; times++) {
    given.length += 80
    await looks(page)
    await rows(page)
      .first()
      .getByText(`Session ${given.length - 1}.`, { exact: true })
      .waitFor()
    counts.push(await rows(page).count())
  }
  t.equal(Math.max(...counts), 980)
  t.equal(counts.at(-1), 180, 'it has begun anew')
  await loadAll(page)
  t.equal(await rows(page).count(), given.length, 'and has no hole')
})

t.test('more new sessions than a page has leave no hole in the list', { skip }, async (t) => {
  const { page, given } = await onPage(t)
  t.equal(await loadAll(page), 1)
  t.equal(await rows(page).count(), 150)

  given.length = 400
  await looks(page)
  await page.getByText('Session 399.').waitFor()
  await loadAll(page)
  t.equal(await rows(page).count(), 400)
  t.equal(await page.getByText('Session 275.').count(), 1)

  given.length = 401
  await looks(page)
  await page.getByText('Session 400.').waitFor()
  t.equal(await rows(page).count(), 401)
  t.equal(await page.getByRole('button', { name: 'Load earlier' }).count(), 0, 'nothing is to be read twice')
})

for (const [when, createdAt] of [
  ['were made in one moment', () => 1_000],
  ['were made while the clock was set back', (at: number) => 1_000 - at],
] as const)
  t.test(`sessions that ${when} stay in the list, in its order`, { skip }, async (t) => {
    const { page } = await openConsole(t, `${url}/v1/console/`, { at: 'inbox' })
    const given = { length: 250, most: 100 }
    await lists(page, 'sessions', (at) => ({ ...session(at), createdAt: createdAt(at) }), given)
    await isLive(page)
    await page.goto(`${url}/v1/console/#/sessions`)
    await rows(page).nth(99).waitFor()
    await loadAll(page)
    for (given.length = 250; given.length < 253; given.length++) {
      await Promise.all([page.waitForResponse(/sessions\?/), looks(page)])
      await page.getByText(`Session ${given.length - 1}.`).waitFor()
      await allAnswered(page)
      t.strictSame(
        await rows(page).locator('.session-title').allTextContents(),
        Array.from({ length: given.length }, (_, n) => `Session ${given.length - 1 - n}.`),
      )
    }
  })

t.test('a session that is gone leaves the list, where the last of a page is gone too', { skip }, async (t) => {
  const { page } = await openConsole(t, `${url}/v1/console/`, { at: 'inbox' })
  const gone = new Set<string>()
  await page.route('**/v1/sessions?*', (route) => {
    const all = Array.from({ length: 103 }, (_, n) => session(102 - n)).filter(({ id }) => !gone.has(id))
    return route.fulfill({ json: all.slice(0, 100), headers: { link: '<sessions?cursor=1>; rel="next"' } })
  })
  await isLive(page)
  await page.goto(`${url}/v1/console/#/sessions`)
  await rows(page).nth(99).waitFor()
  for (const id of ['s50', 's3']) gone.add(id)
  await looks(page)
  await page.getByText('Session 1.', { exact: true }).waitFor()
  t.equal(await page.getByText('Session 50.', { exact: true }).count(), 0)
  t.equal(await page.getByText('Session 3.', { exact: true }).count(), 0)
  t.equal(await rows(page).count(), 100)
})

t.test('how many sessions wait is said once all that wait are loaded', { skip }, async (t) => {
  const { page } = await openConsole(t, `${url}/v1/console/`, { at: 'inbox' })
  const asks = { status: 'awaiting_approval', pendingPermissions: 1 }
  await lists(page, 'sessions', (at) => ({ ...session(at), ...asks }), { length: 150, most: 100 })
  await isLive(page)
  await page.goto(`${url}/v1/console/#/sessions`)
  await rows(page).nth(99).waitFor()
  const count = page.locator('.segments .count')
  t.equal(await count.count(), 0, 'not the number of those on the page')
  await loadAll(page)
  t.equal(await count.textContent(), '150')
})

t.test('a page that is short because what is on it is long is not taken for the last', { skip }, async (t) => {
  const { page } = await openConsole(t, `${url}/v1/console/`, { at: 'inbox' })
  await lists(page, 'sessions', session, { length: 50, most: 20 })
  // of a page that is not live nobody has it read again
  await isLive(page)
  await page.goto(`${url}/v1/console/#/sessions`)
  await rows(page).nth(19).waitFor()
  t.equal(await loadAll(page), 2)
  t.equal(await rows(page).count(), 50)
  await Promise.all([page.waitForResponse(/sessions\?/), looks(page)])
  await allAnswered(page)
  t.equal(await rows(page).count(), 50)
})

t.test('jobs that are read anew while more are on their way leave no hole', { skip }, async (t) => {
  await call('POST', '/jobs', { session: { cwd: SOME_CWD, profile: 'scripted', prompt: 'Known' } })
  const [one] = (await call('GET', '/jobs')).json
  const job = (at: number) => ({
    ...one,
    ...{ id: `j${at}`, prompt: `Job ${at}.`, status: 'succeeded', createdAt: 1_000 + at, finishedAt: 1_000 + at },
  })
  const { page } = await openConsole(t, `${url}/v1/console/`, { at: 'inbox', loses: true })
  const given = { length: 45, most: 15 }
  await lists(page, 'jobs', job, given)
  await page.goto(`${url}/v1/console/#/queue`)
  const done = page.locator('.column-done')
  await done.getByText('Job 44.').waitFor()
  const more = done.getByRole('button', { name: 'Load earlier' })
  await page.route('**/v1/jobs?*cursor=*', (route) => route.fulfill({ status: 500, json: {} }), { times: 1 })
  await more.click()
  const again = page.getByRole('button', { name: 'Try again' })
  await again.waitFor()

  let release = (): void => {}
  const held = new Promise<void>((resolve) => {
    const hold = (route: { fallback(): Promise<void> }) => {
      release = () => void route.fallback()
      resolve()
    }
    void page.route('**/v1/jobs?*cursor=*', hold, { times: 1 })
  })
  await more.click()
  await held
  given.length = 75
  await again.click()
  await done.getByText('Job 74.').waitFor()
  const answered = page.waitForResponse(/cursor=/)
  release()
  await answered
  await allAnswered(page)
  await loadAll(page)
  await until(async () => (await done.locator('.job-card').count()) === 75, 'all of them')
})

t.test('a job that could not be read is read when somebody tries again', { skip }, async (t) => {
  const { json } = await call('POST', '/jobs', {
    session: { cwd: SOME_CWD, profile: 'scripted', prompt: 'To be read' },
  })
  await call('DELETE', `/jobs/${json.id}`)
  const { page } = await openConsole(t, `${url}/v1/console/`, { at: 'inbox', loses: true })
  const failure = { status: 500, json: { code: 'SG_ERR_INTERNAL', detail: 'Not now.' } }
  for (const path of [`jobs/${json.id}`, `jobs/${json.id}/deliveries`]) {
    // once the list has told of it nothing else makes the page read it
    await page.goto(`${url}/v1/console/#/queue`)
    await page.locator('.column-done').getByText('To be read').waitFor()
    await page.route(`**/v1/${path}`, (route) => route.fulfill(failure))
    await page.goto(`${url}/v1/console/#/queue/${json.id}`)
    await page.getByText('Not now.').waitFor()
    await page.unroute(`**/v1/${path}`)
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('Not now.').waitFor({ state: 'detached' })
    await page.getByText('To be read').waitFor()
  }
})

t.test('a job that has no news is read once', { skip }, async (t) => {
  const { json } = await call('POST', '/jobs', { session: { cwd: SOME_CWD, profile: 'scripted', prompt: 'Read once' } })
  await call('DELETE', `/jobs/${json.id}`)
  const { page } = await openConsole(t, `${url}/v1/console/`, { at: 'inbox' })
  let reads = 0
  page.on('request', (request) => {
    if (request.url().endsWith(`/jobs/${json.id}`)) reads++
  })
  // the list of jobs is never answered, and so tells no news
  await page.route('**/v1/jobs?*', () => {})
  await page.goto(`${url}/v1/console/#/queue/${json.id}`)
  await page.getByText('Read once').waitFor()
  // a second one would have begun with the drawing of the first
  await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))')
  t.equal(reads, 1)
})
