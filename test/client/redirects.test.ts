import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chromium } from 'playwright-core'
import t, { type Test } from 'tap'
import { createClient } from '../../client/index.js'
import { bundle, CHROMIUM_FLAGS, chromiumPath } from '../fixtures/runtimes.js'

const skip = !chromiumPath && 'Chromium is not installed'

async function serve(t: Test, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** What sends everybody but who asks for the page to somewhere else. */
async function redirecting(t: Test, status: number) {
  const asked: string[] = []
  const elsewhere = await serve(t, ({ method, url }, response) => {
    if (url?.startsWith('/v1/')) asked.push(`${method} ${url}`)
    response.setHeader('access-control-allow-origin', '*').end('[]')
  })
  const url = await serve(t, (request, response) => {
    if (request.url === '/page') response.setHeader('content-type', 'text/html').end('<title>page</title>')
    else response.writeHead(status, { location: `${elsewhere}${request.url}?state=secret` }).end()
  })
  return { url, elsewhere, asked }
}

const told = (to: string) => ({
  name: 'GatewayError',
  code: 'SG_CLIENT_UNREACHABLE',
  message: `The server redirects${to}, as no gateway does: the address of the gateway itself is needed, or a sign-in at what stands between.`,
})

t.test('a redirect takes neither the headers nor what was said elsewhere, and is told of', async (t) => {
  for (const status of [301, 302, 303, 307, 308]) {
    const { url, elsewhere, asked } = await redirecting(t, status)
    const { sessions, session } = createClient({ baseUrl: `${url}/v1`, headers: { 'x-api-key': 'secret' } })
    const to = (path: string) => ({ ...told(` to ${elsewhere}/v1${path}`), status })
    await t.rejects(sessions.create({ cwd: '/', prompt: 'what was said' }), to('/sessions'))
    await t.rejects(sessions.list().toArray(), to('/sessions'))
    await t.rejects(sessions.file('s1', 'report.md'), to('/sessions/s1/files/report.md'))
    await t.rejects(session('s1').send('what was said'), to('/sessions/s1/commands'))
    const attachment = session('s1').attach()
    // one that is tried again would be waited for
    attachment.onConnection(({ state }) => state === 'reconnecting' && attachment.close())
    await t.rejects(attachment[Symbol.asyncIterator]().next(), to('/sessions/s1/events'))
    t.strictSame(asked, [])
  }
})

t.test('a page, which is not told where a redirect leads, follows it as little', { skip }, async (t) => {
  const { url, asked } = await redirecting(t, 307)
  const browser = await chromium.launch({ executablePath: chromiumPath!, args: CHROMIUM_FLAGS })
  t.teardown(() => browser.close())
  const page = await browser.newPage()
  await page.goto(`${url}/page`)
  await page.addScriptTag({ content: await bundle('client/index.ts', { platform: 'browser', globalName: 'script' }) })
  const errors = await page.evaluate(`(async () => {
    const { sessions } = script.createClient({ baseUrl: '/v1' })
    const toldOf = ({ name, code, status, message }) => ({ name, code, status, message })
    return [
      await sessions.create({ cwd: '/', prompt: 'what was said' }).catch(toldOf),
      await sessions.get('s1').catch(toldOf),
    ]
  })()`)
  t.strictSame(errors, Array(2).fill({ ...told(''), status: 302 }))
  t.strictSame(asked, [])
})
