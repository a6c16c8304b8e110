import type { Static } from '@sinclair/typebox'
import type { ConsoleStatus, WebhookState } from '../../schemas/console.js'
import { VERSION } from '../lib/package-root.js'
import type { CliProfiles } from '../profiles/cli-profiles.js'
import type { SessionRegistry } from '../sessions/registry.js'
import type { WebhookDeliverer } from '../webhooks/deliverer.js'
import type { WebhookTarget } from '../webhooks/target.js'

/** What is asked how it is. */
export interface StatusParts {
  readonly registry: Pick<SessionRegistry, 'count'>
  readonly cliProfiles: Pick<CliProfiles, 'installed'>
  readonly deliverer: Pick<WebhookDeliverer, 'isGone' | 'failing' | 'pending' | 'counts'>
  webhooks(): WebhookTarget[]
  readonly writable: boolean
  readonly startedAt: number
  readonly options: { storage?: object | undefined }
}

/** How a gateway is, for who operates it. */
export async function statusOf(gateway: StatusParts): Promise<Static<typeof ConsoleStatus>> {
  const { registry, cliProfiles, deliverer, writable, startedAt, options } = gateway
  return {
    version: VERSION,
    node: process.versions.node,
    startedAt,
    storage: { outlasts: options.storage !== undefined, writable },
    sessions: registry.count(),
    agents: await cliProfiles.installed(),
    webhooks: gateway.webhooks().map((target) => stateOf(target, deliverer)),
    deliveries: { pending: deliverer.pending, ...deliverer.counts },
  }
}

function stateOf(target: WebhookTarget, deliverer: StatusParts['deliverer']): WebhookState {
  const failure = deliverer.failing.of(target)
  const state = deliverer.isGone(target) ? 'gone' : failure ? 'failing' : 'ok'
  return { name: target.name ?? '', origin: new URL(target.url).origin, state, ...failure }
}
