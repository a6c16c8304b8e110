import { join } from 'node:path'
import t from 'tap'
import { closeBrowserAfter, consoleWorld, goTo, openConsole, skipWithoutChromium } from '../fixtures/console-browser.js'

closeBrowserAfter(t)
const skip = skipWithoutChromium

for (const hours of [30, -30])
  t.test(`a browser whose clock is ${hours} hours off tells times as they are`, { skip }, async (t) => {
    const { consoleUrl, cwd, call } = await consoleWorld(t)
    const asks = {
      profile: 'demo',
      cwd: join(cwd, 'work'),
      prompt: 'Please write a report.',
      approvalTimeoutMs: 3_600_000,
    }
    const { id } = (await (await call('/sessions', asks)).json()) as { id: string }
    const { page, complaints } = await openConsole(t, consoleUrl, { at: 'settings' })
    await page.addInitScript(`{
      const Real = Date
      globalThis.Date = class extends Real {
        constructor(...given) {
          super(...(given.length > 0 ? given : [Date.now()]))
        }
        static now() {
          return Real.now() + ${hours} * 3_600_000
        }
      }
    }`)
    await page.reload()
    await goTo(page, `#/sessions/${id}`)
    const asked = page.getByRole('region', { name: 'What is waited for' })
    await asked.getByText(/^in (5\d min|1 h)$/).waitFor()
    await page
      .getByRole('log')
      .getByText(/^(now|\d+ (s|min) ago)$/)
      .first()
      .waitFor()
    // it may be midnight just now
    const today = () => `to=${new Date().toISOString().slice(0, 10)}`
    const days = [today()]
    const [report] = await Promise.all([page.waitForRequest(/\/usage\?/), goTo(page, '#/usage')])
    days.push(today())
    t.ok(
      days.some((day) => report.url().includes(day)),
      'the days of the gateway',
    )
    t.strictSame(complaints, [])
  })
