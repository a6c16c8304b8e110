import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { delimiter, isAbsolute, join, resolve } from 'node:path'
import { startError } from '../../errors.js'
import { tried } from '../../lib/tried.js'
import { type AgentRow, DEFAULT_AGENT } from './agent-table.js'

export type Environment = Readonly<Record<string, string | undefined>>

/** The gateway's own name for the variable, whichever agent runs. */
export const CONFIG_DIR_ENV = 'AGENT_CONFIG_DIR'
const OAUTH_TOKEN_ENV = 'AGENT_OAUTH_TOKEN'

/** What every program needs to find itself at home. Credentials are not here: an agent's own are named by its row. */
const COMMON = [
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LANGUAGE', 'LC_*', 'TZ', 'TERM', 'TMPDIR'],
  ...['XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'XDG_CACHE_HOME', 'XDG_STATE_HOME', 'XDG_RUNTIME_DIR'],
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'all_proxy', 'no_proxy'],
  ...['SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS'],
]

/** The service manager's, by which a child could speak for the gateway or read its credentials: nobody may pass them on. */
const NEVER = [
  'NOTIFY_SOCKET',
  'WATCHDOG_*',
  'LISTEN_*',
  'CREDENTIALS_DIRECTORY',
  'INVOCATION_ID',
  'JOURNAL_STREAM',
  'SYSTEMD_EXEC_PID',
]

export interface SessionEnvironmentOptions {
  row: AgentRow
  /** The gateway's own environment. */
  gatewayEnv: Environment
  /** What `buildRunnerConfig` and the profile set; undefined takes a variable away. */
  sessionEnv: Environment | undefined
  /** Names of variables that hold the gateway's own secrets. The agent's own credentials are not among them, whoever else uses them. */
  secrets: readonly string[]
}

/**
 * The whole environment of an agent: the row's, the common variables and the agent's own of the gateway's, what the operator declared of the
 * agent, and on top what was set for this session. The neutral AGENT_CONFIG_DIR and AGENT_OAUTH_TOKEN become the agent's own.
 * @throws GatewayError when a token is given to an agent that takes none
 */
export function sessionEnvironment({
  row,
  gatewayEnv,
  sessionEnv,
  secrets,
}: SessionEnvironmentOptions): Record<string, string> {
  const isForbidden = matcher(NEVER)
  // a secret may have some of what is common in its text: the path of a certificate below $HOME, say
  const isMeant = matcher([...COMMON, ...row.credentials.apiKeyEnv, ...Object.keys(row.env)])
  const isSecret = matcher(secrets.filter((name) => !isMeant(name)))
  const env = unaskedEnvironment(row, gatewayEnv, isSecret)
  for (const [name, value] of Object.entries(sessionEnv ?? {})) {
    // A hook that spreads its own environment does not mean the flags of the gateway's Node, nor its secrets.
    const isOurs = (name === 'NODE_OPTIONS' || isSecret(name)) && value === gatewayEnv[name]
    if (!isOurs) env[name] = value
  }
  translateConfigDir(row, env)
  translateToken(row, env)
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined && !isForbidden(entry[0])),
  )
}

/** What an agent gets when nothing is set for its session; the neutral names are in it as they are. */
export function unaskedEnvironment(
  row: Pick<AgentRow, 'name' | 'env' | 'declaredEnv' | 'inheritedEnv' | 'oauthTokenEnv'>,
  gatewayEnv: Environment,
  isSecret: (name: string) => boolean = () => false,
): Record<string, string | undefined> {
  const inherits = matcher([...COMMON, ...row.inheritedEnv])
  const env: Record<string, string | undefined> = { ...row.env }
  for (const [name, value] of Object.entries(gatewayEnv)) if (inherits(name) && !isSecret(name)) env[name] = value
  if (row.name === DEFAULT_AGENT) copy(gatewayEnv, env, CONFIG_DIR_ENV, OAUTH_TOKEN_ENV)
  // the neutral name takes the place of the agent's own later
  if (row.oauthTokenEnv && row.declaredEnv?.[row.oauthTokenEnv] !== undefined) delete env[OAUTH_TOKEN_ENV]
  return { ...env, ...row.declaredEnv }
}

/** The directory that an agent uses in an environment that `sessionEnvironment` made; undefined when that is not known. */
export function configDirOf(row: AgentRow, env: Environment): string | undefined {
  return env[row.configDirEnv] || (env.HOME ? row.defaultConfigDir?.(env.HOME) : undefined)
}

/** Some agents would make the directory anew, and then run as nobody. */
export const configDirGone = ({ configDirEnv }: AgentRow): Error =>
  startError(
    `The config directory of the agent (configDir of the profile, or ${configDirEnv}) is not there. Create it, or mount it again.`,
  )

/** Names where an agent keeps what it keeps in such an environment. */
export const placeOf = ({ name, configDirEnv }: AgentRow, env: Environment): string =>
  JSON.stringify([name, env[configDirEnv], env.HOME])

function translateConfigDir(row: AgentRow, env: Record<string, string | undefined>): void {
  const directory = env[CONFIG_DIR_ENV]
  if (row.configDirEnv === CONFIG_DIR_ENV) return
  delete env[CONFIG_DIR_ENV]
  if (!directory) return
  // Setting the variable, even to its default, changes where some agents look for credentials.
  if (!env[row.configDirEnv] && env.HOME && samePlace(row.defaultConfigDir?.(env.HOME), directory)) return
  for (const name of [row.configDirEnv, ...(row.configDirEnvToo ?? [])]) env[name] = directory
}

function translateToken(row: AgentRow, env: Record<string, string | undefined>): void {
  const token = env[OAUTH_TOKEN_ENV]
  delete env[OAUTH_TOKEN_ENV]
  if (!token) return
  if (!row.oauthTokenEnv) throw startError(`The agent ${row.name} takes no ${OAUTH_TOKEN_ENV}.`)
  env[row.oauthTokenEnv] = token
}

/**
 * Finds an executable in PATH; one that is named by a path is not searched for. Never looks into the session's directory, whose
 * contents are anybody's.
 * @returns an absolute path, or undefined when there is none
 */
export function findExecutable(command: string, env: Environment): string | undefined {
  const places = command.includes('/') ? [resolve(command)] : inPath(command, env.PATH)
  const mayRun = (place: string) => {
    accessSync(place, constants.X_OK)
    return statSync(place).isFile()
  }
  return places.find((place) => tried(() => mayRun(place)))
}

const inPath = (command: string, path = '') =>
  path
    .split(delimiter)
    .filter((folder) => isAbsolute(folder))
    .map((folder) => join(folder, command))

function samePlace(first: string | undefined, second: string): boolean {
  if (first === undefined) return false
  return tried(() => realpathSync(first) === realpathSync(second)) ?? resolve(first) === resolve(second)
}

function copy(from: Environment, to: Record<string, string | undefined>, ...names: string[]): void {
  for (const name of names) if (from[name] !== undefined) to[name] = from[name]
}

/** Names match exactly; a `*` at either end stands for anything. */
function matcher(patterns: readonly string[]): (name: string) => boolean {
  const exact = new Set(patterns)
  const prefixes = patterns.filter((pattern) => pattern.endsWith('*')).map((pattern) => pattern.slice(0, -1))
  const suffixes = patterns.filter((pattern) => pattern.startsWith('*')).map((pattern) => pattern.slice(1))
  return (name) =>
    exact.has(name) ||
    prefixes.some((prefix) => name.startsWith(prefix)) ||
    suffixes.some((suffix) => name.endsWith(suffix))
}
