/** The part of a pino logger that the domain uses; Fastify's own fits. */
export interface Logger {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Says nothing: the library's default inside tests and hosts without a logger. */
export const silentLogger: Logger = { info() {}, warn() {}, error() {} }
