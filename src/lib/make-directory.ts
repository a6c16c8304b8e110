import { mkdirSync, statSync } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { tried } from './tried.js'

/**
 * Makes a directory and those above it where they are missing, for this account alone. `mkdir` with `recursive` never ends in a place where
 * the kernel makes nothing, as /proc: it takes the refusal for a directory that is missing above.
 * @param path absolute
 */
export async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (await isDirectory(path)) return
    const above = dirname(path)
    if (code !== 'ENOENT' || above === path || (await isDirectory(above))) throw error
    await makeDirectory(above)
    await makeDirectory(path)
  }
}

const isDirectory = (path: string): Promise<boolean> =>
  stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  )

/** As `makeDirectory`, for whoever cannot wait. @param mode less what the umask takes */
export function makeDirectorySync(path: string, mode: number): void {
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (isDirectorySync(path)) return
    const above = dirname(path)
    if (code !== 'ENOENT' || above === path || isDirectorySync(above)) throw error
    makeDirectorySync(above, mode)
    makeDirectorySync(path, mode)
  }
}

const isDirectorySync = (path: string): boolean => tried(() => statSync(path))?.isDirectory() ?? false
