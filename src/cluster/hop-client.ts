import { Agent, type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest, Agent as TlsAgent } from 'node:https'
import { Readable } from 'node:stream'
import type { Clock } from '../lib/clock.js'
import type { ClusterNode } from '../storage/cluster.js'
import { type NodeRequest, NodeUnreachable } from './cluster.js'
import {
  CLIENT_HEADER,
  HOP_HEADER,
  type HopMessage,
  OTHER_HOP_HEADER,
  REFUSED_HEADER,
  signHop,
  signHopAgain,
} from './hop-signature.js'
import type { ClusterOptions } from './options.js'

/** Connections that are not used are closed before the other side does: it waits longer. */
const IDLE_MS = 30_000
/** A node on the same network is there within that, or not at all. */
const CONNECT_MS = 3_000
const ANSWER_MS = 5_000
const MAX_IDLE = 256

/** Of one connection, or of the message that is passed on: never of the next one. RFC 9110, 7.6.1. */
const HOP_BY_HOP = new Set([
  ...['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te', 'trailer'],
  ...['transfer-encoding', 'upgrade', 'expect', HOP_HEADER, OTHER_HOP_HEADER, CLIENT_HEADER],
])

/** Of the whole message, whatever its `Connection` says: without its length the body would be read as the next request. */
const NEVER_DROPPED = new Set(['content-length', 'content-type', 'host', 'authorization', 'cookie', 'idempotency-key'])

/** The Host of HTTP/2. What else begins so is for the frame alone, and no HTTP/1 can name it. */
const AUTHORITY = ':authority'

/** What goes on as it is, in the order and spelling in which it came; as HTTP/1 has it, whatever it came by. */
export function endToEnd(rawHeaders: readonly string[], connection = ''): string[] {
  const named = new Set(connection.split(',').map((name) => name.trim().toLowerCase()))
  for (const name of NEVER_DROPPED) named.delete(name)
  const kept: string[] = []
  let authority: string | undefined
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase()
    if (name === AUTHORITY) authority = rawHeaders[at + 1]!
    else if (!name.startsWith(':') && !HOP_BY_HOP.has(name) && !named.has(name))
      kept.push(rawHeaders[at]!, rawHeaders[at + 1]!)
  }
  return authority === undefined ? kept : [...without('host', kept), 'host', authority]
}

const without = (name: string, headers: readonly string[]): string[] =>
  headers.filter((_, at) => headers[at - (at % 2)]!.toLowerCase() !== name)

/** As what traces the requests of a process (OpenTelemetry) takes them, to add its own: it takes the places of a list for names. */
function byName(headers: readonly string[]): Record<string, string | string[]> {
  const named = new Map<string, [name: string, values: string | string[]]>()
  for (let at = 0; at < headers.length; at += 2) {
    const key = headers[at]!.toLowerCase()
    const known = named.get(key)
    if (!known) named.set(key, [headers[at]!, headers[at + 1]!])
    // of a second one nobody reads, and Node takes no list of them
    else if (key !== 'host') known[1] = [known[1], headers[at + 1]!].flat()
  }
  return Object.fromEntries(named.values())
}

export interface HopClientOptions {
  /** Signs. */
  secret: string
  /** Signs as well, while one is given to node after node. */
  otherSecret?: string | undefined
  clock: Clock
  /** This node's incarnation. */
  from: () => number
  /** By which nodes with an https address are known, and this one. Default: what the system trusts. */
  tls?: ClusterOptions['tls'] | undefined
}

/** Speaks to other nodes: connections that stay, and a signature on everything. */
export class HopClient {
  readonly #options: HopClientOptions
  readonly #agents = new Map<number, Agent | TlsAgent>()
  #there: readonly number[] = []
  /** Nodes that were there and are not any more: one that is stopped would still take connections, and answer nothing. */
  readonly #gone = new Set<number>()

  constructor(options: HopClientOptions) {
    this.#options = options
  }

  /**
   * Begins to ask a node; whoever calls this writes the body and ends it.
   * @param headers names and values by turns, without those of a connection
   */
  open(node: ClusterNode, message: HopMessage, headers: readonly string[], signal?: AbortSignal): ClientRequest {
    const { secret, otherSecret, clock, from } = this.#options
    const url = new URL(node.url)
    const isTls = url.protocol === 'https:'
    const signature = signHop(secret, { from: from(), to: node.n }, message, clock.now())
    const request = (isTls ? httpsRequest : httpRequest)({
      host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: url.port || (isTls ? 443 : 80),
      method: message.method,
      path: message.path,
      headers: byName([
        ...headers,
        // who speaks HTTP/1.0 or HTTP/2 may name none
        ...(headers.some((name, at) => at % 2 === 0 && name.toLowerCase() === 'host') ? [] : ['host', url.host]),
        ...[HOP_HEADER, signature],
        ...(otherSecret === undefined ? [] : [OTHER_HOP_HEADER, signHopAgain(otherSecret, signature, message)]),
        ...(message.client === undefined ? [] : [CLIENT_HEADER, message.client]),
      ]),
      agent: this.#agentOf(node.n, isTls),
      ...(signal && { signal }),
    })
    if (this.#gone.has(node.n)) {
      unsent.add(request)
      return request.destroy(new Error('it is not there any more'))
    }
    request.once('socket', (socket) => {
      if (!socket.connecting) return
      unsent.add(request)
      const timer = clock.after(CONNECT_MS, () => request.destroy(new Error('no connection in time')), 'always')
      socket.once(isTls ? 'secureConnect' : 'connect', () => {
        unsent.delete(request)
        timer.cancel()
      })
      socket.once('close', () => timer.cancel())
    })
    return request
  }

  /** @throws NodeUnreachable */
  async ask(
    node: ClusterNode,
    { method, path, headers = {}, client, body, signal, isStream = false }: NodeRequest,
  ): Promise<Response> {
    const given = Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [value].flat().flatMap((one) => [name.toLowerCase(), one]),
    )
    const raw = without('accept-encoding', without('content-length', endToEnd(given, single(headers.connection))))
    raw.push('content-length', String(body === undefined ? 0 : Buffer.byteLength(body)))
    const { authorization, cookie } = headers
    const message = { method, path, authorization: single(authorization), cookie: single(cookie), client }
    const request = this.open(node, message, raw, signal)
    const timer = this.#options.clock.after(ANSWER_MS, () => request.destroy(new Error('no answer in time')), 'always')
    try {
      const answer = await answered(request.end(body))
      const refusal = hopRefusal(answer)
      if (refusal) {
        answer.resume()
        throw refusal
      }
      if (isStream) timer.cancel()
      else answer.once('close', () => timer.cancel())
      return responseOf(answer)
    } catch (error) {
      timer.cancel()
      if (signal?.aborted) throw signal.reason
      throw new NodeUnreachable(node, error instanceof HopRefused || wasUnsent(request), error)
    }
  }

  /** Lets go of those that are not there any more, and of what is under way with them. */
  keep(nodes: readonly ClusterNode[]): void {
    const alive = new Set(nodes.map(({ n }) => n))
    for (const n of this.#there) if (!alive.has(n)) this.#gone.add(n)
    for (const n of alive) this.#gone.delete(n)
    this.#there = [...alive]
    for (const [n, agent] of this.#agents)
      if (!alive.has(n)) {
        agent.destroy()
        this.#agents.delete(n)
      }
  }

  close(): void {
    this.keep([])
  }

  #agentOf(n: number, isTls: boolean): Agent | TlsAgent {
    const known = this.#agents.get(n)
    if (known) return known
    const options = { keepAlive: true, maxFreeSockets: MAX_IDLE, timeout: IDLE_MS }
    const agent = isTls ? new TlsAgent({ ...options, ...this.#options.tls }) : new Agent(options)
    this.#agents.set(n, agent)
    return agent
  }
}

/** The other node does not take this one for a node, and has done nothing. What to do is for the operator of both. */
export class HopRefused extends Error {
  override readonly name = 'HopRefused'

  constructor(isLate: boolean) {
    const why = isLate
      ? 'the clocks of the two are more than 30 s apart'
      : 'cluster.secret is not the same at both of them'
    super(`The node that has this does not let this one in: ${why}. Nothing was asked of it.`)
  }
}

/** Why an answer is none, but a refusal to hear what was asked. */
export function hopRefusal({ headers }: IncomingMessage): HopRefused | undefined {
  const reason = headers[REFUSED_HEADER]
  return reason === undefined ? undefined : new HopRefused(reason === 'late')
}

const single = (value: string | readonly string[] | undefined): string | undefined =>
  typeof value === 'object' ? value.join(', ') : value

/** Requests that have no connection yet. */
const unsent = new WeakSet<ClientRequest>()

/** Whether nothing of a request that failed can have been heard. */
export const wasUnsent = (request: ClientRequest): boolean => unsent.has(request)

const answered = (request: ClientRequest): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    request.once('response', resolve).on('error', reject)
  })

const WITHOUT_BODY = new Set([204, 205, 304])

function responseOf(answer: IncomingMessage): Response {
  const status = answer.statusCode ?? 502
  const headers = new Headers()
  for (let at = 0; at < answer.rawHeaders.length; at += 2)
    headers.append(answer.rawHeaders[at]!, answer.rawHeaders[at + 1]!)
  if (WITHOUT_BODY.has(status)) {
    answer.resume()
    return new Response(null, { status, headers })
  }
  return new Response(Readable.toWeb(answer) as ReadableStream, { status, headers })
}
