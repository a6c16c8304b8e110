import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'

/** What a host speaks: Fastify's types know HTTP/1 alone where a plugin does not ask for the other one. */
const overHttp2 = (message: { httpVersionMajor: number }): boolean => message.httpVersionMajor >= 2

/** What HTTP/1 calls the Host. HTTP/2 has it beside the headers, and it is that which counts (RFC 9113, 8.3.1). */
export const hostOf = ({ headers }: Pick<IncomingMessage, 'headers'>): string | undefined =>
  (headers[':authority'] as string | undefined) ?? headers.host

/** Whether a body comes, be it empty. HTTP/2 frames one without a header that announces it. */
export function announcesBody(request: IncomingMessage): boolean {
  if (overHttp2(request)) return !(request as unknown as Http2ServerRequest).stream.endAfterHeaders
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers
  return encoding !== undefined || Number(length) !== 0
}

/** Whether nobody is there any more who could be answered. */
export function isGone(response: ServerResponse): boolean {
  return overHttp2(response.req) ? streamOf(response).destroyed : response.destroyed
}

/** Ends an answer that is not whole, so that nobody takes it for that. */
export function breakOff(response: ServerResponse): void {
  if (!overHttp2(response.req)) response.destroy()
  // its end without an error would be that of a whole answer
  else if (!isGone(response)) streamOf(response).close(constants.NGHTTP2_INTERNAL_ERROR)
}

/** Whether an answer can say what becomes of its connection, which in HTTP/2 is that of others, too. */
export const saysClose = (response: ServerResponse): boolean => !overHttp2(response.req)

/** Writes the head of an answer. @param headers names and values by turns, none of them about a connection */
export function writeHeadOf(response: ServerResponse, status: number, text: string, headers: readonly string[]): void {
  if (!overHttp2(response.req)) {
    response.writeHead(status, text, headers as never)
    return
  }
  const values = new Map<string, string[]>()
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at]!.toLowerCase()
    values.set(name, [...(values.get(name) ?? []), headers[at + 1]!])
  }
  // no text: HTTP/2 has none
  response.writeHead(
    status,
    Object.fromEntries([...values].map(([name, all]) => [name, all.length > 1 ? all : all[0]])),
  )
}

const streamOf = (response: ServerResponse) => (response as unknown as Http2ServerResponse).stream
