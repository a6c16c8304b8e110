import closeWithGrace from 'close-with-grace'
import type { PreparedServer } from '../../src/daemon/daemon.js'
import { type ConfigFlags, loadConfig } from '../../src/daemon/load-config.js'
import { greeting } from '../../src/daemon/next-steps.js'
import { redactConfig } from '../../src/daemon/redact.js'
import { toError } from '../../src/errors.js'
import { endWith } from '../terminal/exit.js'

/** After an error nobody expected, nothing can be trusted to end in time. */
const CRASH_TIMEOUT_MS = 2000
/** What `close()` may take beyond its own timeout before it counts as hanging. */
const CLOSE_SLACK_MS = 2000
/** Exit code; see --help. */
const CANNOT_START = 3

/** The longest that `setTimeout` takes. */
const MAX_DELAY_MS = 2 ** 31 - 1
/** After these nothing of ours may run (the process is broken), or they have another meaning. */
const UNSAFE_SIGNALS: closeWithGrace.AllEvents[] = [
  'SIGILL',
  'SIGTRAP',
  'SIGABRT',
  'SIGBUS',
  'SIGFPE',
  'SIGSEGV',
  'SIGUSR2',
]

/** Serves until a signal; the process ends with it. */
export async function serve(path: string, flags: ConfigFlags, printConfig: boolean): Promise<void> {
  const loaded = loadConfig(path, flags)
  const { config } = loaded
  const { prepareServer, start } = await import('../../src/daemon/daemon.js')
  // Stdout is the configuration's then, so warnings go to stderr.
  const prepared = await prepareServer(loaded, printConfig ? process.stderr : undefined)
  if (printConfig) {
    await prepared.server.close()
    return endWith(`${JSON.stringify(redactConfig(config), undefined, 2)}\n`)
  }
  const { server, logger, authenticates } = prepared
  // what is said there, by a hook perhaps, and not taken is lost: nobody's session is
  for (const output of [process.stdout, process.stderr]) output.on('error', () => {})

  // what is sent to have a log rotated would open Node's inspector to whoever is on this machine
  process.on('SIGUSR1', () =>
    logger.info('SIGUSR1 does nothing: the log is standard output, and the configuration is read at the start'),
  )

  let stopping = false
  // Installed before listening, so that a signal during the start finds somebody home.
  const grace = closeWithGrace(
    {
      delay: Math.min(config.shutdownTimeoutMs + CLOSE_SLACK_MS, MAX_DELAY_MS),
      logger: false,
      skip: UNSAFE_SIGNALS,
      onSecondSignal: (signal) => logger.warn({ signal }, 'second signal, exiting at once'),
      onSecondError: (error) => logger.fatal({ err: toError(error) }, 'another error while stopping, exiting at once'),
      onTimeout: () => logger.error('the shutdown hangs, exiting'),
    },
    async (reason: { signal?: string; err?: unknown }) => {
      stopping = true
      // By its key: a promise may be rejected with nothing at all.
      if ('err' in reason) return crash(prepared, reason.err)
      logger.info({ signal: reason.signal, timeoutMs: config.shutdownTimeoutMs }, 'stopping')
      await server.close().catch((error: unknown) => {
        logger.error({ err: toError(error) }, 'the shutdown failed')
        throw error
      })
      logger.info('stopped')
    },
  )
  try {
    const url = await start(prepared, loaded)
    void prepared.failed?.then((error) => stopping || cannotGoOn(prepared, error))
    if (config.log.pretty) process.stdout.write(greeting(config, url, authenticates))
  } catch (error) {
    // A start that a signal cut short has not failed.
    if (stopping) return
    grace.uninstall()
    throw error
  }
}

async function crash({ server, logger }: PreparedServer, error: unknown): Promise<never> {
  logger.fatal({ err: toError(error) }, 'uncaught error, stopping')
  return leave(server, 1)
}

/** As one that cannot start: whoever starts it again would see the same. */
async function cannotGoOn({ server, logger }: PreparedServer, error: Error): Promise<never> {
  logger.fatal({ err: error }, 'cannot join again, stopping')
  process.stderr.write(`session-gateway: ${error.message}\n`)
  return leave(server, CANNOT_START)
}

async function leave(server: PreparedServer['server'], code: number): Promise<never> {
  await Promise.race([server.close(), new Promise((resolve) => setTimeout(resolve, CRASH_TIMEOUT_MS))]).catch(() => {})
  process.exit(code)
}
