import type { EventBytes } from '../../sql/operations.js'
import type { Database, SqlValue, Statement } from '../driver.js'

const READ_AT_ONCE = 500
/** Times what is usual: an event that is larger is read alone. */
const LARGE = 4

const WRITTEN_AT_ONCE = 16

interface Next {
  seq: number
  bytes: number
}

/** Writes events of one session, by its key; as they come from the other thread, texts are bytes. */
export function eventWriter(db: Database) {
  /** By how many events each writes. */
  const statements: Statement[] = []
  // what fails is rolled back with its transaction: to take back the rows of one statement, SQLite would keep pages in a temporary file
  const prepared = (count: number) =>
    db.prepare(
      `INSERT OR FAIL INTO events (session, seq, json) VALUES ${Array(count).fill('(?, ?, CAST(? AS TEXT))').join(', ')}`,
    )

  return (key: number, seqs: readonly number[], texts: readonly SqlValue[]): void => {
    for (let from = 0; from < seqs.length; from += WRITTEN_AT_ONCE) {
      const count = Math.min(seqs.length - from, WRITTEN_AT_ONCE)
      const values: SqlValue[] = []
      for (let at = from; at < from + count; at++) values.push(key, seqs[at]!, texts[at]!)
      statements[count] ??= prepared(count)
      statements[count].run(...values)
    }
  }
}

/**
 * Reads events of one session, by its key: those with `afterSeq < seq <= untilSeq`, as many as `maxBytes` have room for, but at least one.
 * They are put together in the database and never become texts, which would be copied, decoded, and encoded again for the sockets.
 */
export function eventReader(db: Database) {
  const some = db.prepare(
    `SELECT group_concat(seq) AS seqs, group_concat(octet_length(json)) AS sizes,
       CAST(group_concat(iif(octet_length(json) <= ?5, json, ''), '') AS BLOB) AS piece FROM (
       SELECT seq, json FROM events WHERE session = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq LIMIT ?4)`,
  )
  const one = db.prepare('SELECT CAST(json AS BLOB) AS piece FROM events WHERE session = ? AND seq = ?')
  /** Bytes of an event, as those had that were last read. */
  let usual = 256

  return (key: number, afterSeq: number, untilSeq: number, maxBytes: number): EventBytes => {
    const found: EventBytes = { seqs: [], sizes: [], pieces: [] }
    let left = maxBytes
    const fits = ({ bytes }: Next) => bytes <= left || found.seqs.length === 0
    const add = (events: readonly Next[], piece: Uint8Array<ArrayBuffer>) => {
      let end = 0
      for (const { seq, bytes } of events) {
        found.seqs.push(seq)
        found.sizes.push(bytes)
        end += bytes
      }
      found.pieces.push(piece.subarray(0, end))
      left -= end
      usual = Math.max(1, (maxBytes - left) / found.seqs.length)
    }
    for (;;) {
      // as many as are likely to fit: a few of them may be large
      const asked = Math.max(1, Math.min(READ_AT_ONCE, Math.ceil(left / usual)))
      const largest = usual * LARGE
      const row = some.get(key, found.seqs.at(-1) ?? afterSeq, untilSeq, asked, largest)
      const next = nextOf(row)
      let room = left
      const together: Next[] = []
      for (const one of next) {
        room -= one.bytes
        if (room < 0 || one.bytes > largest) break
        together.push(one)
      }
      if (together.length > 0) add(together, row.piece)
      const stopped = next[together.length]
      if (!stopped) {
        if (next.length < asked || left <= 0) return found
      } else if (!fits(stopped)) return found
      else if (together.length === 0) add([stopped], one.get(key, stopped.seq).piece)
    }
  }
}

function nextOf({ seqs, sizes }: { seqs: string | null; sizes: string }): Next[] {
  if (seqs === null) return []
  const each = sizes.split(',')
  return seqs.split(',').map((seq, index) => ({ seq: Number(seq), bytes: Number(each[index]) }))
}
