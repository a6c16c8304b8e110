import type { Page, Route } from 'playwright-core'
import t, { type Test } from 'tap'
import { createMemoryProfileStore } from '../../src/storage/memory/profile-store.js'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { openConsole, withBrowser } from '../fixtures/console-browser.js'

const skip = withBrowser()

const { url, call } = await buildServer(t, {
  console: true,
  script: {},
  queue: {},
  authenticate: () => ({ name: 'ann', canManageProfiles: true }),
  profileStore: createMemoryProfileStore(),
})
await call('POST', '/profiles', { name: 'kept', engine: 'provider', provider: { id: 'scripted', model: 'first' } })
const { json: session } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', title: 'Kept' })

/** What is asked by this method waits, and is then refused. */
async function refuses(page: Page, pattern: string, method: string) {
  const waiting: Route[] = []
  await page.route(pattern, (route) => {
    if (route.request().method() !== method) return route.fallback()
    waiting.push(route)
  })
  return {
    waiting,
    async refuse() {
      const refusal = { status: 409, code: 'SG_ERR_CONFLICT', title: 'Conflict', detail: 'Not now.' }
      for (const route of waiting.splice(0)) await route.fulfill({ status: 409, json: refusal })
    },
  }
}

interface Form {
  at: string
  opens: readonly string[]
  fills?: Readonly<Record<string, string>>
  presses: string
  asks: readonly [method: string, pattern: string]
}

const FORMS: readonly Form[] = [
  {
    at: 'sessions',
    opens: ['New session'],
    fills: { Directory: SOME_CWD },
    presses: 'Start session',
    asks: ['POST', '**/v1/sessions'],
  },
  {
    at: 'queue',
    opens: ['Submit a job'],
    fills: { Prompt: 'Tides', Directory: SOME_CWD },
    presses: 'Submit',
    asks: ['POST', '**/v1/jobs'],
  },
  {
    at: 'profiles/kept',
    opens: ['Edit…'],
    fills: { Description: 'As it is' },
    presses: 'Save',
    asks: ['PATCH', '**/v1/profiles/kept'],
  },
  {
    at: `sessions/${session.id}`,
    opens: ['More actions', 'Rename'],
    fills: { Title: 'Renamed' },
    presses: 'Save',
    asks: ['PATCH', `**/v1/sessions/${session.id}`],
  },
  {
    at: `sessions/${session.id}`,
    opens: ['More actions', 'Remove'],
    presses: 'Remove',
    asks: ['DELETE', `**/v1/sessions/${session.id}`],
  },
]

for (const { at, opens, fills = {}, presses, asks } of FORMS)
  t.test(
    `"${presses}" keeps the focus while it waits, asks once, and can be pressed again`,
    { skip },
    async (t: Test) => {
      const { page } = await openConsole(t, `${url}/v1/console/`, { at, loses: true })
      for (const name of opens) await page.getByRole('button', { name, exact: true }).click()
      const dialog = page.getByRole('dialog')
      for (const [label, text] of Object.entries(fills)) await dialog.getByLabel(label).fill(text)
      const press = dialog.getByRole('button', { name: presses, exact: true })
      const focused = press.and(page.locator(':focus'))
      const [method, pattern] = asks
      const held = await refuses(page, pattern, method)
      await Promise.all([page.waitForRequest((request) => request.method() === method), press.press('Enter')])
      await dialog.getByText('Waits for the gateway…').waitFor()
      t.ok(await press.isDisabled(), 'it says that it is not to be pressed now')
      // Chromium takes the focus from what is disabled with the next frame
      await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
      await focused.waitFor()
      await page.keyboard.press('Enter')
      t.equal(held.waiting.length, 1)
      await held.refuse()
      await dialog.getByText('Not now.').waitFor()
      await Promise.all([page.waitForRequest((request) => request.method() === method), page.keyboard.press('Enter')])
      await held.refuse()
    },
  )
