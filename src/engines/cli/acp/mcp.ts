import type { McpCapabilities, McpServer } from '@agentclientprotocol/sdk'
import type { McpServerConfig } from '../../../../schemas/sessions.js'

/**
 * Those of a session's servers that an agent has no way to. It starts commands in any case, and says of other transports that it has them;
 * one that is given a server by a transport that it does not have goes on without its tools, or not at all.
 */
export function unreachable(
  servers: Record<string, McpServerConfig> = {},
  can: McpCapabilities | null | undefined,
): { name: string; transport: 'http' | 'sse' }[] {
  return Object.entries(servers).flatMap(([name, server]) =>
    'url' in server && can?.[server.type] !== true ? { name, transport: server.type } : [],
  )
}

/** The servers of a session, as the protocol names them. */
export const acpMcpServers = (servers: Record<string, McpServerConfig> = {}): McpServer[] =>
  Object.entries(servers).map(([name, server]) => {
    if ('command' in server) return { name, command: server.command, args: server.args ?? [], env: pairs(server.env) }
    const { url, headers } = server
    return server.type === 'http'
      ? { type: 'http', name, url, headers: pairs(headers) }
      : { type: 'sse', name, url, headers: pairs(headers) }
  })

const pairs = (values: Record<string, string> = {}) => Object.entries(values).map(([name, value]) => ({ name, value }))
