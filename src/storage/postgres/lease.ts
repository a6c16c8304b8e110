import { performance } from 'node:perf_hooks'
import { startLongTimer, type Timer } from '../../lib/clock.js'

export interface LeaseEvents {
  /** @param leftMs until it is frozen */
  onRenewed(leftMs: number): void
  onFrozen(): void
  onThawed(): void
}

/** How long a node may take itself for alive, by its own clock, which nobody sets. */
export class Lease {
  /** Shorter than the lease: others may take it for dead only when it has long been frozen. */
  readonly #safeMs: number
  readonly #on: LeaseEvents
  #safeUntil = 0
  #isFrozen = false
  #timer: Timer | undefined

  constructor(leaseMs: number, on: LeaseEvents) {
    this.#safeMs = leaseMs - leaseMs / 4
    this.#on = on
  }

  get isSafe(): boolean {
    return !this.#isFrozen && performance.now() < this.#safeUntil
  }

  /** @param since when it was asked for: nobody knows when it was done. @returns whether it is safe now */
  renew(since: number): boolean {
    this.#safeUntil = since + this.#safeMs
    this.#timer?.cancel()
    const left = this.#safeUntil - performance.now()
    // as old as that it tells nothing of now
    if (left <= 0) {
      this.#freeze()
      return false
    }
    this.#timer = startLongTimer(left, () => this.#freeze())
    this.#on.onRenewed(left)
    if (this.#isFrozen) {
      this.#isFrozen = false
      this.#on.onThawed()
    }
    return true
  }

  stop(): void {
    this.#timer?.cancel()
  }

  #freeze(): void {
    if (this.#isFrozen) return
    this.#isFrozen = true
    this.#on.onFrozen()
  }
}
