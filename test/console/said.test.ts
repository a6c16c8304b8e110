import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { buildServer, SOME_CWD } from '../fixtures/build.js'
import { axe, openConsole, withBrowser } from '../fixtures/console-browser.js'

const skip = withBrowser()

const { url, call, engine } = await buildServer(t, { console: true, script: {} })

/** The transcript of a session whose agent has said this. */
async function said(t: Test, text: string): Promise<Page> {
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'scripted', prompt: 'Go on' })
  engine.last.say(text)
  const { page } = await openConsole(t, `${url}/v1/console/`, { at: `sessions/${json.id}` })
  await page.locator('.prose').first().waitFor()
  return page
}

t.test('tasks have one box each, also those with a line between them', { skip }, async (t) => {
  const page = await said(t, 'Tight:\n\n- [ ] one\n- [x] two\n\nLoose:\n\n1. [ ] three\n\n2. [x] four\n')
  const texts = await page.locator('.prose li').allInnerTexts()
  t.strictSame(
    texts.map((text) => text.trim()),
    ['☐ one', '☑ two', '☐ three', '☑ four'],
  )
})

t.test('a list begins with the number that it was given', { skip }, async (t) => {
  const page = await said(t, '0. zero\n1. one\n\nThen\n\n7) seven\n\nAnd\n\n- a dot\n')
  t.strictSame(await page.locator('.prose ol').evaluateAll((lists) => lists.map((list) => list.start)), [0, 7])
})

t.test('a table is a stop of the Tab key where it is wider than its place, and only there', { skip }, async (t) => {
  const cells = (count: number, word: string) => `|${` ${word} |`.repeat(count)}\n`
  const table = (count: number, word: string) => cells(count, word) + cells(count, '---') + cells(count, word)
  const page = await said(t, `${table(2, 'a')}\n\nand\n\n${table(40, 'something-long')}`)
  const tables = page.locator('.prose .scroll-x')
  await tables.nth(1).and(page.locator('[tabindex="0"]')).waitFor()
  t.equal(await tables.nth(0).getAttribute('tabindex'), null)
  t.strictSame(await axe(page), [])
})

t.test(
  'characters that are written by their names are shown, and meant by links; in code they stay',
  { skip },
  async (t) => {
    const page = await said(
      t,
      'Vec&lt;T&gt; &#8212; a&nbsp;b &unknown; \\&lt; `&lt;` [away](https://a.example/?a=1&amp;b=2) ![seen](https://i.example/?a&amp;b) [bad](java&#115;cript:x) [not](https://b.example/&#x202e;x)',
    )
    const paragraph = page.locator('.prose p')
    const shown = await paragraph.innerText()
    t.match(shown, 'Vec<T> — a\u00a0b &unknown; &lt; &lt; away')
    t.match(shown, 'bad [javascript:x] not [https://b.example/[U+202E]x]')
    t.strictSame(await paragraph.locator('a').evaluateAll((links) => links.map((link) => link.getAttribute('href'))), [
      'https://a.example/?a=1&b=2',
      'https://i.example/?a&b',
    ])
  },
)

t.test('one letter that can be a word is found', { skip }, async (t) => {
  const page = await said(t, 'これは水です')
  await page.getByRole('button', { name: 'Find in transcript' }).click()
  await page.getByRole('searchbox').fill('水')
  t.equal(await page.locator('.hits mark').innerText(), '水')
})
