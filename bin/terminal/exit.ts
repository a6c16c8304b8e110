import { Command } from 'commander'
import { GatewayError, UNREACHABLE } from '../../client/index.js'
import { descriptorLimit, isLackOfDescriptors, NO_DESCRIPTORS } from '../../src/lib/descriptors.js'
import { ended } from '../../src/lib/sentence.js'
import { flagOf } from './flags.js'
import { safe } from './output.js'

/** What the commands of a client say by their exit code; their --help lists the same. */
export const EXIT = {
  success: 0,
  failed: 1,
  usage: 2,
  denied: 3,
  connection: 4,
  interrupted: 130,
} as const

export const EXIT_HELP = `
Exit codes:
  0    success
  1    it failed
  2    wrong usage
  3    something was denied, by whoever was asked or by the gateway
  4    the gateway cannot be reached
  130  interrupted`

const NO_PATH = 'SG_ERR_NOT_FOUND'
const BASE_PATH =
  'Is the base path of the gateway in its address? See --url. A gateway that is older than this command may not have it yet.'

/** An end with a sentence for a person and an exit code. */
export class CommandFailure extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode: number = EXIT.failed) {
    super(message)
    this.exitCode = exitCode
  }
}

/** Makes a command of a function: what goes wrong is said in a sentence, with what to do next. */
export const guarded =
  <A extends unknown[]>(act: (...args: A) => Promise<void>) =>
  async (...args: A): Promise<void> => {
    try {
      await act(...args)
    } catch (error) {
      const command = args.find((arg) => arg instanceof Command)
      const { message, exitCode } = explain(error, command)
      complain(message)
      process.exit(exitCode)
    }
  }

const complain = (message: string): void => {
  process.stderr.write(`session-gateway: ${safe(message)}\n`)
}

/**
 * Does the same to several, one after the other: of one that it cannot be done to that is said, and the others have it done all the same. The
 * exit code is that of the first failure.
 */
export async function toEach(names: readonly string[], act: (name: string) => Promise<void>): Promise<void> {
  const said = new Set<string>()
  let failed: number | undefined
  for (const name of names)
    try {
      await act(name)
    } catch (error) {
      const { message, exitCode } = explain(error, undefined)
      if (exitCode === EXIT.connection) throw error
      const isUnnamed = names.length > 1 && error instanceof GatewayError && error.status !== 401
      const told = isUnnamed && !message.includes(name) ? `${name}: ${message}` : message
      // what is wrong with all of them is said once
      if (!said.has(told)) complain(told)
      said.add(told)
      failed ??= exitCode
    }
  if (failed !== undefined) process.exit(failed)
}

/** What a gateway does not offer to anybody has no path there. @throws CommandFailure that says how it comes to be offered */
export async function offered<T>(call: Promise<T>, otherwise: string): Promise<T> {
  try {
    return await call
  } catch (error) {
    if (error instanceof GatewayError && error.code === NO_PATH) throw new CommandFailure(`${otherwise}\n${BASE_PATH}`)
    throw error
  }
}

/** Ends the process quietly once whoever read its output has what they wanted, as `head` does. */
export function endWithReader(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit()
    process.stderr.write(`session-gateway: The output cannot be written: ${safe(error.message)}\n`)
    process.exit(EXIT.failed)
  })
  // notes that nobody reads any more, or that a full disk does not take, end nothing: the answer may still be wanted
  process.stderr.on('error', () => {})
}

/** Writes and ends the process: what a module of hooks has begun, a timer or a connection, would go on. */
export const endWith = (text: string): Promise<never> =>
  new Promise(() => {
    process.stdout.write(text, (error) => {
      // said where the output is listened to
      if (!error) process.exit()
    })
  })

function explain(error: unknown, command: Command | undefined): { message: string; exitCode: number } {
  if (error instanceof CommandFailure) return error
  if (error instanceof GatewayError) return explainRefusal(error, command)
  // a prompt that was left
  if (error instanceof Error && error.name === 'AbortError')
    return { message: 'Interrupted.', exitCode: EXIT.interrupted }
  if (!(error instanceof Error)) return { message: String(error), exitCode: EXIT.failed }
  const problem = problemOf(error)
  const isTold = isOfTheSystem(error) || problem !== error.message
  return { message: isTold ? problem : (error.stack ?? problem), exitCode: EXIT.failed }
}

/** Read while there are some left. */
const LIMIT = descriptorLimit()

/** What the system says names a file and why, but where the shell stands in a directory that was removed, or no file at all can be opened. */
export function problemOf(error: Error, limit = LIMIT): string {
  if (/\buv_cwd$/.test(error.message)) return 'The working directory is gone: change to one that is there.'
  return isLackOfDescriptors(error, limit) ? NO_DESCRIPTORS : error.message
}

/** A file that cannot be written, say: it names the file and why. */
const isOfTheSystem = (error: Error): boolean => 'syscall' in error && 'code' in error

function explainRefusal(
  { code, status, detail, errors }: GatewayError,
  command: Command | undefined,
): { message: string; exitCode: number } {
  const flags = [...new Set(errors.flatMap(({ path }) => (command && flagOf(path, command)) ?? []))]
  // of a single one the sentence says it all
  const fields = errors
    .filter(({ path, message }) => detail !== message && detail !== `${path}: ${message}`)
    .map(({ path, message }) => `\n  ${path}: ${message}`)
    .join('')
  if (code === UNREACHABLE)
    return {
      message: `${detail}\nIs it running there? Name another one with --url, SESSION_GATEWAY_URL or session-gateway login.`,
      exitCode: EXIT.connection,
    }
  if (status === 401)
    return {
      message: `${detail}\nName a token that this gateway takes with --token, SESSION_GATEWAY_TOKEN or session-gateway login.`,
      exitCode: EXIT.denied,
    }
  if (code === 'SG_ERR_PROFILE_REQUIRED')
    return {
      message: 'Several profiles are declared: name one with --profile. See them: session-gateway profiles ls',
      exitCode: EXIT.usage,
    }
  // most often the folder where somebody happens to stand
  if (code === 'SG_ERR_CWD_FORBIDDEN' && command?.options.some(({ long }) => long === '--cwd'))
    return { message: `${detail}\nName a directory inside its allowedCwdRoots with --cwd.`, exitCode: EXIT.denied }
  if (code === NO_PATH) return { message: `${detail}\n${BASE_PATH}`, exitCode: EXIT.failed }
  const exitCode = status === 403 ? EXIT.denied : status === 400 ? EXIT.usage : EXIT.failed
  const message = `${detail}${fields}`
  return { message: flags.length > 0 ? `${ended(message)} See ${flags.join(', ')}.` : message, exitCode }
}
