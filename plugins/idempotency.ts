import type { FastifyInstance, FastifyReply, FastifyRequest, onSendHookHandler, preHandlerHookHandler } from 'fastify'
import { GatewayError, invalidField, toError } from '../src/errors.js'
import type { Gateway } from '../src/gateway.js'
import { type TakenKey, takeKey } from '../src/idempotency/making.js'
import { earlierFingerprintOf, fingerprintOf, scopedKey } from '../src/idempotency/scope.js'
import type { KeyState, StoredAnswer } from '../src/idempotency/store.js'
import { KeyedLock } from '../src/lib/keyed-lock.js'
import { PATIENCE_MS, Patience } from '../src/lib/patience.js'
import { within } from '../src/lib/within.js'
import { tellFailure } from './error-log.js'
import { addToRequests } from './request-members.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Marks a route that takes an Idempotency-Key. */
    idempotent?: boolean
    /** Whether something of what was answered is to be tried again: the same key then goes on from it. */
    isUnfinished?: (answer: string) => boolean
  }
  interface FastifyRequest {
    /** The key that this request has taken: kept with what it makes, completed or released with its answer; `earlier` is one that it goes on from. */
    takenKey: (TakenKey & { patience: Patience; earlier?: string | undefined; answer?: StoredAnswer }) | undefined
  }
}

const KEY = /^[!-~](?:[ -~]{0,253}[!-~])?$/
/** Headers of an answer that are part of it. */
const KEPT_HEADERS = ['content-type', 'location']

/** Carries out a request with an `Idempotency-Key` once and repeats its answer; one that was refused may be tried again. */
export function replayIdempotent(scope: FastifyInstance, { idempotency, clock }: Gateway): void {
  addToRequests(scope, 'takenKey')

  /** Answered ones that are about to be gone on from. */
  const reopening = new KeyedLock()
  const begin = (key: string, fingerprint: string, patience: Patience): Promise<KeyState> =>
    takeKey(idempotency, clock, { key, fingerprint, patience })

  /** Takes the key, or answers with what was answered before; true then. */
  async function replay(given: unknown, request: FastifyRequest, reply: FastifyReply): Promise<boolean> {
    if (typeof given !== 'string' || !KEY.test(given))
      throw invalidField('Idempotency-Key', 'must be 1 to 255 characters of visible ASCII.')
    const path = request.url.split('?', 1)[0]!
    const key = scopedKey(request.principal, request.method, path, given)
    let fingerprint = fingerprintOf(request.body)
    const patience = new Patience(clock)
    let known = await begin(key, fingerprint, patience)
    if (known.state === 'mismatch') {
      // it may have been kept by a release before the order of members said nothing
      fingerprint = earlierFingerprintOf(request.body)
      known = await begin(key, fingerprint, patience)
    }
    const isUnfinished = request.routeOptions.config.isUnfinished ?? (() => false)
    let earlier: string | undefined
    if (known.state === 'answered' && isUnfinished(known.answer.body))
      // of several that come at once, one goes on
      known = await reopening.run(key, async () => {
        const still = await begin(key, fingerprint, patience)
        if (still.state !== 'answered' || !isUnfinished(still.answer.body)) return still
        earlier = still.answer.body
        await idempotency.release(key)
        return begin(key, fingerprint, patience)
      })
    switch (known.state) {
      case 'new':
        request.takenKey = {
          ...{ key, fingerprint, path: path.replace(/\/+$/, '') },
          ...{ waitedMs: PATIENCE_MS - patience.leftMs, patience, earlier },
        }
        return false
      case 'in_flight':
        throw new GatewayError('SG_ERR_IDEMPOTENCY_IN_FLIGHT')
      case 'mismatch':
        throw new GatewayError('SG_ERR_IDEMPOTENCY_MISMATCH')
      case 'answered': {
        const { status, headers, body } = known.answer
        reply.code(status).headers(headers).header('idempotent-replayed', 'true').send(Buffer.from(body))
        return true
      }
    }
  }

  async function remember(
    { key, patience: { leftMs }, answer }: NonNullable<FastifyRequest['takenKey']>,
    request: FastifyRequest,
    reply: FastifyReply,
  ) {
    try {
      // also when a hook of the host failed at it: it is done
      if (answer !== undefined) await within(leftMs, idempotency.complete(key, answer), { clock })
      // whoever was refused for the storage's sake has waited for it
      else if (reply.statusCode === 503) idempotency.release(key).catch(() => {})
      else await within(leftMs, idempotency.release(key), { clock })
    } catch (error) {
      // what was asked for is done, and kept together with its key
      tellFailure(request, { err: toError(error) }, 'the answer to an Idempotency-Key could not be remembered')
    }
  }

  // not async: most requests bring no key, and pass here
  const preHandler: preHandlerHookHandler = (request, reply, done) => {
    const given = request.headers['idempotency-key']
    if (given === undefined) done()
    else replay(given, request, reply).then((isAnswered) => isAnswered || done(), done)
  }
  const onSend: onSendHookHandler = (request, reply, payload, done) => {
    const { takenKey } = request
    request.takenKey = undefined
    if (takenKey === undefined) done(null, payload)
    else remember(takenKey, request, reply).then(() => done(null, payload))
  }
  scope.addHook('onRoute', (route) => {
    if (!route.config?.idempotent) return
    route.preHandler = [preHandler, route.preHandler ?? []].flat()
    route.onSend = [onSend, route.onSend ?? []].flat()
    const { handler } = route
    route.handler = function (request, reply) {
      const { takenKey } = request
      if (!takenKey) return handler.call(this, request, reply)
      keepAnswer(takenKey, reply)
      const answering = handler.call(this, request, reply)
      // a hook of the host that fails at the answer, and again at the refusal in its place, keeps both from the hook above
      const closed = new Promise<void>((resolve) => reply.raw.once('close', resolve))
      Promise.allSettled([answering, closed]).then(() => {
        if (request.takenKey !== takenKey) return
        request.takenKey = undefined
        void remember(takenKey, request, reply)
      })
      return answering
    }
  })
}

/** Keeps what is answered as it is sent, before a hook of the host makes other bytes of it, compressed ones perhaps. */
function keepAnswer(takenKey: NonNullable<FastifyRequest['takenKey']>, reply: FastifyReply): void {
  const send = reply.send.bind(reply)
  reply.send = ((body: unknown) => {
    if (typeof body === 'string' && reply.statusCode < 300)
      takenKey.answer = { status: reply.statusCode, headers: keptHeaders(reply), body }
    return send(body)
  }) as FastifyReply['send']
}

const keptHeaders = (reply: FastifyReply): Record<string, string> =>
  Object.fromEntries(
    KEPT_HEADERS.flatMap((name) => (reply.hasHeader(name) ? [[name, String(reply.getHeader(name))]] : [])),
  )
