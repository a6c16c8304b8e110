import type { ConfigError } from './config-problem.js'
import type { LoadedConfig } from './load-config.js'

/** The database that a configuration names. @throws ConfigError when it keeps everything in memory */
export function databaseOf({ config, error }: LoadedConfig): string {
  if (config.storage !== 'memory') return config.storage.sqlite
  const problem: ConfigError = error([
    { path: 'storage', message: 'everything is kept in memory; there is no database' },
  ])
  throw problem
}
