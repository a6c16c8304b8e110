import { readFile, stat } from 'node:fs/promises'
import { StorageError } from '../storage.js'

/** A lock of a database that is open, as SQLite has it on the file itself: the process, and the number of the file. */
const OPEN_DATABASE = /^\d+: POSIX +ADVISORY +(?:READ|WRITE) +(\d+) +[\da-f]+:[\da-f]+:(\d+) 1073741826 1073742335$/gm

/**
 * Refuses a file that is in use under another name of its own, a hard link: what keeps two processes apart, the lock and the log beside it,
 * goes by the name. As far as the kernel tells, on Linux.
 * @throws StorageError
 */
export async function assertNoOtherName(path: string): Promise<void> {
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
