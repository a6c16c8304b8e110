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

/** Where answers are remembered by key, for a day. A key whose request a crash left unanswered is free again. */
export interface IdempotencyStore {
  /** Takes the key for a request, when it is free; atomic. */
  begin(key: string, fingerprint: string): Promise<KeyState>
  /** Remembers the answer under a key that was taken. */
  complete(key: string, answer: StoredAnswer): Promise<void>
  /** Frees a key whose request changed nothing. */
  release(key: string): Promise<void>
}

export const REMEMBERED_MS = 24 * 60 * 60 * 1000
