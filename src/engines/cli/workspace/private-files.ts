import { createHash, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startError, toError } from '../../../errors.js'
import { ended } from '../../../lib/sentence.js'

let folder: string | undefined

/**
 * Writes a file that an agent is started with, where only this account reads; it goes with the process. The same content is the same
 * file.
 * @returns its path
 * @throws SG_ERR_ENGINE_START that says where there is no room
 */
export async function privateFile(name: string, content: string, mode = 0o600): Promise<string> {
  try {
    return await written(name, content, mode)
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? toError(error).message
    throw startError(
      `The gateway could not write a file for the agent to its temporary directory (TMPDIR): ${ended(why)}`,
      error,
    )
  }
}

async function written(name: string, content: string, mode: number): Promise<string> {
  const digest = createHash('sha256').update(content).digest('hex').slice(0, 16)
  const path = join(await privateFolder(), `${digest}-${name}`)
  if (await stat(path).catch(() => undefined)) return path
  // There as a whole or not at all: an agent that starts meanwhile would not read what it is not to trust.
  const begun = `${path}-${randomUUID()}`
  try {
    await writeFile(begun, content, { mode, flag: 'wx' })
    await rename(begun, path)
  } catch (error) {
    await rm(begun, { force: true }).catch(() => {})
    throw error
  }
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
