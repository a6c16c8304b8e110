import { isUtf8 } from 'node:buffer'
import { readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { TSchema } from '@sinclair/typebox'
import { shellWord } from '../lib/shell-word.js'
import { type ConfigProblem, memberPath, shortPath } from './config-problem.js'
import { isCommand, isPath, isPublic, isSecret, isSecretUrl, memberSchema, variantFor } from './config-schema.js'
import { passwordsOf } from './redact.js'

const MAX_SECRET_BYTES = 64 * 1024
const REFERENCE = /\$(\$?)\{([^}]*)\}/g
const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

export interface ResolvedConfig {
  /** As the schema describes it, though not yet checked against it. */
  value: unknown
  problems: ConfigProblem[]
  warnings: ConfigProblem[]
  /** Whether a secret stands in the file itself instead of the environment or a file of its own. */
  holdsSecrets: boolean
  /** Variables that secrets were taken from; those of agents are not the gateway's own. */
  secretVariables: string[]
}

/**
 * Replaces what a config file may refer to: `${NAME}` in any string by the environment variable (`$${NAME}` stays as `${NAME}`),
 * `{ "file": path }` in the place of a secret by the content of the file without its trailing line end, and paths by absolute ones.
 * Unknown members are kept, for validation to name them.
 * @param file absolute path of the config file
 */
export function resolveConfig(schema: TSchema, raw: unknown, file: string, env: NodeJS.ProcessEnv): ResolvedConfig {
  const folder = dirname(file)
  const result: ResolvedConfig = {
    value: undefined,
    problems: [],
    warnings: [],
    holdsSecrets: false,
    secretVariables: [],
  }
  result.value = resolveValue(schema, raw, '')
  return result

  function resolveValue(declared: TSchema | undefined, value: unknown, path: string): unknown {
    const known = declared && variantFor(declared, value)
    if (typeof value === 'string') return resolveString(known, value, path)
    if (Array.isArray(value))
      return value.map((item, index) => resolveValue(known && memberSchema(known), item, memberPath(path, index)))
    if (typeof value !== 'object' || value === null) return value
    if (known && isSecret(known)) return readSecret(value, path, isPublic(known))
    const members = Object.entries(value).map(([key, member]) => [
      key,
      resolveValue(known && memberSchema(known, key), member, memberPath(path, key)),
    ])
    return Object.fromEntries(members)
  }

  function resolveString(known: TSchema | undefined, text: string, path: string): string {
    const substituted = substitute(text, path)
    if (!known) return substituted
    if (isSecret(known) && !path.startsWith('agents')) result.secretVariables.push(...variablesIn(text))
    const isHere = isSecret(known) && !isPublic(known) && substituted === text
    if (isHere && (!isSecretUrl(known) || passwordsOf(text).length > 0)) result.holdsSecrets = true
    if (!isPath(known) || substituted === '' || (isCommand(known) && !substituted.includes('/'))) return substituted
    return absolute(substituted, path)
  }

  function substitute(text: string, path: string): string {
    return text.replace(REFERENCE, (reference, dollar: string, name: string) => {
      if (dollar) return reference.slice(1)
      const value = VARIABLE_NAME.test(name) ? env[name] : undefined
      if (value !== undefined) return value
      const message = VARIABLE_NAME.test(name)
        ? `the environment variable ${name} is not set`
        : `${reference} is no environment variable; write $${reference} to mean it literally`
      result.problems.push({ path, message })
      return reference
    })
  }

  function absolute(text: string, path: string): string {
    if (/^~(\/|$)/.test(text))
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the text is what belongs into the file
      result.problems.push({ path, message: '~ means nothing in a config file; write ${HOME}' })
    return resolve(folder, text)
  }

  function readSecret(value: object, path: string, forAll: boolean): unknown {
    const keys = Object.keys(value)
    const target = (value as { file?: unknown }).file
    if (typeof target !== 'string' || target === '' || keys.length !== 1) {
      result.problems.push({ path, message: 'expected a string or { "file": path }' })
      return undefined
    }
    const known = result.problems.length
    const secretFile = absolute(substitute(target, path), path)
    if (result.problems.length > known) return undefined
    try {
      return readSecretFile(secretFile, path, forAll)
    } catch (error) {
      result.problems.push({ path, message: `${shortPath(secretFile)}: ${readingProblem(error)}` })
      return undefined
    }
  }

  function readSecretFile(secretFile: string, path: string, forAll: boolean): string {
    const stats = statSync(secretFile)
    if (stats.size > MAX_SECRET_BYTES) throw new Error(`larger than ${MAX_SECRET_BYTES} bytes, so not a secret`)
    const secret = textOf(readFileSync(secretFile)).replace(/\r?\n$/, '')
    if (secret === '') throw new Error('the file is empty')
    if (!forAll && isOpenToOthers(stats.mode))
      result.warnings.push({
        path,
        message: `${shortPath(secretFile)} can be read by every user of this machine; chmod 600 ${shellWord(shortPath(secretFile))}`,
      })
    return secret
  }
}

/** Without the mark that some editors put before it; other bytes would stand for a secret that nobody else has. */
function textOf(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new Error('it is not text in UTF-8; write the secret anew as such, a binary key as base64')
  return new TextDecoder().decode(bytes)
}

const variablesIn = (text: string): string[] =>
  [...text.matchAll(REFERENCE)].flatMap(([, dollar, name]) => (dollar ? [] : name!))

/** Whether everybody may read it. A group may: service managers and container platforms hand out secrets that way. */
export const isOpenToOthers = (mode: number): boolean => process.platform !== 'win32' && (mode & 0o004) !== 0

/** A file system error in words that need no knowledge of error codes. */
export function readingProblem(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOENT') return 'there is no such file'
  if (code === 'EACCES' || code === 'EPERM') return 'this user has no permission'
  if (code === 'EISDIR') return 'this is a directory'
  return message
}
