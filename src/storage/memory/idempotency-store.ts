import {
  type IdempotencyStore,
  type KeptKey,
  type Made,
  REMEMBERED_MS,
  type StoredAnswer,
} from '../../idempotency/store.js'

const MAX_KEYS = 100_000
const MAX_BYTES = 64 * 1024 * 1024

interface Entry {
  fingerprint: string
  since: number
  /** A request of this process has it. */
  taken: boolean
  made: Made | undefined
  answer: StoredAnswer | undefined
}

const copyOf = ({ status, headers, body }: StoredAnswer): StoredAnswer => ({ status, headers: { ...headers }, body })

/** What the other parts of a storage in memory use of it. */
export interface MemoryIdempotencyStore extends Required<IdempotencyStore> {
  /** Keeps a key in the same turn in which what it stands for is made. */
  keepNow(key: KeptKey): void
  /** The process that had taken keys has ended. */
  onRestart(): void
}

/** Remembers answers for as long as the process runs, the oldest of them for less than a day when there are very many. */
export function createMemoryIdempotencyStore({ now = Date.now }: { now?: () => number } = {}): MemoryIdempotencyStore {
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
  const keepNow = ({ key, fingerprint, made }: KeptKey) => {
    const { since = now(), taken = false } = entries.get(key) ?? {}
    forget(key)
    entries.set(key, { fingerprint, since, taken, made, answer: undefined })
  }

  return {
    async begin(key, fingerprint) {
      sweep()
      const known = entries.get(key)
      if (!known?.taken && !known?.answer) {
        entries.set(key, { fingerprint, since: now(), taken: true, made: undefined, answer: undefined })
        return { state: 'new' }
      }
      if (known.fingerprint !== fingerprint) return { state: 'mismatch' }
      return known.answer ? { state: 'answered', answer: copyOf(known.answer) } : { state: 'in_flight' }
    },
    async complete(key, answer) {
      const entry = entries.get(key)
      if (!entry?.taken) return
      entry.taken = false
      entry.answer = copyOf(answer)
      bytes += answer.body.length
    },
    async release(key) {
      forget(key)
    },
    async keep(key) {
      keepNow(key)
    },
    async left() {
      const left: KeptKey[] = []
      for (const [key, entry] of entries) {
        const { fingerprint, made, taken, answer } = entry
        if (!made || taken || answer) continue
        entry.taken = true
        left.push({ key, fingerprint, made })
      }
      return left
    },
    keepNow,
    onRestart() {
      for (const [key, entry] of entries) {
        entry.taken = false
        if (!entry.answer && !entry.made) forget(key)
      }
    },
  }
}
