import { createHash } from 'node:crypto'
import { open, readdir, realpath, rename, rm, stat, unlink } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { Type } from '@sinclair/typebox'
import { strict } from '../../../schemas/common.js'
import { toError } from '../../errors.js'
import { argumentOf } from '../../lib/argument.js'
import { makeDirectory } from '../../lib/make-directory.js'
import { isOpenToAll, openToAllMessage } from '../../lib/open-to-all.js'
import { processStartedAt } from '../../lib/process-list.js'
import { type Checker, compileSchema } from '../../lib/validation.js'
import type { ParkedSessionRecord, SessionStore } from '../../sessions/kept/store.js'
import { ParkedRecord } from '../record/parked-record.js'
import { acquireProcessLock, type ProcessLock } from './process-lock.js'
import { syncDirectory } from './sync-directory.js'
import { unless } from './unless.js'

const VERSION = 1
/** Also what has another name than a park's: somebody has put it here, and would wait for it. */
const FILE_NAME = /\.json$/
/** What a write leaves behind whose process was killed. */
const DRAFT_NAME = /^[0-9a-f]{64}\.json\.\d+$/
const READS_AT_ONCE = 32
const READ_BYTES = 64 * 1024

const Contents = Type.Object({ version: Type.Literal(VERSION), record: ParkedRecord })
const contents: Checker<unknown> = compileSchema(Contents)

const optionsOf = argumentOf<{ dir: string }>(
  'createFileSessionStore({ dir })',
  Type.Object({ dir: Type.String({ minLength: 1 }) }, strict),
)

/**
 * Keeps each parked session in a JSON file of its own, named by a hash of its id, readable by this account alone and replaced whole.
 * From first use until `close` the process holds the directory; a second one is refused and told who has it. `list` opens it again.
 * @param options `dir` is made when it is missing
 * @throws SG_ERR_OPTION for options that are none
 */
export const createFileSessionStore = (options: { dir: string }): SessionStore =>
  new FileSessionStore(resolve(optionsOf(options).dir))

class FileSessionStore implements SessionStore {
  readonly #dir: string
  #held: Promise<ProcessLock> | undefined
  #closed = false

  constructor(dir: string) {
    this.#dir = dir
  }

  async save(record: ParkedSessionRecord): Promise<void> {
    await this.#hold()
    await replaceFile(this.#fileOf(record.id), JSON.stringify({ version: VERSION, record }))
  }

  async get(id: string): Promise<ParkedSessionRecord | undefined> {
    await this.#hold()
    return readRecord(this.#fileOf(id))
  }

  async list(onUnreadable: (error: Error) => void = () => {}): Promise<ParkedSessionRecord[]> {
    this.#closed = false
    await this.#hold()
    const files = (await readdir(this.#dir)).filter((name) => FILE_NAME.test(name)).map((name) => join(this.#dir, name))
    const records: ParkedSessionRecord[] = []
    for (let at = 0; at < files.length; at += READS_AT_ONCE) {
      const batch = files.slice(at, at + READS_AT_ONCE).map(async (file) => {
        try {
          const record = await readRecord(file)
          if (!record) return
          // a copy: nothing would ever remove it, and its session would wake once more
          if (this.#fileOf(record.id) !== file)
            throw new Error(`${file} is of session ${record.id}, whose file has another name. It was left in place.`)
          records.push(record)
        } catch (error) {
          onUnreadable(toError(error))
        }
      })
      await Promise.all(batch)
    }
    return records
  }

  async delete(id: string): Promise<void> {
    await this.#hold()
    await unlink(this.#fileOf(id)).catch(unless('ENOENT', undefined))
    await syncDirectory(this.#dir)
  }

  async close(): Promise<void> {
    this.#closed = true
    const held = this.#held
    this.#held = undefined
    const lock = await held?.catch(() => undefined)
    await lock?.release()
  }

  #fileOf(id: string): string {
    return join(this.#dir, `${createHash('sha256').update(id).digest('hex')}.json`)
  }

  /** Makes the directory and takes its lock, once, and looks whether that is still there: who has lost it may have company. */
  async #hold(): Promise<void> {
    if (this.#closed) throw new Error(`The session store in ${this.#dir} is closed.`)
    if (!this.#held) {
      const held = take(this.#dir)
      this.#held = held
      // what went wrong may be gone at the next try
      held.catch(() => {
        if (this.#held === held) this.#held = undefined
      })
    }
    const lock = await this.#held
    await lock.assertHeld()
  }
}

/** Makes the directory, takes its lock and clears up after a process that was killed. */
async function take(dir: string): Promise<ProcessLock> {
  await makeDirectory(dir)
  const { mode } = await stat(dir)
  if (isOpenToAll(mode)) throw new Error(openToAllMessage(dir))
  const lock = await acquireProcessLock(join(await realpath(dir), '.lock'))
  try {
    await clearUp(dir)
  } catch (error) {
    // whoever tries again takes it again
    await lock.release()
    throw error
  }
  return lock
}

async function clearUp(dir: string): Promise<void> {
  const startedAt = processStartedAt()
  for (const name of (await readdir(dir)).filter((name) => DRAFT_NAME.test(name))) {
    const draft = join(dir, name)
    // another store of this process may have put it in its place meanwhile
    const found = await stat(draft).catch(unless('ENOENT', undefined))
    if (found && found.mtimeMs < startedAt) await rm(draft, { force: true })
  }
}

/**
 * Puts a file in its place whole or not at all, on the disk before it resolves. A session's way back to life waits for this, so nothing
 * is awaited that need not be.
 */
async function replaceFile(file: string, text: string): Promise<void> {
  const draft = `${file}.${process.pid}${++drafts}`
  try {
    const handle = await open(draft, 'wx', 0o600)
    let closed: Promise<void> | undefined
    try {
      await handle.writeFile(text)
      await handle.datasync()
    } finally {
      // what is on the disk is there, whatever becomes of the handle
      closed = handle.close().catch(() => {})
    }
    await Promise.all([closed, rename(draft, file)])
  } catch (error) {
    await rm(draft, { force: true }).catch(() => {})
    throw error
  }
  await syncDirectory(dirname(file))
}

let drafts = 0

async function textOf(file: string): Promise<string> {
  const handle = await open(file, 'r')
  try {
    const parts: Buffer[] = []
    for (;;) {
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(READ_BYTES), 0, READ_BYTES)
      parts.push(buffer.subarray(0, bytesRead))
      // a file that is replaced whole ends where a read comes up short
      if (bytesRead < READ_BYTES) return Buffer.concat(parts).toString()
    }
  } finally {
    // what was read is read, whatever becomes of it
    handle.close().catch(() => {})
  }
}

/** @throws Error that names the file, when it holds no record of this version */
async function readRecord(file: string): Promise<ParkedSessionRecord | undefined> {
  const text = await textOf(file)
    .catch(unless('ENOENT', undefined))
    .catch((cause) => {
      throw new Error(`${file} cannot be read (${toError(cause).message}). It was left in place.`, { cause })
    })
  if (text === undefined) return undefined
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (cause) {
    throw new Error(`${file} is no JSON, so the session in it was not adopted. It was left in place.`, { cause })
  }
  const [problem] = contents.errors(parsed, 'contents')
  if (problem)
    throw new Error(
      `${file} is no parked session of this version (${problem.path}: ${problem.message}). It was left in place.`,
    )
  return (parsed as { record: ParkedSessionRecord }).record
}
