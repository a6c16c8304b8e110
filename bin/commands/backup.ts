import { resolve } from 'node:path'
import { shortPath } from '../../src/daemon/config-problem.js'
import { databaseOf } from '../../src/daemon/database.js'
import { loadConfig } from '../../src/daemon/load-config.js'

/**
 * Copies the database that a configuration names into a new file.
 * @throws ConfigError when it names none · StartError when it cannot be copied
 */
export async function backup(target: string, path: string): Promise<void> {
  const database = databaseOf(loadConfig(path))
  const { backupSqlite } = await import('../../src/storage/sqlite/maintenance.js')
  await backupSqlite(database, target)
  process.stdout.write(
    `ok: ${shortPath(resolve(target))} is a copy of ${shortPath(database)}\n` +
      '    to restore it: stop the gateway, remove the database with its -wal and -shm files, put the copy in its place, start the gateway\n',
  )
}
