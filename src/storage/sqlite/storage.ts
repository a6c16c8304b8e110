import { Type } from '@sinclair/typebox'
import { StringEnum, strict } from '../../../schemas/common.js'
import { optionError } from '../../errors.js'
import { argumentOf } from '../../lib/argument.js'
import { forOneGateway } from '../held.js'
import type { Call } from '../sql/call-queue.js'
import { type DatabaseStorage, databaseStorage, notOpen, type OpenDatabase } from '../sql/storage.js'
import { type HeldFile, holdFile } from './files.js'
import { backupSqlite, doctorSqlite, type SqliteReport } from './maintenance.js'
import { DatabaseThread } from './thread.js'

export interface SqliteStorageOptions {
  /** Of the database file; it and its directory are made when they are missing, for this account alone. */
  path: string
  /**
   * `full`: what was confirmed survives a power cut. `normal`: it survives a crash of the process, while a power cut may take the last
   * seconds. Default `full`.
   */
  synchronous?: 'full' | 'normal'
  /** Epoch milliseconds; default `Date.now`. */
  now?: () => number
}

const CALL = 'createSqliteStorage({ path })'
const optionsOf = argumentOf<SqliteStorageOptions>(
  CALL,
  Type.Object(
    {
      path: Type.String({ minLength: 1 }),
      synchronous: Type.Optional(StringEnum('full', 'normal')),
      now: Type.Optional(Type.Function([], Type.Any())),
    },
    strict,
  ),
)

/** Everything that a gateway keeps, in one SQLite database. */
export interface SqliteStorage extends DatabaseStorage {
  /** Copies the database as it is now into a new file, for this account alone, while it is in use. Rejects when the file exists. */
  backup(file: string): Promise<void>
  /** Looks for damage, while it is in use; takes a while when there is much. */
  check(): Promise<SqliteReport>
}

/** For tests of this folder, and for benchmarks. */
export interface SqliteInternals {
  pragmas?: readonly string[]
  /** Of the thread's code. */
  worker?: URL
  /** Hears what each batch asks for as it goes to the database, which does it in one transaction. */
  onBatch?: (names: readonly Call[0][]) => void
}

/**
 * Keeps everything in one SQLite database, in a thread of its own. From `open` until `close` the process holds `<path>.lock`; a second
 * one is refused and told who has it. A database that is damaged, of something else or of a newer version is refused and left as it is.
 *
 * Every method of the parts rejects with a `StorageError` when nothing of what it was to do was done: when the disk is full or fails,
 * the same call may succeed later.
 * @throws SG_ERR_OPTION for options that are none
 */
export function createSqliteStorage(
  options: SqliteStorageOptions,
  { pragmas = [], worker, onBatch }: SqliteInternals = {},
): SqliteStorage {
  const { path, synchronous = 'full', now } = optionsOf(options)
  if (path.includes('\0')) throw optionError(CALL, 'path: has a NUL character in it; give the path without it.')
  let file: HeldFile | undefined
  const openDatabase = async (): Promise<OpenDatabase> => {
    const held = await holdFile(path)
    try {
      const thread = await DatabaseThread.start({ path: held.path, synchronous, pragmas }, worker, onBatch)
      file = held
      const close = async () => {
        file = undefined
        await thread.close()
        await held.release()
      }
      return { call: thread.call, atTurnsEnd: thread.atTurnsEnd, close }
    } catch (error) {
      await held.release()
      throw error
    }
  }
  const openPath = (): string => {
    if (!file) throw notOpen(path)
    return file.path
  }
  return forOneGateway({
    ...databaseStorage(path, openDatabase, now),
    backup: async (copy) => backupSqlite(openPath(), copy),
    check: async () => doctorSqlite(openPath()),
  })
}
