import { realpathSync } from 'node:fs'
import t from 'tap'
import { buildServer, until } from '../fixtures/build.js'
import { isLive, openConsole, withBrowser } from '../fixtures/console-browser.js'

const skip = withBrowser()

for (const { answer, told } of [
  { answer: { status: 404, body: '404 page not found' }, told: 'The server answered 404' },
  { answer: { status: 200, contentType: 'text/html', body: '<p>Welcome!</p>' }, told: 'The server answered with' },
])
  t.test(`a feed that something else answers for at first is tried again: ${answer.status}`, { skip }, async (t) => {
    const root = realpathSync(t.testdir({}))
    const { url, call, engine } = await buildServer(t, { console: true, script: {}, allowedCwdRoots: [root] })
    const { page, complaints } = await openConsole(t, `${url}/v1/console/`, { at: 'sessions', loses: true })
    await isLive(page)
    let asked = 0
    // of a socket that closes before anything came over it nobody knows why: the event stream is asked
    await page.routeWebSocket(/\/v1\/notifications\/ws/, (socket) => socket.close())
    await page.route(/\/v1\/notifications\/events/, (route) => {
      asked++
      return route.fulfill(answer)
    })
    await page.reload()
    const bar = page.locator('main > .connection-bar')
    await until(() => bar.getByText(told).isVisible(), 'what is there instead told')
    await until(() => bar.getByText('Offline. You see what was last known.').isVisible(), 'that it is away')
    t.ok(asked > 0)
    await page.unrouteAll()
    await until(() => bar.getByText('Caught up, nothing missed').first().isVisible(), 'that the feed is back')
    await call('POST', '/sessions', { cwd: root, profile: 'scripted', approvalTimeoutMs: 0 })
    void engine.runners.at(-1)!.host.requestPermission({ toolName: 'Bash', toolUseId: 'call', input: {} })
    await page.waitForFunction('document.title.startsWith("(1)")')
    t.strictSame(complaints, [])
  })
