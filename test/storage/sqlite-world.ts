import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Test } from 'tap'
import { createSqliteStorage, type SqliteInternals, type SqliteStorage } from '../../src/storage/sqlite/storage.js'
import { compiledFile } from '../fixtures/compiled.js'

/** Code for a thread or a process as JavaScript: through the loader that runs the tests, each start would take a second. */
export const compiled = (entry: string): URL => pathToFileURL(compiledFile(entry))

export const workerFile = (): URL => compiled('src/storage/sqlite/worker.ts')

export interface SqliteWorld {
  path: string
  /** The one that is open now. */
  storage: SqliteStorage
  /** As a new process would see it. */
  reopen(): Promise<SqliteStorage>
}

/** A storage that is not open; it is closed at the end of the test. */
export function sqliteAt(
  t: Test,
  path: string,
  now = Date.now,
  pragmas: SqliteInternals['pragmas'] = [],
): SqliteStorage {
  const storage = createSqliteStorage({ path, now }, { worker: workerFile(), pragmas })
  t.teardown(() => storage.close())
  return storage
}

/** An open storage on a new database. */
export async function sqliteWorld(
  t: Test,
  { now = Date.now, pragmas }: { now?: () => number; pragmas?: readonly string[] } = {},
): Promise<SqliteWorld> {
  const path = join(t.testdir(), 'state', 'gateway.db')
  const storage = sqliteAt(t, path, now, pragmas)
  await storage.open()
  const world: SqliteWorld = {
    path,
    storage,
    async reopen() {
      await world.storage.close()
      world.storage = sqliteAt(t, path, now, pragmas)
      await world.storage.open()
      return world.storage
    },
  }
  return world
}
