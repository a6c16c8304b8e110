import { databaseOf } from '../../src/daemon/database.js'
import { descriptorLines, postgresLines, reportLines, salvageLines } from '../../src/daemon/doctor-report.js'
import { type LoadedConfig, loadConfig } from '../../src/daemon/load-config.js'
import { descriptorLimit } from '../../src/lib/descriptors.js'
import type { PostgresStorageOptions } from '../../src/storage/postgres/storage.js'

/**
 * Looks through the database that a configuration names and says what it found, and how many descriptors there are; or writes what can be
 * read of it into a new file and says what could not be; exit code 1 when something is wrong with it.
 */
export async function doctor(path: string, target?: string): Promise<void> {
  const loaded = loadConfig(path)
  const database = databaseOf(loaded)
  if ('postgres' in database) return doctorPostgresOf(loaded, database.postgres, target)
  const { doctorSqlite, salvageSqlite } = await import('../../src/storage/sqlite/maintenance.js')
  if (target === undefined) {
    const report = await doctorSqlite(database.sqlite)
    return show(report.ok, [...reportLines(report), ...descriptorLines(descriptorLimit())])
  }
  const report = await salvageSqlite(database.sqlite, target)
  show(report.ok, salvageLines(report))
}

async function doctorPostgresOf(loaded: LoadedConfig, options: PostgresStorageOptions, target?: string): Promise<void> {
  if (target !== undefined)
    throw loaded.error([
      { path: 'storage.postgres', message: '--salvage is for SQLite; restore a backup of the PostgreSQL database' },
    ])
  const { doctorPostgres } = await import('../../src/storage/postgres/maintenance.js')
  const report = await doctorPostgres(options)
  show(report.ok, [...postgresLines(report), ...descriptorLines(descriptorLimit())])
}

function show(ok: boolean, lines: string[]): void {
  process.stdout.write(lines.join('\n').concat('\n'))
  if (!ok) process.exitCode = 1
}
