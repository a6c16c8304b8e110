import { caught } from './caught.js'
import { tried } from './tried.js'

/** The part of a pino logger that the domain uses; Fastify's own fits. */
export interface Logger {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
  debug?(fields: object, message: string): void
  trace?(fields: object, message: string): void
  /** Whether a line of that level would be written; absent: not known. */
  isLevelEnabled?(level: string): boolean
}

/** What an operator is to see who gave no logger: warnings and errors, a line each. */
export const consoleNotices: Logger = {
  info() {},
  warn: (fields, message) => console.warn(line(fields, message)),
  error: (fields, message) => console.error(line(fields, message)),
}

/** Writes a line of a host's own logger: what that throws, or rejects with, costs the line alone, and not what was told of. */
export const written = (line: () => unknown): void => caught(line, () => {})

/** A host's own logger, each line of it `written`. */
export function withoutTrouble(logger: Logger): Logger {
  const line =
    (level: 'info' | 'warn' | 'error' | 'debug' | 'trace') =>
    (...said: [fields: object, message: string]) =>
      written(() => logger[level]?.(...said))
  return {
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
    ...(logger.debug && { debug: line('debug') }),
    ...(logger.trace && { trace: line('trace') }),
    ...(logger.isLevelEnabled && { isLevelEnabled: (level) => tried(() => logger.isLevelEnabled!(level)) !== false }),
  }
}

function line(fields: object, message: string): string {
  const facts = Object.entries(fields).map(([name, value]) => `${name}: ${String(value)}`)
  return `session-gateway: ${message}${facts.length > 0 ? ` (${facts.join(', ')})` : ''}`
}

/** Says nothing: the library's default inside tests and hosts without a logger. */
export const silentLogger: Logger = { info() {}, warn() {}, error() {} }
