import type { Call } from '../sql/call-queue.js'
import type { SessionWrite } from '../sql/rows.js'
import { packed, unpacked, type Write } from './packed-writes.js'

const BYTES = 4 * 1024 * 1024
/** A character takes at most so many bytes of UTF-8. */
const BYTES_PER_CHAR = 3

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

  /** Puts the texts of a batch there. @returns what is sent: a text that is there is a number, how many bytes it takes behind those before it */
  put(calls: readonly Call[]): Call[] {
    let at = 0
    const placed = (text: string): string | number => {
      if (at + text.length * BYTES_PER_CHAR > this.#bytes.length) return text
      const size = this.#bytes.write(text, at)
      at += size
      return size
    }
    return calls.map((call) => {
      if (call[0] !== 'journal.write') return call
      const write = call[1] as SessionWrite
      return packed(write, write.texts.map(placed))
    })
  }

  /** @param calls that were put there. @returns the batch as it was, but for the texts that were there: they are bytes */
  take(calls: readonly Call[]): Call[] {
    let at = 0
    const taken = (size: string | number): string | Uint8Array => {
      if (typeof size === 'string') return size
      const text = this.#bytes.subarray(at, at + size)
      at += size
      return text
    }
    return calls.map((call) => {
      if (call[0] !== 'journal.write') return call
      const write: Write<string | number | Uint8Array> = unpacked<string | number>(call)
      write.texts = (write.texts as (string | number)[]).map(taken)
      return ['journal.write', write]
    })
  }
}
