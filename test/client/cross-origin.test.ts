import { chromium } from 'playwright-core'
import t, { type Test } from 'tap'
import { ChaosProxy } from '../fixtures/chaos-proxy.js'
import type { PageTask, tryGateway, useGateway } from '../fixtures/cross-origin-page.js'
import { startDaemon, TOKEN } from '../fixtures/daemon-process.js'
import { bundle, CHROMIUM_FLAGS, chromiumPath } from '../fixtures/runtimes.js'

const skip = !chromiumPath && 'Chromium is not installed'
type Script = { useGateway: typeof useGateway; tryGateway: typeof tryGateway }

/** A page of the origin, with the client in it. */
async function pageAt(t: Test, origin: string, content: string) {
  const context = await chromium.launchPersistentContext('', { executablePath: chromiumPath!, args: CHROMIUM_FLAGS })
  t.teardown(() => context.close())
  const page = await context.newPage()
  await page.goto(`${origin}/page`)
  await page.addScriptTag({ content })
  return page
}

t.test('in Chromium a page of a listed origin does everything, one of another origin nothing', { skip }, async (t) => {
  const script = await bundle('test/fixtures/cross-origin-page.ts', { platform: 'browser', globalName: 'script' })
  // both only serve a page: what they are to the gateway is an origin
  const listed = await ChaosProxy.start(t, 'passes', Math.random)
  const other = await ChaosProxy.start(t, 'passes', Math.random)
  const { url, cwd, call } = await startDaemon(t, { cors: { origins: [listed.origin] }, maxSessions: 3 })
  const task: PageTask = { baseUrl: url, cwd: `${cwd}/work`, token: TOKEN }

  const page = await pageAt(t, listed.origin, script)
  const used = await page.evaluate(
    (given) => (globalThis as unknown as { script: Script }).script.useGateway(given),
    task,
  )
  t.strictSame(used.pages, [1, 1, 1], 'as many pages as Link announces')
  t.strictSame(used.transports, ['socket'])
  for (const type of ['user_message', 'permission_requested', 'permission_resolved', 'turn_completed'])
    t.ok(used.types.includes(type), type)
  t.match(used.refusal, { status: 429, code: 'SG_ERR_TOO_MANY' })
  t.ok(used.refusal.retryAfterMs > 0, 'Retry-After is read')

  const stranger = await pageAt(t, other.origin, script)
  const tried = await stranger.evaluate(
    (given) => (globalThis as unknown as { script: Script }).script.tryGateway(given),
    task,
  )
  t.strictSame(tried, { created: 'TypeError', attached: 'SG_CLIENT_UNREACHABLE', socket: 1006 })
  const sessions = (await (await call('/sessions')).json()) as unknown[]
  t.equal(sessions.length, 3, 'nothing was created for it')
})
