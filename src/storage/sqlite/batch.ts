import type { Call } from '../sql/call-queue.js'
import type { Operations } from '../sql/operations.js'
import type { Database } from './driver.js'
import { type Failure, failureOf, isBusy, Refusal } from './failures.js'
import { writeCounted } from './tables/usage.js'
import { BUSY_TIMEOUT_MS, inTransaction } from './transaction.js'

/** What came of each call of a batch, in their order; those that failed are listed. */
export interface BatchOutcome {
  results: unknown[]
  failures: { index: number; failure: Failure }[]
}

/** None of the calls is run. */
export const refuseBatch = (calls: readonly Call[], failure: Failure): BatchOutcome => ({
  results: calls.map(() => undefined),
  failures: calls.map((_call, index) => ({ index, failure })),
})

/**
 * Runs calls in one transaction: they become durable together. When one fails by more than its own arguments, each runs in a
 * transaction of its own, so that it hurts no other.
 * @param along done in the same transaction after them; it is left out of those
 */
export function runBatch(
  db: Database,
  operations: Operations,
  calls: readonly Call[],
  path: string,
  along?: () => void,
): BatchOutcome {
  let hasWaited = false
  try {
    return inTransaction(db, () => {
      const outcome = runAll(operations, calls)
      writeCounted(db)
      along?.()
      return outcome
    })
  } catch (error) {
    if (calls.length === 1 && !along) return refuseBatch(calls, failureOf(error, path))
    hasWaited = isBusy(error)
  }
  // not each once more
  if (hasWaited) db.exec('PRAGMA busy_timeout = 0')
  try {
    return runEach(db, operations, calls, path)
  } finally {
    if (hasWaited) db.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`)
  }
}

function runEach(db: Database, operations: Operations, calls: readonly Call[], path: string): BatchOutcome {
  const outcome: BatchOutcome = { results: [], failures: [] }
  for (const [index, call] of calls.entries()) {
    const { results, failures } = runBatch(db, operations, [call], path)
    outcome.results.push(results[0])
    for (const { failure } of failures) outcome.failures.push({ index, failure })
  }
  return outcome
}

function runAll(operations: Operations, calls: readonly Call[]): BatchOutcome {
  const outcome: BatchOutcome = { results: [], failures: [] }
  for (const [index, [name, ...args]] of calls.entries()) {
    try {
      outcome.results.push((operations[name] as (...args: unknown[]) => unknown)(...args))
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      outcome.results.push(undefined)
      outcome.failures.push({ index, failure: { code: error.code, message: error.message } })
    }
  }
  return outcome
}
