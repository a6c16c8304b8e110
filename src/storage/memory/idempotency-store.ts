import { type IdempotencyStore, REMEMBERED_MS, type StoredAnswer } from '../../idempotency/store.js'

const MAX_KEYS = 100_000
const MAX_BYTES = 64 * 1024 * 1024

interface Entry {
  fingerprint: string
  since: number
  answer: StoredAnswer | undefined
}

/** Remembers answers for as long as the process runs, the oldest of them for less than a day when there are very many. */
export function createMemoryIdempotencyStore({ now = Date.now }: { now?: () => number } = {}): IdempotencyStore {
  /** In the order in which they were taken. */
  const entries = new Map<string, Entry>()
  let bytes = 0

  const forget = (key: string) => {
    bytes -= entries.get(key)?.answer?.body.length ?? 0
    entries.delete(key)
  }
  const sweep = () => {
    const limit = now() - REMEMBERED_MS
    for (const [key, { since }] of entries) {
      if (since > limit && entries.size <= MAX_KEYS && bytes <= MAX_BYTES) return
      forget(key)
    }
  }

  return {
    async begin(key, fingerprint) {
      sweep()
      const known = entries.get(key)
      if (!known) {
        entries.set(key, { fingerprint, since: now(), answer: undefined })
        return { state: 'new' }
      }
      if (known.fingerprint !== fingerprint) return { state: 'mismatch' }
      return known.answer ? { state: 'answered', answer: known.answer } : { state: 'in_flight' }
    },
    async complete(key, answer) {
      const entry = entries.get(key)
      if (!entry) return
      entry.answer = answer
      bytes += answer.body.length
    },
    async release(key) {
      forget(key)
    },
  }
}
