import { createHash, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { rename, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

let folder: string | undefined

/**
 * Writes a file that an agent is started with, where only this account reads; it goes with the process. The same content is the same
 * file.
 * @returns its path
 */
export async function privateFile(name: string, content: string, mode = 0o600): Promise<string> {
  const digest = createHash('sha256').update(content).digest('hex').slice(0, 16)
  const path = join(await privateFolder(), `${digest}-${name}`)
  if (await stat(path).catch(() => undefined)) return path
  // There as a whole or not at all: an agent that starts meanwhile would not read what it is not to trust.
  const begun = `${path}-${randomUUID()}`
  await writeFile(begun, content, { mode, flag: 'wx' })
  await rename(begun, path)
  return path
}

/** A directory that nobody else writes to, for an agent that is to work nowhere: it has nothing that an agent takes for a project's. */
export async function privateFolder(): Promise<string> {
  // Whatever tidies up temporary folders may have taken it away.
  if (folder === undefined || !(await stat(folder).catch(() => undefined))) folder = makeFolder()
  return folder
}

function makeFolder(): string {
  const made = mkdtempSync(join(tmpdir(), 'session-gateway-'))
  process.once('exit', () => rmSync(made, { recursive: true, force: true }))
  return made
}
