import { structuredPatch } from 'diff'

/** A change of one file that a tool made or wants to make. `before` is undefined when the file is written whole. */
export interface Edit {
  path: string
  before: string | undefined
  after: string
}
export interface DiffRow {
  kind: 'same' | 'add' | 'remove' | 'skip'
  text: string
  /** Line numbers within what is compared, from 1. */
  old?: number
  new?: number
}
export interface FileDiff {
  path: string
  added: number
  removed: number
  rows: DiffRow[]
  /** Too much to be compared or to be shown whole. */
  isCut: boolean
}

type Input = Record<string, unknown>
const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
const objects = (value: unknown): Input[] =>
  Array.isArray(value) ? value.filter((item): item is Input => typeof item === 'object' && item !== null) : []

/** The edits that a call describes: by the shapes of its input and its result that the agents use. Empty when it is none. */
export function editsOf(input: unknown, result?: unknown): Edit[] {
  const said = objects(result).flatMap((block) => {
    const after = textOf(block.newText)
    return block.type === 'diff' && after !== undefined
      ? [{ path: String(block.path ?? ''), before: textOf(block.oldText), after }]
      : []
  })
  if (said.length > 0) return said
  if (typeof input !== 'object' || input === null) return []
  const given = input as Input
  const path = textOf(given.file_path) ?? textOf(given.path) ?? textOf(given.notebook_path)
  if (path === undefined) return []
  const one = ({ old_string, new_string, oldText, newText }: Input): Edit[] => {
    const [before, after] = [textOf(old_string) ?? textOf(oldText), textOf(new_string) ?? textOf(newText)]
    return before === undefined || after === undefined ? [] : [{ path, before, after }]
  }
  const many = objects(given.edits).flatMap(one)
  if (many.length > 0) return many
  const single = one(given)
  if (single.length > 0) return single
  const content = textOf(given.content) ?? textOf(given.new_source)
  return content === undefined ? [] : [{ path, before: undefined, after: content }]
}

const MAX_CHARS = 200_000
const MAX_ROWS = 2_000
const CONTEXT = 3
/** So long may one comparison take. */
const TIMEOUT_MS = 50

const linesOf = (text: string): string[] => {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines
}

export function diffOf({ path, before, after }: Edit): FileDiff {
  const isCut = (before?.length ?? 0) + after.length > MAX_CHARS
  const [was, is] = isCut ? [before?.slice(0, MAX_CHARS), after.slice(0, MAX_CHARS)] : [before, after]
  const rows: DiffRow[] = []
  const patch =
    was === undefined
      ? undefined
      : structuredPatch(path, path, was, is, '', '', { context: CONTEXT, timeout: TIMEOUT_MS })
  if (patch) {
    for (const [index, hunk] of patch.hunks.entries()) {
      if (index > 0) rows.push({ kind: 'skip', text: '' })
      let [oldLine, newLine] = [hunk.oldStart, hunk.newStart]
      for (const line of hunk.lines) {
        const text = line.slice(1)
        if (line[0] === '+') rows.push({ kind: 'add', text, new: newLine++ })
        else if (line[0] === '-') rows.push({ kind: 'remove', text, old: oldLine++ })
        else if (line[0] === ' ') rows.push({ kind: 'same', text, old: oldLine++, new: newLine++ })
      }
    }
  } else {
    let line = 1
    // taking too long to compare, it is shown as a whole
    let oldLine = 1
    for (const text of was === undefined ? [] : linesOf(was)) rows.push({ kind: 'remove', text, old: oldLine++ })
    for (const text of linesOf(is)) rows.push({ kind: 'add', text, new: line++ })
  }
  const count = (kind: DiffRow['kind']): number => rows.filter((row) => row.kind === kind).length
  return {
    path,
    added: count('add'),
    removed: count('remove'),
    rows: rows.slice(0, MAX_ROWS),
    isCut: isCut || rows.length > MAX_ROWS,
  }
}

/** One row of the split view: what was on the left, what is on the right. */
export type SplitRow = readonly [left: DiffRow | undefined, right: DiffRow | undefined]

/** Removed lines beside those that took their place. */
export function splitRows(rows: readonly DiffRow[]): SplitRow[] {
  const split: SplitRow[] = []
  let removed: DiffRow[] = []
  let added: DiffRow[] = []
  const flush = (): void => {
    for (let at = 0; at < Math.max(removed.length, added.length); at++) split.push([removed[at], added[at]])
    removed = []
    added = []
  }
  for (const row of rows) {
    if (row.kind === 'remove') {
      if (added.length > 0) flush()
      removed.push(row)
    } else if (row.kind === 'add') added.push(row)
    else {
      flush()
      split.push([row, row])
    }
  }
  flush()
  return split
}
