import type { SessionNotification } from '../../schemas/notifications.js'
import { type OverNodes, overNodes } from '../cluster/over-nodes.js'
import type { OwnNode } from '../cluster/own-node.js'
import { answerableSessions } from '../notifications/answers/sessions.js'
import { attemptsLane } from '../notifications/channels/channels.js'
import type { ChannelStore } from '../notifications/channels/store.js'
import { DEFAULT_NOTIFICATION_RETENTION, NotificationFeed } from '../notifications/feed.js'
import { Inbox } from '../notifications/inbox.js'
import { Notifier } from '../notifications/notifier.js'
import { Outward } from '../notifications/outward.js'
import type { SessionRegistry } from '../sessions/registry.js'
import { createMemoryNotificationStore } from '../storage/memory/notification-store.js'
import type { Deliveries } from './deliveries.js'
import type { Ground } from './ground.js'
import type { Gateway } from './shape.js'

export interface NotificationsParts extends Deliveries {
  channels: ChannelStore
  cluster: OwnNode | undefined
  registry: SessionRegistry
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
export function buildNotifications(ground: Ground, parts: NotificationsParts): BuiltNotifications {
  const { options, clock, logger, retryAfter, storage, basePath, surroundings } = ground
  const { cluster, registry, deliverer, outbox, guards } = parts
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
    ...{ clock, logger, retryAfter, deliverer, outbox, outlasts: storage !== undefined, basePath },
    ...{ store: parts.channels, guard: guards.operator, pushGuard: guards.push },
    callerNamed: surroundings.callerNamed,
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
