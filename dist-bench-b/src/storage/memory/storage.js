import { createMemoryChannelStore } from './channel-store.js';
import { createMemoryDeliveryOutbox } from './delivery-outbox.js';
import { createMemoryIdempotencyStore } from './idempotency-store.js';
import { createMemoryNotificationStore } from './notification-store.js';
import { createMemoryProfileStore } from './profile-store.js';
import { createMemoryQueueAdapter } from './queue-adapter.js';
import { createMemorySessionJournal } from './session-journal.js';
import { createMemorySignInStore } from './sign-in-store.js';
import { createMemoryUsageStore } from './usage-store.js';
/**
 * Everything that a gateway keeps, for as long as the process runs; what is written together is there together. Opened again, it is as
 * a disk would be after a restart: for tests, and as the pattern for storages of your own.
 * @param options.now epoch milliseconds; default `Date.now`
 */
export function createMemoryStorage({ now = Date.now } = {}) {
    const idempotency = createMemoryIdempotencyStore({ now });
    const outbox = createMemoryDeliveryOutbox();
    const notifications = createMemoryNotificationStore();
    const usage = createMemoryUsageStore();
    const onKey = idempotency.keepNow;
    return {
        oneWrite: true,
        journal: createMemorySessionJournal({
            ...{ onKey, onDelivery: outbox.addNow, onNotification: notifications.addNow, onUsage: usage.addNow },
        }),
        profiles: createMemoryProfileStore({ onKey }),
        queue: createMemoryQueueAdapter({ now, onKey, onDelivery: outbox.addNow }),
        idempotency,
        outbox,
        notifications,
        channels: createMemoryChannelStore(),
        signIns: createMemorySignInStore(),
        usage,
        async open() {
            idempotency.onRestart();
        },
        async close() { },
    };
}
//# sourceMappingURL=storage.js.map