import type { Call } from '../sql/call-queue.js'
import type { SessionWrite } from '../sql/rows.js'

const FIRST_BYTES = 256 * 1024
/** More than that is let go of once the batch is done. */
const KEPT_BYTES = 4 * 1024 * 1024
/** A character takes at most so many bytes of UTF-8. */
const BYTES_PER_CHAR = 3

/** Between the threads a text is a number: how many bytes it takes behind those before it. */
type Write = Omit<SessionWrite, 'texts'> & { texts: (string | number | Uint8Array)[] }

const writesOf = (calls: readonly Call[]): Write[] =>
  calls.flatMap(([name, write]) => (name === 'journal.write' ? (write as Write) : []))

/**
 * Texts of events on their way into the thread of a database, in memory that both threads have: within a message each would be copied into
 * it, and out of it as a string that is only encoded again. One batch has it at a time.
 */
export class EventTexts {
  #bytes: Buffer

  /** @param memory of the other thread's */
  constructor(memory = new SharedArrayBuffer(FIRST_BYTES)) {
    this.#bytes = Buffer.from(memory)
  }

  get memory(): SharedArrayBuffer {
    return this.#bytes.buffer as unknown as SharedArrayBuffer
  }

  /** Puts the texts of a batch there. @returns whether the memory is another one */
  put(calls: readonly Call[]): boolean {
    const writes = writesOf(calls)
    let chars = 0
    for (const { texts } of writes) for (const text of texts as string[]) chars += text.length
    const isOther = this.#makeRoom(chars * BYTES_PER_CHAR)
    let at = 0
    for (const write of writes)
      write.texts = (write.texts as string[]).map((text) => {
        const size = this.#bytes.write(text, at)
        at += size
        return size
      })
    return isOther
  }

  #makeRoom(bytes: number): boolean {
    const { length } = this.#bytes
    if (bytes <= length && (length <= KEPT_BYTES || bytes > KEPT_BYTES)) return false
    // pages that nobody writes to take no memory
    this.#bytes = Buffer.from(new SharedArrayBuffer(Math.max(bytes, FIRST_BYTES)))
    return true
  }

  /** Gives the texts of a batch that was put there back to it, as bytes. */
  take(calls: readonly Call[]): void {
    let at = 0
    for (const write of writesOf(calls))
      write.texts = (write.texts as number[]).map((size) => {
        const text = this.#bytes.subarray(at, at + size)
        at += size
        return text
      })
  }
}
