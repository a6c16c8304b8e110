/** A sign-in as it is kept: what a reader of it cannot use without the secret that the browser holds. */
export interface KeptSignIn {
  id: string
  /** SHA-256 of the secret, hexadecimal. */
  secretHash: string
  /** The token, sealed under the secret. */
  sealedToken: string
  /** Whose it is, as a digest. */
  owner: string
  /** Epoch milliseconds, as the others. */
  createdAt: number
  lastSeenAt: number
  /** However much it is used. */
  endsAt: number
  userAgent?: string
}

/** Where sign-ins are kept. `signInStoreConformance` says what each method does. */
export interface SignInStore {
  /** In the order in which they were first saved. */
  list(onUnreadable?: (error: Error) => void): Promise<KeptSignIn[]>
  /** Replaces the one with its id. Resolves when it is durable. */
  save(signIn: KeptSignIn): Promise<void>
  /** Replaces the one with its id, and does nothing when there is none. Resolves when it is durable. */
  renew?(signIn: KeptSignIn): Promise<void>
  /** Does nothing when there is none. Resolves when it is durable. */
  remove(id: string): Promise<void>
  /** Another one after every change, by whichever process. Absent: one process has the store. */
  version?(): Promise<number>
}
