import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify'
import { GatewayError } from '../src/errors.js'
import type { Logger } from '../src/lib/logger.js'

declare module 'fastify' {
  interface FastifyInstance {
    /** In scopes of a gateway: its own logger. */
    errorLogger?: Logger
  }
}

/** The logger of a host that has none is one function that does nothing. */
export const speaks = (log: FastifyBaseLogger): boolean => log.error !== log.trace

/** What goes wrong in a scope is told to this logger where the requests have none. */
export function hearErrors(scope: FastifyInstance, logger: Logger): void {
  scope.decorate('errorLogger', logger)
}

/**
 * Tells what went wrong with a request: in its own log, or else in the gateway's, under the id that the answer names; there only what the
 * answer does not say, a cause.
 */
export function tellFailure(
  { log, server, id: reqId }: FastifyRequest,
  fields: { err: Error; code?: string },
  message: string,
): void {
  const { errorLogger } = server
  if (speaks(log) || !errorLogger) log.error(fields, message)
  else if (fields.err.cause !== undefined || !(fields.err instanceof GatewayError))
    errorLogger.error({ reqId, ...fields }, message)
}
