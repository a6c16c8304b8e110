import { open } from 'node:fs/promises'

/**
 * Has what was put in its place, or removed, on the disk: until then a power cut takes that back. Never rejects: it is done, and whoever
 * was told that it is not would have it all the same.
 */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r').catch(() => undefined)
  await handle?.sync().catch(() => {})
  await handle?.close().catch(() => {})
}
