import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import t from 'tap'
import type { SdkSession } from '../../client/index.js'
import { buildServer } from '../fixtures/build.js'
import { axe, goTo, openConsole, shot, withBrowser } from '../fixtures/console-browser.js'
import type { ScriptedRunner } from '../fixtures/scripted-engine.js'

const skip = withBrowser()

const root = realpathSync(t.testdir({ tides: { data: {} }, tools: {} }))
/** What the agents keep, as they answer who asks for it. */
const kept: SdkSession[] = [
  { sessionId: 'kept-1', summary: 'Tides of <b>March</b>', lastModified: 1_700_000_000_000, cwd: join(root, 'tides') },
  { sessionId: 'kept-2', summary: 'Tools', lastModified: 1_700_000_001_000, cwd: join(root, 'tools'), profile: 'cli' },
]
const asked: object[] = []
const { url, call, engine } = await buildServer(t, {
  console: true,
  script: { capabilities: { resume: true, fork: true } },
  allowedCwdRoots: [root],
  profiles: [
    { name: 'scripted', engine: 'provider', provider: { id: 'scripted' } },
    { name: 'cli', engine: 'cli' },
  ],
  listSdkSessions: (query) => {
    asked.push(query)
    return kept.filter(({ cwd }) => query.dir === undefined || cwd === query.dir)
  },
  eventLog: { maxEvents: 200_000, maxBytes: 512 * 1024 * 1024 },
})
const consoleUrl = `${url}/v1/console/`

/** A session, and the agent that the test speaks for. */
async function session(more: object = {}) {
  const { json } = await call('POST', '/sessions', { cwd: root, profile: 'scripted', approvalTimeoutMs: 0, ...more })
  return { id: json.id as string, runner: engine.runners.at(-1)! }
}
const eventsOf = async (id: string) => (await call('GET', `/sessions/${id}/events?limit=1000`)).json.events

const logOf = (page: Page): Locator => page.getByRole('log')
const messageOf = (page: Page): Locator => page.getByRole('textbox', { name: 'Message' })
/** The line that has the focus, once it is the one. */
const focusedLine = (page: Page, seq: number) =>
  page.waitForFunction((wanted) => {
    const { document, innerHeight } = globalThis as unknown as {
      innerHeight: number
      document: {
        activeElement: { dataset: { seq?: string }; getBoundingClientRect(): { top: number; bottom: number } }
      }
    }
    const { top, bottom } = document.activeElement.getBoundingClientRect()
    return Number(document.activeElement.dataset.seq) === wanted && bottom > 0 && top < innerHeight
  }, seq)

t.test('a session is started in a directory that is completed as it is typed', { skip }, async (t) => {
  const { page, complaints } = await openConsole(t, consoleUrl, { at: 'sessions', loses: true })
  await page.getByRole('button', { name: 'New session' }).click()
  const dialog = page.getByRole('dialog')
  const directory = dialog.getByLabel('Directory')
  // the one place that there is
  await page.waitForFunction(
    (path) =>
      (
        globalThis as unknown as { document: { activeElement: unknown; querySelector(s: string): { value: string } } }
      ).document.querySelector('dialog input[list]').value === path,
    root,
  )
  const offers = dialog.locator('datalist').first().locator('option')
  await directory.fill(`${root}/t`)
  await offers.nth(1).waitFor({ state: 'attached' })
  t.strictSame(await offers.evaluateAll((all) => all.map((one) => (one as unknown as { value: string }).value)), [
    join(root, 'tides'),
    join(root, 'tools'),
  ])
  await directory.fill(`${root}/tides/`)
  await dialog.locator(`option[value="${root}/tides/data"]`).waitFor({ state: 'attached' })
  // what is taken out stays out
  await directory.fill('')
  await dialog.locator(`option[value="${root}"]`).waitFor({ state: 'attached' })
  await dialog.getByLabel('First message').fill('Which tide?')
  t.equal(await directory.inputValue(), '')
  await directory.fill('/nowhere')
  await dialog.getByRole('button', { name: 'Start session' }).click()
  await dialog.locator('.field-error').waitFor()
  t.equal(await directory.getAttribute('aria-invalid'), 'true', 'a refusal is at its field')
  await directory.fill(`${root}/tides`)
  await dialog.getByRole('button', { name: 'Start session' }).click()
  await logOf(page).getByText('Which tide?').waitFor()
  t.match(engine.last.context.config, { cwd: join(root, 'tides') })
  t.strictSame(complaints, [])
})

t.test('what an agent keeps is gone on with, in it or in a copy', { skip }, async (t) => {
  const { page, complaints } = await openConsole(t, consoleUrl, { at: 'sessions', loses: true })
  const begin = async () => {
    await goTo(page, '#/sessions')
    await page.getByRole('button', { name: 'New session' }).click()
    await page.getByRole('radio', { name: 'Go on with an earlier one' }).check()
    await page.getByRole('dialog').getByLabel('Profile', { exact: true }).selectOption('cli')
  }
  await begin()
  await page.getByLabel('Directory').fill(`${root}/data`)
  await page.getByRole('button', { name: 'Find sessions' }).click()
  await page.getByRole('dialog').getByRole('alert').waitFor()
  await page.getByLabel('Directory').fill(join(root, 'tools'))
  await page.getByRole('button', { name: 'Find sessions' }).click()
  const found = page.locator('.adopt-list li')
  await found.getByText('Tools').waitFor()
  t.equal(await page.getByRole('dialog').getByRole('alert').count(), 0)
  t.match(asked.at(-1), { profile: 'cli', dir: join(root, 'tools') })
  t.strictSame(await axe(page), [])
  await shot(page, 'adopt')
  await found.getByRole('button', { name: 'Resume' }).click()
  await page.waitForURL(/#\/sessions\/.+/)
  t.match(engine.last.context.config, { resume: 'kept-2', cwd: join(root, 'tools') })
  t.notOk(engine.last.context.config.forkSession)

  // what was meant for a new one is not said in an old one
  await goTo(page, '#/sessions')
  await page.getByRole('button', { name: 'New session' }).click()
  await page.getByLabel('First message').fill('For a new one')
  await page.getByRole('radio', { name: 'Go on with an earlier one' }).check()
  await page.getByLabel('Directory').fill(join(root, 'tides'))
  await page.getByRole('button', { name: 'Find sessions' }).click()
  await found.getByText('Tides of <b>March</b>').waitFor()
  await page.getByRole('dialog').getByLabel('Profile', { exact: true }).selectOption('cli')
  await found.getByRole('button', { name: 'Fork' }).click()
  await page.waitForURL(/#\/sessions\/.+/)
  t.match(engine.last.context.config, { resume: 'kept-1', forkSession: true, cwd: join(root, 'tides') })
  t.strictSame(engine.last.sent, [])
  t.strictSame(complaints, [])
})

t.test('a title is given, and given back', { skip }, async (t) => {
  const { id, runner } = await session({ prompt: 'What is the tide today?' })
  const { page, complaints } = await openConsole(t, consoleUrl, { at: `sessions/${id}` })
  const rename = async (title: string) => {
    await page.getByRole('button', { name: 'More actions' }).click()
    await page.getByRole('button', { name: 'Rename' }).click()
    await page.getByLabel('Title').fill(title)
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  }
  await page.getByRole('heading', { name: 'What is the tide today?' }).waitFor()
  await rename('Low water')
  await page.getByRole('heading', { name: 'Low water' }).waitFor()
  runner.complete()
  await logOf(page)
    .getByText(/Turn over/)
    .waitFor()
  t.equal(await page.getByRole('heading', { name: 'Low water' }).count(), 1, 'and keeps it')
  t.equal((await call('GET', `/sessions/${id}`)).json.title, 'Low water')
  await goTo(page, '#/sessions')
  await page.getByRole('link', { name: 'Low water' }).click()
  await rename('')
  await page.getByRole('heading', { name: 'What is the tide today?' }).waitFor()
  t.strictSame(complaints, [])
})

t.test('a transcript is copied and downloaded as Markdown and as JSON, all of it', { skip }, async (t) => {
  const { id, runner } = await session({ title: 'Tides: a/b\u202e', prompt: 'First of all' })
  for (let line = 0; line < 700; line++) runner.say(`line ${line} of the log`)
  runner.complete()
  const { page, context, complaints } = await openConsole(t, consoleUrl, { at: `sessions/${id}` })
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: url })
  await logOf(page).getByText('line 699 of the log').waitFor()
  await page.getByRole('button', { name: 'More actions' }).click()
  const download = async (name: string) => {
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name }).click()])
    return {
      name: file.suggestedFilename(),
      text: await new Response((await file.createReadStream()) as never).text(),
    }
  }
  const json = await download('Download as JSON')
  t.equal(json.name, 'Tides-a-b.json')
  const { session: told, events } = JSON.parse(json.text)
  t.equal(told.id, id)
  t.strictSame(events, await eventsOf(id), 'every event as the gateway has it')
  const markdown = await download('Download as Markdown')
  t.equal(markdown.name, 'Tides-a-b.md')
  t.match(markdown.text, /^# Tides: a\/b\[U\+202E\]\n/)
  for (const part of ['First of all', 'line 0 of the log', 'line 699 of the log']) t.match(markdown.text, part)
  await page.getByRole('button', { name: 'Copy as Markdown' }).click()
  await page.getByText('Copied.').waitFor()
  const copied = await page.evaluate<string>('navigator.clipboard.readText()')
  t.equal(copied.replaceAll('\r\n', '\n'), markdown.text)
  t.strictSame(complaints, [])
})

t.test('a link leads to its line, however far from the end', { skip }, async (t) => {
  const { id, runner } = await session({ title: 'Long' })
  for (let line = 0; line < 1500; line++) runner.say(`line ${line} of the log`)
  runner.complete()
  const seqOf = (await eventsOf(id)).find(
    (event: { message?: { content: { text: string }[] } }) => event.message?.content[0]?.text === 'line 40 of the log',
  ).seq as number
  const { page, complaints } = await openConsole(t, consoleUrl, { at: `sessions/${id}/${seqOf}` })
  await focusedLine(page, seqOf)
  t.equal(await logOf(page).getByText('line 1499 of the log').count(), 0, 'the end is not read for it')
  // to another of the same session, and back
  await goTo(page, `#/sessions/${id}/${seqOf + 900}`)
  await focusedLine(page, seqOf + 900)
  await page.goBack()
  await focusedLine(page, seqOf)
  await page.getByRole('button', { name: 'Jump to live' }).click()
  await logOf(page).getByText('line 1499 of the log').waitFor()
  // what is no number, or beyond the end, leads to the end
  for (const place of ['x', '99999999']) {
    await page.goto(`${consoleUrl}#/sessions`)
    await page.goto(`${consoleUrl}#/sessions/${id}/${place}`)
    await logOf(page).getByText('line 1499 of the log').waitFor()
  }
  t.strictSame(complaints, [])
})

const says = (runner: ScriptedRunner, content: unknown[], more: object = {}) =>
  runner.host.emit({
    type: 'assistant_message',
    uuid: `m${Math.random()}`,
    parentToolUseId: null,
    message: { role: 'assistant', content },
    ...more,
  } as never)
const results = (runner: ScriptedRunner, id: string, content: unknown, more: object = {}) =>
  runner.host.emit({
    type: 'user_message',
    uuid: `m${Math.random()}`,
    parentToolUseId: null,
    message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content, ...more }] },
  } as never)

t.test(
  'ten megabytes in a line and fifty thousand items are cut, and more of them is shown on demand',
  { skip },
  async (t) => {
    const { id, runner } = await session({ title: 'Much' })
    const line = `begin ${'x'.repeat(10 * 1024 * 1024)}`
    const items = Array.from({ length: 50_000 }, (_, n) => ({ n, name: `item ${n}` }))
    says(runner, [{ type: 'text', text: line }])
    says(runner, [{ type: 'tool_use', id: 'long', name: 'Long', input: { command: line } }])
    results(runner, 'long', line)
    says(runner, [{ type: 'tool_use', id: 'many', name: 'Many', input: { items } }])
    results(
      runner,
      'many',
      items.map(({ name }) => ({ type: 'text', text: name })),
    )
    says(runner, [{ type: 'text', text: 'That was it.' }])
    runner.complete()
    const { page, complaints } = await openConsole(t, consoleUrl, { at: `sessions/${id}` })
    const log = logOf(page)
    await log.getByText('That was it.').waitFor()
    // until all is drawn, what is drawn above moves what is pressed
    await log.getByText('The session begins here.').waitFor()
    const shown = () => log.evaluate((element) => (element as unknown as { textContent: string }).textContent.length)
    t.ok((await shown()) < 200_000, `${await shown()} characters`)
    await log.getByRole('button', { name: /^Long/ }).press('Enter')
    await log.getByRole('button', { name: /^Many/ }).press('Enter')
    await log.getByRole('heading', { name: 'Output' }).nth(1).waitFor()
    t.ok((await shown()) < 200_000, `${await shown()} characters with what went in and came out`)
    const before = await shown()
    await log
      .getByRole('button', { name: /Show more/ })
      .first()
      .press('Enter')
    await page.waitForFunction(
      (length) =>
        (
          globalThis as unknown as { document: { querySelector(s: string): { textContent: string } } }
        ).document.querySelector('[role=log]').textContent.length >
        length + 50_000,
      before,
    )
    const all = await log.getByRole('button', { name: /Show more/ }).count()
    t.ok(all >= 4, `${all} of them have more`)
    await shot(page, 'transcript-much')
    // the inbox shows what waits with as much
    const settled = runner.host.requestPermission({
      toolName: 'Bash',
      toolUseId: 'ask',
      input: { command: line, items } as never,
    })
    await goTo(page, '#/inbox')
    await page.locator('.ask-head').click()
    await page.locator('.ask-body').getByRole('button', { name: 'Allow', exact: true }).click()
    t.match(await settled, { behavior: 'allow' })
    t.strictSame(complaints, [])
  },
)

t.test('what a helper writes streams under the call that it works for', { skip }, async (t) => {
  const { id, runner } = await session({ title: 'Helped', prompt: 'Go' })
  const { page, complaints } = await openConsole(t, consoleUrl, { at: `sessions/${id}` })
  const log = logOf(page)
  const delta = (uuid: string, text: string, parentToolUseId: string | null) =>
    runner.host.emit({ type: 'stream_delta', uuid, blockIndex: 0, delta: { type: 'text', text }, parentToolUseId })
  says(runner, [{ type: 'tool_use', id: 'task', name: 'Task', input: { description: 'Look at the tides' } }])
  const card = log.locator('.card.tool', { hasText: 'Look at the tides' })
  const head = card.first().locator('.card-head').first()
  await head.press('Enter')
  delta('h1', 'The helper looks', 'task')
  await card.locator('.helper .streaming').getByText('The helper looks').waitFor()
  delta('h1', ' and finds', 'task')
  await card.locator('.helper .streaming').getByText('The helper looks and finds').waitFor()
  t.equal(await head.getAttribute('aria-expanded'), 'true', 'what was opened stays open')
  says(runner, [{ type: 'tool_use', id: 'inner', name: 'Inner', input: { description: 'Read deeper' } }], {
    uuid: 'h1',
    parentToolUseId: 'task',
  })
  delta('h2', 'The helper of the helper', 'inner')
  await card.locator('.card.tool .streaming').getByText('The helper of the helper').waitFor()
  const left = (part: Locator) =>
    part.evaluate((e) => (e as unknown as { getBoundingClientRect(): { left: number } }).getBoundingClientRect().left)
  const [outer, inner] = [await left(card.first()), await left(card.locator('.card.tool').first())]
  t.ok(inner > outer, `${inner} is right of ${outer}`)
  says(runner, [{ type: 'text', text: 'Deep words' }], { uuid: 'h2', parentToolUseId: 'inner' })
  says(runner, [{ type: 'text', text: 'Meanwhile above' }])
  says(runner, [{ type: 'text', text: 'Helper words' }], { parentToolUseId: 'task' })
  results(runner, 'inner', 'read')
  results(runner, 'task', 'done')
  runner.complete()
  await log.getByText(/Turn over/).waitFor()
  t.strictSame(await axe(page), [])
  // a link to what a helper said opens what it is in
  const seqOf = async (text: string) =>
    (await eventsOf(id)).find(
      (event: { type: string; message?: { content: { text?: string }[] } }) =>
        event.type === 'assistant_message' && event.message?.content[0]?.text === text,
    ).seq as number
  const { page: other } = await openConsole(t, consoleUrl, { at: `sessions/${id}/${await seqOf('Deep words')}` })
  await focusedLine(other, await seqOf('Deep words'))
  await goTo(other, `#/sessions/${id}/${await seqOf('Meanwhile above')}`)
  await focusedLine(other, await seqOf('Meanwhile above'))
  t.strictSame(complaints, [])
})

t.test(
  'what is said while a turn is in progress waits for its end, and what was said comes again',
  { skip },
  async (t) => {
    const { id, runner } = await session({ title: 'Busy', prompt: 'Begin' })
    const { page, complaints } = await openConsole(t, consoleUrl, { at: `sessions/${id}` })
    const message = messageOf(page)
    await page.getByRole('button', { name: 'Interrupt' }).waitFor()
    await message.fill('Second')
    await page.getByRole('button', { name: 'Queue' }).click()
    await logOf(page).getByText('Second', { exact: true }).waitFor()
    await message.fill('Third')
    await message.press('Enter')
    await logOf(page).getByText('Third', { exact: true }).waitFor()
    t.strictSame(
      runner.sent.map(({ text }) => text),
      ['Begin'],
    )
    runner.complete()
    await logOf(page)
      .getByText(/Turn over/)
      .waitFor()
    t.strictSame(complaints, [])

    await message.fill('not sent yet')
    for (const said of ['Third', 'Second']) {
      await message.press('ArrowUp')
      t.equal(await message.inputValue(), said)
    }
    await message.press('ArrowDown')
    t.equal(await message.inputValue(), 'Third')
    await message.press('ArrowDown')
    t.equal(await message.inputValue(), 'not sent yet', 'what was begun is not lost')
    await message.press('Shift+Enter')
    await message.pressSequentially('second line')
    await message.press('ArrowUp')
    t.equal(await message.inputValue(), 'not sent yet\nsecond line', 'within several lines they walk')
    await message.press('ArrowUp')
    t.equal(await message.inputValue(), 'Third')
  },
)
