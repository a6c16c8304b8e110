import { overNodes } from './cluster/over-nodes.js';
import { answerableSessions } from './notifications/answers/sessions.js';
import { attemptsLane } from './notifications/channels/channels.js';
import { DEFAULT_NOTIFICATION_RETENTION, NotificationFeed } from './notifications/feed.js';
import { Inbox } from './notifications/inbox.js';
import { Notifier } from './notifications/notifier.js';
import { Outward } from './notifications/outward.js';
import { createMemoryNotificationStore } from './storage/memory/notification-store.js';
/** How people are told of sessions, and answer them: over all nodes where there are several. */
export function buildNotifications(parts) {
    const { options, clock, retryAfter, storage, cluster, registry, deliverer, basePath } = parts;
    const { logger } = options;
    const here = answerableSessions(registry);
    const shareWith = { clock, logger, basePath, here, waiting: () => inbox.waiting };
    const nodes = cluster && overNodes(cluster, options.storage.cluster, shareWith);
    const feed = new NotificationFeed({
        ...{ clock, logger, node: nodes?.node, tellOthers: nodes && (() => void nodes.exchange.tell('notifications')) },
        store: storage?.notifications ?? createMemoryNotificationStore(),
        ridesAlong: storage?.notifications !== undefined && storage.oneWrite === true,
        retention: { ...DEFAULT_NOTIFICATION_RETENTION, ...options.notifications?.retention },
    });
    const { onNotification, ...outwardOptions } = options.notifications ?? {};
    const outward = new Outward(outwardOptions, {
        ...{ clock, logger, retryAfter, deliverer, outbox: parts.outbox, outlasts: storage !== undefined, basePath },
        ...{ store: parts.channels, guard: parts.operatorGuard, pushGuard: parts.pushGuard },
        callerNamed: parts.callerNamed,
        ...{ shared: nodes !== undefined, tellOthers: nodes && (() => nodes.exchange.tell('subscriptions')) },
        sessions: nodes?.sessions ?? here,
    });
    const notifier = new Notifier({ feed, logger, outward });
    if (onNotification)
        notifier.on(onNotification);
    const inbox = new Inbox({ logger, find: registry.waitingRequest, node: nodes?.node });
    const notifications = {
        feed,
        inbox,
        on: (listener) => notifier.on(listener),
        links: outward.links,
        push: outward.push,
        nodes,
        deliveries: (sessionId, seq) => deliverer.deliveries(attemptsLane(sessionId, seq)),
    };
    return { nodes, feed, inbox, notifier, outward, notifications };
}
//# sourceMappingURL=gateway-notifications.js.map