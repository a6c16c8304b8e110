import type { KeptDelivery } from './outbox.js'
import type { WebhookTarget } from './target.js'

/** What is given up first when a lane is full: `progress`, then `normal`, `last` never. */
export type Importance = 'progress' | 'normal' | 'last'

/** What another process finds the target again by. It is stored, so it holds no secrets of the gateway. */
export type DeliveryOrigin =
  | { kind: 'job'; url: string; headers?: Record<string, string> }
  | { kind: 'notification' }
  | { kind: 'channel'; channel: string; subscription?: string }
  | { kind: 'reminder'; channel: string }
  | { kind: 'dispatch'; tool: string }

/** What survives JSON of a delivery. */
export interface StoredDelivery {
  type: string
  /** Sent as JSON; nobody changes it any more. */
  payload: object
  origin: DeliveryOrigin
  importance: Importance
  /** The lane under which its attempts are kept. Default: its own. */
  logLane?: string
  /** Epoch milliseconds, of what is not a delivery before that. */
  dueAt?: number
  /** How many attempts of it have failed. Absent: none. */
  failed?: number
  /** Epoch milliseconds: its receiver asked to be left alone until then. */
  notBefore?: number | undefined
  /** Key of the target that both are of. Absent: of the one that it goes to. */
  triedAt?: string
}

export interface Delivery extends StoredDelivery {
  /** Sent as `webhook-id`, the same in every attempt. */
  id: string
  target: WebhookTarget
}

/** A delivery that is safe from a crash, of something that has yet to take effect. Exactly one of the two is called, once. */
export interface PreparedDelivery {
  send(): void
  /** Nothing came of it: nothing is delivered. */
  withdraw(): void
}

/** A delivery that whoever writes down what it tells of keeps in the same write. */
export interface PlannedDelivery extends PreparedDelivery {
  /** What the outbox is to hold; absent when nothing outlasts the process. */
  kept: KeptDelivery | undefined
  /** Asks the outbox itself to keep it: for what is not written down, or elsewhere. */
  keep(): void
}

/** What another process left in the outbox. */
export interface LeftDelivery {
  lane: string
  id: string
  stored: StoredDelivery
}

/** @returns undefined when what was left by another process is not to be delivered any more, 'later' when it is the next one's to deliver */
export type FindTarget = (left: StoredDelivery & { lane: string }) => Promise<WebhookTarget | 'later' | undefined>

/** What of a delivery survives JSON. */
export function storedOf(delivery: Delivery): StoredDelivery {
  const { type, payload, origin, importance, logLane, failed, notBefore, target } = delivery
  return {
    ...{ type, payload, origin, importance },
    ...(logLane !== undefined && { logLane }),
    ...(failed !== undefined && { failed, triedAt: target.key }),
    ...(notBefore !== undefined && { notBefore }),
  }
}

/** What was kept, as it goes to the target that it has now: what another one answered is nothing to that. */
export function deliveryTo(target: WebhookTarget, { id, stored }: Pick<LeftDelivery, 'id' | 'stored'>): Delivery {
  const { failed, notBefore, triedAt = target.key, ...kept } = stored
  return { ...kept, ...(triedAt === target.key && { failed, notBefore }), id, target }
}
