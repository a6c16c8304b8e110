import { readFileSync, statSync } from 'node:fs'
import { delimiter, dirname, join, resolve } from 'node:path'
import { Value } from '@sinclair/typebox/value'
import { GatewayConfig } from '../../schemas/config.js'
import { shellWord } from '../lib/shell-word.js'
import { ConfigError, type ConfigProblem, nearestPosition, shortPath, type TextPosition } from './config-problem.js'
import { type JsonText, JsonTextError, parseJsonText } from './json-text.js'
import { isOpenToOthers, readingProblem, resolveConfig } from './resolve-config.js'
import { tokenProblems } from './tokens.js'
import { schemaProblems } from './validate-config.js'

/** What the command line says; it wins over the file. */
export interface ConfigFlags {
  host?: string
  port?: number
  logLevel?: LogLevel
}

export type LogLevel = NonNullable<NonNullable<GatewayConfig['log']>['level']>

/** The configuration with everything that a default is known for filled in. */
export type EffectiveConfig = GatewayConfig & {
  listen: { host: string; port: number }
  log: { level: LogLevel; pretty: boolean }
  basePath: string
  shutdownTimeoutMs: number
  storage: NonNullable<GatewayConfig['storage']>
}

const DATABASE = 'session-gateway.db'

export interface LoadedConfig {
  /** Absolute path. */
  file: string
  config: EffectiveConfig
  /** What works, but should not stay as it is. */
  warnings: ConfigProblem[]
  /** Names of the variables that hold the gateway's own secrets. */
  secretEnv: readonly string[]
  /** An error about this file that shows where in it each problem stands. */
  error(problems: readonly ConfigProblem[]): ConfigError
}

/**
 * Reads a config file and makes it usable: JSON, references, schema, flags, defaults. What needs more than the file (the hooks module,
 * directories, who may listen where) is checked by `prepareServer`.
 * @param path relative to the working directory
 * @throws ConfigError with every problem of the first of these steps that has one
 */
export function loadConfig(path: string, flags: ConfigFlags = {}, env: NodeJS.ProcessEnv = process.env): LoadedConfig {
  const file = resolve(path)
  const { value: raw, positions } = parse(file, readText(file))
  const configError = (problems: readonly ConfigProblem[]) => new ConfigError(file, problems, positions)

  const resolved = resolveConfig(GatewayConfig, raw, file, env)
  const known = new Set(resolved.problems.map((problem) => problem.path))
  const unfit = schemaProblems(GatewayConfig, resolved.value).filter((problem) => !known.has(problem.path))
  const problems = [...resolved.problems, ...unfit]
  if (problems.length > 0) throw configError(inFileOrder(problems, positions))

  const given = resolved.value as GatewayConfig
  const contradictions = tokenProblems(given.auth?.tokens ?? [])
  if (contradictions.length > 0) throw configError(contradictions)

  const warnings = [...resolved.warnings]
  if (resolved.holdsSecrets && isOpenToOthers(statSync(file).mode))
    warnings.push({
      path: '',
      message: `it holds secrets and can be read by every user; chmod 600 ${shellWord(shortPath(file))}`,
    })
  const config = applyFlags(withDefaults(given, env.STATE_DIRECTORY || dirname(file)), flags)
  return { file, config, warnings, secretEnv: resolved.secretVariables, error: configError }
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const next = code === 'ENOENT' ? '; `session-gateway init` writes a starting point' : ''
    throw new ConfigError(file, [{ path: '', message: `${readingProblem(error)}${next}` }])
  }
}

function parse(file: string, text: string): JsonText {
  try {
    return parseJsonText(text)
  } catch (error) {
    if (!(error instanceof JsonTextError)) throw error
    const message = `not valid JSON: ${error.message}`
    throw new ConfigError(file, [{ path: '', message }], new Map([['', error.position]]))
  }
}

/** As a person reads the file: from its top to its end; what has no place of its own comes first. */
function inFileOrder(problems: ConfigProblem[], positions: ReadonlyMap<string, TextPosition>): ConfigProblem[] {
  const rank = ({ path }: ConfigProblem) => {
    const position = nearestPosition(path, positions)
    return position ? position.line * 1e6 + position.column : 0
  }
  return [...problems].sort((a, b) => rank(a) - rank(b))
}

/** @param stateDirectory where the database goes; a service manager may name several, separated by colons */
function withDefaults(given: GatewayConfig, stateDirectory: string): EffectiveConfig {
  const config = Value.Default(GatewayConfig, structuredClone(given)) as EffectiveConfig
  config.log.pretty ??= process.stdout.isTTY === true
  config.storage ??= { sqlite: join(stateDirectory.split(delimiter)[0]!, DATABASE) }
  return config
}

function applyFlags(config: EffectiveConfig, flags: ConfigFlags): EffectiveConfig {
  if (flags.host !== undefined) config.listen.host = flags.host
  if (flags.port !== undefined) config.listen.port = flags.port
  if (flags.logLevel !== undefined) config.log.level = flags.logLevel
  return config
}
