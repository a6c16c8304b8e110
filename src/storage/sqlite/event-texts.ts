import type { Call } from '../sql/call-queue.js'
import type { SessionWrite } from '../sql/rows.js'

const BYTES = 4 * 1024 * 1024
/** A character takes at most so many bytes of UTF-8. */
const BYTES_PER_CHAR = 3

/** Between the threads a text that is in the memory is a number: how many bytes it takes behind those before it. */
type Write = Omit<SessionWrite, 'texts'> & { texts: (string | number | Uint8Array)[] }

const writesOf = (calls: readonly Call[]): Write[] =>
  calls.flatMap(([name, write]) => (name === 'journal.write' ? (write as Write) : []))

/**
 * Texts of events on their way into the thread of a database, in memory that both threads have: within a message each would be copied into
 * it, and out of it as a string that is only encoded again. One batch has it at a time; what finds no room there goes within the message.
 */
export class EventTexts {
  readonly memory: SharedArrayBuffer
  readonly #bytes: Buffer

  /**
   * @param memory of the other thread's. It stays the same one: no garbage collector counts the bytes of one that is shared, so that those
   * which were let go of would pile up. Pages that nobody writes to take no memory.
   */
  constructor(memory = new SharedArrayBuffer(BYTES)) {
    this.memory = memory
    this.#bytes = Buffer.from(memory)
  }

  /** Puts the texts of a batch there. */
  put(calls: readonly Call[]): void {
    let at = 0
    for (const write of writesOf(calls))
      write.texts = (write.texts as string[]).map((text) => {
        if (at + text.length * BYTES_PER_CHAR > this.#bytes.length) return text
        const size = this.#bytes.write(text, at)
        at += size
        return size
      })
  }

  /** Gives the texts of a batch that was put there back to it, as bytes. */
  take(calls: readonly Call[]): void {
    let at = 0
    for (const write of writesOf(calls))
      write.texts = (write.texts as (string | number)[]).map((size) => {
        if (typeof size === 'string') return size
        const text = this.#bytes.subarray(at, at + size)
        at += size
        return text
      })
  }
}
