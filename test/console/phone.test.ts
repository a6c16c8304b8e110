import type { Page } from 'playwright-core'
import t from 'tap'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { openConsole, shot, withBrowser } from '../fixtures/console-browser.js'

const skip = withBrowser()

t.test('a phone says what can be done in a session, and how full its context is', { skip }, async (t) => {
  const { url, call, engine } = await buildServer(t, { console: true, script: {}, allowUnauthenticated: true })
  const body = { cwd: SOME_CWD, profile: 'scripted', title: 'A title that does not fit on a phone', prompt: 'Begin' }
  const { json } = await call('POST', '/sessions', body)
  engine.last.host.emit({ type: 'context_usage', usage: { totalTokens: 84_000, maxTokens: 200_000, percentage: 42 } })
  const at = `sessions/${json.id}`
  const { page, complaints } = await openConsole(t, `${url}/v1/console/`, { at, width: 320, height: 640 })
  await page.getByRole('meter', { name: 'Context' }).waitFor()
  await page.getByText('42 %').waitFor()
  const width = await page.evaluate('document.documentElement.scrollWidth')
  t.equal(width, 320)
  // of its sign alone nobody hears what it does
  await page.getByRole('button', { name: 'Interrupt', exact: true }).click()
  await page.getByRole('button', { name: 'Interrupt', exact: true }).waitFor({ state: 'detached' })
  t.strictSame(complaints, [])
})

/** What stands in a row of the list on top of something else there, or outside of it. */
const overlapping = (page: Page): Promise<string[]> =>
  page.evaluate(`[...document.querySelectorAll('.session-row')].flatMap((row) => {
    const { left, right, bottom } = row.getBoundingClientRect()
    const cells = [...row.children]
      .map((cell) => ({ name: cell.className, ...cell.getBoundingClientRect().toJSON() }))
      .filter(({ width }) => width > 0)
    const isOver = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
    return cells
      .filter((a) => a.left < left || a.right > right || a.bottom > bottom || cells.some((b) => a !== b && isOver(a, b)))
      .map(({ name }) => name)
  })`)

t.test('the list says on any screen who works in a session, and what it costs', { skip }, async (t) => {
  const { url, call, engine } = await buildServer(t, { console: true, script: {}, allowUnauthenticated: true })
  const model = 'a-model-with-a-rather-long-name-of-38-c'
  await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', title: 'Tides', prompt: 'Begin', model })
  engine.last.complete({ totalCostUsd: 1.25 })
  for (const width of [320, 800, 1280]) {
    const { page } = await openConsole(t, `${url}/v1/console/`, { at: 'sessions', width, height: 640 })
    const row = page.locator('.session-row')
    await row.getByText('Tides', { exact: true }).waitFor()
    for (const said of ['scripted', model, '$1.25'])
      t.ok(await row.getByText(said, { exact: true }).isVisible(), `${said} at ${width} px`)
    t.strictSame(await overlapping(page), [], `at ${width} px`)
    t.equal(await page.evaluate('document.documentElement.scrollWidth'), width)
    await shot(page, `row-${width}`)
  }
})

t.test('a thumb meets what chooses an approval', { skip }, async (t) => {
  const { url, call, engine } = await buildServer(t, { console: true, script: {} })
  await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', title: 'Tides', approvalTimeoutMs: 0 })
  void engine.last.host.requestPermission({ toolName: 'Bash', toolUseId: 't', input: { command: 'npm test' } })
  const { page } = await openConsole(t, `${url}/v1/console/`, { at: 'inbox', width: 320, height: 640 })
  // as at 400 % on a screen
  await page.setViewportSize({ width: 320, height: 180 })
  const bar = (await page.getByRole('navigation').boundingBox())!
  t.ok(bar.height <= 32, `${bar.height} of 180 pixels`)
  await page.setViewportSize({ width: 320, height: 640 })
  const { width, height } = (await page.getByLabel('Choose Bash').boundingBox())!
  t.ok(width >= 24 && height >= 24, `it has ${width} by ${height} pixels`)
})
