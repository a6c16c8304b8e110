import t from 'tap'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { axe, openConsole, withBrowser } from '../fixtures/console-browser.js'

const skip = withBrowser()

/** Longer than a small window shows. */
const INPUT = { command: 'npm run build && npm test', description: 'Builds it. '.repeat(30), timeout: 60_000 }

/** As much of a button, pixels, as a finger finds. */
const FINGER = 43

for (const { size, text } of [
  { size: { width: 640, height: 400 }, text: 100 },
  { size: { width: 375, height: 667 }, text: 100 },
  { size: { width: 320, height: 480 }, text: 100 },
  { size: { width: 640, height: 400 }, text: 200 },
  { size: { width: 375, height: 667 }, text: 200 },
])
  t.test(
    `the buttons of an approval are in sight at ${size.width}x${size.height}, text of ${text} %`,
    { skip },
    async (t) => {
      const { url, call, engine } = await buildServer(t, { console: true, script: {} })
      const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', approvalTimeoutMs: 0 })
      const decision = engine.last.host.requestPermission({ toolName: 'Bash', toolUseId: 't', input: INPUT })
      const { page, context, complaints } = await openConsole(t, `${url}/v1/console/`, {
        ...size,
        at: `sessions/${json.id}`,
      })
      const setting = await context.newCDPSession(page)
      await setting.send('Page.setFontSizes', { fontSizes: { standard: (16 * text) / 100 } })
      const isSet = `getComputedStyle(document.documentElement).fontSize === '${(16 * text) / 100}px'`
      await until(() => page.evaluate<boolean>(isSet), 'the text of that size')
      const panel = page.getByRole('region', { name: 'What is waited for' })
      const allow = panel.getByRole('button', { name: 'Allow', exact: true })
      await allow.waitFor()
      const edge = (await panel.boundingBox())!
      const bottom = Math.min(edge.y + edge.height, size.height)
      for (const button of await panel.locator('.form-row button').all()) {
        const { y, height } = (await button.boundingBox())!
        const seen = `${await button.textContent()}: ${y} to ${y + height} of ${edge.y} to ${bottom}`
        t.ok(y >= edge.y && Math.min(y + height, bottom) - y >= FINGER, seen)
      }
      const row = (await panel.locator('.form-row').boundingBox())!
      t.ok(row.y + row.height >= edge.y + edge.height - 1, 'nothing is read below them')
      // what is behind them is read above them
      await panel.evaluate((element) => element.scrollTo(0, 1e6))
      const [last, first] = [await panel.locator('.members dd').last().boundingBox(), await allow.boundingBox()]
      t.ok(last!.y + last!.height <= first!.y, JSON.stringify({ last, first }))
      t.strictSame(await axe(page), [])
      await allow.click()
      t.match(await decision, { behavior: 'allow' })
      t.strictSame(complaints, [])
    },
  )
