import type { ProfileInfo } from '../../schemas/profiles.js'
import type { AgentRow } from '../engines/cli/agent-table.js'
import { CONFIG_DIR_ENV, type Environment, unaskedEnvironment } from '../engines/cli/environment.js'
import type { SessionRunnerConfig } from '../engines/runner.js'
import { comparablePath } from './config-dir.js'

export interface PinOptions {
  /** The agent that runs the profile. */
  agentRow: Pick<AgentRow, 'name' | 'env' | 'inheritedEnv' | 'configDirEnv' | 'configDirEnvToo' | 'defaultConfigDir'>
  /** The gateway's own environment, under what the config's `env` sets or, by `undefined`, takes away. */
  env: Environment
  /** The user's home directory, where the session's environment names none. */
  home: string
}

/**
 * Makes a `cli` session run in its profile's config directory, whatever `buildRunnerConfig` put into `env` before: call it after that
 * hook. Nothing else of the environment is touched, credentials least of all.
 *
 * Where the agent would go there by itself nothing is set: some agents look for their credentials elsewhere once the variable is set,
 * be it to the very default. Directories are compared by real path.
 * @returns the same config when nothing needs to be pinned
 */
export function pinConfigDir(
  config: SessionRunnerConfig,
  profile: ProfileInfo,
  options: PinOptions,
): SessionRunnerConfig {
  const { configDir } = profile
  if (configDir === undefined || profile.engine !== 'cli') return config
  const { agentRow } = options
  // what of the gateway's does not reach the agent leads it nowhere
  const env: Environment = { ...unaskedEnvironment(agentRow, options.env), ...config.env }
  const target = comparablePath(configDir)
  const isTarget = (path: string | undefined) => Boolean(path) && comparablePath(path!) === target

  const own = env[agentRow.configDirEnv] || undefined
  const goesThere = own
    ? isTarget(own) && (agentRow.configDirEnvToo ?? []).every((name) => isTarget(env[name]))
    : isTarget(agentRow.defaultConfigDir?.(env.HOME || options.home))
  const pinned: Record<string, string> = {}
  if (!goesThere) for (const name of variables(agentRow)) pinned[name] = configDir
  // Left over from the operator or the hook, and naming another directory than the session's.
  else if (env[CONFIG_DIR_ENV] && !isTarget(env[CONFIG_DIR_ENV])) pinned[CONFIG_DIR_ENV] = configDir

  return Object.keys(pinned).length === 0 ? config : { ...config, env: { ...config.env, ...pinned } }
}

/** The directory in which sessions run that have no profile to say so: the operator's. */
export function operatorConfigDir({ agentRow, env, home }: PinOptions): string | undefined {
  return env[CONFIG_DIR_ENV] || env[agentRow.configDirEnv] || agentRow.defaultConfigDir?.(env.HOME || home)
}

const variables = (row: PinOptions['agentRow']) => [CONFIG_DIR_ENV, row.configDirEnv, ...(row.configDirEnvToo ?? [])]
