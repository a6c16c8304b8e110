import { createHash } from 'node:crypto'
import { readFile, realpath, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { Type } from '@sinclair/typebox'
import writeFileAtomic from 'write-file-atomic'
import { StoredProfile } from '../../../schemas/profiles.js'
import { optionError, toError } from '../../errors.js'
import { kindOf } from '../../lib/argument.js'
import { parseJson } from '../../lib/json-depth.js'
import { KeyedLock } from '../../lib/keyed-lock.js'
import { makeDirectory } from '../../lib/make-directory.js'
import { isOpenToAll, openToAllMessage } from '../../lib/open-to-all.js'
import { type Checker, compileSchema } from '../../lib/validation.js'
import type { ProfileStore } from '../../profiles/store.js'
import { acquireProcessLock, type ProcessLock } from './process-lock.js'
import { syncDirectory } from './sync-directory.js'
import { unless } from './unless.js'

const Contents = Type.Object(
  { version: Type.Literal(1), profiles: Type.Array(StoredProfile) },
  { additionalProperties: false },
)
const contentsShape: Checker<{ version: 1; profiles: StoredProfile[] }> = compileSchema(Contents)

/**
 * Keeps managed profiles in one JSON file that only this account can read, replaced as a whole at every change. From first use until
 * `close` the process holds `<path>.lock`; a second one is refused and told the holder's pid, host and start.
 *
 * A file that cannot be read as profiles is never overwritten: every method rejects, and its bytes are also kept in
 * `<path>.corrupt-<hash>`, until somebody repairs or removes the file.
 * @param path of the file; its directory is made when it is missing, for this account alone
 * @throws SG_ERR_OPTION for what is no path
 */
export function createFileProfileStore(path: string): FileProfileStore {
  if (typeof path !== 'string' || path === '')
    throw optionError(
      'createFileProfileStore(path)',
      `takes the path of a file, not ${path === '' ? 'an empty one' : kindOf(path)}.`,
    )
  return new FileProfileStore(resolve(path))
}

/** One change of a file at a time, whichever store object of this process it comes through. */
const changes = new KeyedLock()

interface LockedFile {
  /** Where the file really is. */
  path: string
  lock: ProcessLock
}

export type { FileProfileStore }

class FileProfileStore implements ProfileStore {
  readonly #path: string
  #locked: Promise<LockedFile> | undefined

  constructor(path: string) {
    this.#path = path
  }

  list(): Promise<StoredProfile[]> {
    return this.#inTurn(readProfiles)
  }

  async save(profile: StoredProfile): Promise<void> {
    const copy = structuredClone(profile)
    await this.#inTurn(async (path) => {
      const profiles = await readProfiles(path)
      const at = profiles.findIndex(({ name }) => name === copy.name)
      if (at < 0) profiles.push(copy)
      else profiles[at] = copy
      await writeProfiles(path, profiles)
    })
  }

  async delete(name: string): Promise<void> {
    await this.#inTurn(async (path) => {
      const profiles = await readProfiles(path)
      const left = profiles.filter((profile) => profile.name !== name)
      if (left.length < profiles.length) await writeProfiles(path, left)
    })
  }

  async close(): Promise<void> {
    const locked = this.#locked
    this.#locked = undefined
    // A lock that could not be taken need not be given back, and whoever wanted it was told.
    const file = await locked?.catch(() => undefined)
    if (file) await changes.run(file.path, () => file.lock.release())
  }

  async #inTurn<T>(work: (path: string) => Promise<T>): Promise<T> {
    if (!this.#locked) {
      this.#locked = lockFile(this.#path)
      // The next use tries again.
      this.#locked.catch(() => {
        this.#locked = undefined
      })
    }
    const { path, lock } = await this.#locked
    return changes.run(path, async () => {
      // who has lost it may have company
      await lock.assertHeld()
      return work(path)
    })
  }
}

/** Locks the file itself, by whichever of its names it was given. */
async function lockFile(given: string): Promise<LockedFile> {
  const directory = dirname(given)
  await makeDirectory(directory)
  const path = await realpath(given).catch(async () => join(await realpath(directory), basename(given)))
  const { mode } = await stat(dirname(path))
  if (isOpenToAll(mode)) throw new Error(openToAllMessage(dirname(path)))
  return { path, lock: await acquireProcessLock(`${path}.lock`) }
}

async function readProfiles(path: string): Promise<StoredProfile[]> {
  const bytes = await readFile(path).catch(unless('ENOENT', undefined))
  if (!bytes) return []
  const found = profilesIn(bytes)
  if (typeof found !== 'string') return found
  const copy = await keepAside(path, bytes)
  throw new Error(`${unreadable(path, found)} Repair or remove it; its bytes are also kept in ${copy}.`)
}

/** Why a file would be refused as one of profiles, which it may become; nothing is written. */
export async function profileFileProblem(path: string): Promise<string | undefined> {
  try {
    const bytes = await readFile(path).catch(unless('ENOENT', undefined))
    const found = bytes ? profilesIn(bytes) : []
    return typeof found === 'string' ? `${unreadable(path, found)} Repair or remove it.` : undefined
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    return code === 'EISDIR' ? `${path} is a directory; name a file in it.` : message
  }
}

const unreadable = (path: string, problem: string): string => `${path} cannot be read as profiles: ${problem}`

/** @returns a sentence when they are none */
function profilesIn(bytes: Buffer): StoredProfile[] | string {
  try {
    const contents = parseJson(bytes)
    if (contentsShape.check(contents)) {
      const names = contents.profiles.map(({ name }) => name)
      const twice = names.find((name, at) => names.indexOf(name) !== at)
      return twice === undefined ? contents.profiles : `it holds two profiles named ${twice}.`
    }
    const [first] = contentsShape.errors(contents, 'contents')
    return first ? `${first.path}: ${first.message}` : 'it holds something else.'
  } catch (thrown) {
    return toError(thrown).message
  }
}

/** Named by their content, so that starting again and again keeps them once. */
async function keepAside(path: string, bytes: Buffer): Promise<string> {
  const copy = `${path}.corrupt-${createHash('sha256').update(bytes).digest('hex').slice(0, 12)}`
  await writeFile(copy, bytes, { mode: 0o600, flag: 'wx' }).catch(unless('EEXIST', undefined))
  return copy
}

async function writeProfiles(path: string, profiles: StoredProfile[]): Promise<void> {
  await writeFileAtomic(path, `${JSON.stringify({ version: 1, profiles }, undefined, 2)}\n`, { mode: 0o600 })
  await syncDirectory(dirname(path))
}
