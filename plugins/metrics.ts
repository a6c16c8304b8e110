import type { FastifyPluginAsync } from 'fastify'
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import { TurnSubtype } from '../schemas/events.js'
import { GatewayError } from '../src/errors.js'
import type { Gateway } from '../src/gateway.js'
import type { Identify } from './auth.js'
import { requireIdentity } from './auth.js'
import { guardHost } from './edge.js'
import { answerAsOwn } from './errors.js'
import { addBeside, refuseOthersAt } from './methods.js'
import { refuseWhileStanding } from './standing.js'
import type { Streams } from './streams.js'

let ofProcess: Registry | undefined
/** Of the process itself. What watches it is never ended, and so is there once, however many gateways come and go. */
function processMetrics(): Registry {
  if (!ofProcess) {
    ofProcess = new Registry()
    collectDefaultMetrics({ register: ofProcess })
  }
  return ofProcess
}

/** `GET /metrics` in the format of Prometheus, behind `authenticate`, for callers without limits. */
export const metrics: FastifyPluginAsync<{ gateway: Gateway; identify: Identify; streams: Streams }> = async (
  scope,
  { gateway, identify, streams },
) => {
  const register = new Registry()
  const { registry, queue, deliverer } = gateway
  new Gauge({
    name: 'session_gateway_sessions',
    help: 'Sessions: live, parked or ended.',
    labelNames: ['state'],
    registers: [register],
    collect() {
      const { live, parked, ended } = registry.count()
      this.set({ state: 'live' }, live)
      this.set({ state: 'parked' }, parked)
      this.set({ state: 'ended' }, ended)
    },
  })
  new Gauge({
    name: 'session_gateway_streams',
    help: 'Open WebSockets and event streams.',
    registers: [register],
    collect() {
      this.set(streams.size)
    },
  })
  const created = new Counter({
    name: 'session_gateway_sessions_created_total',
    help: 'Sessions created.',
    registers: [register],
  })
  const turns = new Counter({
    name: 'session_gateway_turns_total',
    help: 'Turns completed, by how they ended.',
    labelNames: ['subtype'],
    registers: [register],
  })
  // a rate from the first one on needs to have seen none
  for (const { const: subtype } of TurnSubtype.anyOf) turns.inc({ subtype }, 0)
  const failures = new Counter({
    name: 'session_gateway_session_errors_total',
    help: 'Sessions that failed.',
    registers: [register],
  })
  if (queue)
    new Gauge({
      name: 'session_gateway_jobs',
      help: 'Jobs that are not over.',
      labelNames: ['state'],
      registers: [register],
      async collect() {
        const { queued, running, parked } = await queue.stats()
        for (const [state, count] of Object.entries({ queued, running, parked })) this.set({ state }, count)
      },
    })
  new Counter({
    name: 'session_gateway_webhook_deliveries_total',
    help: 'Webhook deliveries: delivered, lost for good, or attempts that failed.',
    labelNames: ['outcome'],
    registers: [register],
    collect() {
      const { delivered, lost, failedAttempts } = deliverer.counts
      this.reset()
      for (const [outcome, count] of Object.entries({ delivered, lost, failed_attempt: failedAttempts }))
        this.inc({ outcome }, count)
    },
  })
  new Gauge({
    name: 'session_gateway_webhook_deliveries_waiting',
    help: 'Webhook deliveries that wait or are under way.',
    registers: [register],
    collect() {
      this.set(deliverer.pending)
    },
  })
  const all = Registry.merge([processMetrics(), register])
  const observations = [
    registry.follow('session_created', () => created.inc()),
    registry.follow('session_event', ({ event }) => {
      if (event.type === 'turn_completed') turns.inc({ subtype: event.subtype })
      else if (event.type === 'session_error') failures.inc()
    }),
  ]
  scope.addHook('onClose', async () => {
    for (const stop of observations) stop()
  })
  answerAsOwn(scope, gateway)
  guardHost(scope, gateway)
  refuseWhileStanding(scope, gateway)
  requireIdentity(scope, gateway, identify)
  addBeside('metrics', () => {
    scope.get('/metrics', { logLevel: 'warn' }, async ({ principal }, reply) => {
      // they count everybody's sessions
      if (principal.allowedProfiles) throw new GatewayError('SG_ERR_METRICS_FORBIDDEN')
      return reply.type(all.contentType).send(await all.metrics())
    })
    refuseOthersAt(scope, '/metrics', { methods: ['GET', 'HEAD'] })
  })
}
