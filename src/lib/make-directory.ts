import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

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
