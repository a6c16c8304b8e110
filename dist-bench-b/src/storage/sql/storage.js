import { StorageError } from '../storage.js';
import { idempotencyStore } from './idempotency-store.js';
import { queueAdapter } from './queue-adapter.js';
import { sessionJournal } from './session-journal.js';
import { channelStore, deliveryOutbox, notificationStore, profileStore, sessionStore, signInStore, usageStore, } from './stores.js';
/**
 * @param place of the database, to be named to whoever asks while it is not open
 * @param openDatabase one after the other with its close, however often either is asked for
 * @param isShared whether several processes may have it open
 */
export function databaseStorage(place, openDatabase, now = Date.now, isShared = false) {
    let database;
    let opened;
    let closed = Promise.resolve();
    const call = (name, ...args) => database ? database.call(name, ...args) : Promise.reject(notOpen(place));
    return {
        oneWrite: true,
        sessions: sessionStore(call),
        journal: sessionJournal(call, now, isShared),
        profiles: profileStore(call, now, isShared),
        queue: queueAdapter(call, now),
        idempotency: idempotencyStore(call, now),
        outbox: deliveryOutbox(call, () => database?.isOneOfMany ?? false),
        notifications: notificationStore(call, isShared),
        channels: channelStore(call, isShared),
        signIns: signInStore(call, isShared),
        usage: usageStore(call),
        atTurnsEnd(work) {
            if (database)
                database.atTurnsEnd(work);
            else
                queueMicrotask(work);
        },
        async probe() {
            await call('probe.write');
            await call('probe.clear');
        },
        open() {
            if (opened)
                return opened;
            const opening = closed.then(async () => {
                database = await openDatabase();
            });
            opened = opening;
            // what went wrong may be gone at the next try
            opening.catch(() => {
                if (opened === opening)
                    opened = undefined;
            });
            return opening;
        },
        close() {
            const close = async () => {
                const closing = database;
                database = undefined;
                await closing?.close();
            };
            if (opened)
                closed = opened.then(close, () => { });
            opened = undefined;
            return closed;
        },
    };
}
export const notOpen = (place) => new StorageError('STORAGE_CLOSED', `${place} is not open.`);
//# sourceMappingURL=storage.js.map