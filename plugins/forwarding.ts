import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { NodeUnreachable, type Target } from '../src/cluster/cluster.js'
import { endToEnd, type HopRefused, hopRefusal, wasUnsent } from '../src/cluster/hop-client.js'
import type { OwnNode } from '../src/cluster/own-node.js'
import { GatewayError } from '../src/errors.js'
import type { Gateway } from '../src/gateway.js'
import { asUnavailable } from '../src/lib/patience.js'
import type { ClusterNode } from '../src/storage/cluster.js'
import { stays } from './connections.js'
import { clientOf } from './hops.js'
import { announcesBody, breakOff, isGone, saysClose, writeHeadOf } from './http-versions.js'
import { ReplayableBody } from './replayable-body.js'
import type { Splices } from './splices.js'
import { isUpgrade, ownUpgrades, readAhead } from './upgrades.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * What a path with a parameter is about, and so which node answers it: the one that has this session (`:id`), the session of this
     * execution (`:executionId`) or this job (`:id`), or `any`.
     */
    owner?: 'session' | 'execution' | 'job' | 'any'
  }
}

/** Without a body, and the same when it is asked for twice. */
const REPEATABLE = new Set(['GET', 'HEAD'])

/** The node that answered a request, for its line in the log. */
const forwarded = new WeakMap<FastifyRequest, string>()
export const forwardedTo = (request: FastifyRequest): string | undefined => forwarded.get(request)

export interface ForwardingParts {
  host: FastifyInstance
  gateway: Gateway
  splices: Splices
}

/**
 * Passes what is about something that another node has on to that node, whole and once, and its answer back as it is. Comes when the
 * caller was let in and before anything of the body was read; the other node lets them in again.
 */
export function forwardToOwner(scope: FastifyInstance, { host, gateway, splices }: ForwardingParts): void {
  scope.addHook('onRoute', ({ url, config }) => {
    if (url.slice(scope.prefix.length).includes(':') && !config?.owner)
      throw new Error(`${url}: say in its config whose it is (owner), so that every node can answer it`)
  })
  const { cluster } = gateway
  if (!cluster) return
  const { maxBodyBytes } = gateway.options
  scope.addHook('onRequest', (request, reply, done) => {
    const target = targetOf(request)
    if (!target) return done()
    if (request.hop && gateway.draining && !isRead(request, cluster, target)) {
      // once the storage is closed all of it is left with the node
      const left = cluster.leaveTo(target).catch(() => gateway.close().then(() => true))
      left.then(
        (isLeft) => done(new GatewayError(isLeft ? 'SG_ERR_WRONG_NODE' : 'SG_ERR_SHUTTING_DOWN', { retryAfterS: 5 })),
        (error) => done(asUnavailable(error)),
      )
      return
    }
    if (cluster.isResident(target)) return done()
    if (request.hop) {
      cluster.where(target).then(
        (place) => done(place === 'here' ? undefined : new GatewayError('SG_ERR_WRONG_NODE')),
        (error) => done(asUnavailable(error)),
      )
      return
    }
    const forwarding = new Forwarding({ host, cluster, splices, request, reply, target, maxBodyBytes })
    forwarding.run().then(
      (isHere) => isHere && done(),
      (error) => {
        forwarding.end()
        done(asUnavailable(error))
      },
    )
  })
}

/** Whether it asks a node that drains for nothing but what that one knows of what is still at work there. */
const isRead = (request: FastifyRequest, cluster: OwnNode, target: Target): boolean =>
  REPEATABLE.has(request.method) && !stays(request) && ('job' in target || cluster.isResident(target))

function targetOf({ routeOptions: { config }, params }: FastifyRequest): Target | undefined {
  const { id = '', executionId = '' } = params as { id?: string; executionId?: string }
  switch (config.owner) {
    case 'session':
      return { session: id }
    case 'job':
      return { job: id }
    case 'execution':
      return { execution: executionId }
    default:
      return undefined
  }
}

/** What became of one attempt. */
type Outcome = 'answered' | 'elsewhere' | 'unsent' | 'lost'

interface Parts {
  host: FastifyInstance
  cluster: OwnNode
  splices: Splices
  request: FastifyRequest
  reply: FastifyReply
  target: Target
  maxBodyBytes: number
}

class Forwarding {
  readonly #parts: Parts
  readonly #body: ReplayableBody
  /** Of the last attempt, when the node did not let this one in. */
  #refusal: HopRefused | undefined
  /** Of the last attempt that failed, for the log. */
  #failure: NodeUnreachable | undefined

  constructor(parts: Parts) {
    this.#parts = parts
    this.#body = new ReplayableBody(parts.request.raw)
  }

  /** @returns whether it is to be answered here */
  async run(): Promise<boolean> {
    const { cluster, target, request, reply } = this.#parts
    for (const isLast of [false, true]) {
      const place = await cluster.where(target)
      if (isGone(reply.raw)) return false
      if (place === 'here' && !this.#body.isTouched) return true
      // what was read of it already comes back as a request of its own
      const node = place === 'here' ? cluster.itself() : place
      if (!node) break
      this.#assertSize(Number(request.headers['content-length'] ?? 0))
      const outcome = await this.#attempt(node)
      if (outcome === 'answered') {
        forwarded.set(request, node.name)
        return false
      }
      cluster.forget(target)
      if (outcome === 'lost') this.#assertSize(this.#body.bytes)
      if (outcome === 'lost' && !(REPEATABLE.has(request.method) && this.#body.isEmpty))
        throw new GatewayError('SG_ERR_NODE_LOST', { cause: this.#failure })
      if (isLast || !this.#body.canReplay) break
    }
    const detail = this.#refusal && { detail: this.#refusal.message }
    const cause = this.#refusal ?? this.#failure
    throw new GatewayError('SG_ERR_NODE_UNREACHABLE', { cause, ...detail })
  }

  /** Nobody is asked any more. A body that nobody reads would hold its stream of an HTTP/2 connection for as long as that lasts. */
  end(): void {
    this.#body.settle()
  }

  /** The owner would refuse it and hang up, in the midst of what is still being sent. */
  #assertSize(bytes: number): void {
    const { reply, maxBodyBytes } = this.#parts
    if (bytes <= maxBodyBytes) return
    if (saysClose(reply.raw)) reply.header('connection', 'close')
    throw new GatewayError('SG_ERR_BODY_TOO_LARGE')
  }

  #attempt(node: ClusterNode): Promise<Outcome> {
    const { cluster, request, reply } = this.#parts
    const { raw, method, headers } = request
    const { authorization, cookie, connection } = headers
    const message = { method, path: request.originalUrl, authorization, cookie, client: clientOf(request) }
    const asked = cluster.hops.open(node, message, [...endToEnd(raw.rawHeaders, connection), ...this.#framing()])
    const onGone = () => asked.destroy()
    reply.raw.once('close', onGone)
    return new Promise((resolve) => {
      let isSettled = false
      const settle = (outcome: Outcome) => {
        if (isSettled) return
        isSettled = true
        if (outcome === 'answered') this.#body.settle()
        else {
          reply.raw.off('close', onGone)
          this.#body.detach()
        }
        resolve(outcome)
      }
      const fails = (outcome: Outcome, error: unknown) => {
        if (!isSettled) this.#failure = new NodeUnreachable(node, outcome !== 'lost', error)
        settle(outcome)
      }
      asked.on('error', (error) => fails(wasUnsent(asked) ? 'unsent' : 'lost', error))
      asked.once('response', (answer) => {
        this.#refusal = hopRefusal(answer)
        if (this.#refusal || answer.statusCode === 421) {
          answer.resume()
          fails('elsewhere', new Error('Another node answers there, or it does not have this any more.'))
          if (!this.#body.isSent) asked.destroy()
          return
        }
        settle('answered')
        this.#passBack(answer, asked)
      })
      asked.once('upgrade', (answer, owner: Socket, head) => {
        reply.raw.off('close', onGone)
        settle('answered')
        this.#splice(node, answer, owner, head)
      })
      this.#send(asked)
    })
  }

  /** What the connection's own headers said of the message. */
  #framing(): string[] {
    const { request } = this.#parts
    if (isUpgrade(request)) return ['connection', 'Upgrade', 'upgrade', 'websocket']
    if (request.headers['content-length'] !== undefined) return []
    if (announcesBody(request.raw)) return ['transfer-encoding', 'chunked']
    // else Node would announce one
    return REPEATABLE.has(request.method) ? [] : ['content-length', '0']
  }

  /** Nothing is read of the body before there is somebody to read it. */
  #send(asked: ClientRequest): void {
    if (this.#body.isEmpty) {
      asked.end()
      return
    }
    const begin = () => this.#body.pipeTo(asked)
    asked.once('socket', (socket) => (socket.connecting ? socket.once('connect', begin) : begin()))
  }

  #passBack(answer: IncomingMessage, asked: ClientRequest): void {
    const { request, reply } = this.#parts
    const { raw } = reply
    reply.hijack()
    const { connection } = answer.headers
    const headers = endToEnd(answer.rawHeaders, connection)
    // a body that nobody reads on does not hold up the next request
    const isOver = isUpgrade(request) || (!this.#body.isSent && /\bclose\b/i.test(connection ?? ''))
    if (isOver && saysClose(raw)) headers.push('connection', 'close')
    writeHeadOf(raw, answer.statusCode ?? 502, answer.statusMessage ?? '', headers)
    if (answer.headers['content-length'] === undefined) raw.flushHeaders()
    answer.once('error', () => breakOff(raw))
    answer.once('aborted', () => breakOff(raw))
    asked.on('error', () => breakOff(raw))
    answer.pipe(raw)
  }

  #splice({ n }: ClusterNode, answer: IncomingMessage, owner: Socket, head: Buffer): void {
    const { host, request, reply, splices } = this.#parts
    const { socket } = request.raw
    if (socket.destroyed) {
      owner.destroy()
      return
    }
    reply.hijack()
    reply.raw.detachSocket(socket)
    ownUpgrades(host.server).release(socket)
    splices.add({ client: socket, owner, n }, answer, { client: readAhead(request.raw), owner: head })
  }
}
