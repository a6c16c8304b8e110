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

interface Connection {
  readonly tools: Record<string, McpTool>
  /** Whether nothing more can be asked in it. */
  isOver(): boolean
  end(): void
}

/** A session's way to a server, which is taken anew with the next call where it was lost: servers are restarted while sessions go on. */
export class McpLink implements McpToolSource {
  readonly #server: McpServerConfig
  readonly #clock: Clock
  #opening: Promise<Connection> | undefined
  #current: Connection | undefined
  /** Also of a connection whose tools are not known yet. */
  #client: Awaited<ReturnType<typeof createMCPClient>> | undefined
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
    await this.#letGo()
  }

  async #call(name: string, ...given: Parameters<McpTool['execute']>): Promise<unknown> {
    for (let isAgain = false; ; isAgain = true) {
      const connection = await this.#connection()
      const tool = connection.tools[name]
      if (!tool) throw new Error(`The server has no tool ${name} any more.`)
      try {
        return await tool.execute(...given)
      } catch (error) {
        if (isAgain || !isUnknownSession(error)) throw error
        connection.end()
      }
    }
  }

  #connection(): Promise<Connection> {
    if (this.#current && !this.#current.isOver()) return Promise.resolve(this.#current)
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined
    })
    return this.#opening
  }

  async #open(): Promise<Connection> {
    if (this.#isClosed) throw new Error('The session has ended.')
    void this.#letGo()
    let isOver = false
    const end = () => {
      isOver = true
      // what is waited for comes no more
      void this.#letGo()
    }
    const transport = transportTo(this.#server, end)
    const client = await createMCPClient({
      transport,
      clientName: 'session-gateway',
      initializationOptions: { timeout: CONNECT_TIMEOUT_MS },
      onUncaughtError: () => {},
    })
    this.#client = client
    if (this.#isClosed) await this.#letGo()
    if (transport instanceof StdioTransport) {
      const tell = transport.onclose
      transport.onclose = () => {
        isOver = true
        tell?.()
      }
    }
    const tools = await listedInTime(client.tools() as PromiseLike<Record<string, McpTool>>, this.#clock)
    this.#current = { tools, isOver: () => isOver, end }
    return this.#current
  }

  /** Never rejects. */
  async #letGo(): Promise<void> {
    const client = this.#client
    this.#client = undefined
    if (client)
      await within(
        GOODBYE_MS,
        client.close().catch(() => {}),
        { clock: this.#clock },
      )
  }
}

/** Of the protocol: the server was started anew, or has let the session go. It has not looked at the call. */
const isUnknownSession = (error: unknown): boolean => (error as { statusCode?: unknown } | null)?.statusCode === 404

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
