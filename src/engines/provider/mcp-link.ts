import { createMCPClient } from '@ai-sdk/mcp'
import { Experimental_StdioMCPTransport as StdioTransport } from '@ai-sdk/mcp/mcp-stdio'
import type { McpServerConfig } from '../../../schemas/sessions.js'
import type { Clock } from '../../lib/clock.js'
import { within } from '../../lib/within.js'
import { mcpFetch } from './mcp-fetch.js'

/** What is used of a client of `@ai-sdk/mcp`: its own type would have all who import this package compile those of the AI SDK. */
export interface McpToolSource {
  tools(): PromiseLike<Record<string, McpTool>>
}
export interface McpTool {
  description?: string | undefined
  title?: string | undefined
  inputSchema: unknown
  execute(input: object, call: { toolCallId: string; messages: []; abortSignal: AbortSignal }): unknown
}

/** For the handshake, and as long again for the list of tools. */
const CONNECT_TIMEOUT_MS = 15_000
/** For a server to hear that a session has ended. */
const GOODBYE_MS = 2_000

/** @throws when a server does not list its tools in time */
export const listedInTime = <Tools>(tools: PromiseLike<Tools>, clock: Clock): Promise<Tools> =>
  within(CONNECT_TIMEOUT_MS, Promise.resolve(tools), {
    clock,
    onLate: () => {
      throw new Error(`It did not list its tools within ${CONNECT_TIMEOUT_MS / 1000} seconds.`)
    },
  })

type Client = Awaited<ReturnType<typeof createMCPClient>>

interface Connection {
  tools: Record<string, McpTool>
  /** Nothing more is asked in it. */
  isOver: boolean
  /** How many calls wait for their answer in it. */
  waiting: number
  /** What is waited for comes no more then. */
  leave(): void
}

/** A session's way to a server, which is taken anew with the next call where it was lost: servers are restarted while sessions go on. */
export class McpLink implements McpToolSource {
  readonly #server: McpServerConfig
  readonly #clock: Clock
  #opening: Promise<Connection> | undefined
  #current: Connection | undefined
  /** Also of a connection whose tools are not known yet, or that waits for its last answers. */
  readonly #clients = new Set<Client>()
  #isClosed = false

  constructor(server: McpServerConfig, clock: Clock) {
    this.#server = server
    this.#clock = clock
  }

  async tools(): Promise<Record<string, McpTool>> {
    const { tools } = await this.#connection()
    const call =
      (name: string): McpTool['execute'] =>
      (input, about) =>
        this.#call(name, input, about)
    return Object.fromEntries(Object.entries(tools).map(([name, tool]) => [name, { ...tool, execute: call(name) }]))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#clients].map((client) => this.#letGo(client)))
  }

  async #call(name: string, ...given: Parameters<McpTool['execute']>): Promise<unknown> {
    for (let isAgain = false; ; isAgain = true) {
      const connection = await this.#connection()
      const tool = connection.tools[name]
      if (!tool) throw new Error(`The server has no tool ${name} any more.`)
      connection.waiting += 1
      try {
        return await tool.execute(...given)
      } catch (error) {
        if (isAgain || !isUnknownSession(error)) throw error
        connection.isOver = true
      } finally {
        connection.waiting -= 1
        // before that another call would not learn that it can be made again, too
        if (connection.isOver && connection.waiting === 0) connection.leave()
      }
    }
  }

  #connection(): Promise<Connection> {
    if (this.#current && !this.#current.isOver) return Promise.resolve(this.#current)
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined
    })
    return this.#opening
  }

  async #open(): Promise<Connection> {
    if (this.#isClosed) throw new Error('The session has ended.')
    let client: Client | undefined
    const leave = () => {
      if (client) void this.#letGo(client)
    }
    const connection: Connection = { tools: {}, isOver: false, waiting: 0, leave }
    const end = () => {
      connection.isOver = true
      leave()
    }
    const transport = transportTo(this.#server, end)
    client = await createMCPClient({
      transport,
      clientName: 'session-gateway',
      initializationOptions: { timeout: CONNECT_TIMEOUT_MS },
      onUncaughtError: () => {},
    })
    this.#clients.add(client)
    if (this.#isClosed) leave()
    if (transport instanceof StdioTransport) {
      const tell = transport.onclose
      transport.onclose = () => {
        tell?.()
        end()
      }
    }
    try {
      connection.tools = await listedInTime(client.tools() as PromiseLike<Record<string, McpTool>>, this.#clock)
    } catch (error) {
      leave()
      throw error
    }
    this.#current = connection
    return connection
  }

  /** Never rejects. */
  async #letGo(client: Client): Promise<void> {
    if (this.#clients.delete(client))
      await within(
        GOODBYE_MS,
        client.close().catch(() => {}),
        { clock: this.#clock },
      )
  }
}

/**
 * The server was started anew, or has let the session go: it has not looked at the call. The protocol wants 404; many servers, those of older
 * SDKs among them, say 400 and a sentence about it.
 */
function isUnknownSession(error: unknown): boolean {
  const { statusCode, responseBody } = (error ?? {}) as { statusCode?: unknown; responseBody?: unknown }
  return statusCode === 404 || (statusCode === 400 && /session|not initialized/i.test(String(responseBody)))
}

function transportTo(server: McpServerConfig, onListenEnd: () => void) {
  if ('url' in server)
    return {
      type: server.type,
      url: server.url,
      // Following a redirect would carry the headers to wherever it points.
      redirect: 'error' as const,
      fetch: mcpFetch(server.type, onListenEnd),
      ...(server.headers && { headers: server.headers }),
    }
  return new StdioTransport({
    command: server.command,
    ...(server.args && { args: server.args }),
    ...(server.env && { env: server.env }),
  })
}
