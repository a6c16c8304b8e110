import { type BigIntStats, closeSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { sizeOf } from './cut-off.js'
import type { Failure } from './failures.js'

/** No file system tells more coarsely than by two seconds when a directory was changed. */
const SETTLED_MS = 3_000

/** Undefined: there is nothing that can be looked at. */
function statsOf(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true })
  } catch {
    return undefined
  }
}

/** Which file is at a path. */
function identityOf(path: string): string | undefined {
  const stats = statsOf(path)
  return stats && `${stats.dev}:${stats.ino}`
}

function opened(path: string): number | undefined {
  try {
    return openSync(path, 'r')
  } catch {
    return undefined
  }
}

/**
 * Whether the files of an open database are still those at their paths: SQLite writes on into files that were moved or removed, and who
 * has lost the lock may have company. Made once the database is open.
 *
 * All of them lie in one directory, and are looked at one by one only when that has changed: on Linux a file that was looked at is given
 * its times anew by the next write, which the sync of the log would have to write down too, in a second flush of the disk.
 */
export class InPlace {
  readonly #path: string
  readonly #now: () => number
  readonly #files: ReadonlyMap<string, string | undefined>
  readonly #lock: string | undefined
  /** Kept open, as SQLite keeps the others: a file that is open lends its number to no other that is made once it is removed. */
  readonly #openLock: number | undefined
  /** Whoever took the lock has maybe written, also when it is gone again. */
  #lostLock = false
  /** The directory as it was at the last look at the files, when no later change of it can look the same. */
  #settled: string | undefined

  constructor(path: string, now: () => number = Date.now) {
    this.#path = path
    this.#now = now
    this.#files = new Map([path, `${path}-wal`, `${path}-shm`].map((file) => [file, identityOf(file)]))
    this.#openLock = opened(this.#lockPath)
    this.#lock = identityOf(this.#lockPath)
  }

  get #lockPath(): string {
    return `${this.#path}.lock`
  }

  /** @returns why nothing may be asked of the database now */
  problem(): Failure | undefined {
    const moved = this.#moved()
    if (moved !== undefined)
      return {
        code: 'STORAGE_MOVED',
        message: `${moved} was moved, removed or replaced while it was in use. Put it back, or start the gateway again.`,
      }
    if (sizeOf(this.#path) === 0)
      return {
        code: 'STORAGE_MOVED',
        message: `${this.#path} was emptied while it was in use. What it had is in the last backup: stop the gateway, restore that without the -wal and -shm files, start it again.`,
      }
    if (!this.#lostLock) return undefined
    return {
      code: 'STORAGE_FENCED',
      message: `${this.#lockPath} was removed while it was held, so that another process could take over ${this.#path}. This one writes nothing any more; end it, or start it again once the other has ended.`,
    }
  }

  /** Which file is not at its path any more. Looks for the lock, too. */
  #moved(): string | undefined {
    const stats = statsOf(dirname(this.#path))
    // both: on FAT and exFAT what is removed changes the second alone
    const directory = stats && `${stats.dev}:${stats.ino}:${stats.ctimeNs}:${stats.mtimeNs}`
    if (directory !== undefined && directory === this.#settled) return undefined
    for (const [file, identity] of this.#files) if (identityOf(file) !== identity) return file
    this.#lostLock ||= identityOf(this.#lockPath) !== this.#lock
    const isSettled = stats && [stats.ctimeMs, stats.mtimeMs].every((at) => this.#now() - Number(at) > SETTLED_MS)
    this.#settled = isSettled ? directory : undefined
    return undefined
  }

  close(): void {
    if (this.#openLock !== undefined) closeSync(this.#openLock)
  }
}
