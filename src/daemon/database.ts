import { SCHEMA_NAME } from '../../schemas/config-storage.js'
import type { Place } from '../storage/migration/migrate.js'
import { placeOf } from '../storage/postgres/failures.js'
import { type ConfigProblem, shortPath } from './config-problem.js'
import type { EffectiveConfig, LoadedConfig } from './load-config.js'

/** The database that a configuration names. @throws ConfigError when it keeps everything in memory */
export function databaseOf({ config: { storage }, error }: LoadedConfig): Place {
  if (storage !== 'memory') return storage
  const problem: ConfigProblem = { path: 'storage', message: 'everything is kept in memory; there is no database' }
  throw error([problem])
}

/** What a storage is called, without what lets one in. */
export function storageName(storage: EffectiveConfig['storage']): string {
  if (storage === 'memory') return storage
  return 'sqlite' in storage ? storage.sqlite : databaseName(storage)
}

/** A database as a person in the working directory would write it. */
export const databaseName = (database: Place): string =>
  'sqlite' in database
    ? shortPath(database.sqlite)
    : `${placeOf(database.postgres.url)}, schema ${database.postgres.schema ?? 'session_gateway'}`

/** What the configuration takes, and PostgreSQL. */
export const isSchemaName = (name: string): boolean =>
  new RegExp(SCHEMA_NAME).test(name) && name.length <= 63 && !name.startsWith('pg_')

export const SCHEMA_RULE = 'small letters from a to z, digits and _, at most 63, and no digit or pg_ at the beginning'
