import type { WebhookDelivery } from '../../schemas/jobs.js'

const PER_LANE = 100
const MAX_LANES = 10_000

/** The last attempts to deliver, per lane; lanes that heard nothing for the longest time are forgotten first. */
export class DeliveryLog {
  readonly #lanes = new Map<string, WebhookDelivery[]>()

  add(lane: string, delivery: WebhookDelivery): void {
    const entries = this.#lanes.get(lane) ?? []
    this.#lanes.delete(lane)
    this.#lanes.set(lane, entries)
    entries.push(delivery)
    if (entries.length > PER_LANE) entries.shift()
    if (this.#lanes.size > MAX_LANES) this.#lanes.delete(this.#lanes.keys().next().value!)
  }

  /** Newest first, at most a hundred. */
  list(lane: string): WebhookDelivery[] {
    return (this.#lanes.get(lane) ?? []).toReversed()
  }

  forget(lane: string): void {
    this.#lanes.delete(lane)
  }
}
