import { databaseOf } from '../../src/daemon/database.js'
import { descriptorLines, reportLines, salvageLines } from '../../src/daemon/doctor-report.js'
import { loadConfig } from '../../src/daemon/load-config.js'
import { descriptorLimit } from '../../src/lib/descriptors.js'

/**
 * Looks through the database that a configuration names and says what it found, and how many descriptors there are; or writes what can be
 * read of it into a new file and says what could not be; exit code 1 when something is wrong with it.
 */
export async function doctor(path: string, target?: string): Promise<void> {
  const database = databaseOf(loadConfig(path))
  const { doctorSqlite, salvageSqlite } = await import('../../src/storage/sqlite/maintenance.js')
  const show = (ok: boolean, lines: string[]) => {
    process.stdout.write(lines.join('\n').concat('\n'))
    if (!ok) process.exitCode = 1
  }
  if (target === undefined) {
    const report = await doctorSqlite(database)
    return show(report.ok, [...reportLines(report), ...descriptorLines(descriptorLimit())])
  }
  const report = await salvageSqlite(database, target)
  show(report.ok, salvageLines(report))
}
