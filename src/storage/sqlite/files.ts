import { open, readFile, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { makeDirectory } from '../../lib/make-directory.js'
import { isOpenToAll, openToAllMessage } from '../../lib/open-to-all.js'
import { acquireProcessLock } from '../file/process-lock.js'
import { StorageError } from '../storage.js'

export interface HeldFile {
  /** Where the file really is. */
  path: string
  release(): Promise<void>
}

/** Databases of this process, by path: a second storage on one would run the same sessions again. */
const held = new Set<string>()

/**
 * Makes the file and its directory where they are missing, for this account alone, and takes its lock.
 * @throws LockHeldError, StorageError
 */
export async function holdFile(given: string): Promise<HeldFile> {
  const path = await prepare(resolve(given))
  if (held.has(path)) throw new StorageError('STORAGE_HELD', `${path} is in use by another storage of this process.`)
  held.add(path)
  try {
    const lock = await acquireProcessLock(`${path}.lock`)
    try {
      // before it is opened: whoever closes a file loses all locks that its process has on it
      await assertNoOtherName(path)
      // Made by SQLite, it could be read by every account.
      await (await open(path, 'a', 0o600)).close()
    } catch (error) {
      await lock.release()
      throw error
    }
    return {
      path,
      release: async () => {
        held.delete(path)
        await lock.release()
      },
    }
  } catch (error) {
    held.delete(path)
    throw unusable(path, error)
  }
}

/** A lock of a database that is open, as SQLite has it on the file itself: the process, and the number of the file. */
const OPEN_DATABASE = /^\d+: POSIX +ADVISORY +(?:READ|WRITE) +(\d+) +[\da-f]+:[\da-f]+:(\d+) 1073741826 1073742335$/gm

/**
 * Refuses a file that is in use under another name of its own, a hard link: what keeps two processes apart, the lock and the log beside it,
 * goes by the name. As far as the kernel tells, on Linux.
 * @throws StorageError
 */
async function assertNoOtherName(path: string): Promise<void> {
  const file = await stat(path, { bigint: true }).catch(() => undefined)
  if (file === undefined || file.nlink < 2n) return
  const locks = await readFile('/proc/locks', 'utf8').catch(() => '')
  const holder = [...locks.matchAll(OPEN_DATABASE)].find(([, , number]) => number === String(file.ino))
  if (!holder) return
  throw new StorageError(
    'STORAGE_HELD',
    `${path} is in use by process ${holder[1]} under another name: it has a hard link, and two that use it would destroy it. Stop that process first, or give this one a copy.`,
  )
}

async function prepare(given: string): Promise<string> {
  const directory = dirname(given)
  try {
    await makeDirectory(directory)
    const path = await realpath(given).catch(async () => join(await realpath(directory), basename(given)))
    const { mode } = await stat(dirname(path))
    if (!isOpenToAll(mode)) return path
  } catch (error) {
    throw unusable(given, error)
  }
  throw new StorageError('STORAGE_OPEN_TO_ALL', openToAllMessage(directory))
}

const DENIED: ReadonlySet<string> = new Set(['EACCES', 'EPERM', 'EROFS'])

function unusable(path: string, error: unknown): unknown {
  const { code, message, syscall } = error as NodeJS.ErrnoException
  if (!syscall) return error
  const problem = `${path} cannot be used as a database: ${message}`
  const isDenied = DENIED.has(code ?? '')
  const remedy = `Let this user write to it and to ${dirname(path)}, or put the database elsewhere: storage.sqlite.`
  return new StorageError(code ?? 'STORAGE', isDenied ? `${problem}. ${remedy}` : problem)
}
