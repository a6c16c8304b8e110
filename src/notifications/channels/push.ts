import { tried } from '../../lib/tried.js'
import { StorageError } from '../../storage/storage.js'
import type { ChannelStore } from './store.js'
import type { PushSubscriptions } from './subscriptions.js'
import { newVapidKeys, type VapidIdentity } from './web-push.js'

const VAPID_KEY = 'vapid'

/** What web push needs of the gateway: by whom push services know it, and the browsers. */
export class WebPush {
  readonly subscriptions: PushSubscriptions
  readonly #store: ChannelStore
  #keys: { publicKey: string; privateKey: string } | undefined

  constructor(store: ChannelStore, subscriptions: PushSubscriptions) {
    this.#store = store
    this.subscriptions = subscriptions
  }

  /** Reads what earlier processes left; makes the keys when there are none yet. @throws what the store throws */
  async open(): Promise<void> {
    const kept =
      (await this.#store.key(VAPID_KEY)) ?? (await this.#store.keyOnce(VAPID_KEY, JSON.stringify(newVapidKeys())))
    this.#keys = tried(() => JSON.parse(kept))
    if (typeof this.#keys?.publicKey !== 'string')
      throw new StorageError(
        'STORAGE_UNREADABLE',
        `The key ${VAPID_KEY} cannot be read: its row in the table gateway_keys of the database is damaged, and was left in place. ` +
          'Restore a backup, or delete that row: the next start makes another key, and every browser has to subscribe again.',
      )
    await this.subscriptions.load()
  }

  /** For `pushManager.subscribe`, base64url. Once it is open. */
  get publicKey(): string {
    return this.#opened.publicKey
  }

  identity(subject: string): VapidIdentity {
    return { subject, ...this.#opened }
  }

  get #opened() {
    if (!this.#keys) throw new Error('Web push is not open yet.')
    return this.#keys
  }
}
