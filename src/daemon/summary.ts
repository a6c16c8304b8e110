import type { PreparedServer } from './daemon.js'
import { storageName } from './database.js'
import type { EffectiveConfig } from './load-config.js'

/** What a configuration amounts to, in a few lines for a person. */
export function summarize(config: EffectiveConfig, { hooks, authenticates }: PreparedServer): string[] {
  const { listen, basePath, auth, profiles, storage } = config
  const tokens = auth?.tokens.map(({ name }) => name).join(', ')
  const access = [...(tokens ? [`tokens ${tokens}`] : []), ...(hooks.authenticate ? ['the hook authenticate'] : [])]
  const declared = profiles?.map(({ name, engine = 'cli' }) => `${name} (${engine})`).join(', ')
  const exported = Object.keys(hooks).join(', ')
  return [
    `listens on  ${listen.host}:${listen.port}${basePath}`,
    `lets in     ${authenticates ? access.join(' and ') : 'everybody on this machine'}`,
    `profiles    ${profiles ? declared || 'none' : "the operator's own, when an agent has a config directory"}`,
    `storage     ${storageName(storage)}`,
    ...(exported ? [`hooks       ${exported}`] : []),
  ]
}
