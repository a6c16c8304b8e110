import t from 'tap'
import {
  axe,
  buildConsole,
  closeBrowserAfter,
  openConsole,
  shot,
  skipWithoutChromium,
} from '../fixtures/console-browser.js'
import { startDaemon, TOKEN } from '../fixtures/daemon-process.js'

closeBrowserAfter(t)

t.test(
  'who is not let in signs in, is signed out from elsewhere, and goes on',
  { skip: skipWithoutChromium },
  async (t) => {
    buildConsole()
    const { url, call, createSession } = await startDaemon(t)
    await createSession('Hello')
    const { page, context, complaints } = await openConsole(t, `${url}/console/`, { at: 'sessions', loses: true })
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await shot(page, 'sign-in')
    t.strictSame(await axe(page), [])
    const token = page.getByLabel('Token')
    await token.fill('not-a-token')
    await page.keyboard.press('Enter')
    await page.getByText('The gateway does not take this token.').waitFor()
    t.equal(await token.inputValue(), '', 'what was tried does not stay')
    await token.fill(TOKEN)
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Hello' }).waitFor()
    await page.getByText('Signed in as ada').waitFor()
    await page.locator('nav').getByText('Live').waitFor()

    const [cookie] = await context.cookies(`${url}/sessions`)
    t.match(cookie, { httpOnly: true, sameSite: 'Strict' })
    t.notOk(cookie?.value.includes(TOKEN))
    const kept = await page.evaluate(() => {
      const { document, localStorage, sessionStorage } = globalThis as unknown as Record<
        'localStorage' | 'sessionStorage',
        object
      > & { document: { cookie: string } }
      return JSON.stringify([document.cookie, localStorage, sessionStorage])
    })
    t.equal(kept, '["",{},{}]', 'nothing is in reach of a script')

    await page.getByRole('link', { name: 'Hello' }).click()
    await page
      .getByRole('log')
      .getByText(/demonstration model/)
      .first()
      .waitFor()
    const signIns = (await (await call('/console/sessions')).json()) as { id: string }[]
    t.equal(signIns.length, 1)
    const ended = await fetch(`${url}/console/sessions/${signIns[0]!.id}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${TOKEN}` },
    })
    t.equal(ended.status, 204)
    await page.getByText('Your sign-in has ended.').waitFor()
    t.ok(
      await page
        .getByRole('log')
        .getByText(/demonstration model/)
        .count(),
      'what was shown is still there',
    )
    t.strictSame(await axe(page), [])
    await shot(page, 'signed-out-elsewhere')
    await page.getByLabel('Token').fill(TOKEN)
    await page.keyboard.press('Enter')
    await page.locator('nav').getByText('Live').waitFor()

    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    t.strictSame(await (await call('/console/sessions')).json(), [])
    t.strictSame(complaints, [])
  },
)
