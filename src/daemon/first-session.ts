import { accessSync, constants, existsSync, lstatSync, mkdtempSync, rmdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { ProfileOptions } from '../../schemas/profiles.js'
import { agentTable, assertInstalled, DEFAULT_AGENT } from '../engines/cli/index.js'
import { providerProblem } from '../engines/provider/index.js'
import { modelList, openProvider } from '../engines/provider/models.js'
import { toError } from '../errors.js'
import { isOpenToAll, openToAllMessage } from '../lib/open-to-all.js'
import { tried } from '../lib/tried.js'
import { originProblem } from '../lib/web-names.js'
import { profileFileProblem } from '../storage/file/profile-store.js'
import { checkPostgres } from '../storage/postgres/maintenance.js'
import { checkSqlite } from '../storage/sqlite/maintenance.js'
import { type ConfigProblem, memberPath } from './config-problem.js'
import type { Hooks } from './hooks.js'
import { addressProblems } from './listen-rules.js'
import type { EffectiveConfig, LoadedConfig } from './load-config.js'

/**
 * What would keep the stores from being opened and the first session of each profile from starting, found without doing either. The daemon
 * itself starts in spite of a session that cannot: the agent may be installed, or the key set, while it runs.
 */
export async function firstSessionProblems(
  { config, secretEnv }: LoadedConfig,
  hooks: Hooks,
  env: NodeJS.ProcessEnv = process.env,
): Promise<ConfigProblem[]> {
  const { profiles = [], profileStore } = config
  const world: World = { config, hooks, env, secretEnv }
  const found = profiles.map((profile, index) => profileProblems(profile, memberPath('profiles', index), world))
  if (profiles.length === 0 && !profileStore) found.push(undeclaredProblems(world))
  const storage = await storageProblems(config)
  return [
    ...(await addressProblems(config)),
    ...originProblems(config),
    ...folderProblems(config),
    ...storage,
    ...(await Promise.all(found)).flat(),
  ]
}

/** Agents that cannot be started, and that no declared profile runs: one that is made while the gateway runs might. */
export async function agentWarnings(
  { config, secretEnv }: LoadedConfig,
  env: NodeJS.ProcessEnv = process.env,
): Promise<ConfigProblem[]> {
  const { agents = [], profiles = [] } = config
  const found = agents.map(async ({ name }, index): Promise<ConfigProblem[]> => {
    if (profiles.some(({ agent }) => agent === name)) return []
    const message = await agentProblem({ name, agent: name }, { config, hooks: {}, env, secretEnv })
    return message === undefined ? [] : [{ path: memberPath('agents', index), message }]
  })
  return (await Promise.all(found)).flat()
}

interface World {
  config: EffectiveConfig
  hooks: Hooks
  env: NodeJS.ProcessEnv
  secretEnv: readonly string[]
}

async function profileProblems(profile: ProfileOptions, path: string, world: World): Promise<ConfigProblem[]> {
  if (profile.engine === 'provider') return providerProblems(profile, path, world)
  // refused as such, whatever it is wanted for
  if (!agentTable(world.config.agents).has(profile.agent ?? DEFAULT_AGENT)) return []
  const message = await agentProblem(profile, world)
  return message === undefined ? [] : [{ path: profile.agent === undefined ? path : `${path}.agent`, message }]
}

/** Without a declared profile sessions run on the default agent. */
async function undeclaredProblems(world: World): Promise<ConfigProblem[]> {
  const message = await agentProblem({ name: 'default' }, world)
  if (message === undefined) return []
  return [{ path: 'profiles', message: `with none declared, sessions run on the agent ${DEFAULT_AGENT}. ${message}` }]
}

/** Why the agent could not be started, if it could not. */
async function agentProblem(profile: ProfileOptions, { config, env, secretEnv }: World): Promise<string | undefined> {
  const { name, agent } = profile
  const info = { name, engine: 'cli' as const, ...(agent !== undefined && { agent }) }
  return problemOf(() => assertInstalled({ ...(config.agents && { agents: config.agents }), env, secretEnv }, info))
}

async function providerProblems(
  { provider, defaults, session }: ProfileOptions,
  path: string,
  { hooks, env }: World,
): Promise<ConfigProblem[]> {
  // what the host's own runner makes of it is the host's affair
  if (hooks.createEngineRunner) return []
  // refused as such, whatever it is wanted for
  if (!provider || providerProblem(provider)) return []
  const at = `${path}.provider`
  const problems: ConfigProblem[] = []
  const message = await problemOf(() => openProvider(provider, { env, demoChunkDelayMs: 0 }))
  const { apiKeyEnv } = provider
  const lacksKey = apiKeyEnv !== undefined && !env[apiKeyEnv]
  if (message !== undefined) problems.push({ path: lacksKey ? `${at}.apiKeyEnv` : at, message })
  const hasModel = provider.model ?? provider.models?.[0] ?? defaults?.model
  if (provider.id !== 'demo' && hasModel === undefined && !hooks.buildRunnerConfig)
    problems.push({ path: `${at}.model`, message: 'missing; a session that names no model could not start' })
  const offered = modelList(provider)
  const { model } = defaults ?? {}
  if (model !== undefined && offered && !offered.includes(model) && !hooks.buildRunnerConfig) {
    const message = `the provider of this profile offers ${offered.join(', ')}; a session that names no model could not start`
    problems.push({ path: `${path}.defaults.model`, message })
  }
  if (session?.mcpServers?.length) {
    const message = 'the daemon connects none: leave them out, or connect them in a createEngineRunner of hooks'
    problems.push({ path: `${path}.session.mcpServers`, message })
  }
  return problems
}

const originProblems = ({ allowedOrigins = [], cors }: EffectiveConfig): ConfigProblem[] =>
  Object.entries({ allowedOrigins, 'cors.origins': cors?.origins ?? [] }).flatMap(([path, origins]) =>
    origins.flatMap((entry, index) => {
      const message = originProblem(entry)
      return message === undefined ? [] : [{ path: `${path}[${index}]`, message }]
    }),
  )

/** Whether the database takes a gateway, and the file of profiles is one; what is not there yet is made. */
async function storageProblems({ storage, profileStore }: EffectiveConfig): Promise<ConfigProblem[]> {
  const found: [path: string, message: string | undefined][] = []
  if (storage !== 'memory')
    found.push(
      'sqlite' in storage
        ? ['storage.sqlite', await problemOf(() => checkSqlite(storage.sqlite))]
        : ['storage.postgres', await problemOf(() => checkPostgres(storage.postgres))],
    )
  if (typeof profileStore === 'object')
    found.push(['profileStore.file', (await profileFileProblem(profileStore.file))?.replace(/\.$/, '')])
  return found.flatMap(([path, message]) => (message === undefined ? [] : [{ path, message }]))
}

/** Where sessions are kept nobody else may write; the stores refuse such a place. */
function folderProblems({ storage, parking, profileStore }: EffectiveConfig): ConfigProblem[] {
  const places: [path: string, folder: string | undefined][] = [
    ['storage.sqlite', typeof storage === 'object' && 'sqlite' in storage ? dirname(storage.sqlite) : undefined],
    ['parking.store.dir', parking?.store?.dir],
    ['profileStore.file', typeof profileStore === 'object' ? dirname(profileStore.file) : undefined],
  ]
  const message = typeof storage === 'object' && 'sqlite' in storage ? fileProblem(storage.sqlite) : undefined
  return [
    ...(message === undefined ? [] : [{ path: 'storage.sqlite', message }]),
    ...places.flatMap(([path, folder]) => {
      const message = folder !== undefined && folderProblem(folder)
      return message ? [{ path, message }] : []
    }),
  ]
}

function fileProblem(path: string): string | undefined {
  const stats = tried(() => statSync(path))
  if (!stats || stats.isFile()) return undefined
  return stats.isDirectory() ? `${path} is a directory; name a file in it` : `${path} is no file; name another one`
}

const isDirectory = (path: string): boolean => tried(() => statSync(path))?.isDirectory() === true

function folderProblem(folder: string): string | undefined {
  const stats = tried(() => statSync(folder))
  if (!stats) return makingProblem(folder)
  if (!stats.isDirectory()) return `${folder} is not a directory`
  return isOpenToAll(stats.mode) ? openToAllMessage(folder) : writingProblem(folder)
}

/** It will be made, for the gateway's user alone, in the nearest one that there is. */
function makingProblem(folder: string): string | undefined {
  if (tried(() => lstatSync(folder))) return `${folder} is a link that leads nowhere`
  const parent = dirname(folder)
  if (isDirectory(parent)) return writingProblem(parent)
  return existsSync(parent) ? `${parent} is not a directory` : makingProblem(parent)
}

/** Tried, as there are places that take nothing whatever their rights say: /proc, a disk without an inode left. */
function writingProblem(folder: string): string | undefined {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    rmdirSync(mkdtempSync(join(folder, '.session-gateway-check-')))
    return undefined
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EROFS') return `${folder} is on a disk that is read-only`
    const isDenied = code === 'EACCES' || code === 'EPERM'
    return isDenied ? `this user may not write to ${folder}` : `nothing can be made in ${folder}: ${message}`
  }
}

async function problemOf(attempt: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await attempt()
    return undefined
  } catch (error) {
    return toError(error).message.replace(/\.$/, '')
  }
}
