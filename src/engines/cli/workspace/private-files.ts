import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { stat, writeFile } from 'node:fs/promises'
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
  // Whatever tidies up temporary folders may have taken it away.
  if (folder === undefined || !(await stat(folder).catch(() => undefined))) folder = makeFolder()
  const path = join(folder, `${digest}-${name}`)
  await writeFile(path, content, { mode, flag: 'wx' }).catch((error) => {
    if (error.code !== 'EEXIST') throw error
  })
  return path
}

function makeFolder(): string {
  const made = mkdtempSync(join(tmpdir(), 'session-gateway-'))
  process.once('exit', () => rmSync(made, { recursive: true, force: true }))
  return made
}
