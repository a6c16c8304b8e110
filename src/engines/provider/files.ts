import type { SessionFileInfo } from '../../../schemas/sessions.js'
import { byText } from '../../lib/sorted-list.js'
import type { SessionFiles } from '../runner.js'

export interface ScratchLimits {
  /** Default 256. */
  maxFiles?: number | undefined
  /** Total over all files. Default 16 MiB. */
  maxBytes?: number | undefined
}

const MAX_PATH_BYTES = 512

/** Control characters, lone surrogates, and the marks that turn the reading direction of a name around. */
const REFUSED_CHARACTERS = /[\p{Cc}\p{Surrogate}\u202a-\u202e\u2066-\u2069]/u

/** A refusal whose message is written for the agent that caused it. */
export class ScratchError extends Error {
  override readonly name = 'ScratchError'
}

/**
 * The key of a path that an agent gave: relative, POSIX, NFC, without empty or `.` segments.
 * @throws {ScratchError} for what points outside, cannot be shown safely or is too long
 */
export function scratchPath(path: string): string {
  const refuse = (why: string) => new ScratchError(`The path ${JSON.stringify(path.slice(0, 100))} ${why}.`)
  if (REFUSED_CHARACTERS.test(path)) throw refuse('contains a character that file names here may not have')
  if (path.includes('\\')) throw refuse('contains a backslash; separate folders with /')
  if (path.startsWith('/')) throw refuse('is absolute; paths here are relative')
  const segments = path
    .normalize('NFC')
    .split('/')
    .filter((segment) => segment !== '' && segment !== '.')
  if (segments.includes('..')) throw refuse('leads outside with ..')
  if (segments.length === 0 || path.endsWith('/')) throw refuse('names no file')
  const key = segments.join('/')
  // As a member name it would spoil the snapshot's JSON.
  if (key === '__proto__') throw refuse('is a reserved name')
  if (Buffer.byteLength(key) > MAX_PATH_BYTES) throw refuse(`is longer than ${MAX_PATH_BYTES} bytes`)
  return key
}

/** A session's files. They live in memory and in the session's snapshot; no path of the machine is ever behind one. */
export class ScratchFiles implements SessionFiles {
  readonly #now: () => number
  readonly #maxFiles: number
  readonly #maxBytes: number
  readonly #files = new Map<string, { contents: Uint8Array; modifiedAt: number }>()
  #bytes = 0

  constructor(now: () => number, limits: ScratchLimits = {}) {
    this.#now = now
    this.#maxFiles = limits.maxFiles ?? 256
    this.#maxBytes = limits.maxBytes ?? 16 * 1024 * 1024
  }

  /** Sorted by path. */
  list(): SessionFileInfo[] {
    return [...this.#files]
      .map(([path, file]) => ({ path, bytes: file.contents.byteLength, modifiedAt: file.modifiedAt }))
      .sort((a, b) => byText(a.path, b.path))
  }

  /** @param path the exact key, as `list` shows it */
  read(path: string): Uint8Array | undefined {
    return this.#files.get(path)?.contents
  }

  /** Bytes that a file at this path may still take. */
  roomFor(path: string): number {
    return this.#maxBytes - this.#bytes + (this.read(path)?.byteLength ?? 0)
  }

  /**
   * Creates or replaces a file.
   * @param path as `scratchPath` returns it
   * @throws {ScratchError} when a quota is reached, or a folder and a file would share a name
   */
  write(path: string, contents: string | Uint8Array): SessionFileInfo {
    const bytes = typeof contents === 'string' ? Buffer.from(contents) : contents
    if (!this.#files.has(path)) {
      if (this.#files.size >= this.#maxFiles) throw new ScratchError(`There is room for ${this.#maxFiles} files only.`)
      for (const other of this.#files.keys()) {
        if (other.startsWith(`${path}/`)) throw new ScratchError(`${path} is a folder.`)
        if (path.startsWith(`${other}/`)) throw new ScratchError(`${other} is a file, not a folder.`)
      }
    }
    if (bytes.byteLength > this.roomFor(path)) {
      throw new ScratchError(`The files of a session may take ${this.#maxBytes} bytes together; this one does not fit.`)
    }
    this.#bytes += bytes.byteLength - (this.read(path)?.byteLength ?? 0)
    const modifiedAt = this.#now()
    this.#files.set(path, { contents: bytes, modifiedAt })
    return { path, bytes: bytes.byteLength, modifiedAt }
  }

  /** What a snapshot keeps: contents in base64, and when each was written. */
  save(): { files: Record<string, string>; modifiedAt: Record<string, number> } {
    const entries = [...this.#files]
    return {
      files: Object.fromEntries(entries.map(([path, file]) => [path, Buffer.from(file.contents).toString('base64')])),
      modifiedAt: Object.fromEntries(entries.map(([path, file]) => [path, file.modifiedAt])),
    }
  }

  /** Puts saved files back; what is there is kept even where a limit was lowered since. */
  restore(files: Record<string, string>, modifiedAt: Record<string, number>): void {
    for (const [path, base64] of Object.entries(files)) {
      const contents = Buffer.from(base64, 'base64')
      this.#bytes += contents.byteLength
      this.#files.set(path, { contents, modifiedAt: modifiedAt[path] ?? this.#now() })
    }
  }
}
