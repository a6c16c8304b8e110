import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { tried } from '../../../lib/tried.js'

/** Without it the SDK is there all the same: npm says nothing of an optional package that it leaves out, or cannot fetch. */
export const NO_CLAUDE =
  'The claude agent needs the program of its SDK, an optional package that npm has left out. Install it anew: ' +
  'npm i --include=optional @anthropic-ai/claude-agent-sdk'

/**
 * The binary that comes with the SDK, one package per platform.
 * @param specifier of the SDK
 * @returns undefined when it is not installed
 */
export function claudeExecutable(specifier: string): string | undefined {
  const require = tried(() => createRequire(import.meta.resolve(specifier)))
  const places = ['', '-musl'].flatMap((variant) => {
    const name = `@anthropic-ai/claude-agent-sdk-${process.platform}-${process.arch}${variant}`
    const executable = process.platform === 'win32' ? 'claude.exe' : 'claude'
    return (require?.resolve.paths(name) ?? []).map((folder) => join(folder, name, executable))
  })
  return places.find((path) => existsSync(path))
}
