import { realpathSync } from 'node:fs'
import t from 'tap'
import { buildServer, until } from '../fixtures/build.js'
import { goTo, isLive, openConsole, withBrowser } from '../fixtures/console-browser.js'
import { cuttingProxy } from '../fixtures/cutting-proxy.js'

const skip = withBrowser()

/** What a reverse proxy says of a service that it does not know while that is started anew. */
const NOBODY =
  'HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 19\r\nConnection: close\r\n\r\n404 page not found\n'

for (const way of ['by itself', 'when it is asked to'] as const)
  t.test(
    `a queue that is opened while a proxy answers for the gateway is followed afterwards ${way}`,
    { skip },
    async (t) => {
      const root = realpathSync(t.testdir({}))
      const { port, call } = await buildServer(t, { console: true, script: {}, queue: {}, allowedCwdRoots: [root] })
      const proxy = await cuttingProxy(t)
      proxy.target = port
      const { page, complaints } = await openConsole(t, `${proxy.origin}/v1/console/`, { at: 'queue', loses: true })
      const stats = page.getByText('0 of 1 running')
      await stats.waitFor()
      await goTo(page, '#/settings')
      await stats.waitFor({ state: 'detached' })
      if (way === 'by itself') {
        await isLive(page)
        proxy.instead = NOBODY
        proxy.target = undefined
        proxy.cut()
      } else {
        // of a socket that closes before anything came over it nobody knows why: the event stream is asked
        await page.routeWebSocket(/\/v1\/queue\/ws/, (socket) => socket.close())
        await page.route(/\/v1\/(queue|jobs)/, (route) => route.fulfill({ status: 404, body: '404 page not found' }))
      }
      await goTo(page, '#/queue')
      const said = page.getByText('The server answered 404')
      await until(() => said.first().isVisible(), 'what the proxy answers told')
      t.equal(await page.getByText('Nothing runs').count(), 0, 'what was never read is not said to be empty')
      if (way === 'by itself') proxy.target = port
      else {
        await page.unrouteAll()
        // unless what is tried again by itself comes first, and the button is gone
        const asked = page.getByRole('button', { name: 'Try again' }).click()
        await Promise.race([asked.catch(() => {}), stats.waitFor()])
      }
      await until(() => stats.isVisible(), 'the queue, after the proxy lets through')
      const { status } = await call('POST', '/jobs', {
        session: { cwd: root, prompt: 'Seen after all', profile: 'scripted' },
      })
      t.equal(status, 201)
      await until(() => page.getByRole('link', { name: /Seen after all/ }).isVisible(), 'a job that is told of')
      await until(async () => (await said.count()) === 0, 'an end of what the proxy answered')
      t.strictSame(complaints, [])
    },
  )

t.test(
  'what became of a job while the queue was away is said also where lists no longer begin with it',
  { skip },
  async (t) => {
    const root = realpathSync(t.testdir({}))
    const { port, call } = await buildServer(t, {
      console: true,
      script: {},
      queue: { maxConcurrency: 1 },
      allowedCwdRoots: [root],
    })
    const submit = async (prompt: string): Promise<string> =>
      (await call('POST', '/jobs', { session: { cwd: root, prompt, profile: 'scripted' } })).json.id
    await submit('Goes on')
    const id = await submit('To be missed')
    // as many as are read at once of those that have ended are later ones
    const later: string[] = []
    for (let at = 0; at < 51; at++) later.push(await submit(`Later ${at}`))
    const proxy = await cuttingProxy(t)
    proxy.target = port
    const { page, complaints } = await openConsole(t, `${proxy.origin}/v1/console/`, { at: `queue/${id}`, loses: true })
    await page.locator('.job-head .job-queued').waitFor()
    await isLive(page)
    proxy.target = undefined
    proxy.cut()
    await page.locator('nav').getByText('Live', { exact: true }).waitFor({ state: 'detached' })
    for (const one of [id, ...later]) await call('DELETE', `/jobs/${one}`)
    proxy.target = port
    await page.locator('.job-head .job-canceled').waitFor()
    t.strictSame(complaints, [])
  },
)

t.test('a job that was opened while the queue was away is read once it is back', { skip }, async (t) => {
  const root = realpathSync(t.testdir({}))
  const { port, call } = await buildServer(t, { console: true, script: {}, queue: {}, allowedCwdRoots: [root] })
  const submit = async (): Promise<string> =>
    (await call('POST', '/jobs', { session: { cwd: root, prompt: 'Done', profile: 'scripted' } })).json.id
  const id = await submit()
  await call('DELETE', `/jobs/${id}`)
  // as many as are read at once
  for (let at = 0; at < 51; at++) await call('DELETE', `/jobs/${await submit()}`)
  const proxy = await cuttingProxy(t)
  proxy.target = port
  const { page, complaints } = await openConsole(t, `${proxy.origin}/v1/console/`, { at: 'queue', loses: true })
  await page.locator('.job-card').first().waitFor()
  await isLive(page)
  proxy.target = undefined
  proxy.cut()
  await page.locator('nav').getByText('Live', { exact: true }).waitFor({ state: 'detached' })
  await goTo(page, `#/queue/${id}`)
  await page.getByRole('button', { name: 'Try again' }).waitFor()
  proxy.target = port
  await page.locator('.job-head .job-canceled').waitFor()
  t.equal(await page.getByRole('button', { name: 'Try again' }).count(), 0)
  t.strictSame(complaints, [])
})

t.test('what could not be read of a job is read with the queue, once that was away', { skip }, async (t) => {
  const root = realpathSync(t.testdir({}))
  const { port, call } = await buildServer(t, { console: true, script: {}, queue: {}, allowedCwdRoots: [root] })
  const { json } = await call('POST', '/jobs', { session: { cwd: root, prompt: 'Goes on', profile: 'scripted' } })
  const proxy = await cuttingProxy(t)
  proxy.target = port
  const { page } = await openConsole(t, `${proxy.origin}/v1/console/`, { at: 'queue', loses: true })
  await page.locator('.job-card').first().waitFor()
  await isLive(page)
  await page.route('**/deliveries*', (route) => route.abort())
  await goTo(page, `#/queue/${json.id}`)
  await page.getByRole('alert').waitFor()
  await page.unrouteAll()
  proxy.cut()
  await page.locator('.timeline').waitFor()
  await until(async () => (await page.getByRole('alert').count()) === 0, 'an end of the failure')
})
