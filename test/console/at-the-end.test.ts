import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { below, openConsole, withBrowser } from '../fixtures/console-browser.js'

const skip = withBrowser()

const PARAGRAPHS = Array.from({ length: 40 }, (_, at) => `Paragraph ${at}. ${'More words. '.repeat(30)}`).join('\n\n')

/** A window on a session in which two long messages are followed by short ones and a call of a tool. */
async function world(t: Test) {
  const { url, call, engine } = await buildServer(t, { console: true, script: {} })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  const tell = (role: 'assistant' | 'user', block: object): void => {
    const message = { role, content: [block] }
    const uuid = crypto.randomUUID()
    if (role === 'user') engine.last.host.emit({ type: 'user_message', message, uuid, parentToolUseId: null } as never)
    else engine.last.host.emit({ type: 'assistant_message', message, uuid, parentToolUseId: null } as never)
  }
  const say = (text: string) => tell('assistant', { type: 'text', text })
  for (const text of [PARAGRAPHS, PARAGRAPHS, ...Array.from({ length: 7 }, (_, at) => `Short ${at}`)]) say(text)
  tell('assistant', { type: 'tool_use', id: 't', name: 'Bash', input: { command: 'ls' } })
  const content = 'a file\n'.repeat(40)
  tell('user', { type: 'tool_result', tool_use_id: 't', content })
  const { page, complaints } = await openConsole(t, `${url}/v1/console/`, { at: `sessions/${json.id}` })
  await page.locator('.card-head').waitFor()
  // the long ones have their height
  await page.waitForFunction('document.querySelector(".scroller").scrollHeight > 5000')
  await drawn(page)
  return { page, complaints, say }
}
const drawn = (page: Page) =>
  page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')

t.test('a session with long messages opens at its end, and stays there', { skip }, async (t) => {
  const { page, complaints, say } = await world(t)
  t.equal(await below(page), 0)
  t.equal(await page.getByRole('button', { name: 'Jump to live' }).count(), 0)
  say(PARAGRAPHS)
  say('At last')
  await page.getByText('At last').waitFor()
  await drawn(page)
  t.equal(await below(page), 0)
  t.strictSame(complaints, [])
})

t.test('what is opened at the end stays where it was pressed', { skip }, async (t) => {
  const { page } = await world(t)
  const head = page.locator('.card-head')
  const before = (await head.boundingBox())!.y
  await head.click()
  await page.getByRole('heading', { name: 'Output' }).waitFor()
  await drawn(page)
  t.equal((await head.boundingBox())!.y, before)
})
