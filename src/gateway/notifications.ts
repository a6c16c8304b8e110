import type { SessionNotification } from '../../schemas/notifications.js'
import { type OverNodes, overNodes } from '../cluster/over-nodes.js'
import type { OwnNode } from '../cluster/own-node.js'
import type { Clock } from '../lib/clock.js'
import { answerableSessions } from '../notifications/answers/sessions.js'
import { attemptsLane } from '../notifications/channels/channels.js'
import type { ChannelStore } from '../notifications/channels/store.js'
import { DEFAULT_NOTIFICATION_RETENTION, NotificationFeed } from '../notifications/feed.js'
import { Inbox } from '../notifications/inbox.js'
import { Notifier } from '../notifications/notifier.js'
import { Outward } from '../notifications/outward.js'
import type { ResolvedOptions } from '../options.js'
import type { SessionRegistry } from '../sessions/registry.js'
import { createMemoryNotificationStore } from '../storage/memory/notification-store.js'
import type { GatewayStorage } from '../storage/storage.js'
import type { WebhookDeliverer } from '../webhooks/deliverer.js'
import type { EgressGuard } from '../webhooks/egress.js'
import type { DeliveryOutbox } from '../webhooks/outbox.js'
import type { Gateway, Surroundings } from './shape.js'

export interface NotificationsParts {
  options: ResolvedOptions
  clock: Clock
  retryAfter: Clock['after']
  storage: GatewayStorage | undefined
  channels: ChannelStore
  cluster: OwnNode | undefined
  registry: SessionRegistry
  deliverer: WebhookDeliverer
  outbox: DeliveryOutbox
  basePath: string
  /** Of the operator's own deliveries. */
  operatorGuard: EgressGuard
  pushGuard: EgressGuard
  callerNamed: Surroundings['callerNamed']
}

export interface BuiltNotifications {
  nodes: OverNodes | undefined
  feed: NotificationFeed
  inbox: Inbox
  notifier: Notifier
  outward: Outward
  /** What the routes and a host use of them. */
  notifications: Gateway['notifications']
}

/** How people are told of sessions, and answer them: over all nodes where there are several. */
export function buildNotifications(parts: NotificationsParts): BuiltNotifications {
  const { options, clock, retryAfter, storage, cluster, registry, deliverer, basePath } = parts
  const { logger } = options
  const here = answerableSessions(registry)
  const shareWith = { clock, logger, basePath, here, waiting: () => inbox.waiting }
  const nodes = cluster && overNodes(cluster, options.storage!.cluster!, shareWith)
  const feed = new NotificationFeed({
    ...{ clock, logger, node: nodes?.node, tellOthers: nodes && (() => void nodes.exchange.tell('notifications')) },
    store: storage?.notifications ?? createMemoryNotificationStore(),
    ridesAlong: storage?.notifications !== undefined && storage.oneWrite === true,
    forgetBefore: (time) => deliverer.prune(time),
    retention: { ...DEFAULT_NOTIFICATION_RETENTION, ...options.notifications?.retention },
  })
  const { onNotification, ...outwardOptions } = options.notifications ?? {}
  const outward = new Outward(outwardOptions, {
    ...{ clock, logger, retryAfter, deliverer, outbox: parts.outbox, outlasts: storage !== undefined, basePath },
    ...{ store: parts.channels, guard: parts.operatorGuard, pushGuard: parts.pushGuard },
    callerNamed: parts.callerNamed,
    ...{ shared: nodes !== undefined, tellOthers: nodes && (() => nodes.exchange.tell('subscriptions')) },
    sessions: nodes?.sessions ?? here,
  })
  const notifier = new Notifier({ feed, logger, outward })
  if (onNotification) notifier.on(onNotification)
  const inbox: Inbox = new Inbox({ logger, find: registry.waitingRequest, node: nodes?.node })
  const notifications = {
    feed,
    inbox,
    on: (listener: (notification: SessionNotification) => unknown) => notifier.on(listener),
    links: outward.links,
    push: outward.push,
    nodes,
    deliveries: (sessionId: string, seq: number) => deliverer.deliveries(attemptsLane(sessionId, seq)),
  }
  return { nodes, feed, inbox, notifier, outward, notifications }
}
