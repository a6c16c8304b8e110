import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onSendHookHandler,
  preHandlerHookHandler,
  preSerializationHookHandler,
} from 'fastify'
import { GatewayError, invalidField, toError } from '../src/errors.js'
import type { Gateway } from '../src/gateway.js'
import type { TakenKey } from '../src/idempotency/making.js'
import { earlierFingerprintOf, fingerprintOf, scopedKey } from '../src/idempotency/scope.js'
import type { KeyState } from '../src/idempotency/store.js'
import { PATIENCE_MS, Patience, patiently } from '../src/lib/patience.js'
import { within } from '../src/lib/within.js'
import { tellFailure } from './error-log.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Marks a route that takes an Idempotency-Key. */
    idempotent?: boolean
  }
  interface FastifyRequest {
    /** The key that this request has taken: kept with what it makes, completed or released with its answer. */
    takenKey: (TakenKey & { patience: Patience; answer?: string }) | undefined
  }
}

const KEY = /^[!-~](?:[ -~]{0,253}[!-~])?$/
/** Headers of an answer that are part of it. */
const KEPT_HEADERS = ['content-type', 'location']

/** Carries out a request with an `Idempotency-Key` once and repeats its answer; one that was refused may be tried again. */
export function replayIdempotent(scope: FastifyInstance, { idempotency, clock }: Gateway): void {
  scope.decorateRequest('takenKey', undefined)

  /** Takes a key; one that is taken only after its request was refused is free again. */
  const begin = (key: string, fingerprint: string, patience: Patience): Promise<KeyState> =>
    patiently(
      clock,
      async (isRefused) => {
        const known = await idempotency.begin(key, fingerprint)
        if (known.state === 'new' && isRefused()) await idempotency.release(key)
        return known
      },
      { patience },
    )

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
    switch (known.state) {
      case 'new':
        request.takenKey = {
          ...{ key, fingerprint, path: path.replace(/\/+$/, '') },
          ...{ waitedMs: PATIENCE_MS - patience.leftMs, patience },
        }
        return false
      case 'in_flight':
        throw new GatewayError('SG_ERR_IDEMPOTENCY_IN_FLIGHT', { retryAfterS: 1 })
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
    { key, patience: { leftMs }, answer: body }: NonNullable<FastifyRequest['takenKey']>,
    request: FastifyRequest,
    reply: FastifyReply,
  ) {
    try {
      if (reply.statusCode < 300 && body !== undefined) {
        const kept = KEPT_HEADERS.flatMap((name) =>
          reply.hasHeader(name) ? [[name, String(reply.getHeader(name))]] : [],
        )
        const headers = Object.fromEntries(kept) as Record<string, string>
        const answer = { status: reply.statusCode, headers, body }
        await within(leftMs, idempotency.complete(key, answer), { clock })
      } else if (reply.statusCode !== 503) await within(leftMs, idempotency.release(key), { clock })
      // whoever was refused for the storage's sake has waited for it
      else idempotency.release(key).catch(() => {})
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
  // before a hook of the host makes other bytes of it, compressed ones perhaps
  const preSerialization: preSerializationHookHandler<unknown> = ({ takenKey }, reply, answer, done) => {
    if (takenKey) takenKey.answer = reply.serialize(answer as Record<string, unknown>) as string
    done(null, answer)
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
    route.preSerialization = [route.preSerialization ?? [], preSerialization].flat()
    route.onSend = [onSend, route.onSend ?? []].flat()
  })
}
