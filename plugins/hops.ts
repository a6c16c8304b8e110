import { createServer, type IncomingMessage, type Server, STATUS_CODES } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import {
  CLIENT_HEADER,
  HOP_HEADER,
  type HopFields,
  type HopRefusal,
  HopVerifier,
  OTHER_HOP_HEADER,
  REFUSED_HEADER,
} from '../src/cluster/hop-signature.js'
import type { OwnNode } from '../src/cluster/own-node.js'
import { type ErrorCode, GatewayError } from '../src/errors.js'
import type { Gateway } from '../src/gateway.js'
import { newId } from '../src/lib/new-id.js'
import { answerClientError, problemOf } from './errors.js'
import { addToRequests } from './request-members.js'

/** What came from another node, and for whom. */
export interface Hop extends HopFields {
  /** The address of who asks, how they came and to which host, as the first node saw it; absent: the node itself asks. */
  client: { address: string; protocol: string; host: string } | undefined
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A route for other nodes alone, which ask in their own name and may see everything. */
    forNodes?: boolean
  }
  interface FastifyRequest {
    /** Present when another node asks: it is not asked back, and nothing is passed on again. */
    hop?: Hop
  }
}

/** What came over the listener for nodes, and was signed: no header that a client can send makes a request one. */
const hops = new WeakMap<IncomingMessage, Hop>()

const HEADERS_MS = 20_000
/** Longer than what waits unused at the other end. */
const KEEP_ALIVE_MS = 75_000
const CHECK_MS = 5_000
/** Nodes that do not know each other ask again every second: it is told of this often. */
const TOLD_EVERY_MS = 60_000

const REFUSALS: Record<HopRefusal, { code: ErrorCode; detail?: string }> = {
  unsigned: { code: 'SG_ERR_HOP_REFUSED' },
  forged: { code: 'SG_ERR_HOP_REFUSED' },
  late: { code: 'SG_ERR_HOP_REFUSED', detail: 'The clocks of these nodes are more than 30 s apart.' },
  replayed: { code: 'SG_ERR_HOP_REFUSED' },
  misdirected: { code: 'SG_ERR_WRONG_NODE' },
}

/** The header by which a node says for whom it asks. What a proxy says of them may have anything in it. */
export const clientOf = ({ ip, protocol, host }: FastifyRequest): string =>
  [protocol || 'http', ip, ...(host ? [host] : [])].map((part) => encodeURIComponent(part)).join(' ')

/** Undefined only without the header: whatever it says, somebody else than the node asks. */
function clientIn(header: string | undefined): Hop['client'] {
  if (header === undefined) return undefined
  const [protocol = '', address = '', host = ''] = header.split(' ').map(decoded)
  return { protocol, address, host }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/**
 * Where other nodes ask: a listener of its own, that hands what they have signed to the routes of `to`, and nothing else.
 */
export class HopListener {
  readonly #node: OwnNode
  readonly #gateway: Gateway
  readonly #verifier: HopVerifier
  readonly #server: Server
  /** Node does not close those that became WebSockets. */
  readonly #connections = new Set<Socket>()
  /** When it was last told why somebody was refused, and how often that was since. */
  readonly #told = new Map<HopRefusal | 'uncertified', { at: number; since: number }>()

  constructor(node: OwnNode, gateway: Gateway, to: Server) {
    this.#node = node
    this.#gateway = gateway
    this.#verifier = new HopVerifier(node.options.secrets, () => gateway.clock.now())
    const times = {
      headersTimeout: HEADERS_MS,
      // whoever sends the body is held to a time where they came in
      requestTimeout: 0,
      connectionsCheckingInterval: CHECK_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
    }
    const { tls } = node.options
    this.#server = tls ? createTlsServer({ ...times, ...tls, requestCert: true }) : createServer(times)
    this.#server.on('tlsClientError', (error: Error, socket: Socket) => {
      const told = { err: error, address: socket.remoteAddress }
      this.#tell('uncertified', told, 'somebody was refused who has no certificate of cluster.tls.ca')
    })
    this.#server.on('request', (request: IncomingMessage, response) => {
      const refusal = this.#judge(request)
      if (!refusal) return void to.emit('request', request, response)
      const { status, headers, body } = this.#problem(refusal)
      response.writeHead(status, headers).end(body)
    })
    this.#server.on('upgrade', (request: IncomingMessage, connection: Socket, head: Buffer) => {
      const refusal = this.#judge(request)
      if (!refusal) return void to.emit('upgrade', request, connection, head)
      const { status, headers, body } = this.#problem(refusal)
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
      connection.on('error', () => connection.destroy())
      connection.end([`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', body].join('\r\n'))
    })
    this.#server.on('connection', (connection) => {
      this.#connections.add(connection)
      connection.once('close', () => this.#connections.delete(connection))
    })
    this.#server.on('clientError', answerClientError)
  }

  /** @returns the port */
  async listen(): Promise<number> {
    const { host, port } = this.#node.options.listen
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(port, host, () => {
        this.#server.off('error', reject)
        resolve()
      })
    })
    return (this.#server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve())
      for (const connection of this.#connections) connection.destroy()
    })
  }

  /** Marks what is let in. */
  #judge(request: IncomingMessage): HopRefusal | undefined {
    const { method = '', url: path = '', headers } = request
    const client = single(headers[CLIENT_HEADER])
    const message = { method, path, authorization: headers.authorization, cookie: headers.cookie, client }
    const verdict = this.#verifier.verify(headers[HOP_HEADER], message, this.#node.self.n, headers[OTHER_HOP_HEADER])
    if (typeof verdict !== 'string') {
      hops.set(request, { ...verdict, client: clientIn(client) })
      return undefined
    }
    if (verdict !== 'misdirected')
      this.#tell(
        verdict,
        { reason: verdict, address: request.socket.remoteAddress },
        verdict === 'late'
          ? 'another node was refused: set the clocks of both machines'
          : 'somebody was refused who is not one of the nodes, or has another cluster.secret',
      )
    return verdict
  }

  #tell(refusal: HopRefusal | 'uncertified', fields: object, message: string): void {
    const now = this.#gateway.clock.steady()
    const last = this.#told.get(refusal)
    if (last && now - last.at < TOLD_EVERY_MS) {
      last.since++
      return
    }
    this.#gateway.options.logger.warn({ ...fields, ...(last && { sinceThen: last.since }) }, message)
    this.#told.set(refusal, { at: now, since: 0 })
  }

  #problem(refusal: HopRefusal): { status: number; headers: Record<string, string>; body: string } {
    const { code, detail } = REFUSALS[refusal]
    const problem = problemOf(new GatewayError(code, detail === undefined ? {} : { detail }), newId())
    const body = JSON.stringify(problem)
    const headers = {
      ...{ 'content-type': 'application/problem+json; charset=utf-8', 'content-length': `${Buffer.byteLength(body)}` },
      ...{ 'cache-control': 'no-store', connection: 'close' },
      ...(refusal !== 'misdirected' && { [REFUSED_HEADER]: refusal }),
    }
    return { status: problem.status, headers, body }
  }
}

const single = (header: string | string[] | undefined): string | undefined =>
  typeof header === 'object' ? header.join(', ') : header

/** Tells hops from what pretends to be one. Before every other hook: what comes later asks who the client is. */
export function markHops(scope: FastifyInstance, { cluster }: Gateway): void {
  if (!cluster) return
  addToRequests(scope, 'hop')
  scope.addHook('onRequest', (request, _reply, done) => {
    const hop = hops.get(request.raw)
    if (!hop)
      return done(request.headers[HOP_HEADER] === undefined ? undefined : new GatewayError('SG_ERR_HOP_REFUSED'))
    request.hop = hop
    if (hop.client) {
      const { address, protocol, host } = hop.client
      Object.defineProperties(request, { ip: { value: address }, protocol: { value: protocol } })
      // a node of before says none
      if (host !== '') Object.defineProperty(request, 'host', { value: host })
    }
    done()
  })
}
