import type { RunnerSnapshot, SessionFiles } from '../../engines/runner.js'
import { tried } from '../../lib/tried.js'

/**
 * The scratch filesystem as a snapshot left it, for as long as no engine holds the live one.
 * @param at when it was taken: of a file that the engine did not list
 */
export function snapshotFiles(snapshot: RunnerSnapshot | undefined, at: number): SessionFiles | undefined {
  const contents = snapshot?.files
  if (!contents) return undefined
  const { filesModifiedAt = {} } = snapshot
  // an engine may have listed what is no time
  const modifiedAt = (path: string): number => {
    const time = Object.hasOwn(filesModifiedAt, path) ? filesModifiedAt[path] : undefined
    return Number.isFinite(time) ? time! : at
  }
  const bytesOf = (path: string): Uint8Array | undefined => {
    const base64 = Object.hasOwn(contents, path) ? contents[path] : undefined
    return base64 === undefined ? undefined : Buffer.from(base64, 'base64')
  }
  return {
    list: () =>
      Object.keys(contents).map((path) => ({
        path,
        bytes: bytesOf(path)!.byteLength,
        modifiedAt: modifiedAt(path),
      })),
    read: bytesOf,
  }
}

/** A file that was handed over in a turn whose files no snapshot has yet: whoever was told of it finds it after a crash, too. */
export interface DeliveredFile {
  path: string
  /** In base64. */
  contents: string
  modifiedAt: number
}

type SnapshotFiles = Pick<RunnerSnapshot, 'files' | 'filesModifiedAt'>

/** So much of them is kept, in bytes: with each change of the session they are written again. What is larger ends with its process. */
const MOST_BYTES = 256 * 1024

const sizeOf = ({ contents }: DeliveredFile): number => Buffer.byteLength(contents, 'base64')

/** With one more, as its engine has it by now; the oldest go when they are too large together. */
export function withDelivered(
  delivered: readonly DeliveredFile[] = [],
  path: string,
  files: SessionFiles | undefined,
): readonly DeliveredFile[] | undefined {
  const others = delivered.filter((file) => file.path !== path)
  const contents = tried(() => files?.read(path))
  const modifiedAt = Number(tried(() => files?.list().find((file) => file.path === path)?.modifiedAt))
  const isKept = contents && contents.byteLength <= MOST_BYTES && Number.isFinite(modifiedAt)
  const kept = isKept ? [...others, { path, contents: Buffer.from(contents).toString('base64'), modifiedAt }] : others
  while (kept.reduce((bytes, file) => bytes + sizeOf(file), 0) > MOST_BYTES) kept.shift()
  return kept.length > 0 ? kept : undefined
}

/** Without those that a snapshot has. */
export function notIn(
  { files = {}, filesModifiedAt = {} }: SnapshotFiles,
  delivered: readonly DeliveredFile[] | undefined,
): readonly DeliveredFile[] | undefined {
  const isIn = ({ path, modifiedAt }: DeliveredFile) =>
    Object.hasOwn(files, path) && !(Number(filesModifiedAt[path]) < modifiedAt)
  const left = delivered?.filter((file) => !isIn(file))
  return left?.length ? left : undefined
}

/** A snapshot that has them, too: the next engine goes on with what people were given. */
export function snapshotWith<S extends SnapshotFiles>(snapshot: S, delivered: readonly DeliveredFile[] | undefined): S {
  const missing = notIn(snapshot, delivered)
  if (!missing) return snapshot
  const contents = missing.map((file) => [file.path, file.contents])
  const times = missing.map((file) => [file.path, file.modifiedAt])
  return {
    ...snapshot,
    files: { ...snapshot.files, ...Object.fromEntries(contents) },
    filesModifiedAt: { ...snapshot.filesModifiedAt, ...Object.fromEntries(times) },
  }
}

/** What an engine, or its snapshot, has, and of what was delivered what is newer. */
export function filesWith(
  files: SessionFiles | undefined,
  delivered: readonly DeliveredFile[] | undefined,
): SessionFiles | undefined {
  if (!delivered) return files
  const known = () => new Map(files?.list().map((file) => [file.path, file]))
  const newer = () => {
    const older = known()
    return delivered.filter(({ path, modifiedAt }) => !(Number(older.get(path)?.modifiedAt) >= modifiedAt))
  }
  return {
    list: () => {
      const listed = known()
      for (const file of newer())
        listed.set(file.path, { path: file.path, bytes: sizeOf(file), modifiedAt: file.modifiedAt })
      return [...listed.values()]
    },
    read: (path) => {
      const file = newer().find((one) => one.path === path)
      return file ? Buffer.from(file.contents, 'base64') : files?.read(path)
    },
  }
}
