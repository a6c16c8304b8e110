import { createHash } from 'node:crypto'
import type { Wire } from './driver.js'
import { storable, type Value } from './values.js'

export interface Statement {
  /** With `@` for the schema of ours. */
  sql: string
  values: readonly Value[]
}

export type Row = Record<string, unknown>

/** What the server has said about one statement of a pipeline. */
export class StatementError extends Error {
  override readonly name = 'StatementError'

  /**
   * @param index of the statement that it is about
   * @param error as the server or the socket told it
   * @param isOver the server has taken everything back and goes on; else nobody knows what became of it
   */
  constructor(
    readonly index: number,
    readonly error: Error & { code?: string; severity?: string },
    readonly isOver: boolean,
  ) {
    super(error.message)
  }

  /** Two processes wait for each other's rows: one of them is to try again. */
  get isDeadlock(): boolean {
    return this.error.code === '40P01'
  }

  /** The server takes no writes: it is a standby, or has been the primary. */
  get isReadOnly(): boolean {
    return this.error.code === '25006'
  }
}

interface Column {
  name: string
  isNumber: boolean
  isBoolean: boolean
}

interface Named {
  name: string
  columns?: Column[]
}

/** int8, int2, int4, float4, float8, numeric */
const NUMBERS = new Set([20, 21, 23, 700, 701, 1700])
const BOOLEAN = 16
/** Codes of errors that leave a statement unknown to the server. */
const NOT_PARSED = /^(42|26|08)/

/**
 * Statements that a connection has by name, with what their rows look like. A name goes by the text: behind a pooler that shares
 * connections it may be there already, and is never another statement's.
 */
export class NamedStatements {
  readonly #names = new Map<string, Named>()
  /** How often a text was given a name: the one before may still be taken. */
  readonly #given = new Map<string, number>()

  of(sql: string): Named | undefined {
    return this.#names.get(sql)
  }

  add(sql: string): Named {
    const again = this.#given.get(sql) ?? 0
    this.#given.set(sql, again + 1)
    const digest = createHash('sha256').update(sql).digest('hex').slice(0, 24)
    const named = { name: `sg_${digest}_${again}` }
    this.#names.set(sql, named)
    return named
  }

  delete(sql: string): void {
    this.#names.delete(sql)
  }
}

/**
 * Statements that travel together and are one transaction, which the server ends by itself: none of it is ever open while a packet is
 * under way. When one fails, nothing of them is done.
 */
export class Pipeline {
  readonly done: Promise<Row[][]>
  readonly #statements: readonly Statement[]
  readonly #named: NamedStatements | undefined
  readonly #columns: (Column[] | undefined)[]
  readonly #rows: Row[][]
  /** By their place, statements that the server is asked to remember. */
  readonly #parsed = new Map<number, string>()
  #at = 0
  #wire!: Wire
  #resolve!: (rows: Row[][]) => void
  #reject!: (error: StatementError) => void

  /** @param named absent: statements are sent in full each time */
  constructor(statements: readonly Statement[], named: NamedStatements | undefined) {
    this.#statements = statements
    this.#named = named
    this.#columns = statements.map(() => undefined)
    this.#rows = statements.map(() => [])
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  submit(connection: Wire): void {
    const { stream } = connection
    this.#wire = connection
    stream.cork()
    for (const [index, { sql, values }] of this.#statements.entries()) this.#send(connection, index, sql, values)
    connection.sync()
    stream.uncork()
  }

  #send(connection: Wire, index: number, sql: string, values: readonly Value[]): void {
    let known = this.#named?.of(sql)
    if (!known) {
      known = this.#named?.add(sql) ?? { name: '' }
      this.#parsed.set(index, sql)
      connection.parse({ name: known.name, text: sql, types: [] }, true)
    }
    const given = values.map((value) => {
      if (typeof value === 'string') return storable(value)
      return typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
    })
    connection.bind({ statement: known.name, values: given }, true)
    if (known.columns) this.#columns[index] = known.columns
    else connection.describe({ type: 'P', name: '' }, true)
    connection.execute({ portal: '', rows: '0' }, true)
  }

  handleRowDescription({ fields }: { fields: { name: string; dataTypeID: number }[] }): void {
    const columns = fields.map(({ name, dataTypeID }) => ({
      name,
      isNumber: NUMBERS.has(dataTypeID),
      isBoolean: dataTypeID === BOOLEAN,
    }))
    this.#columns[this.#at] = columns
    const named = this.#named?.of(this.#statements[this.#at]!.sql)
    if (named) named.columns = columns
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    const row: Row = {}
    for (const [index, { name, isNumber, isBoolean }] of this.#columns[this.#at]!.entries()) {
      const text = fields[index] ?? null
      if (text === null) row[name] = null
      else if (isNumber) row[name] = Number(text)
      else row[name] = isBoolean ? text === 't' : text
    }
    this.#rows[this.#at]!.push(row)
  }

  handleCommandComplete(): void {
    this.#at++
  }

  handleEmptyQuery(): void {}

  handlePortalSuspended(): void {}

  handleReadyForQuery(): void {
    this.#resolve(this.#rows)
  }

  handleError(error: Error & { code?: string; severity?: string }): void {
    const isOfServer = error.severity !== undefined
    // what comes after the one that failed was not even looked at
    const isKnown = isOfServer && !NOT_PARSED.test(error.code ?? '')
    for (const [index, sql] of this.#parsed) if (index > this.#at || !isKnown) this.#named?.delete(sql)
    if (isOfServer) this.#whetherItGoesOn((isOver) => this.#reject(new StatementError(this.#at, error, isOver)))
    else this.#reject(new StatementError(this.#at, error, false))
  }

  /** A server tells in its own language how bad an error is: one that goes on says that it is ready again. */
  #whetherItGoesOn(tell: (goesOn: boolean) => void): void {
    const wire = this.#wire
    const onReady = () => over(true)
    const onEnd = () => over(false)
    const over = (goesOn: boolean) => {
      wire.off('readyForQuery', onReady)
      wire.off('end', onEnd)
      tell(goesOn)
    }
    wire.on('readyForQuery', onReady)
    wire.on('end', onEnd)
  }
}
