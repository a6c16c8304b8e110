import type { IncomingHttpHeaders } from 'node:http'

/** A browser cannot set headers on a WebSocket; it may offer the token as a subprotocol of this form instead. */
const BEARER_SUBPROTOCOL = 'session-gateway.bearer.'

/** The token that an upgrade offers. */
export function offeredToken(headers: IncomingHttpHeaders): string | undefined {
  if (headers.upgrade === undefined) return undefined
  const offered = headers['sec-websocket-protocol']?.split(',').map((protocol) => protocol.trim())
  return offered?.find((protocol) => protocol.startsWith(BEARER_SUBPROTOCOL))?.slice(BEARER_SUBPROTOCOL.length)
}
