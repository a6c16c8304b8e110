import type { Page } from 'playwright-core'
import t from 'tap'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { buildConsole, openConsole, shot, skipWithoutChromium, unisolatedOn } from '../fixtures/console-browser.js'
import { HOSTILE_TEXTS } from '../fixtures/hostile-texts.js'
import { isLong } from '../fixtures/rounds.js'

const skip = skipWithoutChromium
/** What stands above a log that is shown from its first line. */
const BEGIN = 'The session begins here.'

t.ok(HOSTILE_TEXTS.length >= 200, `${HOSTILE_TEXTS.length} texts`)

/** What a page must never have, whatever is shown on it. */
const foundOn = (page: Page) =>
  page.evaluate(() => {
    const { document, __ran } = globalThis as unknown as {
      __ran: unknown
      document: {
        title: string
        querySelectorAll(
          selector: string,
        ): ArrayLike<{ outerHTML: string; getAttributeNames(): string[]; getAttribute(name: string): string }>
      }
    }
    const all = Array.from(document.querySelectorAll('*'))
    const bad = all.filter((element) =>
      element.getAttributeNames().some((name) => /^on|^srcdoc$|^ping$|^formaction$/.test(name)),
    )
    const strange = Array.from(
      document.querySelectorAll(
        'body script:not([src^="./"]), iframe, object, embed, base, video, audio, marquee, math, foreignObject, form[action], [role=log] input, [role=log] form, [role=log] dialog, [role=log] style, [role=log] link, [role=log] meta',
      ),
    )
    const links = Array.from(document.querySelectorAll('a[href]')).filter(
      (link) => !/^(https?:\/\/|mailto:|#\/)/.test(link.getAttribute('href')),
    )
    const outward = Array.from(document.querySelectorAll('a[href^=http], a[href^=mailto]')).filter(
      (link) => link.getAttribute('target') !== '_blank' || !/noopener/.test(link.getAttribute('rel')),
    )
    const images = Array.from(document.querySelectorAll('img')).filter(
      (image) => !/^(\.\/icon|data:image\/(png|jpeg|gif|webp);base64,)/.test(image.getAttribute('src')),
    )
    const say = (elements: { outerHTML: string }[]) => elements.map(({ outerHTML }) => outerHTML.slice(0, 200))
    return { ran: __ran, found: say([...bad, ...strange, ...links, ...outward, ...images]), title: document.title }
  })

t.test('nothing that an agent says runs, loads, or stands outside of its place', { skip }, async (t) => {
  buildConsole()
  const { url, call, engine } = await buildServer(t, {
    console: true,
    script: {},
    eventLog: { maxEvents: 100_000, maxBytes: 256 * 1024 * 1024 },
  })
  const make = async (more: object = {}) => {
    const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', ...more })
    return { id: json.id as string, runner: engine.runners.at(-1)! }
  }
  // as titles, in the list
  for (const title of HOSTILE_TEXTS.filter((text) => text.trim() && text.length <= 500)) await make({ title })
  const { id, runner } = await make({ title: HOSTILE_TEXTS[0]! })
  let part = 0
  const say = (content: unknown[], role: 'user' | 'assistant' = 'assistant') =>
    runner.host.emit({
      type: role === 'user' ? 'user_message' : 'assistant_message',
      uuid: `m${part++}`,
      parentToolUseId: null,
      message: { role, content },
    } as never)
  const places: ((text: string, index: number) => void)[] = [
    (text) => say([{ type: 'text', text }]),
    (text) => say([{ type: 'thinking', thinking: text }]),
    (text, index) => {
      say([{ type: 'tool_use', id: `a${index}`, name: text || 'x', input: { command: text, [text]: text } }])
      say([{ type: 'tool_result', tool_use_id: `a${index}`, content: text, is_error: index % 2 === 0 }], 'user')
    },
    (text, index) => {
      const input = { file_path: text, old_string: text, new_string: `${text}!` }
      say([{ type: 'tool_use', id: `b${index}`, name: 'Edit', input }])
      say(
        [
          {
            type: 'tool_result',
            tool_use_id: `b${index}`,
            content: [
              { type: 'text', text },
              { type: text, text },
            ],
          },
        ],
        'user',
      )
    },
    (text) => say([{ type: text || 'x', text, source: { type: 'url', url: text } }]),
    (text) => say([{ type: 'image', source: { type: 'base64', media_type: text, data: text } }]),
    (text) => runner.host.emit({ type: 'file_delivered', path: text || 'x', bytes: 1, description: text } as never),
    (text) => say([{ type: 'text', text: `said: ${text}` }], 'user'),
  ]
  // in the short form each text is in two of the places, as Markdown among them for every other one
  for (const [index, text] of HOSTILE_TEXTS.entries())
    for (const [place, put] of places.entries()) {
      const turn = (index * 3) % places.length
      if (isLong || place === turn || place === (index % 2 === 0 ? 0 : (turn + 3) % places.length)) put(text, index)
    }
  const { page, complaints, strangers } = await openConsole(t, `${url}/v1/console/`, { at: 'sessions' })
  await page
    .getByRole('list', { name: /Sessions/ })
    .getByRole('link')
    .first()
    .waitFor()
  const check = async (where: string) => {
    const { ran, found, title } = await foundOn(page)
    t.equal(ran, undefined, `${where}: nothing ran`)
    t.strictSame(found, [], where)
    t.strictSame(await unisolatedOn(page), [], `${where}: nothing moves what stands beside it`)
    t.match(title, /· session-gateway$/)
  }
  await check('the list of sessions')
  await shot(page, 'hostile-sessions')
  await page.evaluate((hash) => {
    ;(globalThis as unknown as { location: { hash: string } }).location.hash = hash
  }, `#/sessions/${id}`)
  const log = page.getByRole('log')
  await log.locator('[data-seq]').first().waitFor()
  // through the whole log, from its end to its beginning
  const lines = new Set<string>()
  for (let isOver = false; !isOver; ) {
    isOver = (await log.getByText(BEGIN).count()) > 0
    for (const seq of await log
      .locator('> [data-seq]')
      .evaluateAll((all) => all.map((line) => (line as unknown as { dataset: { seq: string } }).dataset.seq)))
      lines.add(seq)
    await log.locator('.card-head[aria-expanded=false]').evaluateAll((all) => {
      for (const head of all.slice(0, 40)) (head as unknown as { click(): void }).click()
    })
    await check(`the transcript, ${lines.size} lines`)
    if (!isOver) {
      const first = await log.locator('> [data-seq]').first().getAttribute('data-seq')
      await log.evaluate((element) => {
        ;(element as unknown as { parentElement: { scrollTop: number } }).parentElement.scrollTop = 0
      })
      // the last page may have come since the beginning was looked for: no other follows it
      await page.waitForFunction(
        ([before, begin]) => {
          const log = (
            globalThis as unknown as {
              document: {
                querySelector(s: string): {
                  textContent: string
                  querySelector(s: string): { dataset: { seq: string } }
                }
              }
            }
          ).document.querySelector('[role=log]')
          return (
            log.querySelector(':scope > [data-seq]').dataset.seq !== before || log.textContent.includes(begin as string)
          )
        },
        [first, BEGIN],
      )
    }
  }
  t.ok(lines.size >= HOSTILE_TEXTS.length, `${lines.size} lines`)
  await shot(page, 'hostile-transcript')

  // what is endless is cut, wherever it stands, and comes when it is asked for
  const huge = 'endless '.repeat(isLong ? 1_250_000 : 125_000)
  const endless = await make()
  const tell = (content: unknown[], role: 'user' | 'assistant' = 'assistant') =>
    endless.runner.host.emit({
      type: `${role}_message`,
      uuid: `e${part++}`,
      parentToolUseId: null,
      message: { role, content },
    } as never)
  tell([{ type: 'text', text: huge }])
  tell([{ type: 'thinking', thinking: huge }])
  tell([{ type: 'text', text: huge }], 'user')
  tell([{ type: 'tool_use', id: 'e', name: 'Bash', input: { command: huge, list: Array(50_000).fill('item') } }])
  tell([{ type: 'tool_result', tool_use_id: 'e', content: huge }], 'user')
  tell([{ type: 'tool_use', id: 'f', name: 'Count', input: { list: Array(50_000).fill('item') } }])
  tell([{ type: 'tool_result', tool_use_id: 'f', content: Array(50_000).fill({ type: 'text', text: 'item' }) }], 'user')
  tell([{ type: 'tool_use', id: 'g', name: 'Edit', input: { file_path: 'a', old_string: 'a', new_string: huge } }])
  tell([{ type: 'text', text: 'This is the last of it.' }])
  await page.evaluate((hash) => {
    ;(globalThis as unknown as { location: { hash: string } }).location.hash = hash
  }, `#/sessions/${endless.id}`)
  await log.getByText('This is the last of it.').waitFor()
  await log.getByText(BEGIN).waitFor()
  for (const name of [/Bash/, /Count/]) await log.getByRole('button', { name }).click()
  const charsOn = async (): Promise<number> => (await log.textContent())!.length
  const before = await charsOn()
  t.ok(before < 100_000, `${before} characters`)
  const elements = await log.locator('*').count()
  t.ok(elements < 2_000, `${elements} elements`)
  await log
    .getByRole('button', { name: /^Show more/ })
    .first()
    .click()
  t.ok((await charsOn()) > before, 'and more of it comes')
  t.strictSame(complaints, [], 'the policy had nothing to refuse, and nothing was thrown')
  t.strictSame(strangers, [], 'nothing was asked of another origin')
})
