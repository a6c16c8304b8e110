import t from 'tap'
import { type Column, renderTable } from '../../bin/terminal/output.js'

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

t.test('a table has as many rows as there are', async (t) => {
  // more than a function takes arguments
  const rows = Array.from({ length: 200_000 }, (_, n) => ({ id: String(n), title: 'Hello.' }))
  const lines = renderTable(rows, COLUMNS).split('\n')
  t.equal(lines.length, 200_001)
  t.equal(lines.at(-1), '199999  Hello.')
})
