import { type DeliveryOutbox, MAX_GONE } from './outbox.js'
import type { WebhookTarget } from './target.js'

const GONE: readonly number[] = [410]

/** Whether a receiver that answers so wants nothing any more. */
export const saysGone = ({ goneStatuses = GONE }: WebhookTarget, status: number | undefined): boolean =>
  status !== undefined && goneStatuses.includes(status)

/** The targets that have answered that nothing is to be sent to them any more, to this process or one before. */
export class GoneTargets {
  readonly #outbox: DeliveryOutbox
  readonly #remember: (key: string) => void
  readonly #keys = new Set<string>()

  /** @param remember has the outbox keep it for other processes */
  constructor(outbox: DeliveryOutbox, remember: (key: string) => void) {
    this.#outbox = outbox
    this.#remember = remember
  }

  has(key: string): boolean {
    return this.#keys.has(key)
  }

  /** What receivers have told other processes. @throws what the outbox throws */
  async learn(): Promise<void> {
    for (const key of (await this.#outbox.gone?.()) ?? []) this.#keys.add(key)
  }

  add({ key, onGone }: WebhookTarget): void {
    // what waits in other lanes is unwanted from now on
    this.#keys.add(key)
    if (this.#keys.size > MAX_GONE) this.#keys.delete(this.#keys.keys().next().value!)
    if (onGone) onGone()
    else this.#remember(key)
  }

  forget(key: string): void {
    this.#keys.delete(key)
  }
}
