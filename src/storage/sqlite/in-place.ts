import { closeSync, openSync, statSync } from 'node:fs'
import { sizeOf } from './cut-off.js'
import type { Failure } from './failures.js'

/** Which file is at a path; undefined: none that can be looked at. */
function identityOf(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return undefined
  }
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
 */
export class InPlace {
  readonly #path: string
  readonly #files: ReadonlyMap<string, string | undefined>
  readonly #lock: string | undefined
  /** Kept open, as SQLite keeps the others: a file that is open lends its number to no other that is made once it is removed. */
  readonly #openLock: number | undefined
  /** Whoever took the lock has maybe written, also when it is gone again. */
  #lostLock = false

  constructor(path: string) {
    this.#path = path
    this.#files = new Map([path, `${path}-wal`, `${path}-shm`].map((file) => [file, identityOf(file)]))
    this.#openLock = opened(this.#lockPath)
    this.#lock = identityOf(this.#lockPath)
  }

  get #lockPath(): string {
    return `${this.#path}.lock`
  }

  /** @returns why nothing may be asked of the database now */
  problem(): Failure | undefined {
    for (const [file, identity] of this.#files)
      if (identityOf(file) !== identity)
        return {
          code: 'STORAGE_MOVED',
          message: `${file} was moved, removed or replaced while it was in use. Put it back, or start the gateway again.`,
        }
    if (sizeOf(this.#path) === 0)
      return {
        code: 'STORAGE_MOVED',
        message: `${this.#path} was emptied while it was in use. What it had is in the last backup: stop the gateway, restore that without the -wal and -shm files, start it again.`,
      }
    this.#lostLock ||= identityOf(this.#lockPath) !== this.#lock
    if (!this.#lostLock) return undefined
    return {
      code: 'STORAGE_FENCED',
      message: `${this.#lockPath} was removed while it was held, so that another process could take over ${this.#path}. This one writes nothing any more; end it, or start it again once the other has ended.`,
    }
  }

  close(): void {
    if (this.#openLock !== undefined) closeSync(this.#openLock)
  }
}
