import { realpathSync, statSync } from 'node:fs'
import { isAbsolute, resolve } from 'node:path'
import type { PathRoots } from '../lib/paths-within-roots.js'
import { tried } from '../lib/tried.js'

/** What a directory is compared by: its real path, or of one that is not there the path it would have. */
export const comparablePath = (path: string): string => tried(() => realpathSync.native(path)) ?? resolve(path)

/** Why a managed profile cannot run whose directory was swapped for a link. */
export const LEADS_ELSEWHERE = 'configDir leads elsewhere now.'

/** Why a path cannot be a config directory; undefined when it can. */
export function configDirProblem(path: string): string | undefined {
  if (!isAbsolute(path)) return `${JSON.stringify(path)} is not an absolute path.`
  if (path.includes('\0')) return 'the path holds a NUL character.'
  const found = tried(() => statSync(path))
  if (!found) return `${JSON.stringify(path)} does not exist or cannot be read.`
  if (!found.isDirectory()) return `${JSON.stringify(path)} is not a directory.`
  return undefined
}

/** Whether another account of this machine can write into the directory, or owns it: it could then change what sessions run as. */
export function isWritableByOthers(path: string): boolean {
  const found = tried(() => statSync(path))
  if (!found || process.getuid === undefined) return false
  return (found.mode & 0o022) !== 0 || (found.uid !== process.getuid() && found.uid !== 0)
}

/** Whether a directory lies in one of the roots or around it. */
export function overlaps(path: string, roots: PathRoots): boolean {
  const real = comparablePath(path)
  return roots.contains(real) || roots.leadTo(real)
}
