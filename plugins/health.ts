import type { FastifyPluginAsync } from 'fastify'
import { RETRY_AFTER_S } from '../src/errors.js'
import type { Gateway } from '../src/gateway.js'
import { keepFromCaches } from './auth.js'
import { upgradeRefusals } from './edge.js'
import { answerAsOwn } from './errors.js'
import { addBeside, refuseOthersAt } from './methods.js'
import { isUpgrade } from './upgrades.js'

/**
 * `GET /healthz`: the process is alive. `GET /readyz`: it takes work; 503 before it started, while it drains and while its storage takes
 * nothing.
 */
export const health: FastifyPluginAsync<{ gateway: Gateway }> = async (scope, { gateway }) => {
  answerAsOwn(scope, gateway)
  const refuseUpgrade = upgradeRefusals(gateway)
  scope.addHook('onRequest', (request, reply, done) => {
    // how it is now: who balances by a kept answer sends work to a node that drains
    keepFromCaches(request, reply)
    done(isUpgrade(request) ? refuseUpgrade(request) : undefined)
  })
  addBeside('health', () => {
    scope.get('/healthz', { logLevel: 'warn' }, async () => ({ status: 'ok' }))
    scope.get('/readyz', { logLevel: 'warn' }, async (_request, reply) => {
      if (gateway.ready) return { status: 'ready' }
      return reply
        .code(503)
        .header('retry-after', RETRY_AFTER_S[503])
        .send({ status: notReady(gateway) })
    })
    for (const url of ['/healthz', '/readyz']) refuseOthersAt(scope, url, { methods: ['GET', 'HEAD'] })
  })
}

function notReady({ draining, writable, standing }: Gateway): string {
  if (draining) return 'draining'
  if (standing?.isLost) return 'lost'
  return writable ? 'starting' : 'storage_unavailable'
}
