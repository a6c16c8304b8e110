import { join } from 'node:path'
import t from 'tap'
import { consoleWorld, goTo, openConsole, skipWithoutChromium } from '../fixtures/console-browser.js'

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

t.test('the last seven days are those of today also once it is tomorrow', { skip }, async (t) => {
  const { consoleUrl } = await consoleWorld(t)
  const { page, complaints } = await openConsole(t, consoleUrl)
  // no answer tells what day it is at the gateway
  await page.route('**/v1/**', async (route) => {
    const response = await route.fetch()
    const { date: _, ...headers } = response.headers()
    await route.fulfill({ response, headers })
  })
  await page.addInitScript(`{
    globalThis.daysLater = 0
    const { now } = Date
    Date.now = () => now() + daysLater * 86_400_000
  }`)
  await page.goto(`${consoleUrl}?#/usage`)
  const lastWeek = async (after = 0) => {
    const DAYS_6 = 6 * 86_400_000
    const ends = ({ searchParams }: URL) => ['from', 'to'].map((end) => Date.parse(searchParams.get(end) ?? ''))
    const request = await page.waitForRequest((request) => {
      const [from, to] = ends(new URL(request.url()))
      return to! - from! === DAYS_6 && to! > after
    })
    return ends(new URL(request.url()))[1]!
  }
  const range = page.getByLabel('Range')
  const [today] = await Promise.all([lastWeek(), range.selectOption('7')])
  const [tomorrow] = await Promise.all([lastWeek(today), page.evaluate('daysLater = 1')])
  t.equal(tomorrow! - today!, 86_400_000)
  await range.and(page.locator(':has(option[value="7"]:checked)')).waitFor()
  t.strictSame(complaints, [])
})
