import type { Clock } from '../../lib/clock.js'
import { PATIENCE_MS } from '../../lib/patience.js'
import { Pressure } from '../../lib/pressure.js'

/** Beyond it an engine that can be slowed waits for the storage: enough to write on while it goes on, little enough to be written soon. */
const PRESSING_BYTES = 1024 * 1024
/** What may wait to be written while nothing is taken: of one session, and of all together. */
const MAX_BYTES = 4 * 1024 * 1024
const MAX_BYTES_OF_ALL = 64 * 1024 * 1024

/** What one session has said that is not durable, in bytes, the write that is under way included. */
export class Backlog {
  readonly #clock: Clock
  /** Of all sessions. */
  readonly #all: { bytes: number }
  #bytes = 0
  #pressure: Pressure | undefined
  /** The storage did not keep up for so long that nobody waits for it, until it has caught up. */
  #isLate = false

  constructor(clock: Clock, all: { bytes: number }) {
    this.#clock = clock
    this.#all = all
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Present while an engine should not add to it. */
  get drained(): Promise<void> | undefined {
    return this.#pressure?.off
  }

  /** @returns whether it is more than may wait while nothing is taken */
  add(bytes: number): boolean {
    this.#bytes += bytes
    this.#all.bytes += bytes
    if (this.#bytes > PRESSING_BYTES && !this.#pressure && !this.#isLate) this.#press()
    return this.#bytes > MAX_BYTES || this.#all.bytes > MAX_BYTES_OF_ALL
  }

  remove(bytes: number): void {
    this.#bytes -= bytes
    this.#all.bytes -= bytes
    if (this.#bytes > PRESSING_BYTES) return
    this.#isLate = false
    this.relieve()
  }

  #press(): void {
    this.#pressure = new Pressure(this.#clock, PATIENCE_MS, () => {
      this.#isLate = true
      this.relieve()
    })
  }

  /** The storage is not waited for any longer. */
  relieve(): void {
    this.#pressure?.takeOff()
    this.#pressure = undefined
  }
}
