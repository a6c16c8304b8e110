import { createHash } from 'node:crypto'
import { asSchema } from 'ai'
import type { McpServerConfig } from '../../../schemas/sessions.js'
import { startError, toError } from '../../errors.js'
import type { Clock } from '../../lib/clock.js'
import { listedInTime, McpLink, type McpToolSource } from './mcp-link.js'
import type { ProviderTool, ToolContentPart, ToolResult } from './tool.js'

/** A client that the host connected and closes itself, or how to reach the server: then each session connects for itself. */
export type HostMcpServer = McpServerConfig | McpToolSource

/** The two packages may carry different copies of this type. */
type SdkSchema = Parameters<typeof asSchema>[0]

export interface McpConnections {
  tools: ProviderTool[]
  servers: { name: string; status: 'connected' | 'failed' }[]
  close(): Promise<void>
}

/**
 * Connects a session to the servers it is granted. A server that does not answer is reported as `failed` and its tools are absent.
 * @throws {GatewayError} `SG_ERR_ENGINE_START` for a name that the host did not wire
 */
export async function connectMcpServers(
  names: readonly string[],
  wired: Record<string, HostMcpServer>,
  onError: (error: Error, server: string) => void,
  clock: Clock,
): Promise<McpConnections> {
  const unknown = names.find((name) => !Object.hasOwn(wired, name))
  if (unknown !== undefined)
    throw startError(`The profile names the MCP server ${unknown}, which the host did not connect.`)
  const closers: (() => Promise<void>)[] = []
  const servers = await Promise.all(
    names.map(async (name) => {
      try {
        const client = await connect(wired[name]!, closers, clock)
        const tools = await listedInTime(toolsOf(name, client), clock)
        return { name, status: 'connected' as const, tools }
      } catch (thrown) {
        onError(toError(thrown), name)
        return { name, status: 'failed' as const, tools: [] }
      }
    }),
  )
  return {
    tools: servers.flatMap((server) => server.tools),
    servers: servers.map(({ name, status }) => ({ name, status })),
    close: async () => {
      await Promise.allSettled(closers.map((close) => close()))
    },
  }
}

async function connect(server: HostMcpServer, closers: (() => Promise<void>)[], clock: Clock): Promise<McpToolSource> {
  if ('tools' in server) return server
  const link = new McpLink(server, clock)
  closers.push(() => link.close())
  await link.tools()
  return link
}

async function toolsOf(server: string, client: McpToolSource): Promise<ProviderTool[]> {
  const tools = Object.entries(await client.tools())
  return Promise.all(
    tools.map(
      async ([name, tool]): Promise<ProviderTool> => ({
        name: mcpToolName(server, name),
        group: mcpServerPrefix(server),
        description: tool.description ?? '',
        inputSchema: (await asSchema(tool.inputSchema as SdkSchema).jsonSchema) as Record<string, unknown>,
        asks: 'unless-allowed',
        title: () => `${tool.title ?? name} (${server})`,
        async run(input, { toolUseId, signal }) {
          const call = { toolCallId: toolUseId, messages: [] as [], abortSignal: signal }
          return mcpResult((await tool.execute(input, call)) as McpCallResult)
        },
      }),
    ),
  )
}

const mcpServerPrefix = (server: string): string => `mcp__${plain(server)}`

const plain = (name: string) => name.replace(/[^A-Za-z0-9_-]/g, '_')

const MAX_TOOL_NAME = 64

/** `mcp__<server>__<tool>` in the letters and the length that every provider takes; a name that had to change is told apart by a hash. */
function mcpToolName(server: string, tool: string): string {
  const name = `${mcpServerPrefix(server)}__${plain(tool)}`
  if (name === `mcp__${server}__${tool}` && name.length <= MAX_TOOL_NAME) return name
  const hash = createHash('sha256').update(`${server}\0${tool}`).digest('hex').slice(0, 8)
  return `${name.slice(0, MAX_TOOL_NAME - 9)}_${hash}`
}

interface McpCallResult {
  content?: { type: string; text?: string; data?: string; mimeType?: string; uri?: string; resource?: unknown }[]
  structuredContent?: unknown
  toolResult?: unknown
  isError?: boolean
}

function mcpResult(result: McpCallResult): ToolResult {
  const parts = result.content?.map((part): ToolContentPart => {
    if (part.type === 'text') return { type: 'text', text: part.text ?? '' }
    if (part.type === 'image' && part.data && part.mimeType) {
      return { type: 'image', data: part.data, mediaType: part.mimeType }
    }
    return { type: 'text', text: JSON.stringify(part) }
  })
  const isError = result.isError === true
  if (!parts?.length) return { content: JSON.stringify(result.structuredContent ?? result.toolResult ?? null), isError }
  if (parts.some((part) => part.type !== 'text')) return { content: parts, isError }
  return { content: parts.map((part) => (part.type === 'text' ? part.text : '')).join('\n'), isError }
}
