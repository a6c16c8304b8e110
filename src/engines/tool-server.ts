import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import {
  CallToolRequestSchema,
  type CallToolResult,
  CancelledNotificationSchema,
  ListToolsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { wellFormed } from '../lib/well-formed.js'
import type { ExecutionResult } from './runner.js'
import type { OpenCalls, ToolSession } from './tool-endpoint.js'

/** Under which claude tells which call of the model it makes. */
const TOOL_USE_ID = 'claudecode/toolUseId'

/** One exchange of the protocol: stateless, since the bearer says which session it is. Loads the SDK, which only agents need. */
export async function connectToolServer(session: ToolSession, open: OpenCalls, keepAliveMs: number) {
  const server = new Server({ name: 'session-gateway', version: '1' }, { capabilities: { tools: {} } })
  server.setRequestHandler(ListToolsRequestSchema, () => {
    // once the answer is on its way
    setImmediate(() => session.onListed())
    return {
      tools: session.tools.map(({ name, description, inputSchema }) => ({
        ...{ name, description },
        inputSchema: { ...inputSchema, type: 'object' as const },
      })),
    }
  })
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { requestId, signal }) => {
    const tool = session.tools.find(({ name }) => name === params.name)
    if (!tool) return { content: [{ type: 'text', text: `There is no tool ${params.name}.` }], isError: true }
    const told = params._meta?.[TOOL_USE_ID]
    const toolUseId = typeof told === 'string' ? told : undefined
    const cancelled = new AbortController()
    const cancel = () => cancelled.abort()
    const alike = open.get(requestId) ?? new Set()
    open.set(requestId, alike.add(cancel))
    try {
      // the end of its connection aborts the one, a cancellation that comes over another connection the other
      const takenBack = AbortSignal.any([signal, cancelled.signal])
      return toolOutput(await session.call(tool, params.arguments ?? {}, { toolUseId, takenBack }))
    } finally {
      alike.delete(cancel)
      if (alike.size === 0) open.delete(requestId)
    }
  })
  server.setNotificationHandler(CancelledNotificationSchema, ({ params }) => {
    const [cancel, ...others] = (params.requestId !== undefined && open.get(params.requestId)) || []
    // which of several is meant nobody tells
    if (others.length === 0) cancel?.()
  })
  const transport = new StreamableHTTPServerTransport({ keepAliveMs })
  await server.connect(transport as never)
  return { transport, close: () => void server.close() }
}

function toolOutput(result: ExecutionResult): CallToolResult {
  if (result.status === 'failed') {
    const { status, reason, error } = result
    return { content: [{ type: 'text', text: JSON.stringify({ status, reason, error }) }], isError: true }
  }
  const { output } = result
  const text = output.type === 'text' ? wellFormed(output.value) : (JSON.stringify(output.value) ?? 'null')
  return { content: [{ type: 'text', text }] }
}
