import t, { type Test } from 'tap'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { axe, buildConsole, closeBrowserAfter, openConsole, skipWithoutChromium } from '../fixtures/console-browser.js'

closeBrowserAfter(t)
const skip = skipWithoutChromium
if (!skip) buildConsole()

/** The inbox, where agents ask for leave to run these commands. */
async function asked(t: Test, commands: string[]) {
  const { url, call, engine } = await buildServer(t, { console: true, script: {} })
  for (const [at, command] of commands.entries()) {
    await call('POST', '/sessions', {
      ...{ cwd: SOME_CWD, profile: 'scripted', title: `Build ${at + 1}`, approvalTimeoutMs: 0 },
    })
    void engine.last.host.requestPermission({ toolName: 'Bash', toolUseId: 't', input: { command } })
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
