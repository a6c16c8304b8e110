import { ended } from '../../lib/sentence.js'

export type SqlValue = string | number | bigint | null | Uint8Array

export interface Statement {
  run(...values: SqlValue[]): { changes: number | bigint; lastInsertRowid: number | bigint }
  // biome-ignore lint/suspicious/noExplicitAny: a row is what its query says
  get(...values: SqlValue[]): any
  // biome-ignore lint/suspicious/noExplicitAny: a row is what its query says
  all(...values: SqlValue[]): any[]
  // biome-ignore lint/suspicious/noExplicitAny: a row is what its query says
  iterate(...values: SqlValue[]): IterableIterator<any>
}

/** What is used of the `node:sqlite` API. */
export interface Database {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
}

type OpenDatabase = new (path: string, options?: { readOnly?: boolean }) => Database

interface Driver {
  DatabaseSync: OpenDatabase
}

/**
 * Node's own SQLite, or a package with the same API for releases that have none.
 * @throws Error when there is neither
 */
export async function loadDriver(): Promise<OpenDatabase> {
  const builtIn = withoutExperimentalWarning(() => process.getBuiltinModule('node:sqlite'))
  const { DatabaseSync } = (builtIn ?? (await loadPackage())) as Driver
  return DatabaseSync
}

async function loadPackage(): Promise<unknown> {
  try {
    return await import('@photostructure/sqlite')
  } catch (error) {
    const cause = error as NodeJS.ErrnoException
    const isMissing = cause.code === 'ERR_MODULE_NOT_FOUND'
    const remedy = isMissing
      ? 'Use Node 22.13 or later, or run `npm i @photostructure/sqlite@1`.'
      : `@photostructure/sqlite is installed and cannot be loaded: ${ended(cause.message)} Node 22.13 and later need none.`
    throw new Error(`Node ${process.versions.node} has no SQLite. ${remedy}`, { cause })
  }
}

const read = new Set<Statement>()

/** Rows one at a time. An iterator of the package does not keep its statement from being collected, and crashes the process then. */
export function* rowsOf(statement: Statement, ...values: SqlValue[]): Generator<ReturnType<Statement['get']>> {
  read.add(statement)
  try {
    yield* statement.iterate(...values)
  } finally {
    read.delete(statement)
  }
}

/** Node 22 warns of its SQLite, which has not changed since. */
function withoutExperimentalWarning<T>(load: () => T): T {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return load()
  } finally {
    process.emitWarning = emitWarning
  }
}
