/** A browser that wants to be told, as it is kept. */
export interface KeptSubscription {
  id: string
  endpoint: string
  keys: { p256dh: string; auth: string }
  /** Name of the principal; absent: callers without a name. */
  principal?: string
  /** The sign-in to the console that it was made in, and ends with. Absent: it was made with a token. */
  signIn?: string
  /** Digest of what its principal is told by from others, where that is not its name. */
  owner?: string
  /** Profiles that the principal could see when it subscribed. Absent: all. */
  allowedProfiles?: string[]
  /** What it wants to hear of. Absent: what its channel tells. */
  events?: string[]
  profiles?: string[]
  createdAt: number
  /** Not told after that, unless it subscribes again. Epoch milliseconds. */
  expiresAt: number
}

/**
 * What channels keep: keys of the gateway's own, by name, and the browsers that subscribed. `channelStoreConformance` says what each
 * method does.
 */
export interface ChannelStore {
  /** What is kept under a name: `value` from now on, when there was nothing. Resolves when it is durable. */
  keyOnce(name: string, value: string): Promise<string>
  key(name: string): Promise<string | undefined>
  /** Resolves when it is durable. */
  saveKey(name: string, value: string): Promise<void>
  /** In the order in which they were first saved. @param onUnreadable told of each one that is there and cannot be read */
  subscriptions(onUnreadable?: (error: Error) => void): Promise<KeptSubscription[]>
  /** Replaces the one with its id. Resolves when it is durable. */
  saveSubscription(subscription: KeptSubscription): Promise<void>
  /** Does nothing when there is none. */
  removeSubscription(id: string): Promise<void>
  /** Another one after every change of subscriptions, by whichever process. Absent: one process has the store. */
  version?(): Promise<number>
}
