/** The operation asks for what cannot be; it throws this before it has written anything. */
export class Refusal extends Error {
  readonly code: string

  constructor(message: string, code = 'STORAGE_REFUSED') {
    super(message)
    this.code = code
  }
}

/** An error as it travels between threads. */
export interface Failure {
  code: string
  message: string
}

/** Of a database of which nothing can be read. */
export const RESTORE = 'Restore a backup; remove the -wal and -shm files beside it too. It was left as it is.'

const REPAIR =
  'Look at it with `session-gateway doctor`; `doctor --salvage FILE` writes what can be read into a new one. To restore a backup, remove the -wal and -shm files beside it too. It was left as it is.'

/** In bytes: it has room for 512, and puts `-journal` behind it. */
const LONGEST_PATH = 504

interface Meaning {
  code: string
  /** What SQLite itself says. */
  words: string
  message: (path: string, advice: string) => string
}

/** What the primary result codes of SQLite mean to whoever runs the gateway. */
const MEANINGS: Record<number, Meaning> = {
  3: {
    code: 'SQLITE_PERM',
    words: 'access permission denied',
    message: (path) => `this account may not use ${path}`,
  },
  5: {
    code: 'SQLITE_BUSY',
    words: 'database is locked',
    message: (path) => `another program has locked ${path}`,
  },
  8: {
    code: 'SQLITE_READONLY',
    words: 'attempt to write a readonly database',
    message: (path) => `this account may not write to ${path}, or its directory`,
  },
  10: {
    code: 'SQLITE_IOERR',
    words: 'disk I/O error',
    message: (path) => `the disk failed while reading or writing ${path}`,
  },
  11: {
    code: 'SQLITE_CORRUPT',
    words: 'database disk image is malformed',
    message: (path, advice) => `${path} is damaged. ${advice}`,
  },
  13: {
    code: 'SQLITE_FULL',
    words: 'database or disk is full',
    message: (path) => `there is no space left for ${path}`,
  },
  14: {
    code: 'SQLITE_CANTOPEN',
    words: 'unable to open database file',
    message: (path) =>
      Buffer.byteLength(path) > LONGEST_PATH
        ? `${path} cannot be opened: SQLite takes no path of more than ${LONGEST_PATH} bytes`
        : `${path} cannot be opened; this account has to own it, or to be let read it and write beside it`,
  },
  26: {
    code: 'SQLITE_NOTADB',
    words: 'file is not a database',
    message: (path, advice) => `${path} is not a database. ${advice}`,
  },
}

/** The primary result code of what SQLite has thrown, where it is one that means something; rows of the package have its words alone. */
export function resultCodeOf(error: unknown): number | undefined {
  const { message, errcode } = error as Error & { errcode?: number }
  const known = Object.entries(MEANINGS).find(([code, { words }]) =>
    errcode === undefined ? words === message : Number(code) === (errcode & 0xff),
  )
  return known && Number(known[0])
}

/** Whether there was no room for what was to be written. */
export const isFull = (error: unknown): boolean => resultCodeOf(error) === 13

/** Whether another program wrote meanwhile. */
export const isBusy = (error: unknown): boolean => resultCodeOf(error) === 5

/** Whether this account was not let in, which says nothing of the file. */
export const isClosed = (error: unknown): boolean => [3, 14].includes(resultCodeOf(error) ?? 0)

/** @param advice on a database that is damaged */
export function failureOf(error: unknown, path: string, advice = REPAIR): Failure {
  if (error instanceof Refusal) return { code: error.code, message: error.message }
  const { message, errcode, code } = error as Error & { errcode?: number; code?: string }
  const result = resultCodeOf(error)
  if (result === undefined) return { code: code ?? 'STORAGE', message }
  const meaning = MEANINGS[result]!
  return {
    code: meaning.code,
    message: `${meaning.message(path, advice)} (${meaning.code} ${errcode ?? result}: ${message})`,
  }
}

export const damaged = (path: string, problem: string): Refusal =>
  new Refusal(`${path} is damaged: ${problem.replace(/\s+/g, ' ')}. ${REPAIR}`, 'SQLITE_CORRUPT')
