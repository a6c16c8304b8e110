import { stripVTControlCharacters } from 'node:util'
import pc from 'picocolors'
import stringWidth from 'string-width'

export type Format = 'table' | 'json' | 'jsonl'
export const FORMATS: Format[] = ['table', 'json', 'jsonl']

export interface OutputOptions {
  output?: Format
}

/** Whether it is for a person, not for a program. */
export const isTable = ({ output = 'table' }: OutputOptions): boolean => output === 'table'

/** Text of others, without what would move the cursor, rename the window or hide other text. */
export const safe = (text: string): string =>
  text
    .replace(/\r\n?/g, '\n')
    // biome-ignore lint/complexity/useRegexLiterals: the characters could not be seen
    .replace(new RegExp('[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u202a-\\u202e\\u2066-\\u2069]', 'g'), '')

const CHARACTERS = new Intl.Segmenter()
/** Each takes one column: the letters of Europe, and what is set between them. The measuring of any other text takes milliseconds. */
const PLAIN = /^[ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0482\u048a-\u058f\u2010-\u2027]*$/
/** Characters of a text; more than any line has. */
const MOST_LOOKED_AT = 10_000

/** Of characters that were measured, as far as a language has them. */
const measured = new Map<string, number>()
const MOST_MEASURED = 20_000

function columnsOf(character: string): number {
  if (PLAIN.test(character)) return character.length
  const known = measured.get(character)
  if (known !== undefined) return known
  const columns = stringWidth(character)
  if (measured.size < MOST_MEASURED) measured.set(character, columns)
  return columns
}

interface Line {
  text: string
  columns: number
}

/** All in one line, cut to a width as a terminal shows it: some characters take two columns, some are written as several. */
export const oneLine = (text: string, width: number): string => lineOf(text, width).text

/** Nothing behind the width is measured. */
function lineOf(text: string, width: number): Line {
  const line = safe(text.slice(0, MOST_LOOKED_AT)).replace(/\s+/g, ' ').trim()
  const isWhole = text.length <= MOST_LOOKED_AT
  const room = Math.max(1, width - 1)
  if (PLAIN.test(line.slice(0, width + 1))) {
    if (isWhole && line.length <= width) return { text: line, columns: line.length }
    const kept = line.slice(0, room)
    return { text: `${kept}…`, columns: kept.length + 1 }
  }
  let columns = 0
  const kept: Line = { text: '', columns: 0 }
  for (const { segment } of CHARACTERS.segment(line)) {
    columns += columnsOf(segment)
    if (columns <= room) {
      kept.text += segment
      kept.columns = columns
    } else if (columns > width) break
  }
  return isWhole && columns <= width ? { text: line, columns } : { text: `${kept.text}…`, columns: kept.columns + 1 }
}

/** A terminal that does not tell its size, as one of `script` may not, has none that anything could be laid out in. */
export function assumeSize(): void {
  for (const stream of [process.stdout, process.stderr])
    if (stream.isTTY && !(stream.columns && stream.rows)) Object.assign(stream, { columns: 80, rows: 24 })
}

/** Where no terminal is, nothing is cut. */
export const screenWidth = (): number => process.stdout.columns || 1000

export const screenHeight = (): number => process.stdout.rows || 24

const TAB = 8

/** How many rows of the screen a line takes: a tab goes to the next stop, and no character is divided at the edge. */
export function rowsOf(line: string): number {
  const width = screenWidth()
  const text = stripVTControlCharacters(line)
  if (PLAIN.test(text)) return Math.max(1, Math.ceil(text.length / width))
  let rows = 1
  let column = 0
  for (const { segment } of CHARACTERS.segment(text)) {
    const columns = columnsOf(segment)
    if (segment === '\t') column = Math.min(column - (column % TAB) + TAB, width - 1)
    else if (column + columns <= width) column += columns
    else {
      rows++
      column = columns
    }
  }
  return rows
}

export interface Column<T> {
  title: string
  of(item: T): string
  /** Takes the room that the others leave; one column at most. */
  isWide?: boolean
  /** It is copied, and never cut. */
  isWhole?: boolean
}

/** A wide column that would be left less takes of the others. */
const LEAST_WIDE = 16
/** Of less nothing can be told from anything else: a row breaks instead. */
const LEAST = 4
const BETWEEN = 2

/** A list, in the form that was asked for. @param none said instead of a table without a row */
export function printList<T>(
  items: readonly T[],
  columns: Column<T>[],
  { output = 'table' }: OutputOptions,
  none?: string,
): void {
  if (output === 'json') print(JSON.stringify(items, undefined, 2))
  else if (output === 'jsonl') for (const item of items) print(JSON.stringify(item))
  else if (items.length === 0 && none !== undefined) note(none)
  else print(renderTable(items, columns))
}

export function renderTable<T>(items: readonly T[], columns: Column<T>[]): string {
  const most = Math.max(8, Math.min(1000, screenWidth()))
  const cells = items.map((item) => columns.map(({ of, isWide }) => lineOf(of(item), isWide ? most : 1000)))
  const widths = columns.map(({ title }, column) =>
    cells.reduce((most, row) => Math.max(most, row[column]!.columns), title.length),
  )
  fitToScreen(columns, widths)
  const filled = ({ text, columns }: Line, column: number): string =>
    text + ' '.repeat(Math.max(0, widths[column]! - columns))
  const fitted = (cell: Line, column: number): string =>
    filled(cell.columns > widths[column]! ? lineOf(cell.text, widths[column]!) : cell, column)
  const head = columns.map(({ title }, column) => {
    const { text, columns } = lineOf(title.toUpperCase(), widths[column]!)
    return filled({ text: pc.dim(text), columns }, column)
  })
  const between = ' '.repeat(BETWEEN)
  return [head, ...cells.map((row) => row.map(fitted))].map((row) => row.join(between).trimEnd()).join('\n')
}

/** Makes a row one line of the screen: of what is in it, the longest is cut first. */
function fitToScreen<T>(columns: Column<T>[], widths: number[]): void {
  const wide = columns.findIndex(({ isWide }) => isWide)
  if (wide < 0) return
  const all = widths.reduce((sum, width) => sum + width, BETWEEN * (widths.length - 1))
  const left = screenWidth() - (all - widths[wide]!)
  const whole = widths.reduce((sum, width, column) => sum + (columns[column]!.isWhole ? width : 0), 0)
  let room = screenWidth() - whole - BETWEEN * (widths.length - 1)
  const cut = [...widths.keys()].filter((column) => !columns[column]!.isWhole).sort((a, b) => widths[a]! - widths[b]!)
  if (left >= Math.min(widths[wide]!, LEAST_WIDE) || room < cut.length * LEAST) {
    widths[wide] = Math.max(8, Math.min(widths[wide]!, left))
    return
  }
  for (const [index, column] of cut.entries()) {
    widths[column] = Math.min(widths[column]!, Math.floor(room / (cut.length - index)))
    room -= widths[column]!
  }
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
