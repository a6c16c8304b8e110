import t, { type Test } from 'tap'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { axe, openConsole, withBrowser } from '../fixtures/console-browser.js'

const skip = withBrowser()

/** The inbox, where agents ask for leave to run these commands. @param more of each input */
async function asked(t: Test, commands: string[], more: object = {}) {
  const { url, call, engine } = await buildServer(t, { console: true, script: {} })
  for (const [at, command] of commands.entries()) {
    await call('POST', '/sessions', {
      ...{ cwd: SOME_CWD, profile: 'scripted', title: `Build ${at + 1}`, approvalTimeoutMs: 0 },
    })
    void engine.last.host.requestPermission({ toolName: 'Bash', toolUseId: 't', input: { command, ...more } })
  }
  const { page } = await openConsole(t, `${url}/v1/console/`, { at: 'inbox' })
  await page
    .locator('.ask')
    .nth(commands.length - 1)
    .waitFor()
  return page
}

t.test('whoever hears the boxes of many approvals knows which is which', { skip }, async (t) => {
  const page = await asked(t, ['npm test', 'rm -r dist'])
  const boxes = page.locator('.ask input[type=checkbox]')
  t.strictSame(await boxes.evaluateAll((all) => all.map((box) => box.getAttribute('aria-label'))), [
    'Choose Bash: npm test, of Build 1',
    'Choose Bash: rm -r dist, of Build 2',
  ])
  t.strictSame(await axe(page), [])
})

t.test('a command reads from left to right, also when it begins with a word that does not', { skip }, async (t) => {
  const page = await asked(t, ['شغل rm -r /tmp/ا'])
  await page.locator('.ask-head').click()
  await page.locator('.ask-body').waitFor()
  for (const place of ['.ask-summary', '.members dd bdi']) {
    const order = await page.locator(place).evaluate((element) => {
      const { document } = globalThis as unknown as { document: { createRange(): LaidOut } }
      interface LaidOut {
        setStart(node: unknown, at: number): void
        setEnd(node: unknown, at: number): void
        getBoundingClientRect(): { left: number }
      }
      const node = (element as unknown as { firstChild: { data: string } }).firstChild
      const leftOf = (word: string): number => {
        const range = document.createRange()
        range.setStart(node, node.data.indexOf(word))
        range.setEnd(node, node.data.indexOf(word) + word.length)
        return range.getBoundingClientRect().left
      }
      const words = ['شغل', 'rm', '-r', '/tmp']
      return words.sort((a, b) => leftOf(a) - leftOf(b))
    })
    t.strictSame(order, ['شغل', 'rm', '-r', '/tmp'], place)
  }
})

t.test('what is no text in an input, and is written as JSON, reads from left to right', { skip }, async (t) => {
  const page = await asked(t, ['npm test'], { مرحبا: ['سؤال', 1] })
  await page.locator('.ask-head').click()
  const value = page.locator('.members dd :is(bdi, pre)', { hasText: 'سؤال' })
  await value.waitFor()
  t.equal(await value.getAttribute('dir'), 'ltr')
})

t.test('what a shell would run of an escape sequence is seen', { skip }, async (t) => {
  const command = 'ls \u001b]; rm -r dist; #\u0007'
  const page = await asked(t, [command], { longer: `${'x'.repeat(100)}${command}` })
  await page.locator('.ask-head').click()
  await page.locator('.ask-body').waitFor()
  t.match(await page.locator('.ask-choose').getAttribute('aria-label'), 'rm -r dist')
  for (const place of ['.ask-summary', '.members dd bdi', '.members dd pre'])
    t.match(await page.locator(place).innerText(), 'ls [U+001B]]; rm -r dist; #[U+0007]', place)
})

t.test('the card of a call has all that the call was given', { skip }, async (t) => {
  const { url, call, engine } = await buildServer(t, { console: true, script: {} })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted' })
  const input = { command: 'npm test', dangerouslyDisableSandbox: true }
  const message = { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'Bash', input }] }
  engine.last.host.emit({ type: 'assistant_message', message, uuid: 'm', parentToolUseId: null } as never)
  const { page } = await openConsole(t, `${url}/v1/console/`, { at: `sessions/${json.id}` })
  await page.getByRole('button', { name: 'Bash' }).click()
  const given = await page.locator('.card-body').innerText()
  for (const part of ['npm test', '"dangerouslyDisableSandbox": true']) t.match(given, part)
})
