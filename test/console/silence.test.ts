import t from 'tap'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { goTo, isLive, openConsole, withBrowser } from '../fixtures/console-browser.js'

const skip = withBrowser()

const { url, call, engine } = await buildServer(t, { console: true, script: {} })

t.test('a part of a log that never comes is given up, and can be asked for again', { skip }, async (t) => {
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', prompt: 'Begin' })
  engine.last.say('There after all')
  const { page } = await openConsole(t, `${url}/v1/console/`, { loses: true })
  await isLive(page)
  await page.clock.install()
  // as behind something that has silently stopped to forward
  let isSilent = true
  let ask = (): void => {}
  const isAsked = new Promise<void>((resolve) => {
    ask = resolve
  })
  await page.route('**/v1/sessions/*/events?*', (route) => (isSilent ? ask() : route.continue()))
  await goTo(page, `#/sessions/${json.id}`)
  await isAsked
  await page.clock.fastForward(60_000)
  const again = page.locator('.transcript').getByRole('button', { name: 'Try again' })
  await again.waitFor()
  isSilent = false
  await again.click()
  await page.getByRole('log').getByText('There after all').waitFor()
})

t.test('a part of a log that comes slowly is waited for', { skip }, async (t) => {
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', prompt: 'Begin' })
  engine.last.say('There at last')
  const { page } = await openConsole(t, `${url}/v1/console/`, { loses: true })
  await isLive(page)
  await page.clock.install()
  // as over a bad line: `next()` lets half of what is left through
  await page.evaluate(`{
    const { fetch } = globalThis
    let begin
    globalThis.isBegun = new Promise((resolve) => { begin = resolve })
    globalThis.fetch = async (address, init) => {
      const answer = await fetch(address, init)
      if (!String(address).includes('/events?') || globalThis.next) return answer
      let left = new Uint8Array(await answer.arrayBuffer())
      const body = new ReadableStream({
        start(to) {
          init.signal.addEventListener('abort', () => to.error(init.signal.reason))
          globalThis.next = (isLast) => {
            const count = isLast ? left.length : left.length >> 1
            to.enqueue(left.slice(0, count))
            left = left.slice(count)
            if (isLast) to.close()
          }
          begin()
        },
      })
      return new Response(body, answer)
    }
  }`)
  await goTo(page, `#/sessions/${json.id}`)
  await page.evaluate('isBegun')
  for (const isLast of [false, false, true]) {
    await page.clock.fastForward(40_000)
    await page.evaluate(`next(${isLast})`)
  }
  await page.getByRole('log').getByText('There at last').waitFor()
})
