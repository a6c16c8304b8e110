import { writeSync } from 'node:fs'
import type { DestinationStream } from 'pino'

/** How long a reader that takes nothing right now is left alone. */
const BUSY_MS = 100
/** How often in a row, before lines are lost: nothing else is done meanwhile, for nobody. */
const PATIENCE = 10

type Write = (bytes: Buffer) => number

const pause = () => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_MS)
}

/**
 * Where the log goes: written at once, so that what was said last is out when the process dies. Lines that it does not take, as its disk
 * is full or its reader gone or stopped, are lost; whoever waits for the daemon loses nothing by that.
 */
export class StandardOutput implements DestinationStream {
  readonly #write: Write
  readonly #pause: () => void
  /** Pauses that are left to its reader. */
  #patience = PATIENCE
  #lost = 0
  /** A line was cut off. */
  #isCut = false
  /** Told how many lines were lost, once it takes some again. */
  onTakenAgain: (lines: number) => void = () => {}

  /** @param wait passes a moment in which nothing else is done */
  constructor(write: Write = (bytes) => writeSync(1, bytes), wait = pause) {
    this.#write = write
    this.#pause = wait
  }

  write(line: string): void {
    let left = Buffer.from(this.#isCut ? `\n${line}` : line)
    const { length } = left
    try {
      while (left.length > 0) left = left.subarray(this.#taken(left))
    } catch {
      this.#lost++
      this.#isCut ||= left.length < length
      return
    }
    this.#isCut = false
    this.#patience = PATIENCE
    const lost = this.#lost
    this.#lost = 0
    if (lost > 0) this.onTakenAgain(lost)
  }

  #taken(bytes: Buffer): number {
    try {
      return this.#write(bytes)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || this.#patience === 0) throw error
      this.#patience--
      this.#pause()
      return 0
    }
  }
}
