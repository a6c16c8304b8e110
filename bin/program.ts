import { Command, InvalidArgumentError, Option } from 'commander'
import type { ConfigFlags, LogLevel } from '../src/daemon/load-config.js'
import { VERSION } from '../src/lib/package-root.js'
import { addClientCommands } from './client-commands.js'
import { EXIT_HELP, endWithReader } from './terminal/exit.js'
import { assumeSize } from './terminal/output.js'

const DEFAULT_FILE = 'gateway.json'
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] satisfies LogLevel[]

const AFTER_HELP = `
Getting started:
  session-gateway init                       writes ${DEFAULT_FILE} with a fresh token
  session-gateway                            serves it
  session-gateway login --token "$TOKEN"     keeps that token for the commands that ask a gateway
  session-gateway run --cwd workspace "…"    starts a session in the folder that init made

Exit codes of the gateway itself:
  0  stopped, or everything is in order
  1  an unexpected error, or a shutdown that had to be forced
  2  wrong usage, or a configuration that cannot be used
  3  could not start: the port is taken, or the storage is locked or cannot be reached

Exit codes of commands that speak to one:${EXIT_HELP.replace(/^\nExit codes:/, '')}

Signals:
  SIGTERM, SIGINT, SIGHUP, SIGQUIT
     let running work end (shutdownTimeoutMs), then exit 0; a second one exits at once.
     The configuration is read at the start alone.`

interface Options extends ConfigFlags {
  config?: string
  printConfig?: boolean
}

/**
 * The command line. Wrong usage throws a CommanderError after it was explained on stderr. Commands are loaded when they run, so that help
 * comes at once.
 */
export function createProgram(): Command {
  const program = new Command('session-gateway')
    .description('Runs AI agent sessions and serves them over HTTP and WebSocket.')
    .version(VERSION, '--version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .showHelpAfterError('Run session-gateway --help for the commands and flags.')
    .addHelpText('after', AFTER_HELP)
    .exitOverride()
    // a gateway that serves goes on without whoever reads its log
    .hook('preAction', (_program, command) => {
      if (command !== program) refuseFlagsOfServing(program, command)
      if (command !== program || program.opts<Options>().printConfig) endWithReader()
      assumeSize()
    })
    .usage('[options] [command]')
    .argument('[command]')
    .addOption(configOption())
    .option('--host <host>', 'listen here instead of listen.host', hostName)
    .option('--port <port>', 'listen here instead of listen.port; 0 picks a free one', portNumber)
    .addOption(new Option('--log-level <level>', 'instead of log.level').choices(LOG_LEVELS))
    .option('--print-config', 'print the effective configuration, secrets redacted, and exit')
    .action(async (command: string | undefined, { config, printConfig, ...flags }: Options) => {
      if (command !== undefined) program.error(`error: unknown command '${command}'`)
      const { serve } = await import('./commands/serve.js')
      await serve(config ?? DEFAULT_FILE, flags, printConfig === true)
    })
  program
    .command('init')
    .description('write a configuration to start with, and show its token once')
    .argument('[file]', `the file to write (default: ${DEFAULT_FILE})`)
    .addOption(configOption())
    .action(async (file: string | undefined, _options, command: Command) => {
      const { init } = await import('./commands/init.js')
      await init(fileOf(file, command))
    })
  program
    .command('check')
    .description('validate a configuration and everything it names, without listening')
    .argument('[file]', `the file to check (default: ${DEFAULT_FILE})`)
    .addOption(configOption())
    .action(async (file: string | undefined, _options, command: Command) => {
      const { check } = await import('./commands/check.js')
      await check(fileOf(file, command))
    })
  program
    .command('backup')
    .description('copy the database, also while the gateway runs')
    .argument('<target>', 'the file to write; there must be none')
    .addOption(configOption())
    .action(async (target: string, _options, command: Command) => {
      const { backup } = await import('./commands/backup.js')
      await backup(target, configOf(command))
    })
  program
    .command('doctor')
    .description('look through the database for damage and leftovers, also while the gateway runs')
    .option('--salvage <file>', 'write what can be read of a damaged database into this new file')
    .addOption(configOption())
    .action(async ({ salvage }: { salvage?: string }, command: Command) => {
      const { doctor } = await import('./commands/doctor.js')
      await doctor(configOf(command), salvage)
    })
  program
    .command('migrate')
    .description(
      'copy everything from one database into another, empty one, and hold both against each other; stop the gateway first',
    )
    .requiredOption(
      '--from <database>',
      'file of an SQLite database, or a postgres:// URL; the password may be in PGPASSWORD',
    )
    .requiredOption('--to <database>', 'the same')
    .option('--schema <name>', 'of the PostgreSQL database (default: session_gateway)')
    .action(async ({ from, to, schema }: { from: string; to: string; schema?: string }, command: Command) => {
      const { isSchemaName, SCHEMA_RULE } = await import('../src/daemon/database.js')
      if (schema !== undefined && !isSchemaName(schema)) command.error(`error: --schema: ${SCHEMA_RULE}`)
      const { migrate } = await import('./commands/migrate.js')
      await migrate(from, to, schema)
    })
  program
    .command('rotate-keys')
    .description('make all answer links that were given out void, also while the gateway runs')
    .addOption(configOption())
    .action(async (_options, command: Command) => {
      const { rotateKeys } = await import('./commands/rotate-keys.js')
      await rotateKeys(configOf(command))
    })
  addClientCommands(program)
  return program
}

const configOption = (): Option => new Option('--config <file>', `the configuration (default: ${DEFAULT_FILE})`)

/** The flag is understood before and after the name of the command. */
const configOf = (command: Command): string => command.optsWithGlobals<Options>().config ?? DEFAULT_FILE

/** The same, where the file may also stand by itself: of two, one would be passed over in silence. */
function fileOf(file: string | undefined, command: Command): string {
  const { config } = command.optsWithGlobals<Options>()
  if (file !== undefined && config !== undefined && file !== config)
    command.error(`error: the file is ${file} and --config is ${config}; name one of them`)
  return file ?? configOf(command)
}

/** Before the name of a command they would be passed over in silence: `--port 80 check` looks at another port. */
function refuseFlagsOfServing(program: Command, command: Command): void {
  const { config: _, ...flags } = program.opts<Options>()
  const [given] = program.options.filter((option) => option.attributeName() in flags)
  if (given) program.error(`error: ${given.long} is of the gateway itself, and does nothing for ${command.name()}`)
}

function portNumber(text: string): number {
  const port = Number(text)
  if (/^\d{1,5}$/.test(text) && port <= 65535) return port
  throw new InvalidArgumentError('Expected a number from 0 to 65535.')
}

/** An unset variable in a script, say: Node would listen on every address. */
function hostName(text: string): string {
  if (text !== '') return text
  throw new InvalidArgumentError('Expected an address or a name.')
}
