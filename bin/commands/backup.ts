import { resolve } from 'node:path'
import { shortPath } from '../../src/daemon/config-problem.js'
import { databaseOf } from '../../src/daemon/database.js'
import { loadConfig } from '../../src/daemon/load-config.js'

/**
 * Copies the database that a configuration names into a new file; of one of PostgreSQL it says what does that.
 * @throws ConfigError when it names none, or one of PostgreSQL · StartError when it cannot be copied
 */
export async function backup(target: string, path: string): Promise<void> {
  const loaded = loadConfig(path)
  const database = databaseOf(loaded)
  if ('postgres' in database) {
    const { backupHelp } = await import('../../src/storage/postgres/maintenance.js')
    const message = backupHelp(database.postgres, resolve(target)).join('\n    ')
    throw loaded.error([{ path: 'storage.postgres', message }])
  }
  const { backupSqlite } = await import('../../src/storage/sqlite/maintenance.js')
  await backupSqlite(database.sqlite, target)
  process.stdout.write(
    `ok: ${shortPath(resolve(target))} is a copy of ${shortPath(database.sqlite)}\n` +
      '    to restore it: stop the gateway, remove the database with its -wal and -shm files, put the copy in its place, start the gateway\n',
  )
}
