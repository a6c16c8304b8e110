import type { McpServer } from '@agentclientprotocol/sdk'
import type { McpServerConfig } from '../../../../schemas/sessions.js'

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
