import t from 'tap'
import { hashToken } from '../../src/daemon/tokens.js'
import { axe, consoleWorld, openConsole, skipWithoutChromium } from '../fixtures/console-browser.js'
import { seeding } from '../fixtures/console-seeds.js'
import { TOKEN } from '../fixtures/daemon-process.js'
import { script } from '../fixtures/demo.js'

t.test('the board moves as jobs do: submitted, canceled, submitted again', { skip: skipWithoutChromium }, async (t) => {
  const world = await consoleWorld(t, { queue: { maxConcurrency: 1 } })
  const { client, job, work } = seeding(world)
  const { page, complaints } = await openConsole(t, world.consoleUrl, { at: 'queue', loses: true })
  const column = (name: string) => page.getByRole('region', { name: new RegExp(`^${name}`) })
  await column('Running').getByText('Nothing runs').waitFor()

  const first = await job(script({ hang: true }), { meta: { ticket: 7 } })
  const second = await job('Second in line')
  await column('Running').getByRole('link').waitFor()
  await column('Queued').getByText('Second in line').waitFor()
  await page.getByText('1 of 1 running').waitFor()

  await column('Running').getByRole('link').click()
  await page.getByRole('button', { name: 'Cancel job' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Leave it' }).click()
  t.equal((await client.jobs.get(first.id)).status, 'running')
  await page.getByRole('button', { name: 'Cancel job' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel job' }).click()
  await page.locator('.job-canceled').waitFor()
  t.equal((await client.jobs.wait(first.id)).status, 'canceled')
  await page.getByText('Attempt 1', { exact: true }).waitFor()

  const failed = await job(script({ fail: 'no' }), { attempts: 2, retryDelayMs: 0 })
  await client.jobs.wait(failed.id)
  const tries = (await client.sessions.list().toArray()).filter(({ jobId }) => jobId === failed.id)
  const last = (await client.jobs.get(failed.id)).sessionId!
  await client.sessions.remove(tries.find(({ id }) => id !== last)!.id)
  await page.goto(`${world.consoleUrl}#/queue/${failed.id}`)
  const attempts = page.locator('.timeline').getByRole('listitem')
  await attempts.filter({ hasText: /^Attempt 1Its session is not kept/ }).waitFor()
  await attempts
    .filter({ hasText: /^Attempt 2/ })
    .getByRole('link')
    .waitFor()
  t.equal(await attempts.count(), 2)

  await client.jobs.wait(second.id)
  await page.getByRole('link', { name: 'All jobs' }).click()
  await column('Done').getByText('Second in line').click()
  await page.locator('.job-succeeded').waitFor()
  await page.getByRole('button', { name: 'Submit again…' }).click()
  const dialog = page.getByRole('dialog')
  t.equal(await dialog.getByLabel('Prompt').inputValue(), 'Second in line')
  await dialog.getByLabel('Directory').fill(`${work}/nowhere`)
  await dialog.getByRole('button', { name: 'Submit' }).click()
  await dialog.locator('.field-error').waitFor()
  t.equal(await dialog.getByLabel('Directory').getAttribute('aria-invalid'), 'true')
  t.strictSame(await axe(page), [])
  await dialog.getByLabel('Directory').fill(work)
  await dialog.getByLabel('Prompt').fill('Third')
  await dialog.getByRole('button', { name: 'Submit' }).click()
  await page.locator('.job-main').getByText('Third').waitFor()
  const id = decodeURIComponent(/queue\/([^/?]+)/.exec(page.url())![1]!)
  t.match(await client.jobs.wait(id), { prompt: 'Third', status: 'succeeded', cwd: work })

  await job(script({ hang: true }))
  for (const part of ['a', 'b', 'c']) await Promise.all(Array.from({ length: 50 }, () => job(`Waits ${part}`)))
  await page.getByRole('link', { name: 'All jobs' }).click()
  await page.reload()
  const queued = column('Queued').getByRole('link')
  await queued.nth(99).waitFor()
  t.equal(await column('Done').getByRole('button').count(), 0, 'what is more of one column is under no other')
  await job('Is urgent', { priority: 1 })
  await queued.first().filter({ hasText: 'Is urgent' }).waitFor()
  t.match(await queued.nth(1).textContent(), 'Waits a', 'what begins next is there, of more than a page')
  t.match(await queued.last().textContent(), 'Waits c')
  t.equal(await column('Queued').getByText('Waits b').count(), 0)
  await column('Queued').getByRole('button', { name: 'Load more in between' }).click()
  await column('Queued').getByRole('button').waitFor({ state: 'detached' })
  const order = (await queued.allTextContents()).map((text) => /Is urgent|Waits [abc]/.exec(text)?.[0])
  t.strictSame(order, ['Is urgent', ...['a', 'b', 'c'].flatMap((part) => Array(50).fill(`Waits ${part}`))])
  await page.route('**/queue/next', (route) => route.fulfill({ contentType: 'text/html', body: '<p>Sign in</p>' }))
  const read = page.waitForResponse('**/queue/next')
  await job('Comes last')
  await queued.filter({ hasText: 'Comes last' }).waitFor()
  await (await read).finished()
  await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))')
  t.match(await queued.first().textContent(), 'Is urgent', 'what is known of the order stands until it can be read')
  t.strictSame(complaints, [])
})

t.test('a profile that the gateway refuses says why at the field', { skip: skipWithoutChromium }, async (t) => {
  const tokens = [{ name: 'ada', sha256: hashToken(TOKEN), canManageProfiles: true }]
  const world = await consoleWorld(t, { profileStore: true, allowUnauthenticated: false, auth: { tokens } })
  const { client } = seeding(world, TOKEN)
  const { page, complaints } = await openConsole(t, world.consoleUrl, { at: 'profiles', loses: true })
  await page.getByLabel('Token').fill(TOKEN)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('button', { name: 'New profile' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name', { exact: true }).fill('docs')
  await dialog.getByLabel('Provider', { exact: true }).fill('openai-compatible')
  await dialog.getByLabel('Model', { exact: true }).fill('m')
  await dialog.getByLabel('Address').fill('https://user:secret@models.example/v1')
  const limits = dialog.getByLabel('Grant nothing beyond what is named here')
  const said = await limits.evaluate(
    (tick) => tick.ownerDocument.getElementById(tick.getAttribute('aria-describedby') ?? '')?.textContent,
  )
  t.equal(said, 'Not ticked: whatever the host provides.', 'the hint is read out with its tick')
  await dialog.getByRole('button', { name: 'Save' }).click()
  const error = dialog.locator('.field', { hasText: 'Address' }).locator('.field-error')
  await error.waitFor()
  t.match(await error.textContent(), /user name, password/)
  t.strictSame(await axe(page), [])
  t.equal(await page.evaluate<string>('document.activeElement.getAttribute("aria-invalid")'), 'true', 'and goes there')
  await dialog.getByLabel('Address').fill('https://models.example/v1')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { name: 'docs' }).waitFor()
  t.match((await client.profiles.get('docs')).profile, { provider: { baseUrl: 'https://models.example/v1' } })

  await page.getByRole('button', { name: 'Edit…' }).click()
  await dialog.getByLabel('Description').fill('Writes the manual')
  await dialog.getByLabel('Provider', { exact: true }).fill('demo')
  await dialog.getByLabel('Address').fill('')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Writes the manual').waitFor()
  const { profile } = await client.profiles.get('docs')
  t.equal(profile.description, 'Writes the manual')
  t.equal(profile.provider?.baseUrl, undefined)

  await page.getByRole('button', { name: 'Delete…' }).click()
  await dialog.getByRole('button', { name: 'Delete' }).click()
  await page.getByText('demo', { exact: true }).first().waitFor()
  t.strictSame(
    (await client.profiles.list()).profiles.map(({ name }) => name),
    ['demo'],
  )
  t.strictSame(complaints, [])
})

t.test('usage shows the turns that there were, as a plot and as a table', { skip: skipWithoutChromium }, async (t) => {
  const world = await consoleWorld(t)
  const { client, session } = seeding(world)
  const ended = [await session('one'), await session('two'), await session(script({ fail: 'no' }))]
  for (const { id } of ended)
    for await (const item of client.session(id).attach()) if ('type' in item && item.type === 'turn_completed') break
  const { page, complaints } = await openConsole(t, world.consoleUrl, { at: 'usage' })
  await page.getByText('Turns', { exact: true }).first().waitFor()
  await page.getByRole('radio', { name: 'Turns' }).check()
  await page.locator('.plot svg [data-series=turnsFailed]').waitFor()
  const heightOf = async (series: string): Promise<number> =>
    Number(await page.locator(`.plot svg [data-series="${series}"]`).getAttribute('height'))
  const [succeeded, failed] = [await heightOf('turnsSucceeded'), await heightOf('turnsFailed')]
  t.ok(Math.abs(succeeded / failed - 2) < 0.01, `${succeeded} and ${failed}`)
  await page.getByText('As a table').click()
  const last = page.getByRole('region', { name: 'Turns by day, as a table' }).locator('tbody tr').last()
  t.strictSame(await last.locator('td').allTextContents(), ['2', '1', '0', '3'])
  t.strictSame(await axe(page), [])
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'CSV' }).click(),
  ])
  t.match(download.suggestedFilename(), /^usage-\d{4}-\d{2}-\d{2}-\d{4}-\d{2}-\d{2}\.csv$/)
  const csv = await new Response((await download.createReadStream()) as never).text()
  t.match(csv, /^day,profile,agent,person,/)
  t.match(csv, /demo,provider/)
  t.strictSame(complaints, [])
})
