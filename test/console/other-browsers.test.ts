import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { SLICE } from '../../console/src/model/drawn-rows.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { allAnswered, goTo, isLive, openConsole, withBrowser } from '../fixtures/console-browser.js'

const skip = withBrowser()

/** A browser that moves what is read when lines come above it, as Safari does, with the style that there is for such. */
const KEEPS_NO_PLACE = `{
  const { supports } = CSS
  CSS.supports = (...given) => !/overflow-anchor/.test(given) && supports.apply(CSS, given)
  const sheet = new CSSStyleSheet()
  sheet.replaceSync('* { overflow-anchor: none } .line, .session-row { content-visibility: visible !important }')
  document.adoptedStyleSheets = [sheet]
}`

/** A window of such a browser at the end of a long session. */
async function world(t: Test) {
  const { url, call, engine } = await buildServer(t, { console: true, script: {} })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  const say = (text: string): void => {
    const message = { role: 'assistant', content: [{ type: 'text', text }] }
    const uuid = crypto.randomUUID()
    engine.last.host.emit({ type: 'assistant_message', message, uuid, parentToolUseId: null } as never)
  }
  for (let at = 0; at < 400; at++) say(`Message ${at}. ${'More words. '.repeat(at % 40)}`)
  const { page, complaints } = await openConsole(t, `${url}/v1/console/`, { at: `sessions/${json.id}` })
  await openAnew(page, KEEPS_NO_PLACE)
  await allAnswered(page)
  return { page, complaints, say }
}

/** As a browser shows it that is what a script makes of it, too. */
async function openAnew(page: Page, script: string): Promise<void> {
  await page.addInitScript(script)
  await page.reload()
  await page.getByText('Message 399.').waitFor()
}

/** The seq of the first line that is drawn, and where one that is read is on the screen. */
const places = (page: Page, seq: string): Promise<{ first: number; top: number }> =>
  page.evaluate(`({
    first: Number(document.querySelector('.line').dataset.seq),
    top: document.querySelector('.line[data-seq="${seq}"]').getBoundingClientRect().top,
  })`)

/** Scrolls there, or so far from the end. @returns the seq of a line that is seen then, and where it is */
const scrollTo = (page: Page, top: number) =>
  page.evaluate<{ seq: string; first: number; top: number }>(`{
    const scroller = document.querySelector('.scroller')
    scroller.scrollTop = ${top} < 0 ? scroller.scrollHeight - scroller.clientHeight + ${top} : ${top}
    const lines = [...document.querySelectorAll('.line')]
    const line = lines.find((line) => line.getBoundingClientRect().bottom > scroller.getBoundingClientRect().top);
    ({
      seq: line.dataset.seq,
      first: Number(lines[0].dataset.seq),
      top: line.getBoundingClientRect().top
    })
  }`)

/**
 * Scrolls to where earlier lines are asked for, and waits for some: a slice of those that are there, of which more are drawn first.
 * @returns how far what was read there has moved on the screen, and the seq of the first line that is drawn
 */
async function goBack(page: Page): Promise<{ moved: number; first: number }> {
  const { seq, ...before } = await scrollTo(page, 400)
  await until(async () => (await places(page, seq)).first < before.first - SLICE, 'earlier lines are drawn')
  await allAnswered(page)
  const { first, top } = await places(page, seq)
  return { moved: Math.abs(top - before.top), first }
}

t.test('what is read stays while lines come above it, and go', { skip }, async (t) => {
  const { page, complaints, say } = await world(t)
  // so many that with those that come there are more than are held
  for (let first = 400; first > 100; ) {
    const back = await goBack(page)
    t.ok(back.moved < 8, `it has moved by ${back.moved}`)
    first = back.first
  }
  const read = await scrollTo(page, -1_500)
  await allAnswered(page)
  const { width, height } = page.viewportSize()!
  await page.setViewportSize({ width: width - 300, height })
  await allAnswered(page)
  const narrow = await places(page, read.seq)
  t.ok(Math.abs(narrow.top - read.top) < 8, `it was at ${read.top}, and is at ${narrow.top} where lines are shorter`)
  const { seq, ...before } = await scrollTo(page, -300)
  for (let at = 400; at < 1_020; at++) say(`Message ${at}.`)
  await until(async () => (await places(page, seq)).first > before.first + 30, 'what was said before is let go of')
  await page.getByText('Message 1019.').waitFor({ state: 'attached' })
  const { top } = await places(page, seq)
  t.ok(Math.abs(top - before.top) < 8, `it was at ${before.top}, and is at ${top}`)
  t.strictSame(complaints, [])
})

t.test(
  'a session of the list stays where it is while new ones come above it, and is not held at the top',
  { skip },
  async (t) => {
    const { url, call } = await buildServer(t, { console: true, script: {} })
    const create = (title: string) => call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', title })
    for (let at = 0; at < 40; at++) await create(`Session ${at}`)
    const { page, complaints } = await openConsole(t, `${url}/v1/console/`, { at: 'sessions' })
    await page.addInitScript(KEEPS_NO_PLACE)
    await page.reload()
    const row = page.getByText('Session 10', { exact: true })
    await row.waitFor()
    await row.evaluate((link) => link.scrollIntoView({ block: 'center' }))
    const above = async (): Promise<number> => (await row.boundingBox())!.y
    const more = async (title: string): Promise<void> => {
      await create(title)
      await page.evaluate('document.dispatchEvent(new Event("visibilitychange"))')
      await page.getByText(title, { exact: true }).waitFor({ state: 'attached' })
    }
    await allAnswered(page)
    const before = await above()
    await more('One that is new')
    t.ok(Math.abs((await above()) - before) < 2, `it was at ${before}, and is at ${await above()}`)
    await page.evaluate('document.querySelector("main").scrollTop = 0')
    await allAnswered(page)
    await more('One that is seen')
    t.equal(await page.evaluate('document.querySelector("main").scrollTop'), 0)
    t.strictSame(complaints, [])
  },
)

t.test(
  'a browser that counts no parameters of an address has the part of a log that it asks for',
  { skip },
  async (t) => {
    const { page, complaints } = await world(t)
    const asked = page.waitForRequest(/\/events\b/)
    await openAnew(page, 'delete URLSearchParams.prototype.size')
    t.match(new URL((await asked).url()).search, 'afterSeq=')
    await goBack(page)
    t.strictSame(complaints, [])
  },
)

t.test(
  'a browser that keeps nothing for the page shows it, and tells no other window anything',
  { skip },
  async (t) => {
    const { page, complaints } = await world(t)
    await openAnew(
      page,
      `globalThis.BroadcastChannel = class {
    constructor() {
      throw new DOMException('The operation is insecure.', 'SecurityError')
    }
  }`,
    )
    t.strictSame(complaints, [])
  },
)

t.test('the key that ends what is composed sends nothing where its code alone says so', { skip }, async (t) => {
  const { page } = await world(t)
  const message = page.getByRole('textbox', { name: 'Message' })
  await message.fill('ni hao')
  // as Safari has it: the composition has ended by then
  await message.dispatchEvent('keydown', { key: 'Enter', keyCode: 229, bubbles: true, cancelable: true })
  t.equal(await message.inputValue(), 'ni hao')
  await message.press('Enter')
  t.equal(await message.inputValue(), '')
})

t.test(
  'a browser that enlarges a page in which somebody writes small letters has no reason to',
  { skip },
  async (t) => {
    const { page } = await world(t)
    const fingers = await page.context().newCDPSession(page)
    await fingers.send('Emulation.setTouchEmulationEnabled', { enabled: true })
    const sizes = () =>
      page.evaluate(
        `[...document.querySelectorAll('input, select, textarea')].map((field) => getComputedStyle(field).fontSize)`,
      )
    await page.getByRole('button', { name: 'Find in transcript' }).click()
    t.strictSame(await sizes(), ['16px', '16px', '16px'], 'a session')
    await goTo(page, '#/sessions')
    await page.getByRole('button', { name: 'New session' }).click()
    await page.getByLabel('First message').waitFor()
    t.strictSame(new Set((await sizes()) as string[]), new Set(['16px']), 'the list, and the form of a new one')
  },
)

t.test('where the system has colours of its own, what is chosen and how things stand is seen', { skip }, async (t) => {
  const { page } = await world(t)
  await page.emulateMedia({ forcedColors: 'active' })
  const colours = (place: string) =>
    page.evaluate<string[]>(
      `[...document.querySelectorAll('${place}')].map((it) => getComputedStyle(it).backgroundColor)`,
    )
  await isLive(page)
  t.notSame(await colours('.link-live .mark'), await colours('body'), 'the connection is there')
  await goTo(page, '#/inbox')
  await page.getByRole('heading', { name: 'Inbox' }).waitFor()
  const widths = (place: string) =>
    page.evaluate<string[]>(
      `[...document.querySelectorAll('${place}')].map((it) => getComputedStyle(it).borderTopWidth)`,
    )
  t.strictSame(await widths('.segments span'), ['1px', '0px', '0px'])
  t.strictSame(await widths('nav li > a[aria-current]'), ['1px'])
})
