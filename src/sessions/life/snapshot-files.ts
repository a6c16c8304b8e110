import type { RunnerSnapshot, SessionFiles } from '../../engines/runner.js'
import { countOf } from '../session-facts.js'

/**
 * The scratch filesystem as a snapshot left it, for as long as no engine holds the live one.
 * @param at when it was taken: of a file that the engine did not list
 */
export function snapshotFiles(snapshot: RunnerSnapshot | undefined, at: number): SessionFiles | undefined {
  const contents = snapshot?.files
  if (!contents) return undefined
  const { filesModifiedAt = {} } = snapshot
  // an engine may have listed what is no time
  const modifiedAt = (path: string): number =>
    (Object.hasOwn(filesModifiedAt, path) ? countOf(filesModifiedAt[path]) : undefined) ?? at
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
