import { newVapidKeys } from './web-push.js';
const VAPID_KEY = 'vapid';
/** What web push needs of the gateway: by whom push services know it, and the browsers. */
export class WebPush {
    subscriptions;
    #store;
    #keys;
    constructor(store, subscriptions) {
        this.#store = store;
        this.subscriptions = subscriptions;
    }
    /** Reads what earlier processes left; makes the keys when there are none yet. @throws what the store throws */
    async open() {
        const kept = (await this.#store.key(VAPID_KEY)) ?? (await this.#store.keyOnce(VAPID_KEY, JSON.stringify(newVapidKeys())));
        this.#keys = JSON.parse(kept);
        await this.subscriptions.load();
    }
    /** For `pushManager.subscribe`, base64url. Once it is open. */
    get publicKey() {
        return this.#opened.publicKey;
    }
    identity(subject) {
        return { subject, ...this.#opened };
    }
    get #opened() {
        if (!this.#keys)
            throw new Error('Web push is not open yet.');
        return this.#keys;
    }
}
//# sourceMappingURL=push.js.map