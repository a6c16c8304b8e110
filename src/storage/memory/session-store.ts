import type { ParkedSessionRecord, SessionStore } from '../../sessions/kept/store.js'

/** Parked sessions in memory, as text: a park survives a disconnect, not a restart. */
export class MemorySessionStore implements SessionStore {
  readonly #records = new Map<string, string>()

  async save(record: ParkedSessionRecord): Promise<void> {
    this.#records.set(record.id, JSON.stringify(record))
  }

  async get(id: string): Promise<ParkedSessionRecord | undefined> {
    const text = this.#records.get(id)
    return text === undefined ? undefined : JSON.parse(text)
  }

  async list(): Promise<ParkedSessionRecord[]> {
    return [...this.#records.values()].map((text) => JSON.parse(text))
  }

  async delete(id: string): Promise<void> {
    this.#records.delete(id)
  }
}
