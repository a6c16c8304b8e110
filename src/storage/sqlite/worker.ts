import { parentPort, workerData } from 'node:worker_threads'
import type { Call } from '../sql/call-queue.js'
import type { EventBytes } from '../sql/operations.js'
import { type BatchOutcome, refuseBatch, runBatch } from './batch.js'
import { type ConnectionOptions, openDatabase, operationsOf } from './connection.js'
import { EventTexts } from './event-texts.js'
import { failureOf } from './failures.js'
import { Housekeeping } from './housekeeping.js'
import { InPlace } from './in-place.js'
import { InUse } from './in-use.js'
import { dropUnanswered } from './tables/idempotency.js'
import { inTransaction } from './transaction.js'

const LAST_WAIT_MS = 1_000

/**
 * The thread in which the database lives. It is told batches of calls, one at a time, and answers each after its commit; told `null` it
 * closes the database and ends.
 */
const options = workerData as ConnectionOptions & { inUse: SharedArrayBuffer; texts: SharedArrayBuffer }
const inUse = new InUse(options.inUse)
const texts = new EventTexts(options.texts)
const port = parentPort!

/** What is handed over instead of copied: events that were read. */
const buffersOf = (calls: readonly Call[], { results }: BatchOutcome): ArrayBuffer[] =>
  calls.flatMap(([name], index) =>
    name === 'journal.read'
      ? ((results[index] as EventBytes | undefined)?.pieces.map(({ buffer }) => buffer) ?? [])
      : [],
  )

try {
  const db = await openDatabase(options)
  inTransaction(db, () => dropUnanswered(db))
  const operations = operationsOf(db)
  const housekeeping = new Housekeeping(db, operations, inUse)
  const inPlace = new InPlace(options.path)

  port.on('message', (sent: Call[] | null) => {
    if (!sent) {
      try {
        // Closing alone leaves the log full while a statement is not collected yet, or somebody else has the file open.
        db.exec(`PRAGMA busy_timeout = ${LAST_WAIT_MS}; PRAGMA wal_checkpoint(TRUNCATE)`)
        db.close()
        inPlace.close()
      } finally {
        process.exit()
      }
    }
    const calls = texts.take(sent)
    const problem = inPlace.problem()
    const outcome = problem
      ? refuseBatch(calls, problem)
      : runBatch(db, operations, calls, options.path, housekeeping.along(calls))
    port.postMessage(outcome, buffersOf(calls, outcome))
    inUse.end()
    housekeeping.onAnswered()
  })
  port.postMessage({ opened: true })
} catch (error) {
  port.postMessage({ failure: failureOf(error, options.path) })
} finally {
  inUse.end()
}
