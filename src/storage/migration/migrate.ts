import type { PostgresStorageOptions } from '../postgres/storage.js'
import { StorageError } from '../storage.js'
import { isSameSchema, postgresSource, postgresTarget } from './postgres-side.js'
import { isSameFile, sqliteSource, sqliteTarget } from './sqlite-side.js'
import { COPIED, type CopiedTable, type Side, sumOf, type TableSum, type Target } from './tables.js'

/** A database of a gateway. */
export type Place = { sqlite: string } | { postgres: PostgresStorageOptions }

export interface Migrated {
  /** What both are called, without what lets one in. */
  from: string
  to: string
  /** False: it was there already, and nothing was written. */
  isNew: boolean
  /** Of each table, the same in both. */
  tables: Record<string, TableSum>
}

/**
 * Copies everything that a gateway keeps into another, empty database, and holds both against each other before anything is kept there:
 * all of it is copied, or nothing. The one that is copied is only read. Repeated, it finds that all is there. No gateway may use either.
 * @throws StorageError, LockHeldError
 */
export async function migrateStorage(from: Place, to: Place): Promise<Migrated> {
  if (await isSame(from, to))
    throw new StorageError('STORAGE_SAME', 'The source and the target are the same database. Name another target.')
  const source = 'sqlite' in from ? await sqliteSource(from.sqlite) : await postgresSource(from.postgres)
  try {
    const target = 'sqlite' in to ? await sqliteTarget(to.sqlite) : await postgresTarget(to.postgres)
    try {
      const empty = isTarget(target) && (await isEmpty(target)) ? target : undefined
      const tables = await (empty ? copied(source, empty) : same(source, target))
      return { from: source.name, to: target.name, isNew: empty !== undefined, tables }
    } finally {
      await target.close()
    }
  } finally {
    await source.close()
  }
}

async function isSame(from: Place, to: Place): Promise<boolean> {
  if ('postgres' in from) return 'postgres' in to && isSameSchema(from.postgres, to.postgres)
  return 'sqlite' in to && isSameFile(from.sqlite, to.sqlite)
}

const isTarget = (side: Side): side is Target => 'write' in side

async function isEmpty(target: Target): Promise<boolean> {
  for (const table of COPIED) for await (const rows of target.read(table)) if (rows.length > 0) return false
  return true
}

/** Of a table that one of them keeps more of, what both keep. */
const inBoth = (source: Side, target: Side): CopiedTable[] =>
  source.tables.flatMap((table) => {
    const other = target.tables.find(({ name }) => name === table.name)
    return other ? [other.columns.length < table.columns.length ? other : table] : []
  })

async function copied(source: Side, target: Target): Promise<Migrated['tables']> {
  const tables: Migrated['tables'] = {}
  for (const table of inBoth(source, target)) {
    const sum = await sumOf(source, table, (rows) => target.write(table, rows))
    const kept = await sumOf(target, table)
    if (kept.sha256 !== sum.sha256)
      throw new StorageError(
        'MIGRATION_DIFFERS',
        `${table.name} came out different: ${sum.rows} rows of ${source.name}, ${kept.rows} of ${target.name}. Nothing was kept there.`,
      )
    tables[table.name] = sum
  }
  await target.keepNumbers(await source.lastNumbers())
  await target.commit()
  return tables
}

async function same(source: Side, target: Side): Promise<Migrated['tables']> {
  const tables: Migrated['tables'] = {}
  for (const table of inBoth(source, target)) {
    const sum = await sumOf(source, table)
    const kept = await sumOf(target, table)
    if (kept.sha256 !== sum.sha256)
      throw new StorageError(
        'STORAGE_NOT_EMPTY',
        `${target.name} has something else: ${kept.rows} rows of ${table.name}, ${source.name} has ${sum.rows}. It was left as it is; name an empty one.`,
      )
    tables[table.name] = sum
  }
  return tables
}
