import { databaseOf } from '../../src/daemon/database.js'
import { reportLines } from '../../src/daemon/doctor-report.js'
import { loadConfig } from '../../src/daemon/load-config.js'

/** Looks through the database that a configuration names and says what it found; exit code 1 when something is wrong with it. */
export async function doctor(path: string): Promise<void> {
  const database = databaseOf(loadConfig(path))
  const { doctorSqlite } = await import('../../src/storage/sqlite/maintenance.js')
  const report = await doctorSqlite(database)
  process.stdout.write(reportLines(report).join('\n').concat('\n'))
  if (!report.ok) process.exitCode = 1
}
