import t from 'tap'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { goTo, isLive, openConsole, withBrowser } from '../fixtures/console-browser.js'
import { cuttingProxy } from '../fixtures/cutting-proxy.js'

const skip = withBrowser()

const { port, call, engine } = await buildServer(t, { console: true, script: {} })

t.test('a message that was on its way is there when the page is loaded anew, and is said once', { skip }, async (t) => {
  const proxy = await cuttingProxy(t)
  proxy.target = port
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', title: 'Loaded anew' })
  const id = json.id as string
  const runner = engine.runners.at(-1)!
  const at = `${proxy.origin}/v1/console/#/sessions/${id}`
  const { page } = await openConsole(t, `${proxy.origin}/v1/console/`, { at: `sessions/${id}`, loses: true })
  const message = page.getByRole('textbox', { name: 'Message' })
  const log = page.getByRole('log')
  await isLive(page)
  await message.waitFor()
  const leave = async (words: readonly string[]) => {
    proxy.target = undefined
    proxy.cut()
    await page
      .locator('nav')
      .getByText(/Reconnecting/)
      .first()
      .waitFor()
    for (const text of words) {
      await message.fill(text)
      await message.press('Enter')
      await log.locator('.outgoing').getByText(text).waitFor()
    }
    await page.goto('about:blank')
    proxy.target = port
  }
  await leave(['Said to nobody', 'Taken after all'])
  const [, taken] = await page
    .goto(at.replace(/#.*/, ''))
    .then(() =>
      page.evaluate<{ id: string }[]>(`JSON.parse(sessionStorage['session-gateway.draft /v1/console/ unsent.${id}'])`),
    )
  await call('POST', `/sessions/${id}/commands`, { type: 'user_message', text: 'Taken after all', id: taken!.id })
  await until(() => runner.sent.length === 1, 'the one that was taken')
  await goTo(page, `#/sessions/${id}`)
  const unsent = log.locator('.outgoing')
  await unsent.getByText('This page was loaded anew').waitFor()
  t.match(await unsent.allInnerTexts(), [/^Said to nobody/])
  await log.getByText('Taken after all').waitFor()
  runner.complete()
  await unsent.getByRole('button', { name: 'Try again' }).click()
  await until(() => runner.sent.length === 2, 'the other')
  await unsent.waitFor({ state: 'detached' })
  await page.reload()
  await log.getByText('Said to nobody').waitFor()
  t.equal(await unsent.count(), 0)
  t.strictSame(
    runner.sent.map(({ text }) => text),
    ['Taken after all', 'Said to nobody'],
  )
})
