import { constants } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'

const { O_RDONLY, O_NONBLOCK = 0 } = constants
const MAX_BYTES = 16 * 1024 * 1024

/**
 * Reads a text where others may have put something else: a pipe that nobody writes to would take a thread for ever, and a device all memory.
 * @returns undefined: there is nothing, or nothing that this account may read
 * @throws Error for what is no regular file, or has more than 16 MiB
 */
export async function readPlainFile(path: string): Promise<string | undefined> {
  // Asked before it is opened: opening alone has effects on some devices.
  const found = await stat(path).catch(() => undefined)
  if (!found) return undefined
  if (!found.isFile()) throw new Error(`${path} is no file.`)
  const file = await open(path, O_RDONLY | O_NONBLOCK).catch(() => undefined)
  if (!file) return undefined
  try {
    if (!(await file.stat()).isFile()) throw new Error(`${path} is no file.`)
    return await textOf(file, path)
  } finally {
    await file.close()
  }
}

async function textOf(file: FileHandle, path: string): Promise<string> {
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of file.createReadStream({ end: MAX_BYTES, autoClose: false }) as AsyncIterable<Buffer>) {
    length += piece.length
    pieces.push(piece)
  }
  if (length > MAX_BYTES) throw new Error(`${path} has more than ${MAX_BYTES} bytes.`)
  return Buffer.concat(pieces).toString()
}
