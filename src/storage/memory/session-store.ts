import type { ParkedSessionRecord, SessionStore } from '../../sessions/kept/store.js'

/** Parked sessions in memory: a park survives a disconnect, not a restart. */
export class MemorySessionStore implements SessionStore {
  readonly #records = new Map<string, ParkedSessionRecord>()

  async save(record: ParkedSessionRecord): Promise<void> {
    this.#records.set(record.id, structuredClone(record))
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
