import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { allAnswered, axe, buildConsole, openConsole, shot, skipWithoutChromium } from '../fixtures/console-browser.js'
import { rounds } from '../fixtures/rounds.js'

const skip = skipWithoutChromium

type Decision = { behavior: string; message?: string; updatedInput?: Record<string, unknown> }

/** A gateway whose agents ask what the test has them ask. */
async function world(t: Test) {
  buildConsole()
  const { url, call, engine } = await buildServer(t, { console: true, script: {}, allowUnauthenticated: true })
  const session = async (title: string) => {
    const { json } = await call('POST', '/sessions', {
      ...{ cwd: SOME_CWD, profile: 'scripted', title, approvalTimeoutMs: 0 },
    })
    const runner = engine.runners.at(-1)!
    /** Resolves to how it was settled. */
    const ask = (toolName: string, input: object): Promise<Decision> =>
      runner.host.requestPermission({ toolName, toolUseId: 't', input: input as never }) as Promise<Decision>
    return { id: json.id as string, ask }
  }
  const answer = async (sessionId: string, behavior: string) => {
    const { json } = await call('GET', `/inbox?sessionId=${sessionId}`)
    return call('POST', `/sessions/${sessionId}/permissions/${json[0].request.id}`, { behavior })
  }
  return { session, answer, call, consoleUrl: `${url}/v1/console/` }
}

const rows = (page: Page) => page.locator('.ask')
const row = (page: Page, text: string) => page.locator('.ask', { hasText: text })

t.test('keys walk, allow, deny with a reason and edit; the title counts', { skip }, async (t) => {
  const { session, consoleUrl } = await world(t)
  const build = await session('Build')
  const allowed = build.ask('Bash', { command: 'npm test' })
  const denied = build.ask('Bash', { command: 'rm -r dist' })
  const edited = build.ask('Write', { file_path: 'a.txt', content: 'one\ntwo', mode: 7 })
  const { page, complaints } = await openConsole(t, consoleUrl)
  await rows(page).nth(2).waitFor()
  await until(async () => /^\(3\) /.test(await page.title()), 'a title that counts what waits')

  await page.keyboard.press('j')
  await row(page, 'npm test').locator('.ask-body').waitFor()
  t.strictSame(await axe(page), [])
  await page.keyboard.press('a')
  t.strictSame((await allowed).behavior, 'allow')
  await row(page, 'npm test').getByText('Allowed by you').waitFor()

  await row(page, 'rm -r dist').locator('.ask-body').waitFor()
  await page.keyboard.press('d')
  await page.keyboard.type('keep it; a, j and k are letters here')
  await page.keyboard.press('Enter')
  t.match(await denied, { behavior: 'deny', message: 'keep it; a, j and k are letters here' })

  await row(page, 'a.txt').locator('.ask-body').waitFor()
  await page.keyboard.press('e')
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('mode').fill('seven')
  await shot(page, 'inbox-edit')
  await dialog.getByRole('button', { name: 'Allow with this input' }).click()
  await dialog.getByText('A number is needed.').waitFor()
  t.strictSame(await axe(page), [])
  await dialog.getByLabel('mode').fill('8')
  await dialog.getByRole('radio', { name: 'JSON' }).check()
  const json = dialog.getByLabel('Input as JSON')
  await json.fill((await json.inputValue()).replace('"one', '"none'))
  await dialog.getByRole('button', { name: 'Allow with this input' }).click()
  t.match(await edited, { behavior: 'allow', updatedInput: { file_path: 'a.txt', content: 'none\ntwo', mode: 8 } })
  await page.getByText('All answered.').waitFor()
  await until(async () => !/^\(/.test(await page.title()), 'nothing counted in the title')
  t.strictSame(complaints, [])
})

t.test('an answer that is refused takes nothing of what was written with it', { skip }, async (t) => {
  const { session, consoleUrl } = await world(t)
  const build = await session('Build')
  const denied = build.ask('Bash', { command: 'rm -r dist' })
  const edited = build.ask('Write', { file_path: 'a.txt', content: 'one' })
  const { page, complaints } = await openConsole(t, consoleUrl, { loses: true })
  const json = { code: 'SG_ERR_INTERNAL', detail: 'Not now.' }
  await page.route('**/inbox/answers', (route) => route.fulfill({ status: 500, json }))
  const open = async (text: string) => {
    const head = row(page, text).locator('.ask-head')
    if ((await head.getAttribute('aria-expanded')) !== 'true') await head.click()
    return row(page, text)
  }
  const reason = async () => {
    const asked = await open('rm -r dist')
    await asked.getByRole('button', { name: 'Deny…' }).click()
    return asked.getByRole('textbox')
  }
  await (await reason()).fill('keep it')
  await page.keyboard.press('Enter')
  await row(page, 'rm -r dist').getByText('Not now.').waitFor()

  const dialog = page.getByRole('dialog')
  const content = async () => {
    await (await open('a.txt')).locator('[data-key="edit"]').click()
    return dialog.getByLabel('content')
  }
  await (await content()).fill('two')
  await dialog.getByRole('button', { name: 'Allow with this input' }).click()
  await row(page, 'a.txt').getByText('Not now.').waitFor()

  await page.unroute('**/inbox/answers')
  t.equal(await (await content()).inputValue(), 'two')
  await dialog.getByRole('button', { name: 'Allow with this input' }).click()
  t.match(await edited, { behavior: 'allow', updatedInput: { content: 'two' } })
  t.equal(await (await reason()).inputValue(), 'keep it')
  await page.keyboard.press('Enter')
  t.match(await denied, { behavior: 'deny', message: 'keep it' })
  t.strictSame(complaints, [])
})

t.test('an answer that fails while another kind is looked at says so', { skip }, async (t) => {
  const { session, consoleUrl } = await world(t)
  const build = await session('Build')
  const allowed = build.ask('Bash', { command: 'npm test' })
  const { page } = await openConsole(t, consoleUrl, { loses: true })
  let fail = (): void => {}
  const isSent = new Promise<void>((resolve) => {
    void page.route('**/inbox/answers', (route) => {
      fail = () => void route.fulfill({ status: 500, json: { code: 'SG_ERR_INTERNAL', detail: 'Not now.' } })
      resolve()
    })
  })
  await row(page, 'npm test').locator('.ask-head').click()
  await page.keyboard.press('a')
  await isSent
  const read = page.waitForResponse(/inbox\?kind=question/)
  await page.getByRole('radio', { name: 'Questions' }).check()
  await read
  await allAnswered(page, 1)
  await row(page, 'npm test').getByText('Sending: allow').waitFor()
  t.equal(await page.getByRole('button', { name: /^Hide/ }).count(), 0)
  fail()
  await row(page, 'npm test').getByText('Not now.').waitFor()
  await page.unroute('**/inbox/answers')
  await row(page, 'npm test').locator('.ask-head').click()
  await page.keyboard.press('a')
  t.match(await allowed, { behavior: 'allow' })
})

t.test('questions are answered by one, by several and in own words', { skip }, async (t) => {
  const { session, consoleUrl } = await world(t)
  const { ask } = await session('Chart')
  const answered = ask('AskUserQuestion', {
    questions: [
      { question: 'Which colour?', header: 'Colour', options: [{ label: 'Blue' }, { label: 'Green' }] },
      { question: 'Which axes?', options: [{ label: 'x' }, { label: 'y' }, { label: 'z' }], multiSelect: true },
      { question: 'What title?', options: [{ label: 'None' }] },
    ],
  })
  const { page, complaints } = await openConsole(t, consoleUrl, { width: 360 })
  await rows(page).getByRole('button').first().click()
  await page.getByLabel('Blue').check()
  await page.getByLabel('Green').check()
  await page.getByRole('button', { name: 'Answer', exact: true }).click()
  t.equal(await page.getByText('Choose an answer, or write one.').count(), 2)
  t.strictSame(await axe(page), [])
  await page.getByLabel('z', { exact: true }).check()
  await page.getByLabel('x', { exact: true }).check()
  await page.getByLabel('Your own words').nth(2).fill('Sales, 2026')
  await shot(page, 'inbox-question-phone')
  await page.getByRole('button', { name: 'Answer', exact: true }).click()
  const { updatedInput } = await answered
  t.strictSame(updatedInput?.answers, { 'Which colour?': 'Green', 'Which axes?': 'x, z', 'What title?': 'Sales, 2026' })
  t.strictSame(complaints, [])
})

t.test('of two windows one is first, and the other is told who it was', { skip }, async (t) => {
  const { session, consoleUrl } = await world(t)
  const { ask } = await session('Race')
  for (let round = 0; round < rounds(2, 20); round++) {
    const settled = ask('Bash', { command: `race ${round}` })
    const [one, other] = await Promise.all([openConsole(t, consoleUrl), openConsole(t, consoleUrl)])
    for (const { page } of [one, other]) await row(page, `race ${round}`).getByRole('button').first().click()
    // both are about to answer: whoever hears of the other in time does not
    await other.page.getByRole('button', { name: 'Deny…' }).click()
    await Promise.all([one.page.keyboard.press('a'), other.page.keyboard.press('Enter')])
    const { behavior } = await settled
    const word = behavior === 'allow' ? 'Allowed' : 'Denied'
    const [winner, loser] = behavior === 'allow' ? [one, other] : [other, one]
    await winner.page.getByText(`${word} by you`).waitFor()
    await loser.page.getByText(new RegExp(`${word} by somebody else\\s+in an inbox`)).waitFor()
    for (const { complaints, context } of [one, other]) {
      t.strictSame(complaints, [])
      await context.close()
    }
  }
})

t.test('what is gone when several are answered hurts no other', { skip }, async (t) => {
  const { session, answer, consoleUrl } = await world(t)
  const [one, two, three] = [await session('One'), await session('Two'), await session('Three')]
  const settled = [one, two, three].map(({ ask }, n) => ask('Bash', { command: `step ${n}` }))
  const { page, complaints } = await openConsole(t, consoleUrl)
  await rows(page).nth(2).waitFor()
  await page.getByLabel('Choose all approvals').check()
  await page.getByRole('button', { name: 'Deny 3…' }).click()
  await page.getByRole('dialog').getByLabel('Reason').fill('not today')
  await shot(page, 'inbox-bulk')
  t.strictSame(await axe(page), [])
  // the page hears of it too late: the answers are on their way by then
  await page.route('**/inbox?*', (route) => route.abort())
  await page.route('**/inbox', (route) => route.abort())
  await answer(two.id, 'allow')
  await page.getByRole('dialog').getByRole('button', { name: 'Deny', exact: true }).click()
  t.strictSame(
    (await Promise.all(settled)).map(({ behavior }) => behavior),
    ['deny', 'allow', 'deny'],
  )
  await row(page, 'step 0').getByText('Denied by you').waitFor()
  await row(page, 'step 1')
    .getByText(/Allowed by somebody else\s+over the API/)
    .waitFor()
  await row(page, 'step 2').getByText('Denied by you').waitFor()
  t.strictSame(
    complaints.filter((text) => !/Failed to load resource/.test(text)),
    [],
  )
})

t.test('what a list leaves out while its node is silent still waits, and comes by itself', { skip }, async (t) => {
  const { session, consoleUrl } = await world(t)
  const build = await session('Build')
  const silent = await session('Silent')
  const first = build.ask('Bash', { command: 'step 1' })
  const allowed = silent.ask('Bash', { command: 'step 2' })
  const window = await openConsole(t, consoleUrl)
  await row(window.page, 'step 2').waitFor()
  const other = await openConsole(t, consoleUrl, { at: 'sessions' })
  // as of a node that is stopped: its sessions are counted, and on no list
  const route = /\/v1\/inbox(\?|$)/
  for (const { page } of [window, other])
    await page.route(route, async (route) => {
      const listed = (await (await route.fetch()).json()) as { session: { id: string } }[]
      await route.fulfill({ json: listed.filter(({ session }) => session.id !== silent.id) })
    })
  await other.page.getByRole('link', { name: /Inbox/ }).click()
  await row(other.page, 'step 1').waitFor()
  await row(window.page, 'step 1').getByText('step 1').first().click()
  await window.page.keyboard.press('a')
  t.equal((await first).behavior, 'allow')
  await row(window.page, 'step 1').getByText('Allowed by you').waitFor()
  await allAnswered(window.page)
  t.equal(await row(window.page, 'step 2').getByText('Answered elsewhere').count(), 0)
  t.equal(await row(window.page, 'step 2').getByText('Does not wait any more').count(), 0)
  t.equal(await other.page.getByText('All answered.').count(), 0, 'one waits')
  for (const { page } of [window, other]) await page.unroute(route)
  await row(other.page, 'step 2').waitFor()
  await row(other.page, 'step 1')
    .getByText(/Allowed by/)
    .waitFor()
  // it is the next that waits, and open: once it has stood there for a while a key is meant for it
  const rests = "document.querySelector('[data-open=true] [data-key=allow]').getAnimations().length === 0"
  await until(() => window.page.evaluate<boolean>(rests))
  await window.page.keyboard.press('a')
  t.equal((await allowed).behavior, 'allow')
  await other.page.getByText('All answered.').waitFor()
  t.strictSame([window.complaints, other.complaints], [[], []])
})

t.test('many requests of many sessions are there, and answered at once', { skip }, async (t) => {
  const { session, consoleUrl } = await world(t)
  const sessions: Awaited<ReturnType<typeof session>>[] = []
  for (let n = 0; n < rounds(8, 50); n++) sessions.push(await session(`Session ${n}`))
  const settled = sessions.flatMap(({ ask }, s) =>
    Array.from({ length: 4 }, (_, n) => ask(n % 2 ? 'Bash' : 'Write', { command: `s${s} n${n}` })),
  )
  const { page, complaints } = await openConsole(t, consoleUrl)
  await rows(page)
    .nth(settled.length - 1)
    .waitFor()
  t.equal(await rows(page).count(), settled.length)
  await shot(page, 'inbox-many')
  await row(page, 's0 n1').getByRole('checkbox').check()
  await page.getByRole('button', { name: 'Deny 1…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Deny', exact: true }).click()
  t.equal((await settled[1]!).behavior, 'deny')
  await page.getByLabel('Choose all approvals').check()
  await page.getByRole('button', { name: `Allow ${settled.length - 1}…` }).click()
  await page
    .getByRole('dialog')
    .getByText(`${settled.length / 2} × Write`)
    .waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Allow', exact: true }).click()
  const decisions = await Promise.all(settled)
  t.equal(decisions.filter(({ behavior }) => behavior === 'allow').length, settled.length - 1)
  await page.getByText('All answered.').waitFor()
  await page.getByRole('button', { name: `Hide ${settled.length} answered` }).click()
  await page.getByText('Nothing waits for you.').waitFor()
  t.strictSame(complaints, [])
})
