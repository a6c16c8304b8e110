import { createHash, randomBytes } from 'node:crypto'
import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { toError } from '../errors.js'
import type { Logger } from '../lib/logger.js'
import type { DeferredTool, ExecutionResult } from './runner.js'

/** What an agent in a process of its own may call. */
export interface ToolSession {
  readonly tools: readonly DeferredTool[]
  call(tool: DeferredTool, input: unknown, facts: ToolCallFacts): Promise<ExecutionResult>
  /** The agent has been told of the tools. */
  onListed(): void
}

export interface ToolCallFacts {
  /** Which call of the model it is; undefined when the agent does not tell. */
  toolUseId: string | undefined
  /** Aborts when the agent does not wait for its result any more. */
  takenBack: AbortSignal
}

/** What gives up the calls that wait, by the ids of their requests: several clients of a session may count alike. */
export type OpenCalls = Map<string | number, Set<() => void>>

/** How an agent reaches its tools; whoever has the bearer is the session. */
export interface ToolAccess {
  url: string
  bearer: string
  close(): void
}

const PATH = '/mcp'
/** So that no client takes a call that waits for days for a connection that died. */
const KEEP_ALIVE_MS = 15_000

/**
 * Deferred tools for agents in processes of their own: an MCP server on loopback (streamable HTTP), one bearer per session. It listens
 * from the first session that has tools.
 */
export class ToolEndpoint {
  readonly #logger: Logger
  /** By the hash of the bearer. */
  readonly #sessions = new Map<string, { session: ToolSession; open: OpenCalls }>()
  #isClosed = false
  #listening: Promise<{ server: HttpServer; port: number }> | undefined

  constructor(logger: Logger) {
    this.#logger = logger
  }

  async open(session: ToolSession): Promise<ToolAccess> {
    this.#listening ??= this.#listen().catch((error) => {
      // the next session may find what this one did not
      this.#listening = undefined
      throw error
    })
    const { port } = await this.#listening
    const bearer = randomBytes(32).toString('base64url')
    const key = hash(bearer)
    this.#sessions.set(key, { session, open: new Map() })
    return { url: `http://127.0.0.1:${port}${PATH}`, bearer, close: () => void this.#sessions.delete(key) }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const listening = await this.#listening?.catch(() => undefined)
    if (!listening) return
    listening.server.closeAllConnections()
    await new Promise((resolve) => listening.server.close(resolve))
  }

  async #listen(): Promise<{ server: HttpServer; port: number }> {
    const server = createServer((request, response) => {
      this.#serve(request, response).catch((error) => {
        this.#logger.error({ err: toError(error) }, 'the tool endpoint failed')
        response.destroy()
      })
    })
    server.unref()
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(0, '127.0.0.1', resolve)
    })
    return { server, port: (server.address() as AddressInfo).port }
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { host, origin, authorization } = request.headers
    // no browser has business here, whichever name led it to this port
    if (origin !== undefined || host !== `127.0.0.1:${request.socket.localPort}`) return refuse(response, 403)
    const known = this.#sessions.get(hash(/^Bearer (.+)$/i.exec(authorization ?? '')?.[1] ?? ''))
    if (!known) return refuse(response, 401)
    if (request.url !== PATH) return refuse(response, 404)
    const { connectToolServer } = await import('./tool-server.js')
    const { transport, close } = await connectToolServer(known.session, known.open, KEEP_ALIVE_MS)
    response.once('close', () => {
      // the agent's own doing alone: what it waits for may be another node's to tell
      if (!this.#isClosed) close()
    })
    await transport.handleRequest(request, response)
  }
}

const hash = (bearer: string): string => createHash('sha256').update(bearer).digest('hex')

const refuse = (response: ServerResponse, status: number): void => {
  response.writeHead(status, { connection: 'close' }).end()
}
