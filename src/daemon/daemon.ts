import type { DestinationStream, Logger } from 'pino'
import { hasCode, toError } from '../errors.js'
import { descriptorLimit, descriptorRemedy } from '../lib/descriptors.js'
import { keepObjectsYoung } from '../lib/young-objects.js'
import { createWorkerServer, type WorkerServer } from '../server.js'
import { StorageError } from '../storage/storage.js'
import { certificateWarnings, watchCertificates } from './certificate-warnings.js'
import type { ConfigProblem } from './config-problem.js'
import { agentWarnings, firstSessionProblems } from './first-session.js'
import { type Hooks, loadHooks, unusableHooks } from './hooks.js'
import { hostProblems } from './host-problems.js'
import { lacksAddress, listenProblems, NO_SUCH_ADDRESS } from './listen-rules.js'
import type { LoadedConfig } from './load-config.js'
import { createLogger } from './logger.js'
import { firstCommands } from './next-steps.js'
import { notificationWarnings } from './notification-warnings.js'
import { parkingWarnings } from './parking-warnings.js'
import { secretsOf } from './redact.js'
import { type OnLost, RejoiningServer } from './rejoining-server.js'
import { serverOptions } from './server-options.js'
import { StartError } from './start-error.js'
import { createTokenLookup, tokenWarnings } from './tokens.js'

/** Everything the daemon consists of, checked and wired, before it listens. */
export interface PreparedServer {
  server: Omit<WorkerServer, 'queue'>
  /** Resolves, with why, when a node that was lost can never join again; absent: it is none. */
  failed?: Promise<Error>
  logger: Logger
  hooks: Hooks
  /** Whether somebody decides who is let in. */
  authenticates: boolean
}

/**
 * Does all of the start that can be done without listening.
 * @param destination where the log goes; default stdout
 * @param thorough refuses also what would keep only the first session from starting
 * @throws ConfigError with everything that is wrong
 */
export async function prepareServer(
  loaded: LoadedConfig,
  destination?: DestinationStream,
  { thorough = false } = {},
): Promise<PreparedServer> {
  const { config } = loaded
  const { hooks, problems } = config.hooks === undefined ? { hooks: {}, problems: [] } : await loadHooks(config.hooks)
  const authenticates = config.auth !== undefined || (hooks as Hooks).authenticate !== undefined
  const found = [
    ...problems,
    ...unusableHooks(hooks, config),
    // A hooks module that did not load may have had the authenticate that seems to be missing.
    ...(problems.length > 0 ? [] : listenProblems(config, authenticates)),
    ...hostProblems(config, problems.length > 0 ? undefined : hooks),
    ...(thorough ? await firstSessionProblems(loaded, hooks) : []),
  ]
  if (found.length > 0) throw loaded.error(found)

  const logger = createLogger({
    level: config.log.level,
    pretty: config.log.pretty,
    secrets: secretsOf(config, process.env),
    ...(destination && { destination }),
  })
  const agents = thorough ? await agentWarnings(loaded) : []
  const warnings = [
    ...loaded.warnings,
    ...tokenWarnings(config),
    ...notificationWarnings(config),
    ...certificateWarnings(config),
    ...parkingWarnings(config),
    ...agents,
  ]
  for (const warning of warnings) warn(warning, loaded, logger)
  const build = (onLost?: OnLost) => construct(loaded, hooks, logger, onLost)
  if (!config.cluster) return { server: build(), logger, hooks, authenticates }
  const server = new RejoiningServer(build, logger)
  return { server, failed: server.failed, logger, hooks, authenticates }
}

const warn = ({ path, message }: ConfigProblem, { file }: LoadedConfig, logger: Logger): void =>
  logger.warn({ file, ...(path && { path }) }, message)

function construct(loaded: LoadedConfig, hooks: Hooks, logger: Logger, onLost?: OnLost): WorkerServer {
  try {
    const { config, secretEnv } = loaded
    // a hook may let in whom no token names
    const callerNamed = config.auth && !hooks.authenticate ? createTokenLookup(config.auth.tokens) : undefined
    return createWorkerServer(serverOptions(config, hooks, logger), {
      secretEnv,
      ...(callerNamed && { callerNamed }),
      ...(onLost && { onLost }),
    })
  } catch (error) {
    throw asConfigError(error, loaded) ?? error
  }
}

/**
 * Begins to serve.
 * @returns where, with base path
 * @throws StartError, or ConfigError when only the start shows that an option is wrong
 */
export async function start({ server, logger, authenticates }: PreparedServer, loaded: LoadedConfig): Promise<string> {
  const { config } = loaded
  const { host, port } = config.listen
  keepObjectsYoung()
  let url: string
  try {
    url = (await server.listen(port, host)).url + config.basePath
  } catch (error) {
    await server.close().catch(() => {})
    // With a cause it is not the option that is wrong, but what it names that failed: a store is locked, say.
    const refused = toError(error).cause === undefined ? asConfigError(error, loaded) : undefined
    const problem = isListenError(error) ? listenFailure(error, host, port) : toError(error).message
    throw refused ?? new StartError(problem, { cause: error })
  }
  watchCertificates(config, (warning) => warn(warning, loaded, logger))
  const descriptors = descriptorLimit()
  const remedy = descriptors && descriptorRemedy(descriptors)
  if (remedy) logger.warn({ descriptors: descriptors.soft }, `the limit of file descriptors is low; ${remedy}`)
  const access = authenticates ? 'authenticated' : 'everybody on this machine'
  logger.info(
    { url, access, ...(!config.log.pretty && { try: firstCommands(config, url, authenticates) }) },
    'listening',
  )
  return url
}

/** An option that the gateway refused, as a problem of the file. */
function asConfigError(error: unknown, loaded: LoadedConfig): Error | undefined {
  // only who connects finds out; trying again does not mend it
  if (error instanceof StorageError && /^POSTGRES_(URL|WAYS|POOLER)$/.test(error.code))
    return loaded.error([{ path: 'storage.postgres', message: error.message }])
  if (!hasCode(error, 'SG_ERR_OPTION')) return undefined
  const problems: ConfigProblem[] = error.errors ?? [{ path: '', message: error.message }]
  return loaded.error(
    problems.map(({ path, message }) => ({
      // as a person finds it in the file
      path: path.replace(/\.(\d+)(?=\.|$)/g, '[$1]'),
      message: message.replace(/\.$/, ''),
    })),
  )
}

const isListenError = (error: unknown): error is NodeJS.ErrnoException =>
  ['listen', 'getaddrinfo', 'bind'].includes((error as NodeJS.ErrnoException).syscall ?? '')

function listenFailure(error: NodeJS.ErrnoException, host: string, port: number): string {
  const where = `cannot listen on ${host}:${port}`
  switch (error.code) {
    case 'EADDRINUSE':
      return `${where}: another process does; stop it, or choose another port with --port or listen.port`
    case 'EACCES':
      return `${where}: this user may not use that port; choose one above 1023 with --port or listen.port`
    default:
      return lacksAddress(error)
        ? `${where}: ${NO_SUCH_ADDRESS}; correct --host or listen.host`
        : `${where}: ${error.message}`
  }
}
