import t from 'tap'
import { buildConsole } from '../fixtures/console.js'
import { isLive, openConsole, withBrowser } from '../fixtures/console-browser.js'

const skip = withBrowser()

const TOKEN = 'token-of-ann'

t.test('whoever ends a sign-in goes on at the others, also where it had ended elsewhere', { skip }, async (t) => {
  const { call, origin } = await buildConsole(t, { script: {} })
  const as = { authorization: `Bearer ${TOKEN}` }
  const others: string[] = []
  for (let elsewhere = 0; elsewhere < 2; elsewhere++)
    others.push((await call('POST', '/console/sessions', { token: TOKEN, path: '/v1' })).json.id)
  const { page, complaints } = await openConsole(t, `${origin}/v1/console/`, { at: 'settings', loses: true })
  await page.getByLabel('Token').fill(TOKEN)
  await page.keyboard.press('Enter')
  await isLive(page)
  const rows = page.locator('.sign-in-row').filter({ hasNotText: 'this browser' })
  await rows.nth(1).waitFor()
  const focused = page.getByRole('heading', { name: 'Your sign-ins' }).and(page.locator(':focus'))
  await rows.first().getByRole('button').press('Enter')
  await rows.nth(1).waitFor({ state: 'detached' })
  await focused.waitFor()
  for (const id of others) await call('DELETE', `/console/sessions/${id}`, undefined, as)
  await rows.first().getByRole('button').press('Enter')
  await rows.first().waitFor({ state: 'detached' })
  await focused.waitFor()
  t.equal(await page.getByRole('alert').count(), 0)
  t.strictSame(complaints, [])
})
