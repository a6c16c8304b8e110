/** An answer as it was sent the first time. */
export interface StoredAnswer {
  status: number
  /** Lower-case names. */
  headers: Record<string, string>
  body: string
}

/** What is known about a key when a request with it arrives. */
export type KeyState =
  | { state: 'new' }
  /** The first request is still in progress. */
  | { state: 'in_flight' }
  /** The key was used for another request. */
  | { state: 'mismatch' }
  | { state: 'answered'; answer: StoredAnswer }

/** What a request with a key has made. */
export interface Made {
  /** An answer is the one to a permission request. */
  kind: 'session' | 'job' | 'profile' | 'answer'
  /** A profile's is its name, an answer's that of its request. */
  id: string
  /** Where it is found, as the answer says. */
  location: string
}

/**
 * A key that was taken, together with what its request makes: it rides along in the write that makes it, so that a crash keeps both or
 * neither.
 */
export interface KeptKey {
  key: string
  fingerprint: string
  made: Made
}

/**
 * Where answers are remembered by key, for a day. A key whose request a crash left unanswered is free again, unless it was kept together
 * with what the request had made.
 */
export interface IdempotencyStore {
  /** Takes the key for a request, when it is free; atomic. */
  begin(key: string, fingerprint: string): Promise<KeyState>
  /** Remembers the answer under a key that was taken. */
  complete(key: string, answer: StoredAnswer): Promise<void>
  /** Frees a key whose request changed nothing. */
  release(key: string): Promise<void>
  /** Keeps a key for what is made next by a part that is stored elsewhere and cannot take the key along. */
  keep?(key: KeptKey): Promise<void>
  /**
   * Takes the keys that were kept and that an earlier process has not answered: each is then to be completed with an answer made from
   * what is there, or released when it is not. Called before any other key is taken, and again when this process has taken over another
   * one's.
   * @param keys only those; default: all
   * @param onUnreadable told of each of which it cannot be read what was made: it stays taken
   */
  left?(keys?: readonly string[], onUnreadable?: (error: Error) => void): Promise<KeptKey[]>
}

export const REMEMBERED_MS = 24 * 60 * 60 * 1000
