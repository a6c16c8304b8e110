import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Problem } from '../schemas/errors.js'
import { detailOf, type ErrorCode, GatewayError, toReader } from '../src/errors.js'
import type { Gateway } from '../src/gateway.js'
import { newId } from '../src/lib/new-id.js'
import { isNotOpen } from '../src/lib/patience.js'
import { hearErrors, tellFailure } from './error-log.js'
import { serializeFirst } from './own-answers.js'

/** What Fastify itself refuses, in the words of the catalogue. */
const FASTIFY_CODES: Record<string, ErrorCode> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'SG_ERR_BODY_TOO_LARGE',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'SG_ERR_UNSUPPORTED_MEDIA_TYPE',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'SG_ERR_BAD_REQUEST',
  FST_ERR_NOT_FOUND: 'SG_ERR_NOT_FOUND',
}

/** What a hook of the host refuses, or a plugin of it (a limit of rates, its own authentication): a client acts on the status. */
const STATUS_CODES_OF_HOSTS: Record<number, ErrorCode> = {
  401: 'SG_ERR_UNAUTHENTICATED',
  403: 'SG_ERR_FORBIDDEN',
  404: 'SG_ERR_NOT_FOUND',
  408: 'SG_ERR_REQUEST_TIMEOUT',
  413: 'SG_ERR_BODY_TOO_LARGE',
  429: 'SG_ERR_TOO_MANY',
  503: 'SG_ERR_UNAVAILABLE',
}

/** What a client needs to do better, by the status that asks for it. */
const STATUS_HEADERS: Record<number, Record<string, string | number>> = {
  401: { 'www-authenticate': 'Bearer' },
  415: { 'accept-encoding': 'identity' },
  426: { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' },
}

/** HTTP/2 has no upgrade and takes no header that is about a connection: Node throws over one, and that ended the host. */
const helpingHeaders = (status: number, { raw }: FastifyRequest): Record<string, string | number> =>
  status === 426 && raw.httpVersionMajor >= 2 ? {} : (STATUS_HEADERS[status] ?? {})

const READS: ReadonlySet<string> = new Set(['GET', 'HEAD'])

/** What is wrong, in the words of the catalogue; remembered for the request's line in the log. */
export function toGatewayError(error: FastifyError, request: FastifyRequest): GatewayError {
  const found = inCatalogue(error)
  const refusal = READS.has(request.method) ? toReader(found) : found
  codes.set(request, refusal.code)
  const { statusCode, code } = refusal
  if (statusCode >= 500) tellFailure(request, { err: refusal, code }, 'request failed')
  return refusal
}

function inCatalogue(error: FastifyError): GatewayError {
  if (error instanceof GatewayError) return error
  const known = FASTIFY_CODES[error.code]
  if (known) return new GatewayError(known, { cause: error })
  const status = error.statusCode ?? 500
  const code = STATUS_CODES_OF_HOSTS[status]
  if (code) return new GatewayError(code, { cause: error })
  if (status < 400 || status >= 500) return new GatewayError('SG_ERR_INTERNAL', { cause: error })
  // Fastify says 400 of what it cannot read; a host that says 402 has read it
  const detail = status === 400 ? {} : { detail: detailOf('SG_ERR_FORBIDDEN') }
  return new GatewayError('SG_ERR_BAD_REQUEST', { ...detail, cause: error })
}

/** The code that a request was refused with, for its line in the log. */
const codes = new WeakMap<FastifyRequest, ErrorCode>()
export const codeOf = (request: FastifyRequest): ErrorCode | undefined => codes.get(request)

/** Answers a refusal as `application/problem+json`. */
export const sendProblem = (error: FastifyError, request: FastifyRequest, reply: FastifyReply): FastifyReply =>
  reply.send(problemIn(error, request, reply))

/** Answers in a scope are the gateway's own, refusals too, whatever the host makes of its own. */
export function answerAsOwn(scope: FastifyInstance, gateway: Gateway): void {
  hearErrors(scope, gateway)
  serializeFirst(scope)
  // that of the host would be asked instead
  scope.setReplySerializer(undefined as never)
  scope.setErrorHandler((error: FastifyError, request, reply) =>
    // its storage is closed: it was asked too late
    sendProblem(
      gateway.draining && isNotOpen(error) ? new GatewayError('SG_ERR_SHUTTING_DOWN') : error,
      request,
      reply,
    ),
  )
}

/** Headers of an answer that came to nothing, because a hook of the host failed at it perhaps. */
const ANSWER_HEADERS = ['location', 'link', 'content-disposition', 'idempotent-replayed']

/** Makes a reply that of a refusal. @returns its body */
export function problemIn(error: FastifyError, request: FastifyRequest, reply: FastifyReply): string {
  for (const name of ANSWER_HEADERS) reply.removeHeader(name)
  const refusal = toGatewayError(error, request)
  const { statusCode, allow } = refusal
  sayWhenAgain(refusal, reply)
  if (allow !== undefined) reply.header('allow', allow)
  for (const [name, value] of Object.entries(helpingHeaders(statusCode, request)))
    if (!reply.hasHeader(name)) reply.header(name, value)
  reply.code(statusCode).header('cache-control', 'no-store').type('application/problem+json; charset=utf-8')
  return JSON.stringify(problemOf(refusal, String(request.id)))
}

/** When it may be tried again, unless the host has said that. */
export function sayWhenAgain({ retryAfterS }: GatewayError, reply: FastifyReply): void {
  if (retryAfterS !== undefined && !reply.hasHeader('retry-after')) reply.header('retry-after', retryAfterS)
}

/** What Node refuses before there is a request. */
const CLIENT_CODES: Record<string, ErrorCode> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'SG_ERR_REQUEST_TIMEOUT',
  HPE_HEADER_OVERFLOW: 'SG_ERR_HEADERS_TOO_LARGE',
}

/** Answers what is no HTTP, or comes too slowly or with too large a head, and ends the connection. */
export function answerClientError(error: NodeJS.ErrnoException, connection: Socket): void {
  if (error.code === 'ECONNRESET' || connection.destroyed) return
  writeProblem(connection, new GatewayError(CLIENT_CODES[error.code ?? ''] ?? 'SG_ERR_BAD_REQUEST'))
  connection.destroy(error)
}

/** Says on a connection that has no request of Fastify's what is wrong, and that nothing else comes. */
export function writeProblem(connection: Socket, error: GatewayError): void {
  if (!connection.writable) return
  const problem = problemOf(error, newId())
  const body = JSON.stringify(problem)
  const retryAfter = error.retryAfterS === undefined ? '' : `retry-after: ${error.retryAfterS}\r\n`
  connection.write(
    `HTTP/1.1 ${problem.status} ${problem.title}\r\nconnection: close\r\ncache-control: no-store\r\n${retryAfter}` +
      `content-type: application/problem+json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}

export function problemOf(error: GatewayError, instance: string): Problem {
  return {
    type: 'about:blank',
    title: STATUS_CODES[error.statusCode] ?? 'Error',
    status: error.statusCode,
    detail: error.message,
    instance,
    code: error.code,
    error: error.message,
    ...(error.errors && { errors: error.errors }),
  }
}
