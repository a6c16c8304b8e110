import t from 'tap'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { buildConsole, closeBrowserAfter, openConsole, skipWithoutChromium } from '../fixtures/console-browser.js'

closeBrowserAfter(t)
const skip = skipWithoutChromium
if (!skip) buildConsole()

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
