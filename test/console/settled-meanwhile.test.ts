import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { deferred } from '../../src/lib/deferred.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { allAnswered, axe, goTo, openConsole, shot, withBrowser } from '../fixtures/console-browser.js'
import { cuttingProxy } from '../fixtures/cutting-proxy.js'

const skip = withBrowser()

const QUESTION = {
  questions: [{ question: 'Which one?', header: 'Which', options: [{ label: 'Red' }], multiSelect: false }],
}

/** A session that asks for these inputs, and the window of somebody who looks at it. */
async function world(
  t: Test,
  inputs: object[],
  at: (id: string) => string = () => 'inbox',
  origin?: (port: number) => string,
) {
  const { url, port, call, engine } = await buildServer(t, { console: true, script: {} })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', approvalTimeoutMs: 0 })
  const { host } = engine.last
  const content = inputs.map((input, at) => ({
    type: 'tool_use' as const,
    id: at === 0 ? 't' : `t${at}`,
    name: 'Bash',
    input,
  }))
  host.emit({ type: 'assistant_message', message: { role: 'assistant', content }, uuid: 'a', parentToolUseId: null })
  for (const input of inputs)
    void host.requestPermission({
      toolName: 'questions' in input ? 'AskUserQuestion' : 'Bash',
      toolUseId: 't',
      input: { ...input },
    })
  const waiting = async (): Promise<{ request: { id: string } }[]> => (await call('GET', '/inbox')).json
  await until(async () => (await waiting()).length === inputs.length, 'what is asked')
  /** Somebody else answers what was asked first. */
  const settle = async () => {
    const [{ request }] = (await waiting()) as [{ request: { id: string } }]
    await call('POST', `/sessions/${json.id}/permissions/${request.id}`, { behavior: 'allow' })
  }
  const { page, complaints } = await openConsole(t, `${origin?.(port) ?? url}/v1/console/`, {
    at: at(json.id),
    loses: origin !== undefined,
  })
  /** Somebody else ends the session. */
  const end = () => call('POST', `/sessions/${json.id}/commands`, { type: 'close' })
  const remove = () => call('DELETE', `/sessions/${json.id}`)
  return { page, complaints, waiting, settle, end, remove }
}
const SETTLED = 'This does not wait any more.'
const headOf = (page: Page, text: string) => page.locator('.ask', { hasText: text }).locator('.ask-head')
const reasonOf = (page: Page) => page.getByLabel('Reason')
const focused = (page: Page) => page.locator(':focus')

t.test('what is typed when somebody else answers first answers nothing, and can be copied', { skip }, async (t) => {
  const { page, complaints, waiting, settle } = await world(t, [{ command: 'first' }, { command: 'second' }])
  await headOf(page, 'first').click()
  await page.keyboard.press('d')
  await page.keyboard.type('Not as it is: ')
  await settle()
  await page.getByText(SETTLED).waitFor()
  t.strictSame(await axe(page), [])
  await shot(page, 'inbox-settled-meanwhile')
  // each of these letters is a key of the inbox
  await page.keyboard.type('jade')
  await page.keyboard.press('Enter')
  t.equal(await reasonOf(page).inputValue(), 'Not as it is: ')
  await page.keyboard.press('Escape')
  await headOf(page, 'first').and(focused(page)).waitFor()
  t.equal(await page.getByText(SETTLED).count(), 0)
  t.equal((await waiting()).length, 1)
  t.strictSame(complaints, [])
})

t.test('an input that is edited, and own words to a question, stay as well', { skip }, async (t) => {
  const { page, complaints, waiting, settle } = await world(t, [{ command: 'first' }, QUESTION, { command: 'last' }])
  await headOf(page, 'first').click()
  await page.keyboard.press('e')
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('command').fill('first, with care')
  await settle()
  await dialog.getByText(SETTLED).waitFor()
  t.equal(await dialog.getByRole('button', { name: 'Allow with this input' }).isEnabled(), false)
  t.equal(await dialog.getByLabel('command').inputValue(), 'first, with care')
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })

  await headOf(page, 'Which one?').click()
  const own = page.getByLabel('Your own words')
  await own.fill('Neither')
  await settle()
  await page.getByText(SETTLED).waitFor()
  await own.and(focused(page)).waitFor()
  await page.keyboard.type('jade')
  t.equal(await own.inputValue(), 'Neither')
  t.equal((await waiting()).length, 1)
  t.strictSame(complaints, [])
})

t.test('whoever is at what somebody else answers goes on at its row', { skip }, async (t) => {
  const { page, complaints, settle } = await world(t, [{ command: 'first' }, QUESTION, { command: 'last' }])
  await headOf(page, 'first').press('Enter')
  await page.getByRole('button', { name: 'Allow', exact: true }).focus()
  await settle()
  await headOf(page, 'first').and(focused(page)).waitFor()
  await headOf(page, 'Which one?').press('Enter')
  await page.getByRole('radio', { name: 'Red' }).press('Space')
  await settle()
  await headOf(page, 'Which one?').and(focused(page)).waitFor()
  await page.locator('.ask', { hasText: 'last' }).getByRole('checkbox').focus()
  await settle()
  await headOf(page, 'last').and(focused(page)).waitFor()
  t.strictSame(complaints, [])
})

t.test('a reason for several stays when none of them waits any more', { skip }, async (t) => {
  const { page, settle } = await world(t, [{ command: 'only' }])
  await page.getByLabel('Choose all approvals').check()
  await page.getByRole('button', { name: 'Deny 1…' }).click()
  await reasonOf(page).fill('Too many at once')
  await settle()
  await page.getByText(SETTLED).waitFor()
  t.equal(await reasonOf(page).inputValue(), 'Too many at once')
  await page.getByRole('dialog').locator('form').getByRole('button', { name: 'Close' }).press('Enter')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.getByRole('heading', { name: 'Inbox' }).and(focused(page)).waitFor()
})

t.test(
  'leave for several that nobody waits for any more is not asked for, and whoever gave it goes on',
  { skip },
  async (t) => {
    const { page, settle } = await world(t, [{ command: 'only' }])
    await page.getByLabel('Choose all approvals').check()
    await page.getByRole('button', { name: 'Allow 1…' }).press('Enter')
    const dialog = page.getByRole('dialog')
    const allow = dialog.getByRole('button', { name: 'Allow', exact: true })
    await allow.focus()
    await settle()
    await dialog.getByText(SETTLED).waitFor()
    t.equal(await allow.count(), 0)
    await dialog.getByRole('button', { name: 'Close' }).first().and(focused(page)).waitFor()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('heading', { name: 'Inbox' }).and(focused(page)).waitFor()
  },
)

t.test('who answered is said also where the log tells it later, as while an agent is woken', { skip }, async (t) => {
  const { page, complaints, settle } = await world(t, [{ command: 'first' }])
  await headOf(page, 'first').waitFor()
  let looks = 0
  await page.route('**/v1/sessions/*/events?*', async (route) => {
    if (++looks > 2) return route.fallback()
    const answer = await route.fetch()
    const told = await answer.json()
    const events = told.events.filter(({ type }: { type: string }) => type !== 'permission_resolved')
    return route.fulfill({ response: answer, json: { ...told, events } })
  })
  await settle()
  await page
    .locator('.ask', { hasText: 'first' })
    .getByText(/^Allowed by somebody else/)
    .waitFor()
  t.equal(looks, 3)
  t.strictSame(complaints, [])
})

t.test('who answered is looked for by nobody who has left the inbox', { skip }, async (t) => {
  const { page, settle } = await world(t, [{ command: 'first' }])
  await headOf(page, 'first').waitFor()
  const [asked, left] = [deferred(), deferred()]
  await page.route('**/v1/sessions/*/events?*', async (route) => {
    const answer = await route.fetch()
    asked.resolve()
    await left.promise
    return route.fulfill({ response: answer, json: { ...(await answer.json()), events: [] } })
  })
  await settle()
  await asked.promise
  await goTo(page, '#/usage')
  await page.getByRole('heading', { name: 'Usage' }).waitFor()
  await page.evaluate(
    'globalThis.waits = []; { const set = setTimeout; globalThis.setTimeout = (run, ms) => (waits.push(ms), set(run, ms)) }',
  )
  const told = page.waitForResponse('**/v1/sessions/*/events?*')
  left.resolve()
  await told
  await allAnswered(page)
  // what is done with an answer is done in the turns after it
  await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
  t.notOk(await page.evaluate('waits.includes(1000)'))
})

t.test('in a session a reason stays, and what waits next comes after it', { skip }, async (t) => {
  const inputs = [{ command: 'first' }, { command: 'second' }]
  const { page, complaints, settle } = await world(t, inputs, (id) => `sessions/${id}`)
  const asked = page.getByRole('region', { name: 'What is waited for' })
  await asked.getByText('first').waitFor()
  await asked.getByRole('button', { name: 'Deny…' }).click()
  await page.keyboard.type('Not as it is')
  await settle()
  await asked.getByText(SETTLED).waitFor()
  t.strictSame(await axe(page), [])
  await reasonOf(page).and(focused(page)).waitFor()
  t.equal(await reasonOf(page).inputValue(), 'Not as it is')
  await asked.getByRole('button', { name: 'Close' }).press('Enter')
  await asked.getByText('second').waitFor()
  await page.getByLabel('Message').and(focused(page)).waitFor()
  t.equal(await asked.getByText('first').count(), 0)
  t.strictSame(complaints, [])
})

t.test('on a phone the notice leaves what is written where it is seen', { skip }, async (t) => {
  const { page, settle } = await world(t, [{ command: 'first' }], (id) => `sessions/${id}`)
  await page.setViewportSize({ width: 320, height: 568 })
  const asked = page.getByRole('region', { name: 'What is waited for' })
  await asked.getByRole('button', { name: 'Deny…' }).click()
  await page.keyboard.type('Not as it is')
  await settle()
  await asked.getByText(SETTLED).waitFor()
  const [reason, edge] = [(await reasonOf(page).boundingBox())!, (await asked.boundingBox())!]
  t.ok(reason.y >= edge.y && reason.y + reason.height <= edge.y + edge.height, JSON.stringify({ reason, edge }))
})

t.test('a message that is being written when the session ends can be copied', { skip }, async (t) => {
  const { page, complaints, end } = await world(t, [], (id) => `sessions/${id}`)
  const message = page.getByLabel('Message')
  await message.focus()
  await page.keyboard.type('One thing more: ')
  await end()
  const over = page.getByText('This session is closed. What you have written was not sent; it can be copied from here.')
  await over.waitFor()
  t.strictSame(await axe(page), [])
  await page.keyboard.type('no')
  await page.keyboard.press('Enter')
  await page.reload()
  await over.waitFor()
  t.equal(await message.inputValue(), 'One thing more: ')
  await page.getByRole('button', { name: 'Dismiss' }).press('Enter')
  await page.getByText('This session is closed.', { exact: true }).and(focused(page)).waitFor()
  t.equal(await message.count(), 0)
  t.strictSame(complaints, [])
})

t.test('where nothing was being written, the end takes the place of the field', { skip }, async (t) => {
  const { page, end } = await world(t, [], (id) => `sessions/${id}`)
  await page.getByLabel('Message').focus()
  await end()
  await page.getByText('This session is closed.', { exact: true }).and(focused(page)).waitFor()
})

t.test('a message that was being written in a session that was removed is still there', { skip }, async (t) => {
  const { page, complaints, remove } = await world(t, [], (id) => `sessions/${id}`)
  const message = page.getByLabel('Message')
  await message.focus()
  await page.keyboard.type('One thing more: ')
  await page.goto('about:blank')
  await remove()
  await page.goBack()
  await page
    .getByText('This session was removed. What you have written was not sent; it can be copied from here.')
    .waitFor()
  t.equal(await message.inputValue(), 'One thing more: ')
  await page.getByRole('button', { name: 'Dismiss' }).press('Enter')
  await page.getByText('This session was removed.', { exact: true }).and(focused(page)).waitFor()
  await page.reload()
  await page.getByText('There is no such session.').waitFor()
  t.equal(await page.getByText('This session was removed.').count(), 0)
  // the browser says of each answer that there is none
  t.strictSame(
    complaints.filter((line) => !/status of 404/.test(line)),
    [],
  )
})

t.test('what a session asked that was removed while the line was down is asked no more', { skip }, async (t) => {
  const proxy = await cuttingProxy(t)
  const through = (port: number): string => {
    proxy.target = port
    return proxy.origin
  }
  const { page, complaints, remove } = await world(t, [{ command: 'ls' }], (id) => `sessions/${id}`, through)
  const allow = page.getByRole('button', { name: 'Allow', exact: true })
  await allow.waitFor()
  const card = page.getByRole('log').getByRole('button', { name: /^Bash/ })
  await card.filter({ hasText: 'waits for you' }).waitFor()
  const { target } = proxy
  proxy.target = undefined
  proxy.cut()
  await remove()
  proxy.target = target
  const isGone = page.getByText('There is no such session.', { exact: true }).first()
  await isGone.waitFor()
  t.equal(await allow.count(), 0)
  t.equal(await page.getByText('Waits for you', { exact: true }).count(), 0)
  t.match(await card.innerText(), 'left undone', 'nor does its log say so')
  // of what comes and goes nothing is left to be asked for
  await page.evaluate(`globalThis.asks = 0
    new MutationObserver(() => { globalThis.asks += document.querySelectorAll('.waited-for').length })
      .observe(document.body, { childList: true, subtree: true })`)
  const again = page.waitForEvent('websocket', (socket) => socket.url().includes('/sessions/'))
  proxy.cut()
  await again
  await isGone.waitFor()
  t.equal(await page.evaluate('globalThis.asks'), 0, 'also while it is looked for again')
  t.strictSame(complaints, [])
})
