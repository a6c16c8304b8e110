import { STATUS_CODES } from 'node:http';
import { GatewayError } from '../src/errors.js';
import { newId } from '../src/lib/new-id.js';
/** What Fastify itself refuses, in the words of the catalogue. */
const FASTIFY_CODES = {
    FST_ERR_CTP_BODY_TOO_LARGE: 'SG_ERR_BODY_TOO_LARGE',
    FST_ERR_CTP_INVALID_MEDIA_TYPE: 'SG_ERR_UNSUPPORTED_MEDIA_TYPE',
    FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'SG_ERR_BAD_REQUEST',
    FST_ERR_NOT_FOUND: 'SG_ERR_NOT_FOUND',
};
/** What a client needs to do better, by the status that asks for it. */
const STATUS_HEADERS = {
    401: { 'www-authenticate': 'Bearer' },
    415: { 'accept-encoding': 'identity' },
    426: { connection: 'upgrade', upgrade: 'websocket' },
};
/** What is wrong, in the words of the catalogue; remembered for the request's line in the log. */
export function toGatewayError(error, request) {
    const refusal = inCatalogue(error);
    codes.set(request, refusal.code);
    if (refusal.statusCode >= 500)
        request.log.error({ err: refusal, code: refusal.code }, 'request failed');
    return refusal;
}
function inCatalogue(error) {
    if (error instanceof GatewayError)
        return error;
    const known = FASTIFY_CODES[error.code];
    if (known)
        return new GatewayError(known, { cause: error });
    const status = error.statusCode ?? 500;
    return new GatewayError(status >= 400 && status < 500 ? 'SG_ERR_BAD_REQUEST' : 'SG_ERR_INTERNAL', { cause: error });
}
/** The code that a request was refused with, for its line in the log. */
const codes = new WeakMap();
export const codeOf = (request) => codes.get(request);
/** Answers a refusal as `application/problem+json`. */
export const sendProblem = (error, request, reply) => reply.send(problemIn(error, request, reply));
/** Makes a reply that of a refusal. @returns its body */
export function problemIn(error, request, reply) {
    const refusal = toGatewayError(error, request);
    if (refusal.retryAfterS !== undefined)
        reply.header('retry-after', refusal.retryAfterS);
    if (refusal.allow !== undefined)
        reply.header('allow', refusal.allow);
    reply.headers(STATUS_HEADERS[refusal.statusCode] ?? {});
    reply.code(refusal.statusCode).header('cache-control', 'no-store').type('application/problem+json; charset=utf-8');
    return JSON.stringify(problemOf(refusal, request.id));
}
/** What Node refuses before there is a request. */
const CLIENT_CODES = {
    ERR_HTTP_REQUEST_TIMEOUT: 'SG_ERR_REQUEST_TIMEOUT',
    HPE_HEADER_OVERFLOW: 'SG_ERR_HEADERS_TOO_LARGE',
};
/** Answers what is no HTTP, or comes too slowly or with too large a head, and ends the connection. */
export function answerClientError(error, connection) {
    if (error.code === 'ECONNRESET' || connection.destroyed)
        return;
    if (connection.writable) {
        const problem = problemOf(new GatewayError(CLIENT_CODES[error.code ?? ''] ?? 'SG_ERR_BAD_REQUEST'), newId());
        const body = JSON.stringify(problem);
        connection.write(`HTTP/1.1 ${problem.status} ${problem.title}\r\nconnection: close\r\ncache-control: no-store\r\n` +
            `content-type: application/problem+json; charset=utf-8\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
    }
    connection.destroy(error);
}
export function problemOf(error, instance) {
    return {
        type: 'about:blank',
        title: STATUS_CODES[error.statusCode] ?? 'Error',
        status: error.statusCode,
        detail: error.message,
        instance,
        code: error.code,
        error: error.message,
        ...(error.errors && { errors: error.errors }),
    };
}
//# sourceMappingURL=errors.js.map