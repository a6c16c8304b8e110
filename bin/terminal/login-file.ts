import { existsSync, readFileSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { sync as writeFileAtomic } from 'write-file-atomic'
import { makeDirectorySync } from '../../src/lib/make-directory.js'
import { CommandFailure, EXIT } from './exit.js'

export interface Login {
  url: string
  token?: string
}

/** `$SESSION_GATEWAY_CONFIG`, else a file in the XDG config directory. */
export const loginFile = (): string =>
  process.env.SESSION_GATEWAY_CONFIG ||
  join(process.env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'session-gateway', 'client.json')

export function readLogin(): Login | undefined {
  const file = loginFile()
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new CommandFailure(`${file} cannot be read: ${(error as Error).message}`, EXIT.usage)
  }
  try {
    const { url, token } = JSON.parse(text)
    if (typeof url === 'string' && (token === undefined || typeof token === 'string')) return { url, token }
  } catch {
    // said below
  }
  throw new CommandFailure(
    `${file} is not what session-gateway login writes. Write it anew with session-gateway login <url>, or remove it with session-gateway logout.`,
    EXIT.usage,
  )
}

/** For the owner's eyes only. */
export function writeLogin(login: Login): string {
  const file = loginFile()
  makeDirectorySync(dirname(file), 0o700)
  writeFileAtomic(file, `${JSON.stringify(login, undefined, 2)}\n`, { mode: 0o600 })
  return file
}

/** @returns the file that is gone now; undefined when there was none */
export function removeLogin(): string | undefined {
  const file = loginFile()
  if (!existsSync(file)) return undefined
  rmSync(file)
  return file
}
