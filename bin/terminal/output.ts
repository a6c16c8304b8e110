import pc from 'picocolors'
import stringWidth from 'string-width'

export type Format = 'table' | 'json' | 'jsonl'
export const FORMATS: Format[] = ['table', 'json', 'jsonl']

export interface OutputOptions {
  output?: Format
}

/** Text of others, without what would move the cursor, rename the window or hide other text. */
export const safe = (text: string): string =>
  text
    .replace(/\r\n?/g, '\n')
    // biome-ignore lint/complexity/useRegexLiterals: the characters could not be seen
    .replace(new RegExp('[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u202a-\\u202e\\u2066-\\u2069]', 'g'), '')

const CHARACTERS = new Intl.Segmenter()
/** Each takes one column, and the measuring of a long text takes milliseconds. */
const PLAIN = /^[ -~…]*$/
/** Characters of a text; more than any line has. */
const MOST_LOOKED_AT = 10_000

const columnsOf = (line: string): number => (PLAIN.test(line) ? line.length : stringWidth(line))

/** All in one line, cut to a width as a terminal shows it: some characters take two columns, some are written as several. */
export function oneLine(text: string, width: number): string {
  const line = safe(text.slice(0, MOST_LOOKED_AT)).replace(/\s+/g, ' ').trim()
  if (text.length <= MOST_LOOKED_AT && columnsOf(line) <= width) return line
  let room = Math.max(1, width - 1)
  if (PLAIN.test(line.slice(0, room + 1))) return `${line.slice(0, room)}…`
  let kept = ''
  for (const { segment } of CHARACTERS.segment(line)) {
    room -= columnsOf(segment)
    if (room < 0) break
    kept += segment
  }
  return `${kept}…`
}

/** Where no terminal is, nothing is cut. */
export const screenWidth = (): number => process.stdout.columns || (process.stdout.isTTY ? 80 : 1000)

export interface Column<T> {
  title: string
  of(item: T): string
  /** Takes the room that the others leave; one column at most. */
  isWide?: boolean
}

/** A list, in the form that was asked for. */
export function printList<T>(items: readonly T[], columns: Column<T>[], { output = 'table' }: OutputOptions): void {
  if (output === 'json') print(JSON.stringify(items, undefined, 2))
  else if (output === 'jsonl') for (const item of items) print(JSON.stringify(item))
  else print(renderTable(items, columns))
}

export function renderTable<T>(items: readonly T[], columns: Column<T>[]): string {
  const cells = items.map((item) => columns.map(({ of }) => oneLine(of(item), 1000)))
  const widths = columns.map(({ title }, column) =>
    cells.reduce((most, row) => Math.max(most, columnsOf(row[column]!)), title.length),
  )
  const wide = columns.findIndex(({ isWide }) => isWide)
  if (wide >= 0) {
    const others = widths.reduce((sum, width, column) => (column === wide ? sum : sum + width + 2), 0)
    widths[wide] = Math.max(8, Math.min(widths[wide]!, screenWidth() - others))
  }
  const lineOf = (row: string[], show = (cell: string): string => cell): string =>
    row
      .map((cell, column) => show(cell) + ' '.repeat(Math.max(0, widths[column]! - columnsOf(cell))))
      .join('  ')
      .trimEnd()
  const head = columns.map(({ title }) => title.toUpperCase())
  const rows = cells.map((row) => lineOf(row.map((cell, column) => oneLine(cell, widths[column]!))))
  return [lineOf(head, pc.dim), ...rows].join('\n')
}

/** One thing, field by field, or as JSON. */
export function printOne<T extends object>(
  item: T,
  fields: [name: string, value: unknown][],
  { output = 'table' }: OutputOptions,
): void {
  if (output === 'json') print(JSON.stringify(item, undefined, 2))
  else if (output === 'jsonl') print(JSON.stringify(item))
  else {
    const told = fields.filter(([, value]) => value !== undefined && value !== '')
    const width = Math.max(...told.map(([name]) => name.length))
    for (const [name, value] of told) print(`${pc.dim(name.padEnd(width))}  ${safe(String(value))}`)
  }
}

export const print = (text: string): void => void process.stdout.write(`${text}\n`)
/** What is about the answer and not the answer. */
export const note = (text: string): void => void process.stderr.write(`${text}\n`)

const UNITS: [ms: number, name: string][] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1000, 's'],
]

export function duration(ms: number): string {
  const [size, name] = UNITS.find(([size]) => ms >= size) ?? [1000, 's']
  return name === 's' ? `${(ms / size).toFixed(1)}s` : `${Math.floor(ms / size)}${name}`
}
export const ago = (time: number): string => `${duration(Math.max(0, Date.now() - time))} ago`
export const when = (time: number | undefined): string | undefined =>
  time === undefined ? undefined : new Date(time).toISOString()
export const money = (dollars: number): string => (dollars > 0 ? `$${dollars.toFixed(dollars < 0.1 ? 4 : 2)}` : '')
export const count = (number: number): string => number.toLocaleString('en-US')
