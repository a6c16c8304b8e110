import stringWidth from 'string-width'
import t from 'tap'
import { type Column, oneLine, renderTable } from '../../bin/terminal/output.js'

type Row = { id: string; title: string }
const COLUMNS: Column<Row>[] = [
  { title: 'id', of: ({ id }) => id },
  { title: 'title', of: ({ title }) => title, isWide: true },
  { title: 'end', of: () => '' },
]

t.test('a table is as wide as what is in it, and no line ends in spaces', async (t) => {
  const rows = [
    { id: 'a', title: '日本語' },
    { id: 'abcdef', title: 'x\ny' },
  ]
  const lines = renderTable(rows, COLUMNS)
    .replace(/\u001b\[\d+m/g, '')
    .split('\n')
  t.strictSame(lines, ['ID      TITLE     END', 'a       日本語', 'abcdef  x y'])
})

t.test('columns begin under each other, also after characters that take two', async (t) => {
  const columns = [...COLUMNS.slice(0, 2), { title: 'of', of: ({ id }: Row) => id }]
  const rows = [
    { id: 'a', title: '日本語' },
    { id: 'b', title: 'plain text' },
  ]
  const lines = renderTable(rows, columns).split('\n').slice(1)
  t.strictSame(lines, ['a   日本語      a', 'b   plain text  b'])
})

t.test('a row is one line of the screen, with what is copied whole', async (t) => {
  const { stdout } = process
  const before = { columns: stdout.columns }
  t.teardown(() => Object.assign(stdout, before))
  const columns: Column<Row>[] = [
    { title: 'id', of: ({ id }) => id, isWhole: true },
    { title: 'status', of: () => 'awaiting_approval' },
    { title: 'profile', of: ({ title }) => title },
    { title: 'created', of: () => '12.5s ago' },
    { title: 'tokens', of: () => '1,234,567' },
    { title: 'prompt', of: () => '日本語 Please write a report of everything that you can find.', isWide: true },
  ]
  const rows = ['a-profile-whose-name-says-all-that-is-to-be-known-of-what-it-is-good-for', 'short'].map((title) => ({
    id: '12345678',
    title,
  }))
  for (const width of [80, 40]) {
    Object.assign(stdout, { columns: width })
    const lines = renderTable(rows, columns)
      .replace(/\u001b\[\d+m/g, '')
      .split('\n')
    for (const line of lines) t.ok(stringWidth(line) <= width, `${line} in ${width}`)
    t.ok(lines.slice(1).every((line) => line.startsWith('12345678  ')))
    if (width < 80) continue
    t.match(lines[1], /^12345678 {2}awaiting_.+… {2}a-pro.+… {2}12\.5s ago {2}1,234,567 {2}日本語 P.+…$/)
  }
  Object.assign(stdout, { columns: 30 })
  t.match(renderTable(rows.slice(1), columns), 'awaiting_approval', 'where nothing could be read a row breaks')
  Object.assign(stdout, { columns: 80 })
  const [, line] = renderTable(rows.slice(1), columns).split('\n')
  t.match(line, /^12345678 {2}awaiting_approval {2}short {4}12\.5s ago {2}1,234,567 {2}日本語 Please.+…$/)
})

t.test('a table has as many rows as there are', async (t) => {
  // more than a function takes arguments
  const rows = Array.from({ length: 200_000 }, (_, n) => ({ id: String(n), title: 'Hello.' }))
  const lines = renderTable(rows, COLUMNS).split('\n')
  t.equal(lines.length, 200_001)
  t.equal(lines.at(-1), '199999  Hello.')
})

t.test('what is not written in ASCII is cut to the columns that a terminal gives it', async (t) => {
  const texts = [
    'Größe — «Übersicht» der Straße',
    'Отчёт о проекте',
    'e\u0301te\u0301',
    '日本語テスト',
    '1\ufe0f\u20e3 ©\ufe0f 👨‍👩‍👧 x',
    'a\u00adb',
  ]
  for (const text of texts) {
    const columns = stringWidth(text)
    t.equal(oneLine(text, columns), text)
    for (let width = 2; width < columns; width++) {
      const line = oneLine(text, width)
      t.ok(line.endsWith('…') && text.startsWith(line.slice(0, -1)))
      // one that takes two columns may not fit in the last one
      t.ok([width, width - 1].includes(stringWidth(line)), `${line} in ${width}`)
    }
  }
})

t.test('a text in another language of Europe is not taken apart, which takes milliseconds of each', async (t) => {
  const { segment } = Intl.Segmenter.prototype
  let takenApart = 0
  Intl.Segmenter.prototype.segment = function (text) {
    takenApart++
    return segment.call(this, text)
  }
  t.teardown(() => {
    Intl.Segmenter.prototype.segment = segment
  })
  const titles = ['Größe — «Übersicht» der Straße', 'Łódź, don’t…', 'Отчёт о проекте', 'Ελληνικά']
  renderTable(
    titles.map((title) => ({ id: 'a', title: title.repeat(200) })),
    COLUMNS,
  )
  t.equal(takenApart, 0)
  renderTable([{ id: 'a', title: '日本語' }], COLUMNS)
  t.ok(takenApart > 0)
})
