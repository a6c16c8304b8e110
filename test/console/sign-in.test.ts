import t from 'tap'
import { generateToken, hashToken } from '../../src/daemon/tokens.js'
import {
  axe,
  buildConsole,
  closeBrowserAfter,
  openConsole,
  shot,
  skipWithoutChromium,
} from '../fixtures/console-browser.js'
import { DEMO, startDaemon, TOKEN } from '../fixtures/daemon-process.js'

closeBrowserAfter(t)
const OTHER = generateToken()

t.test(
  'who is not let in signs in, is signed out from elsewhere, and goes on',
  { skip: skipWithoutChromium },
  async (t) => {
    buildConsole()
    const tokens = [
      { name: 'ada', sha256: hashToken(TOKEN) },
      { name: 'ben', sha256: hashToken(OTHER), allowedProfiles: ['other'] },
    ]
    const profiles = [DEMO, { ...DEMO, name: 'other' }]
    const { url, call, createSession } = await startDaemon(t, { auth: { tokens }, profiles })
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

    // what is refused for a moment is asked again
    let reads = 0
    await page.route('**/sessions/*/events?*', (route) =>
      reads++ > 0
        ? route.continue()
        : route.fulfill({
            status: 429,
            headers: { 'retry-after': '0' },
            json: { code: 'SG_ERR_RATE_LIMITED', detail: 'No.' },
          }),
    )
    await page.getByRole('link', { name: 'Hello' }).click()
    await page
      .getByRole('log')
      .getByText(/demonstration model/)
      .first()
      .waitFor()
    const signOutElsewhere = async () => {
      const signIns = (await (await call('/console/sessions')).json()) as { id: string }[]
      t.equal(signIns.length, 1)
      const ended = await fetch(`${url}/console/sessions/${signIns[0]!.id}`, {
        method: 'DELETE',
        headers: { authorization: `Bearer ${TOKEN}` },
      })
      t.equal(ended.status, 204)
    }
    await signOutElsewhere()
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
    // what is open goes on by itself
    await page.getByLabel('Message').fill('One two three')
    await page.getByLabel('Message').press('Enter')
    await page
      .getByRole('log')
      .getByText(/Your message had 3 words/)
      .waitFor()
    await page.getByText('Your sign-in has ended.').waitFor({ state: 'detached' })

    await signOutElsewhere()
    await page.getByText('Your sign-in has ended.').waitFor()
    await page.getByLabel('Token').fill(OTHER)
    await page.keyboard.press('Enter')
    await page.getByText('Signed in as ben').waitFor()
    await page.getByText('There is no such session.').waitFor()
    t.equal(await page.getByText(/demonstration model/).count(), 0, 'another person sees nothing of it')
    await page.getByRole('link', { name: 'Sessions' }).click()
    await page.getByText('No session yet.').waitFor()

    await page.route('**/console/sessions/*', (route) => route.abort())
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('The gateway did not answer.').waitFor()
    await page.unroute('**/console/sessions/*')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    t.strictSame(await (await call('/console/sessions', undefined, { authorization: `Bearer ${OTHER}` })).json(), [])
    t.strictSame(complaints, [])
  },
)
