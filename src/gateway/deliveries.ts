import { ExecutionDispatcher } from '../executions/dispatch.js'
import type { Executions } from '../executions/executions.js'
import { isPruned } from '../jobs/retention.js'
import { createMemoryDeliveryOutbox } from '../storage/memory/delivery-outbox.js'
import { WebhookDeliverer } from '../webhooks/deliverer.js'
import { EgressGuard, type EgressPolicy } from '../webhooks/egress.js'
import type { DeliveryOutbox } from '../webhooks/outbox.js'
import type { Ground } from './ground.js'

/** What is sent to addresses, and which it may be sent to. */
export interface Deliveries {
  readonly outbox: DeliveryOutbox
  readonly deliverer: WebhookDeliverer
  readonly guards: {
    /** Of addresses that callers name. */
    readonly callers: EgressGuard
    /** Of the operator's own, which may be anywhere. */
    readonly operator: EgressGuard
    /** Of browsers' push services. */
    readonly push: EgressGuard
  }
}

/** Where callers may have something sent to, as the operator says. */
export const callersEgress = ({ options: { webhookPolicy } }: Ground): EgressPolicy => ({
  allowPrivateNetworks: webhookPolicy?.allowPrivateNetworks ?? true,
  allowedHosts: webhookPolicy?.allowedHosts,
})

export function buildDeliveries(ground: Ground): Deliveries {
  const { options, clock, logger, storage, retryAfter, standstill } = ground
  const { webhookPolicy, queue } = options
  const egress = callersEgress(ground)
  const outbox = storage?.outbox ?? createMemoryDeliveryOutbox()
  const deliverer = new WebhookDeliverer({
    ...{ clock, logger, outbox, outlasts: storage !== undefined, retryAfter, standstill },
    connections: webhookPolicy?.maxConnections,
    isForgotten: ground.isOneOfSeveral && queue?.retention ? isPruned(queue.adapter ?? storage!.queue) : undefined,
  })
  return {
    ...{ outbox, deliverer },
    guards: {
      callers: new EgressGuard(egress),
      operator: new EgressGuard({ allowPrivateNetworks: true }),
      // a browser's endpoint is nobody's private address, unless the operator says so
      push: new EgressGuard({ ...egress, allowPrivateNetworks: webhookPolicy?.allowPrivateNetworks }),
    },
  }
}

/** Tells the operator's services of what tools they are to do. */
export const buildDispatcher = (
  { options, basePath, logger }: Ground,
  { deliverer, guards }: Deliveries,
  executions: Executions,
): ExecutionDispatcher =>
  new ExecutionDispatcher({
    ...options.executions,
    ...{ basePath, deliverer, executions, logger },
    guard: guards.operator,
  })
