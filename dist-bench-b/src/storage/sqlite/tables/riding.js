import { keyKeeper } from './idempotency.js';
import { notificationKeeper } from './notifications.js';
import { deliveryKeeper } from './outbox.js';
import { usageKeeper } from './usage.js';
/** Keeps what rides along in the write of something else, in its transaction. */
export function ridingKeeper(db) {
    const keepKey = keyKeeper(db);
    const keepDelivery = deliveryKeeper(db);
    const keepNotification = notificationKeeper(db);
    const addUsage = usageKeeper(db);
    return ({ keys = [], deliveries = [], notifications = [], usage = [] }) => {
        for (const key of keys)
            keepKey(key);
        for (const delivery of deliveries)
            keepDelivery(delivery);
        for (const notification of notifications)
            keepNotification(notification);
        for (const count of usage)
            addUsage(count);
    };
}
//# sourceMappingURL=riding.js.map