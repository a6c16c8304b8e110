import { constants, realpath, realpathSync, statSync } from 'node:fs'
import { type FileHandle, lstat, open, readlink } from 'node:fs/promises'
import { dirname, isAbsolute, join, parse, relative, resolve, sep } from 'node:path'
import { optionError, toError } from '../errors.js'
import { ended } from './sentence.js'

/** The longest path, in bytes, that is looked at. */
const MAX_BYTES = 4096
/** How many symbolic links the kernel follows before it calls the path a loop. */
const MAX_LINKS = 40
/** What decoding leaves of bytes that are no UTF-8: such a name may stand for another file than the one that was checked. */
const UNDECODABLE = '\ufffd'

/**
 * Why a directory is refused. `outside` says nothing about what exists there; the other three are about paths that are inside, or
 * no paths at all.
 */
type PathRefusal = 'invalid' | 'outside' | 'missing' | 'not-a-directory'
export type Refused = { ok: false; reason: PathRefusal }
export type PathResult = { ok: true; path: string } | Refused

/** A directory that is held open: what is started in `path` starts in it, whatever its name leads to by then. */
export interface HeldDirectory {
  ok: true
  /** `/proc/self/fd/N` on Linux, to be given to a child as its working directory; elsewhere the real path. */
  path: string
  /** Call it when the child has been spawned. */
  close(): Promise<void>
}

const refuse = (reason: PathRefusal): Refused => ({ ok: false, reason })

/** Directories that paths are held to, as real paths; made by `resolveRoots`. */
export class PathRoots {
  readonly #roots: readonly string[]

  constructor(realPaths: readonly string[]) {
    this.#roots = realPaths
  }

  /** The roots themselves. */
  get paths(): readonly string[] {
    return this.#roots
  }

  /** Whether a real path is a root or lies under one. */
  contains(path: string): boolean {
    return this.#roots.some((root) => isWithin(root, path))
  }

  /** Whether a real path is above a root, and so on the way to it. */
  leadTo(path: string): boolean {
    return this.#roots.some((root) => isWithin(path, root))
  }
}

/** Whether a path is a folder, or lies in it, by their names alone. */
export function isWithin(folder: string, path: string): boolean {
  const way = relative(folder, path)
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}

/**
 * Resolves the roots, once, where they are configured.
 * @param roots absolute paths of existing directories; none of them means that nothing is inside
 * @throws Error that names the root that is not one
 */
export function resolveRoots(roots: readonly string[]): PathRoots {
  return new PathRoots(roots.map(resolveRoot))
}

/** Of an option; undefined: it is not given. @throws SG_ERR_OPTION that names the root that is not one */
export function rootsOption(option: string, roots: readonly string[] | undefined): PathRoots | undefined {
  try {
    return roots && resolveRoots(roots)
  } catch (error) {
    throw optionError(option, ended(toError(error).message))
  }
}

function resolveRoot(root: string): string {
  const refusal = (problem: string, cause?: unknown) =>
    new Error(`the root ${JSON.stringify(root)} ${problem}`, { cause })
  if (!isWellFormedPath(root)) throw refusal('is not an absolute path')
  let path: string
  try {
    path = realpathSync.native(root)
  } catch (cause) {
    throw refusal('does not exist or cannot be read', cause)
  }
  if (path.includes(UNDECODABLE)) throw refusal('has a name that is not UTF-8')
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw refusal('is not a directory')
  return path
}

function isWellFormedPath(path: unknown): path is string {
  return typeof path === 'string' && isAbsolute(path) && !path.includes('\0') && Buffer.byteLength(path) <= MAX_BYTES
}

/**
 * Resolves `..` and symbolic links as the kernel does and holds the result to the roots. Never throws.
 * @param cwd what a caller sent
 * @param roots undefined: no restriction
 * @returns the real path of a directory, or why there is none
 */
export async function resolveWithinRoots(cwd: unknown, roots: PathRoots | undefined): Promise<PathResult> {
  if (!isWellFormedPath(cwd)) return refuse('invalid')
  const path = await realDirectory(cwd)
  return path === undefined ? walk(cwd, roots) : accept(path, roots)
}

/**
 * The cheap way, one call into the thread pool. Not the synchronous call, which costs a tenth of the CPU: on a network mount that
 * is gone it would stop the whole process, and any caller can name such a path. The appended `.` refuses what is no directory.
 * Who asks for the same path at the same time shares the answer: one dead mount holds one thread, and a burst costs one call.
 */
function realDirectory(path: string): Promise<string | undefined> {
  const asked = asking.get(path)
  if (asked) return asked
  const asks = new Promise<string | undefined>((done) => {
    realpath.native(`${path}${sep}.`, (error, found) => {
      asking.delete(path)
      done(error ? undefined : found)
    })
  })
  asking.set(path, asks)
  return asks
}

/** By path, while the kernel has not answered. */
const asking = new Map<string, Promise<string | undefined>>()

function accept(path: string, roots: PathRoots | undefined): PathResult {
  if (roots && !roots.contains(path)) return refuse('outside')
  return path.includes(UNDECODABLE) ? refuse('missing') : { ok: true, path }
}

/**
 * Follows a path that did not resolve, one component at a time, to learn where it stops: only the place tells whether its absence
 * may be told.
 */
async function walk(path: string, roots: PathRoots | undefined): Promise<PathResult> {
  const trail = new Trail(parse(path).root, roots)
  const names = split(path)
  for (let links = 0; names.length > 0; ) {
    const name = names.pop()!
    if (name === '' || name === '.') continue
    if (name === '..') {
      trail.enter(dirname(trail.at))
      continue
    }
    const place = join(trail.at, name)
    const entry = await lstat(place).catch(() => undefined)
    if (!entry) return trail.stop('missing', [...names, name])
    if (entry.isDirectory()) {
      trail.enter(place)
    } else if (!entry.isSymbolicLink()) {
      return trail.stop('not-a-directory', [...names, name])
    } else {
      const target = await readlink(place).catch(() => undefined)
      if (target === undefined || ++links > MAX_LINKS) return trail.stop('missing', [...names, name])
      if (isAbsolute(target)) trail.enter(parse(target).root)
      names.push(...split(target))
    }
  }
  return accept(trail.at, roots)
}

/** The components of a path, the next one last. */
const split = (path: string): string[] => path.slice(parse(path).root.length).split(sep).reverse()

/** Where a walk has come to, and whether it was inside the roots and left them. */
class Trail {
  #arrived = false
  #left = false

  constructor(
    public at: string,
    private readonly roots: PathRoots | undefined,
  ) {
    this.enter(at)
  }

  enter(directory: string): void {
    this.at = directory
    if (!this.roots || this.roots.contains(directory)) this.#arrived = true
    else if (this.#arrived && !this.roots.leadTo(directory)) this.#left = true
  }

  /** Ends the walk. `names`, the next one last, are what is left of the path; nothing but their text says where they lead. */
  stop(reason: PathRefusal, names: string[]): PathResult {
    const { roots } = this
    if (!roots) return refuse(reason)
    let place = this.at
    for (const name of names.reverse()) {
      place = resolve(place, name)
      if (!roots.contains(place)) return refuse('outside')
    }
    return refuse(this.#left ? 'outside' : reason)
  }
}

/** How opening fails when the tree is not, or no longer, as it was resolved. */
const CHANGED = new Set<string | undefined>(['ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES', 'ENAMETOOLONG'])

/**
 * Opens a directory that was resolved before, and checks where it lies once nobody can exchange it any more.
 * @param path what `resolveWithinRoots` returned, perhaps long ago
 * @throws Error of the system when it has no file descriptor left, or no /proc
 */
export async function openDirectoryWithinRoots(
  path: string,
  roots: PathRoots | undefined,
): Promise<HeldDirectory | Refused> {
  if (process.platform !== 'linux') {
    const again = await resolveWithinRoots(path, roots)
    return again.ok ? { ...again, close: async () => {} } : again
  }
  if (!isWellFormedPath(path)) return refuse('invalid')
  let handle: FileHandle
  try {
    handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  } catch (error) {
    if (!CHANGED.has((error as NodeJS.ErrnoException).code)) throw error
    // The error itself would tell about places outside, when a parent has become a link to them.
    const again = await resolveWithinRoots(path, roots)
    return again.ok ? refuse('missing') : again
  }
  const held = { ok: true as const, path: `/proc/self/fd/${handle.fd}`, close: () => handle.close() }
  const place = await readlink(held.path).catch(async (error) => {
    await handle.close()
    throw error
  })
  // A place that this process cannot name, in another mount namespace, is given as no absolute path.
  const accepted = isAbsolute(place) ? accept(place, roots) : refuse('outside')
  if (accepted.ok) return held
  await handle.close()
  return accepted
}
