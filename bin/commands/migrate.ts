import { databaseName } from '../../src/daemon/database.js'
import { StartError } from '../../src/daemon/start-error.js'
import { LockHeldError } from '../../src/storage/file/process-lock.js'
import type { Place } from '../../src/storage/migration/migrate.js'
import { StorageError } from '../../src/storage/storage.js'

/**
 * Copies everything from one database to another, and says how many rows of each table are the same in both now.
 * @throws StartError when a gateway uses one of them · StorageError when it cannot be done; nothing is written then
 */
export async function migrate(from: string, to: string, schema: string | undefined): Promise<void> {
  const [source, target] = [placeOf(from, schema), placeOf(to, schema)]
  const { migrateStorage } = await import('../../src/storage/migration/migrate.js')
  const { isNew, tables } = await migrateStorage(source, target).catch((error) => {
    const isHeld = error instanceof LockHeldError || (error instanceof StorageError && error.code === 'STORAGE_HELD')
    throw isHeld ? new StartError(error.message, { cause: error }) : error
  })
  const rows = Object.entries(tables).map(
    ([name, sum]) => `  ${name.padEnd(19)}${sum.rows} rows  ${sum.sha256.slice(0, 16)}`,
  )
  const said = isNew ? 'has everything now that is in' : 'had everything already that is in'
  process.stdout.write(
    `ok: ${databaseName(target)} ${said} ${databaseName(source)}, which was left as it was\n${rows.join('\n')}\n`,
  )
}

function placeOf(given: string, schema: string | undefined): Place {
  if (/^postgres(ql)?:/i.test(given)) {
    const named = URL.canParse(given) ? new URL(given).searchParams.get('schema') : null
    // elsewhere an address that other programs share may say what it likes; here it says what is to be copied
    if (named !== null && named !== schema)
      throw new StorageError('POSTGRES_URL', 'The schema of a postgres:// URL is not read: name it with --schema.')
    return { postgres: { url: given, ...(schema && { schema }) } }
  }
  // as a file it would be made, by a name that has a password in it
  const [, scheme] = /^([a-z][a-z0-9+.-]*):\/\//i.exec(given) ?? []
  if (scheme === undefined) return { sqlite: given }
  throw new StorageError(
    'STORAGE_UNKNOWN',
    `There is no storage for ${scheme}:// addresses. Name the file of an SQLite database, or a postgres:// URL.`,
  )
}
