import t from 'tap'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { allAnswered, goTo, openConsole, withBrowser } from '../fixtures/console-browser.js'

const skip = withBrowser()

const ODD = [undefined, null, 5, 'x', {}, [], [null], [{}], { content: [null, 5, {}] }]
/** As an engine may have told them to a gateway that kept whatever it was told. */
const nonsense: object[] = ODD.flatMap((value) => [
  { type: 'system_init', tools: value, model: value, permissionMode: value },
  { type: 'capabilities', models: value, commands: value },
  { type: 'assistant_message', uuid: 'u', message: value, parentToolUseId: null },
  { type: 'user_message', uuid: 'u', message: { content: [{ type: 'tool_use', input: value }] } },
  { type: 'turn_completed', usage: value, numTurns: value, totalCostUsd: value, durationMs: value, errors: value },
  { type: 'turn_completed', usage: { inputTokens: value } },
  { type: 'plan_updated', entries: value },
  { type: 'file_delivered', path: value, bytes: value, description: value },
  { type: 'session_error', message: value },
  { type: 'execution_dispatched', executionId: value, toolName: value },
  { type: 'execution_failed', executionId: value, error: value },
  { type: 'execution_result', executionId: value, output: value },
  { type: 'context_usage', usage: value },
  { type: 'rate_limit', info: value },
])

t.test('a log of an earlier gateway that kept nonsense is shown, and what is sound in it', { skip }, async (t) => {
  const { url, call, engine } = await buildServer(t, { console: true, script: {} })
  const { json } = await call('POST', '/sessions', {
    cwd: SOME_CWD,
    profile: 'scripted',
    title: 'Old',
    prompt: 'Begin',
  })
  const isOdd = (event: object) => JSON.stringify(event).includes('What is odd')
  for (const _ of nonsense) engine.last.say('What is odd')
  engine.last.say('This is sound')
  const { events } = (await call('GET', `/sessions/${json.id}/events?limit=1000`)).json
  const [first] = events.filter(isOdd)
  const { page, complaints } = await openConsole(t, `${url}/v1/console/`, { at: 'sessions' })
  await page.route('**/events?*', async (route) => {
    const response = await route.fetch()
    const kept = await response.json()
    const told = kept.events.map((event: { seq: number; ts: number }) =>
      isOdd(event) ? { ...nonsense[event.seq - first.seq], seq: event.seq, ts: event.ts } : event,
    )
    await route.fulfill({ response, json: { ...kept, events: told } })
  })
  await goTo(page, `#/sessions/${json.id}`)
  await page.getByRole('log').or(page.locator('.notice-bad')).first().waitFor()
  await allAnswered(page)
  t.equal(await page.getByRole('log').getByText('This is sound').count(), 1, await page.locator('main').innerText())
  t.strictSame(complaints, [])
})

t.test('what could not be drawn of one session is not in the way of the next', { skip }, async (t) => {
  const { url, call, engine } = await buildServer(t, { console: true, script: {} })
  const made = async (title: string) => {
    const body = { cwd: SOME_CWD, profile: 'scripted', title, prompt: 'Begin' }
    const { json } = await call('POST', '/sessions', body)
    engine.last.say(`Said in ${title}`)
    return json.id as string
  }
  const [odd, sound] = [await made('Odd'), await made('Sound')]
  const { page } = await openConsole(t, `${url}/v1/console/`, { at: 'sessions', loses: true })
  await page.route(`**/v1/sessions/${odd}`, async (route) => {
    const response = await route.fetch()
    await route.fulfill({ response, json: { ...(await response.json()), cwd: 5 } })
  })
  await goTo(page, `#/sessions/${odd}`)
  await page.getByRole('button', { name: 'Try again' }).waitFor()
  await goTo(page, `#/sessions/${sound}`)
  await page.getByRole('log').getByText('Said in Sound').waitFor()
})
