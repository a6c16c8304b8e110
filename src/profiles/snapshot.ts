import { constants, type Dirent, type Stats } from 'node:fs'
import { type FileHandle, lstat, open, opendir, realpath } from 'node:fs/promises'
import { join, sep } from 'node:path'
import type { ConfigSnapshot } from '../../schemas/profiles.js'
import type { AgentRow, NamedFiles, SnapshotSources } from '../engines/cli/agent-table.js'
import type { Clock } from '../lib/clock.js'
import { within } from '../lib/within.js'
import { settingsHighlights } from './settings-highlights.js'

const MAX_SETTINGS_BYTES = 256 * 1024
const MEMORY_HEAD_BYTES = 4096
const PREVIEW_CHARACTERS = 500
const MAX_NAMES = 200
const MAX_NAME_LENGTH = 128
const MAX_FOLDER_DEPTH = 4
/** Directory entries that one view looks at, all lists together. */
const MAX_ENTRIES = 5000
const DEADLINE_MS = 2000

const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0, O_DIRECTORY = 0 } = constants

/** What a profile without a readable config directory shows. */
export const emptySnapshot = (): ConfigSnapshot => ({ hasUserMemory: false, skills: [], agents: [], commands: [] })

/**
 * Reads config directories for viewing. The agent itself may have written there, so nothing in one is trusted: only regular files that
 * lie inside are opened, links are not followed, sizes and counts are bounded, and an answer is given after two seconds with whatever
 * was read by then.
 */
export class ConfigSnapshots {
  readonly #clock: Clock
  /** One reading per directory at a time: a mount that hangs must not take a thread for every request. */
  readonly #readings = new Map<string, { snapshot: ConfigSnapshot; done: Promise<void> }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** @param row the agent that the directory belongs to; never rejects, what cannot be read is left out */
  async read(configDir: string, row: Pick<AgentRow, 'name' | 'snapshot'>): Promise<ConfigSnapshot> {
    const { snapshot, done } = this.#reading(configDir, row)
    await within(DEADLINE_MS, done, { clock: this.#clock })
    return structuredClone(snapshot)
  }

  #reading(configDir: string, row: Pick<AgentRow, 'name' | 'snapshot'>) {
    const key = `${row.name}\0${configDir}`
    const running = this.#readings.get(key)
    if (running) return running
    const snapshot = emptySnapshot()
    const done = new Reader(configDir, snapshot)
      .read(row.snapshot)
      .catch(() => {})
      .finally(() => this.#readings.delete(key))
    const reading = { snapshot, done }
    this.#readings.set(key, reading)
    return reading
  }
}

/** One reading of one directory into one snapshot, step by step, so that it holds one thread at most. */
class Reader {
  #root = ''
  #entriesLeft = MAX_ENTRIES

  constructor(
    private readonly configDir: string,
    private readonly into: ConfigSnapshot,
  ) {}

  async read(sources: SnapshotSources): Promise<void> {
    this.#root = await realpath(this.configDir)
    await this.#settings(sources)
    await this.#memory(sources)
    for (const directory of sources.skills ?? []) await this.#skills(directory)
    for (const files of sources.agents ?? []) await this.#names(files, this.into.agents)
    for (const files of sources.commands ?? []) await this.#names(files, this.into.commands)
  }

  async #settings({ settings: source }: SnapshotSources): Promise<void> {
    if (!source) return
    await this.#file(source.path, async (handle, { size }) => {
      if (size > MAX_SETTINGS_BYTES) return
      const found = settingsHighlights(await readHead(handle, MAX_SETTINGS_BYTES), source)
      if (found) this.into.settings = found
    })
  }

  async #memory({ memory }: SnapshotSources): Promise<void> {
    if (memory === undefined) return
    await this.#file(memory, async (handle, { size }) => {
      this.into.hasUserMemory = true
      this.into.memory = { bytes: size, preview: preview(await readHead(handle, MEMORY_HEAD_BYTES)) }
    })
  }

  async #skills(directory: string): Promise<void> {
    await this.#directory(join(this.#root, directory), async (entry, place) => {
      if (!entry.isDirectory() || !isShown(entry.name)) return
      const main = await lstat(join(place, entry.name, 'SKILL.md')).catch(() => undefined)
      if (main?.isFile()) insert(this.into.skills, entry.name)
    })
  }

  async #names({ directory, extension }: NamedFiles, into: string[]): Promise<void> {
    const walk = async (path: string, prefix: string, depth: number): Promise<void> =>
      this.#directory(path, async (entry, place) => {
        if (!isShown(entry.name)) return
        if (entry.isDirectory() && depth < MAX_FOLDER_DEPTH)
          await walk(join(place, entry.name), `${prefix}${entry.name}:`, depth + 1)
        else if (entry.isFile() && entry.name.endsWith(extension) && entry.name.length > extension.length)
          insert(into, prefix + entry.name.slice(0, -extension.length))
      })
    await walk(join(this.#root, directory), '', 1)
  }

  async #file(path: string, use: (handle: FileHandle, stats: Stats) => Promise<void>): Promise<void> {
    const place = join(this.#root, path)
    // Asked before it is opened: opening alone has effects on some devices.
    if (!(await lstat(place).catch(() => undefined))?.isFile()) return
    await this.#open(place, O_RDONLY, async (handle) => {
      const stats = await handle.stat()
      if (stats.isFile()) await use(handle, stats)
    })
  }

  async #directory(path: string, use: (entry: Dirent, place: string) => Promise<void>): Promise<void> {
    await this.#open(path, O_RDONLY | O_DIRECTORY, async (_handle, place) => {
      for await (const entry of await opendir(place)) {
        if (this.#entriesLeft-- <= 0) return
        await use(entry, place)
      }
    })
  }

  /**
   * Opens what lies at a path, unless that is a link or lies outside by way of one.
   * @param use gets a place that stays what was checked, whatever is put at the path meanwhile
   */
  async #open(path: string, flags: number, use: (handle: FileHandle, place: string) => Promise<void>): Promise<void> {
    const handle = await open(path, flags | O_NOFOLLOW | O_NONBLOCK).catch(() => undefined)
    if (!handle) return
    try {
      const place = process.platform === 'linux' ? `/proc/self/fd/${handle.fd}` : path
      const real = await realpath(place)
      if (real.startsWith(this.#root.endsWith(sep) ? this.#root : this.#root + sep)) await use(handle, place)
    } catch {
      // Unreadable or gone meanwhile: left out, as what is not there.
    } finally {
      await handle.close().catch(() => {})
    }
  }
}

async function readHead(handle: FileHandle, maxBytes: number): Promise<string> {
  const buffer = Buffer.alloc(maxBytes)
  let length = 0
  while (length < maxBytes) {
    const { bytesRead } = await handle.read(buffer, length, maxBytes - length, length)
    if (bytesRead === 0) break
    length += bytesRead
  }
  // As a stream: a character that the limit cut in two is left out.
  return new TextDecoder().decode(buffer.subarray(0, length), { stream: true })
}

const preview = (text: string): string =>
  [...text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '')].slice(0, PREVIEW_CHARACTERS).join('')

/** Hidden entries, and names that are no text, are not shown. */
const isShown = (name: string): boolean =>
  name.length <= MAX_NAME_LENGTH && !name.startsWith('.') && !/[\u0000-\u001f\u007f-\u009f\ufffd]/.test(name)

/** Keeps a list sorted, without doubles and bounded. */
function insert(names: string[], name: string): void {
  if (names.length >= MAX_NAMES) return
  const at = names.findIndex((other) => other >= name)
  if (at < 0) names.push(name)
  else if (names[at] !== name) names.splice(at, 0, name)
}
