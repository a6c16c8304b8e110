import { join } from 'node:path'
import t from 'tap'
import { until } from '../fixtures/build.js'
import { axe, consoleWorld, openConsole, shot, skipWithoutChromium } from '../fixtures/console-browser.js'
import { script } from '../fixtures/demo.js'

const skip = skipWithoutChromium

const ANSWER = `## What I found

The tides of **Bremerhaven** are taken from [the table](https://example.org/tides), and \`tides.ts\` reads them.

1. High water comes twice a day.
2. Low water too.

\`\`\`ts
export const highWater = (day: number): number => day * 2 // twice
\`\`\`

| place | high | low |
|---|---|---|
| Bremerhaven | 3.9 m | 0.4 m |
`

t.test(
  'on a phone, in the dark and in the light, axe finds nothing and nothing is wider than the screen',
  { skip },
  async (t) => {
    const { consoleUrl, cwd, call } = await consoleWorld(t)
    const create = async (prompt: string, title: string) =>
      (await (await call('/sessions', { profile: 'demo', cwd: join(cwd, 'work'), prompt, title })).json()) as {
        id: string
      }
    const edit = { path: 'tides.ts', content: 'export const highWater = (day: number) => day * 2\n' }
    const script = [
      { thinking: 'Tides first.', text: 'I look at what is there.', tools: [{ tool: 'fs_list', input: {} }] },
      { text: 'Now I write it down.', tools: [{ tool: 'fs_write', input: edit }] },
      { text: ANSWER },
    ]
    const { id } = await create(`@@${JSON.stringify(script)}@@`, 'Tides of Bremerhaven')
    await create('Hello', 'A greeting with a rather long title that does not fit on the screen of a phone')
    await create('Ask me a question', 'مرحبا: سؤال عن الألوان')
    await create('@@[{"fail":"The provider refused the key."}]@@', 'Nightly report')

    const looks = [
      { name: 'light', width: 1280, height: 800 },
      { name: 'dark', width: 1280, height: 800, dark: true },
      { name: 'phone', width: 320, height: 640 },
      { name: 'phone-dark', width: 390, height: 844, dark: true },
    ]
    for (const { name, ...size } of looks) {
      const { page, complaints } = await openConsole(t, consoleUrl, { ...size, at: 'sessions' })
      const isWide = () =>
        page.evaluate(() => {
          const { document, innerWidth } = globalThis as unknown as {
            innerWidth: number
            document: {
              documentElement: { scrollWidth: number }
              querySelector(s: string): { scrollWidth: number; clientWidth: number }
            }
          }
          const main = document.querySelector('main')
          return document.documentElement.scrollWidth > innerWidth || main.scrollWidth > main.clientWidth
        })
      await page.getByRole('link', { name: 'Tides of Bremerhaven' }).waitFor()
      await page.getByText('1 request').or(page.locator('.session-row[data-asks=true]')).first().waitFor()
      await shot(page, `sessions-${name}`)
      t.strictSame(await axe(page), [], `${name}: sessions`)
      t.notOk(await isWide(), `${name}: sessions`)
      await page.getByRole('link', { name: 'Tides of Bremerhaven' }).click()
      const asked = page.getByRole('region', { name: 'What is waited for' })
      if (name === 'light') {
        await asked.getByText('fs_write').first().waitFor()
        await shot(page, 'asks-light')
        await asked.getByRole('button', { name: 'Allow', exact: true }).click()
      }
      await page.getByRole('log').getByText('High water comes twice a day.', { exact: true }).waitFor()
      await page.getByRole('log').locator('.hljs-keyword').first().waitFor()
      await shot(page, `transcript-${name}`)
      t.strictSame(await axe(page), [], `${name}: transcript`)
      t.notOk(await isWide(), `${name}: transcript`)
      await page.evaluate((hash) => {
        ;(globalThis as unknown as { location: { hash: string } }).location.hash = hash
      }, `#/sessions/${id}?`)
      await page.getByRole('button', { name: 'More actions' }).click()
      t.strictSame(await axe(page), [], `${name}: actions`)
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      await page.getByRole('button', { name: 'Find in transcript' }).click()
      await page.getByRole('searchbox').fill('high water')
      await page.getByRole('button', { name: /#\d+/ }).first().waitFor()
      await shot(page, `find-${name}`)
      t.strictSame(await axe(page), [], `${name}: find`)
      t.strictSame(complaints, [], name)
    }
  },
)

t.test('everything is reached by keyboard, and what has the focus is seen', { skip }, async (t) => {
  const { consoleUrl, createSession } = await consoleWorld(t)
  await createSession('Hello')
  const { page } = await openConsole(t, consoleUrl, { at: 'sessions' })
  await page
    .getByRole('list', { name: /Sessions/ })
    .getByRole('link')
    .waitFor()
  const sockets = { opened: 0, open: 0 }
  page.on('websocket', (socket) => {
    if (!socket.url().includes('/sessions/')) return
    sockets.opened++
    sockets.open++
    socket.on('close', () => sockets.open--)
  })
  const reached = new Set<string>()
  for (let press = 0; press < 20; press++) {
    await page.keyboard.press('Tab')
    const { name, isSeen } = await page.evaluate(() => {
      interface Styled {
        outlineStyle: string
      }
      const { document, getComputedStyle } = globalThis as unknown as {
        document: {
          activeElement: { textContent: string; ariaLabel: string | null; nextElementSibling: object | null }
        }
        getComputedStyle(element: object, pseudo?: string): Styled
      }
      const element = document.activeElement
      const outlines = [getComputedStyle(element), getComputedStyle(element, '::after')]
      if (element.nextElementSibling) outlines.push(getComputedStyle(element.nextElementSibling))
      return {
        name: element.ariaLabel ?? element.textContent.trim(),
        isSeen: outlines.some(({ outlineStyle }) => outlineStyle !== 'none'),
      }
    })
    reached.add(name)
    t.ok(isSeen, `the focus is seen on ${name}`)
    if (name === 'Hello') break
  }
  for (const name of ['Skip to content', 'Inbox', 'Settings', 'New session', 'Search', 'Hello'])
    t.ok(reached.has(name), name)
  await page.keyboard.press('Enter')
  await page.getByRole('log').waitFor()
  await until(() => sockets.opened > 0, 'a socket of the session')
  await page.getByRole('link', { name: 'Back to the sessions' }).press('Enter')
  await page.getByRole('list', { name: /Sessions/ }).waitFor()
  await until(() => sockets.open === 0, 'no socket of a session that was left')
})

t.test('a long title is cut at its end, also where it runs from right to left', { skip }, async (t) => {
  const { consoleUrl, cwd, call } = await consoleWorld(t)
  const title = 'سؤال طويل عن الألوان '.repeat(6).trim()
  const session = { profile: 'demo', cwd: join(cwd, 'work'), prompt: 'Hello', title }
  const { id } = (await (await call('/sessions', session)).json()) as { id: string }
  const { page } = await openConsole(t, consoleUrl, { width: 390, at: `sessions/${id}` })
  await page.getByRole('heading', { level: 1 }).getByText('سؤال').waitFor()
  const [first, seen] = await page.evaluate<{ left: number; right: number }[]>(`(() => {
    const heading = document.querySelector('h1')
    const range = document.createRange()
    const text = document.createTreeWalker(heading, NodeFilter.SHOW_TEXT).nextNode()
    range.setStart(text, 0)
    range.setEnd(text, 1)
    return [range, heading].map((shown) => shown.getBoundingClientRect().toJSON())
  })()`)
  t.ok(first!.left >= seen!.left && first!.right <= seen!.right, JSON.stringify({ first, seen }))
})

t.test('enlarged to twice its size, a session that waits shows its log, too', { skip }, async (t) => {
  const { consoleUrl, cwd, call } = await consoleWorld(t)
  const session = { profile: 'demo', cwd: join(cwd, 'work'), prompt: 'Please write a report.' }
  const { id } = (await (await call('/sessions', session)).json()) as { id: string }
  const { page } = await openConsole(t, consoleUrl, { width: 640, height: 360, at: `sessions/${id}` })
  const asked = page.getByRole('region', { name: 'What is waited for' })
  await asked.getByRole('button', { name: 'Allow', exact: true }).waitFor()
  const heights: number[] = []
  for (const part of [asked, page.locator('.scroller'), page.locator('.composer')]) {
    await part.scrollIntoViewIfNeeded()
    heights.push((await part.boundingBox())!.height)
  }
  t.ok(
    heights.every((height) => height >= 50),
    `the height of what is asked, of the log and of the composer: ${heights}`,
  )
  for (const [width, height] of [
    [640, 360],
    [320, 256],
  ] as const) {
    await page.setViewportSize({ width, height })
    const over = await page.evaluate<number>(
      "(({ scrollHeight, clientHeight }) => scrollHeight - clientHeight)(document.querySelector('.transcript-head'))",
    )
    t.equal(over, 0, `at ${width} by ${height} nothing of the head lies over the log`)
  }
})

t.test('on paper a session is printed whole, and without what can only be pressed', { skip }, async (t) => {
  const { consoleUrl, cwd, call } = await consoleWorld(t)
  // the demonstration model waits before each word
  const lines = Array.from({ length: 300 }, (_, line) => `Line_${line}_of_what_was_said.`).join('\n\n')
  const session = { profile: 'demo', cwd: join(cwd, 'work'), prompt: script({ text: lines }) }
  const { id } = (await (await call('/sessions', session)).json()) as { id: string }
  const { page } = await openConsole(t, consoleUrl, { at: `sessions/${id}` })
  await page.getByText('Turn over').waitFor()
  const paper = (await page.pdf({ format: 'A4' })).toString('latin1')
  t.ok(paper.match(/\/Type\s*\/Page\b/g)!.length > 5, 'as many pages as it takes')
  await page.emulateMedia({ media: 'print' })
  for (const part of [page.getByRole('navigation'), page.getByLabel('Message')]) t.notOk(await part.isVisible())
  t.ok(await page.getByText('Line_0_of_what').last().isVisible())
  const [title, shown, size] = await page.evaluate<string[]>(`(() => {
    const time = document.querySelector('.line time')
    return [time.title, getComputedStyle(time, '::after').content, getComputedStyle(time).fontSize]
  })()`)
  t.strictSame([shown, size], [JSON.stringify(title), '0px'], 'with times that are true whenever it is read')
})
