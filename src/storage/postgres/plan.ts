import type { PostgresOperations } from './operations.js'
import type { Row, Statement } from './pipeline.js'
import type { JobChange } from './tables/job-changes.js'

/** How an operation is done. */
export interface Plan<Result = unknown> {
  readonly statements: readonly Statement[]
  /** Of a job: done before `statements`, in one with those of other calls. */
  readonly change?: JobChange
  /** Whether its statements change nothing. */
  readonly onlyReads?: true
  /**
   * Asked instead when it is known that they were done and nobody heard what they gave. Absent: they are asked again, as what they do is
   * the same however often it is done.
   */
  readonly again?: readonly Statement[]
  /** @param rows of each statement, or of each of `again` */
  result(rows: readonly Row[][]): Result
}

/** The process that asks. */
export interface Self {
  /** Of its row in `members`. */
  readonly n: number
  /** It shares the schema with others: what it has is told from what they have. */
  readonly isOneOfMany: boolean
  /** One of many that goes on with no job: what it changes of one that is under way makes it nobody's, for those that do. */
  readonly runsNoJobs?: boolean
}

/** Those that need to know nothing but what they are given. */
export type Plans = {
  [Name in keyof PostgresOperations]: (
    ...args: Parameters<PostgresOperations[Name]>
  ) => Plan<ReturnType<PostgresOperations[Name]>>
}

export const statement = (sql: string, ...values: Statement['values']): Statement => ({ sql, values })

/** Asks without changing anything. */
export const asks = <Result>(asked: Statement, result: (rows: Row[]) => Result): Plan<Result> => ({
  statements: [asked],
  onlyReads: true,
  result: ([rows]) => result(rows!),
})

/** The same, where the rows are what is asked for. */
export const rowsOf = <Item>(sql: string, ...values: Statement['values']): Plan<Item[]> =>
  asks(statement(sql, ...values), (rows) => rows as unknown as Item[])

/** Of rows that are measured: as many as fit, with `found`, how many there were without that. @param limit of what was looked for */
export const pageOf = <Item>(rows: readonly Row[], limit: number): { rows: Item[]; isLast: boolean } => {
  const found = (rows[0]?.found as number | undefined) ?? 0
  return { rows: rows as unknown as Item[], isLast: rows.length === found && found < limit }
}

/** Changes something and gives nothing: known to be done it is not done again, as somebody else may have changed the same since. */
export const does = (...statements: Statement[]): Plan<void> => ({ statements, again: [], result: () => {} })
