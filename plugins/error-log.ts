import type { FastifyBaseLogger, FastifyInstance, FastifyRequest } from 'fastify'
import { GatewayError, toError } from '../src/errors.js'
import type { Gateway } from '../src/gateway.js'
import { type Logger, written } from '../src/lib/logger.js'

declare module 'fastify' {
  interface FastifyInstance {
    /** In scopes of a gateway. */
    failures?: Failures
  }
}

/** While a node is away, or a disk is full, every request says the same. */
const TOLD_EVERY_MS = 60_000

/** The logger of a host that has none is one function that does nothing. */
export const speaks = (log: FastifyBaseLogger): boolean => log.error !== log.trace

/** What goes wrong in a scope is told to the gateway's logger where the requests have none. */
export function hearErrors(scope: FastifyInstance, gateway: Gateway): void {
  scope.decorate('failures', new Failures(gateway))
}

class Failures {
  readonly #gateway: Gateway
  /** When each reason was told, by the steady clock. */
  readonly #told = new Map<string, number>()

  constructor(gateway: Gateway) {
    this.#gateway = gateway
  }

  get logger(): Logger {
    return this.#gateway.options.logger
  }

  /** "Come again" (503) is in the answer and in the request's own line: news is its cause, once while it lasts. */
  isNews(error: Error, message: string): boolean {
    if (!(error instanceof GatewayError) || error.statusCode !== 503) return true
    if (error.cause === undefined) return false
    const now = this.#gateway.clock.steady()
    for (const [reason, at] of this.#told) if (now - at >= TOLD_EVERY_MS) this.#told.delete(reason)
    const reason = `${message} ${error.code} ${toError(error.cause).message}`
    if (this.#told.has(reason)) return false
    this.#told.set(reason, now)
    return true
  }
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
  const { failures } = server
  if (failures && !failures.isNews(fields.err, message)) return
  if (speaks(log) || !failures) written(() => log.error(fields, message))
  else if (fields.err.cause !== undefined || !(fields.err instanceof GatewayError))
    failures.logger.error({ reqId, ...fields }, message)
}
