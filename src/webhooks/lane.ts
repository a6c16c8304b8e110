import type { Timer } from '../lib/clock.js'
import type { Delivery } from './delivery.js'

const MAX_WAITING = 256

/** Deliveries that are made one after the other. */
export class Lane {
  /** In their order; the one that is made is the first. */
  readonly waiting: Delivery[] = []
  /** Whether the first one is being made, or waits for its next attempt. */
  isAtWork = false
  /** Nobody asks any more what became of its deliveries. */
  isForgotten = false
  /** What the lane is held up by, when it waits between two attempts or for another process. */
  pause: { timer: Timer; go(): void } | undefined
  readonly #withdrawn = new WeakSet<Delivery>()
  /** Of those: kept until the attempt that is under way is over. */
  readonly #stillKept = new WeakSet<Delivery>()

  /** One that is to be made. */
  find(id: string): Delivery | undefined {
    return this.waiting.find((delivery) => delivery.id === id && !this.#withdrawn.has(delivery))
  }

  /** Of those that are to be made. */
  get ids(): string[] {
    return this.waiting.flatMap((delivery) => (this.#withdrawn.has(delivery) ? [] : delivery.id))
  }

  /** Whether one is under way to its receiver. */
  isMaking(delivery: Delivery): boolean {
    return this.isAtWork && !this.pause && delivery === this.waiting[0]
  }

  put(delivery: Delivery): void {
    this.waiting.push(delivery)
  }

  /** @param before what it comes after; absent, or not there any more: nothing but what is being made */
  putAfter(before: Delivery | undefined, delivery: Delivery): void {
    const place = before === undefined ? 0 : this.waiting.indexOf(before) + 1
    this.waiting.splice(Math.max(place, this.isAtWork ? 1 : 0), 0, delivery)
  }

  /**
   * It is not made any more; what comes after it does not wait for it.
   * @param staysKept until an attempt of it is over that is under way
   * @returns false when it was withdrawn before
   */
  withdraw(delivery: Delivery, staysKept = false): boolean {
    if (this.#withdrawn.has(delivery)) return false
    this.#withdrawn.add(delivery)
    if (staysKept) this.#stillKept.add(delivery)
    if (delivery === this.waiting[0]) this.pause?.go()
    return true
  }

  isWithdrawn(delivery: Delivery): boolean {
    return this.#withdrawn.has(delivery)
  }

  /** Whether the outbox has it for this lane: under the id of one that is kept no more another one may have come since. */
  isKept(delivery: Delivery): boolean {
    return !this.#withdrawn.has(delivery) || this.#stillKept.has(delivery)
  }

  /** Takes out what goes where too many wait: what is withdrawn before what is then given up. The first one is under way and stays. */
  makeRoom(): Delivery | undefined {
    if (this.waiting.length <= MAX_WAITING) return undefined
    const find = (goes: (delivery: Delivery) => boolean) =>
      this.waiting.findIndex((delivery, index) => index > 0 && goes(delivery))
    const unwanted = find((delivery) => this.#withdrawn.has(delivery))
    const progress = unwanted >= 0 ? unwanted : find(({ importance }) => importance === 'progress')
    const index = progress >= 0 ? progress : find(({ importance }) => importance === 'normal')
    return index >= 0 ? this.waiting.splice(index, 1)[0] : undefined
  }
}
