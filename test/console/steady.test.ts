import t from 'tap'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { goTo, isLive, openConsole, withBrowser } from '../fixtures/console-browser.js'
import { cuttingProxy } from '../fixtures/cutting-proxy.js'

const skip = withBrowser(t)

t.test('what is about to be pressed stays where it is while the connection goes and comes', { skip }, async (t) => {
  const { port, call, engine } = await buildServer(t, { console: true, script: {} })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', approvalTimeoutMs: 0 })
  void engine.last.host.requestPermission({ toolName: 'Bash', toolUseId: 'call', input: { command: 'ls' } })
  const proxy = await cuttingProxy(t)
  proxy.target = port
  const { page } = await openConsole(t, `${proxy.origin}/v1/console/`, { at: 'inbox', loses: true })
  const allow = page.getByRole('button', { name: 'Allow', exact: true })
  const places: Record<string, unknown> = {}
  const noteAll = async (screen: string, connection: ReturnType<typeof page.locator>) => {
    const note = async (when: string) => (places[`${screen} ${when}`] = await allow.boundingBox())
    await allow.waitFor()
    await note('live')
    proxy.target = undefined
    proxy.cut()
    await connection.getByText('Offline. You see what was last known.').waitFor()
    await note('away')
    proxy.target = port
    await connection.getByText('Caught up').first().waitFor()
    await note('back')
    await until(async () => !(await connection.isVisible()))
    await note('live again')
  }
  await isLive(page)
  await page.locator('.ask-head').click()
  await noteAll('inbox', page.locator('main > .connection-bar'))
  await goTo(page, `#/sessions/${json.id}`)
  await noteAll('transcript', page.locator('.transcript > .connection-bar'))
  for (const screen of ['inbox', 'transcript'])
    for (const when of ['away', 'back', 'live again'])
      t.strictSame(places[`${screen} ${when}`], places[`${screen} live`], `${screen}, ${when}`)
})
