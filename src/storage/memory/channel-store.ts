import type { ChannelStore, KeptSubscription } from '../../notifications/channels/store.js'

/** Keeps keys and subscriptions for as long as the process runs. */
export function createMemoryChannelStore(): ChannelStore {
  const keys = new Map<string, string>()
  const subscriptions = new Map<string, string>()
  return {
    async keyOnce(name, value) {
      if (!keys.has(name)) keys.set(name, value)
      return keys.get(name)!
    },
    async key(name) {
      return keys.get(name)
    },
    async saveKey(name, value) {
      keys.set(name, value)
    },
    async subscriptions() {
      return [...subscriptions.values()].map((text): KeptSubscription => JSON.parse(text))
    },
    async saveSubscription(subscription) {
      subscriptions.set(subscription.id, JSON.stringify(subscription))
    },
    async removeSubscription(id) {
      subscriptions.delete(id)
    },
  }
}
