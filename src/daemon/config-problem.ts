import { relative } from 'node:path'
import { isWithin } from '../lib/paths-within-roots.js'

/** Where in a text something begins; both count from 1. */
export interface TextPosition {
  line: number
  column: number
}

/** One thing that is wrong with a configuration. */
export interface ConfigProblem {
  /** Path inside the file as in `auth.tokens[0].sha256`; empty for the file as a whole. */
  path: string
  message: string
}

/** What the path of a member is called in messages: `listen.port`, `profiles[0]`, `headers["x-key"]`. */
export const memberPath = (parent: string, key: string | number): string => {
  if (typeof key === 'number') return `${parent}[${key}]`
  if (!/^[\w$]+$/.test(key)) return `${parent}[${JSON.stringify(key)}]`
  return parent === '' ? key : `${parent}.${key}`
}

/**
 * A configuration that cannot be used, with everything that is wrong with it. `message` is complete: a line per problem with file, line,
 * column and path.
 */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly ConfigProblem[]

  constructor(file: string, problems: readonly ConfigProblem[], positions?: ReadonlyMap<string, TextPosition>) {
    const shown = shortPath(file)
    const lines = problems.map((problem) => {
      const at = nearestPosition(problem.path, positions)
      const place = at ? `${shown}:${at.line}:${at.column}` : shown
      return `  ${[place, problem.path].filter(Boolean).join('  ')}: ${problem.message}`
    })
    const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`
    super(`the configuration has ${count}\n${lines.join('\n')}`)
    this.problems = problems
  }
}

/** The path as a person in the working directory would write it. */
export const shortPath = (file: string): string =>
  (isWithin(process.cwd(), file) && relative(process.cwd(), file)) || file

/** Where a path stands; a member that is missing has no place of its own, but its nearest parent has. */
export function nearestPosition(
  path: string,
  positions: ReadonlyMap<string, TextPosition> | undefined,
): TextPosition | undefined {
  const position = positions?.get(path)
  if (position || path === '') return position
  return nearestPosition(path.slice(0, Math.max(path.lastIndexOf('.'), path.lastIndexOf('['), 0)), positions)
}
