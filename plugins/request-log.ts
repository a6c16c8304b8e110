import { type FastifyError, type FastifyReply, type FastifyRequest, LogController } from 'fastify'
import { written } from '../src/lib/logger.js'
import { nameOf } from '../src/principal.js'
import { codeOf } from './errors.js'
import { forwardedTo } from './forwarding.js'

/**
 * One line per answered request: method, path without query, status, the code of a refusal, the caller's name and address, milliseconds;
 * nothing else of a request is anybody's business in a log. A refusal of the caller (401, 403) is a warning, so that a door that somebody rattles at can be seen.
 */
export class RequestLog extends LogController {
  override incomingRequest(): void {}

  override streamError(...told: Parameters<LogController['streamError']>): void {
    written(() => super.streamError(...told))
  }

  override requestCompleted(
    error: FastifyError | null | undefined,
    request: FastifyRequest,
    reply: FastifyReply,
  ): void {
    const refused = reply.statusCode === 401 || reply.statusCode === 403
    const code = codeOf(request)
    const caller = nameOf(request.principal)
    const node = forwardedTo(request)
    const fields = {
      method: request.method,
      path: request.url.replace(/[?#].*$/s, ''),
      status: reply.statusCode,
      ...(code !== undefined && { code }),
      ...(caller !== undefined && { caller }),
      address: request.ip,
      ...(node !== undefined && { forwardedTo: node }),
      ms: Math.round(reply.elapsedTime * 10) / 10,
      ...(error && { err: error }),
    }
    // nodes tell each other something all the time
    const level = refused ? 'warn' : request.routeOptions.config?.forNodes ? 'debug' : 'info'
    // nobody is there any more who could be told what is thrown
    written(() => (error ? request.log.error(fields, 'request failed') : request.log[level](fields, 'request')))
  }
}
