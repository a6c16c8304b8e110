import t from 'tap'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { openConsole, withBrowser } from '../fixtures/console-browser.js'

const skip = withBrowser()

const { url, call, engine } = await buildServer(t, { console: true, script: {}, queue: {} })

interface Form {
  at: string
  opens: (string | RegExp)[]
  fills: Readonly<Record<string, string>>
  presses: string
  refused: string
}

const { json: session } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', prompt: 'Begin' })
void engine.last.host.requestPermission({ toolName: 'Chmod', toolUseId: 't', input: { mode: 7 } }).catch(() => {})

const FORMS: readonly Form[] = [
  {
    at: 'sessions',
    opens: ['New session'],
    fills: { Directory: 'nowhere', 'First message': 'Tides' },
    presses: 'Start session',
    refused: 'Directory',
  },
  {
    at: 'queue',
    opens: ['Submit a job'],
    fills: { Prompt: 'Tides', Directory: SOME_CWD, Attempts: 'many' },
    presses: 'Submit',
    refused: 'Attempts',
  },
  {
    at: 'usage?from=2026-01-01&to=2026-01-02',
    opens: ['From … to'],
    fills: { From: '2026-02-01' },
    presses: 'Show',
    refused: 'To',
  },
  {
    at: `sessions/${session.id}`,
    opens: [/^Edit/],
    fills: { mode: 'seven' },
    presses: 'Allow with this input',
    refused: 'mode',
  },
]

for (const { at, opens, fills, presses, refused } of FORMS)
  t.test(`"${presses}" that is refused leads to the field that it is for`, { skip }, async (t) => {
    const { page } = await openConsole(t, `${url}/v1/console/`, { at, loses: true, width: 320, height: 480 })
    for (const name of opens) await page.getByRole('button', { name }).first().click()
    const dialog = page.getByRole('dialog')
    for (const [label, text] of Object.entries(fills)) await dialog.getByLabel(label, { exact: true }).fill(text)
    await dialog.getByRole('button', { name: presses, exact: true }).press('Enter')
    const field = dialog.getByLabel(refused, { exact: true }).and(page.locator('[aria-invalid=true]:focus'))
    await field.waitFor()
    const { y, height } = (await field.boundingBox())!
    t.ok(y >= 0 && y + height <= 480, 'it is in sight')
  })

t.test('turning to JSON, or back, leads to what has to be put right first', { skip }, async (t) => {
  const long = Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`member${at}`, at]))
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', prompt: 'Begin' })
  void engine.last.host.requestPermission({ toolName: 'Long', toolUseId: 'l', input: long }).catch(() => {})
  const at = `sessions/${json.id}`
  const { page } = await openConsole(t, `${url}/v1/console/`, { at, width: 320, height: 480 })
  await page.getByRole('button', { name: /^Edit/ }).first().click()
  const dialog = page.getByRole('dialog')
  const isAt = async (label: string) => {
    const field = dialog.getByLabel(label, { exact: true }).and(page.locator('[aria-invalid=true]:focus'))
    await field.waitFor()
    const { y } = (await field.boundingBox())!
    t.ok(y >= 0 && y < 480, 'it is in sight')
  }
  const way = (name: string) => dialog.getByRole('radio', { name, exact: true })
  await dialog.getByLabel('member11', { exact: true }).fill('eleven')
  for (const _ of ['once', 'again']) {
    await way('JSON').click()
    await isAt('member11')
    t.ok(await way('Form').isChecked())
  }
  await dialog.getByLabel('member11', { exact: true }).fill('11')
  await way('JSON').click()
  await dialog.getByLabel('Input as JSON').fill('{')
  for (const _ of ['once', 'again']) {
    await way('Form').click()
    await isAt('Input as JSON')
    t.ok(await way('JSON').isChecked())
  }
})
