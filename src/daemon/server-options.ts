import { isIPv6 } from 'node:net'
import type { Logger } from 'pino'
import { createProviderRunner } from '../engines/provider/index.js'
import type { Authenticate, WorkerServerOptions } from '../options.js'
import { createFileProfileStore } from '../storage/file/profile-store.js'
import { createFileSessionStore } from '../storage/file/session-store.js'
import { createMemoryProfileStore } from '../storage/memory/profile-store.js'
import { createPostgresStorage } from '../storage/postgres/storage.js'
import { createSqliteStorage } from '../storage/sqlite/storage.js'
import type { GatewayStorage } from '../storage/storage.js'
import type { Hooks } from './hooks.js'
import { isLoopbackHost } from './listen-rules.js'
import type { EffectiveConfig } from './load-config.js'
import { createTokenAuthenticate } from './tokens.js'

/** Names under which this machine reaches itself; a browser that sends another one was sent here by DNS rebinding. */
const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]']

/** Makes the options of `createWorkerServer` of a configuration and its hooks. */
export function serverOptions(config: EffectiveConfig, hooks: Hooks, logger: Logger): WorkerServerOptions {
  const { $schema, listen, auth, hooks: hooksFile, storage: place, log, profileStore, parking, ...same } = config
  const { notifications, queue, executions } = same
  const storage = createStorage(place)
  return {
    ...same,
    ...(storage && { storage }),
    ...authentication(config, hooks),
    ...servedHosts(config),
    ...(parking && { parking: parkingOptions(parking) }),
    ...(profileStore && { profileStore: createProfileStore(profileStore, storage) }),
    ...(hooks.buildRunnerConfig && { buildRunnerConfig: hooks.buildRunnerConfig }),
    ...(hooks.onNotification && { notifications: { ...notifications, onNotification: hooks.onNotification } }),
    ...(queue && hooks.onEvent && { queue: { ...queue, onEvent: hooks.onEvent } }),
    ...(executions && hooks.onDispatch && { executions: { ...executions, onDispatch: hooks.onDispatch } }),
    createEngineRunner: hooks.createEngineRunner ?? createProviderRunner,
    logger,
    health: true,
    metrics: true,
  }
}

function createStorage(place: EffectiveConfig['storage']): GatewayStorage | undefined {
  if (place === 'memory') return undefined
  return 'sqlite' in place ? createSqliteStorage({ path: place.sqlite }) : createPostgresStorage(place.postgres)
}

/** Tokens are asked first, so that a hook only sees the callers that no token stands for. */
function authentication({ auth }: EffectiveConfig, hooks: Hooks): { authenticate?: Authenticate } {
  const byToken = auth && createTokenAuthenticate(auth.tokens)
  const byHook = hooks.authenticate
  if (byToken && byHook) return { authenticate: (request) => byToken(request) ?? byHook(request) }
  const authenticate = byToken ?? byHook
  return authenticate ? { authenticate } : {}
}

/** On loopback, Host headers are held to its names (on any port: a tunnel has its own) and the operator's; elsewhere to the latter. */
function servedHosts({ listen, allowedHosts, notifications }: EffectiveConfig): { allowedHosts?: string[] } {
  const { publicUrl } = notifications ?? {}
  // under which people come by answer links
  const named = publicUrl !== undefined && URL.canParse(publicUrl) ? [new URL(publicUrl).host] : []
  if (isLoopbackHost(listen.host))
    return { allowedHosts: [...LOOPBACK_NAMES, ...inUrls(listen.host), ...(allowedHosts ?? []), ...named] }
  return allowedHosts ? { allowedHosts: [...allowedHosts, ...named] } : {}
}

/** An address as Host headers have it, shortened or as it was written: 127.0.0.2 is loopback, too. */
function inUrls(host: string): string[] {
  const written = isIPv6(host) ? `[${host}]` : host
  const url = `http://${written}`
  return URL.canParse(url) ? [written, new URL(url).hostname] : []
}

const parkingOptions = ({ store, ...delays }: NonNullable<EffectiveConfig['parking']>) => ({
  ...delays,
  ...(store && { store: createFileSessionStore(store) }),
})

const createProfileStore = (store: true | { file: string }, storage: GatewayStorage | undefined) =>
  store === true ? (storage?.profiles ?? createMemoryProfileStore()) : createFileProfileStore(store.file)
