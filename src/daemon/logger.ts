import { type DestinationStream, type Logger, pino } from 'pino'
import { prettyFactory } from 'pino-pretty'
import { toError } from '../errors.js'
import { createCensor, REDACTED } from './redact.js'
import { StandardOutput } from './standard-output.js'

export interface LoggerOptions {
  level: string
  /** Lines for people instead of JSON. */
  pretty: boolean
  /** Values that must not appear in any line. */
  secrets: readonly string[]
  /** Default: stdout. */
  destination?: DestinationStream
}

const SECRET_KEYS = [
  'authorization',
  'cookie',
  'headers',
  'token',
  'secret',
  'webhookSecret',
  'password',
  'apiKey',
  'env',
  'prompt',
  'input',
  'updatedInput',
  'body',
]

/**
 * The daemon's log. A request is told by method, path without query, status, id and duration, nothing else of it; an error by type,
 * code, message and stack. Three layers keep secrets out: these serialisers, redaction of telling keys, and a censor over the final line.
 */
export function createLogger(options: LoggerOptions): Logger {
  const censor = createCensor(options.secrets)
  const output = new StandardOutput()
  const destination = options.destination ?? output
  const logger = pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRET_KEYS.flatMap((key) => [key, `*.${key}`]), censor: REDACTED },
      serializers: { req: requestFields, res: responseFields, err: errorFields, error: errorFields },
      hooks: { streamWrite: censor },
    },
    options.pretty ? prettyDestination(destination) : destination,
  )
  output.onTakenAgain = (lines) => logger.warn({ lines }, 'lines of this log could not be written, and are lost')
  return logger
}

/** In this process and at once: what was said last must be out when the process dies. */
function prettyDestination(destination: DestinationStream): DestinationStream {
  const prettify = prettyFactory({
    colorize: process.stdout.isTTY === true,
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss',
  })
  return { write: (line) => destination.write(prettify(line)) }
}

function requestFields(request: { id?: string; method?: string; url?: string }): object {
  return { id: request.id, method: request.method, path: pathOf(request.url) }
}

/** A query may carry what belongs into a header. */
const pathOf = (url: string | undefined): string | undefined => url?.replace(/[?#].*$/s, '')

const responseFields = (response: { statusCode?: number }): object => ({ status: response.statusCode })

function errorFields(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { code } = error as { code?: unknown }
  return {
    type: error.name,
    message: error.message,
    ...(code !== undefined && { code }),
    stack: error.stack,
    ...(error.cause !== undefined && { cause: errorFields(toError(error.cause)) }),
  }
}
