import { closeSync, openSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { GatewayConfig } from '../../schemas/config.js'
import { toError } from '../errors.js'
import { makeDirectorySync } from '../lib/make-directory.js'
import { PACKAGE_ROOT } from '../lib/package-root.js'
import { isWithin } from '../lib/paths-within-roots.js'
import { shellWord } from '../lib/shell-word.js'
import { tried } from '../lib/tried.js'
import { ConfigError, shortPath } from './config-problem.js'
import { readingProblem } from './resolve-config.js'
import { generateToken, hashToken } from './tokens.js'

const WORKSPACE = 'workspace'

export interface StartingPoint {
  file: string
  /** Folder that sessions may start in, beside the file. */
  workspace: string
  /** The one token that is let in. It stands nowhere but here; the file has its hash. */
  token: string
}

/**
 * Writes a config file to begin with: one token, one folder to work in, the demo profile, which needs no account, key or server. The file
 * is for its owner only (0600).
 * @param path relative to the working directory
 * @throws ConfigError when there is a file already, which is never overwritten, or it cannot be written
 */
export function writeStartingPoint(path: string): StartingPoint {
  const file = resolve(path)
  const folder = dirname(file)
  const token = generateToken()
  const config: GatewayConfig = {
    $schema: schemaReference(folder),
    listen: { host: '127.0.0.1', port: 8787 },
    auth: { tokens: [{ name: 'admin', sha256: hashToken(token) }] },
    allowedCwdRoots: [WORKSPACE],
    profiles: [
      {
        name: 'demo',
        engine: 'provider',
        provider: { id: 'demo' },
        description: 'Canned answers; needs no account, key or server.',
      },
    ],
  }
  const workspace = join(folder, WORKSPACE)
  makeFolder(folder)
  try {
    writeNew(file, `${JSON.stringify(config, undefined, 2)}\n`)
  } catch (error) {
    throw new ConfigError(file, [{ path: '', message: writingProblem(error, file) }])
  }
  try {
    // Sessions get a folder of their own, so that an agent cannot rewrite the configuration it runs under.
    makeFolder(workspace, 0o700)
  } catch (error) {
    // nobody would be told its token
    rmSync(file, { force: true })
    throw error
  }
  return { file, workspace, token }
}

function makeFolder(folder: string, mode = 0o777): void {
  try {
    makeDirectorySync(folder, mode)
  } catch (error) {
    throw new ConfigError(folder, [{ path: '', message: `no folder could be made: ${toError(error).message}` }])
  }
}

function writeNew(file: string, text: string): void {
  const descriptor = openSync(file, 'wx', 0o600)
  try {
    writeFileSync(descriptor, text)
  } catch (error) {
    rmSync(file, { force: true })
    throw error
  } finally {
    closeSync(descriptor)
  }
}

/**
 * Editors resolve `$schema` without asking Node. A package installed at or above the config file is named by a relative path, which goes
 * on working when the project moves or is checked out elsewhere; any other installation (global, npx) by its file URL.
 */
export function schemaReference(folder: string, packageRoot = PACKAGE_ROOT): string {
  const schema = join(packageRoot, 'dist', 'gateway.schema.json')
  const project = dirname(dirname(packageRoot))
  const installedForProject = packageRoot === join(project, 'node_modules', 'session-gateway')
  if (!installedForProject || !isWithin(project, folder)) return pathToFileURL(schema).href
  const path = relative(folder, schema).split(sep).join('/')
  return path.startsWith('.') ? path : `./${path}`
}

function writingProblem(error: unknown, file: string): string {
  if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return `could not be written: ${readingProblem(error)}`
  // a link may lead nowhere
  if (tried(() => statSync(file))?.isDirectory())
    return `this is a folder; name a file in it: session-gateway init ${shellWord(shortPath(join(file, 'gateway.json')))}`
  return 'there is a file already, and init overwrites nothing; name another one: session-gateway init FILE'
}
