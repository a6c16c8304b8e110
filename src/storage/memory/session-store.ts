import type { KeptKey } from '../../idempotency/store.js'
import type { ParkedSessionRecord, SessionStore } from '../../sessions/store.js'

/** Parked sessions in memory: a park survives a disconnect, not a restart. */
export class MemorySessionStore implements SessionStore {
  readonly #records = new Map<string, ParkedSessionRecord>()

  readonly #onKey: ((key: KeptKey) => void) | undefined

  /** @param onKey keeps a key in the same write, for a storage of which this is a part */
  constructor({ onKey }: { onKey?: (key: KeptKey) => void } = {}) {
    this.#onKey = onKey
  }

  async save(record: ParkedSessionRecord, key?: KeptKey): Promise<void> {
    this.#records.set(record.id, structuredClone(record))
    if (key) this.#onKey?.(key)
  }

  async get(id: string): Promise<ParkedSessionRecord | undefined> {
    const record = this.#records.get(id)
    return record && structuredClone(record)
  }

  async list(): Promise<ParkedSessionRecord[]> {
    return [...this.#records.values()].map((record) => structuredClone(record))
  }

  async delete(id: string): Promise<void> {
    this.#records.delete(id)
  }
}
