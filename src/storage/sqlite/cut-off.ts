import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { type Database, loadDriver } from './driver.js'
import { Refusal } from './failures.js'
import { APPLICATION_ID } from './schema.js'

const HEADER_BYTES = 100
const PAGE_SIZE_AT = 16
const APPLICATION_ID_AT = 68
/** What reading alone is refused with while a journal lies beside the file that is to be taken back first. */
const SQLITE_READONLY = 8

/**
 * What of the gateway's own a kill can leave in a rollback journal is the change to the write-ahead log, which each new file begins with:
 * at the very first start it has a header and nothing else, at the first one with a backup everything that the backup had.
 */
export type CutOff = 'empty' | 'whole'

/** What was cut off, or nothing when the error says something else, or the file is not one of ours. */
export function cutOffBy(error: unknown, path: string): CutOff | undefined {
  const { errcode = 0 } = error as { errcode?: number }
  if ((errcode & 0xff) !== SQLITE_READONLY || !existsSync(`${path}-journal`)) return undefined
  const header = Buffer.alloc(HEADER_BYTES)
  const file = openSync(path, 'r')
  try {
    readSync(file, header, 0, HEADER_BYTES, 0)
  } finally {
    closeSync(file)
  }
  const application = header.readUInt32BE(APPLICATION_ID_AT)
  if (application === APPLICATION_ID) return 'whole'
  const said = header.readUInt16BE(PAGE_SIZE_AT)
  // 65536 does not fit and is told as 1; a table would need a second page
  const onePage = Math.max(said === 1 ? 65_536 : said, HEADER_BYTES)
  return application === 0 && statSync(path).size <= onePage ? 'empty' : undefined
}

export const cutOffMessage = (path: string): string =>
  `${path} was cut off in a change. The next start of the gateway takes that change back, and it can be looked through after that.`

/**
 * A file that somebody has emptied still has its write-ahead log, which SQLite removes when it opens the file: it takes it for a new one.
 * @throws Refusal
 */
export function assertNotEmptied(path: string): void {
  if (sizeOf(path) > 0 || sizeOf(`${path}-wal`) === 0) return
  throw new Refusal(
    `${path} is damaged: it is empty, and its write-ahead log is not: it was emptied, or removed without that log, or is a copy that was ` +
      'cut off. Restore a backup, or begin with nothing; either way remove the -wal and -shm files beside it too. It was left as it is.',
    'SQLITE_CORRUPT',
  )
}

/** Bytes; of what is not there, none. */
export const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

/** Lets SQLite take back what its journal says, as any program that opens the file to write would. */
export async function takeBack(path: string): Promise<void> {
  const OpenDatabase = await loadDriver()
  const db: Database = new OpenDatabase(path)
  try {
    db.prepare('SELECT count(*) FROM sqlite_master').get()
  } finally {
    db.close()
  }
}
