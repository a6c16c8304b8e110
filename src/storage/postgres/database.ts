import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Backoff, delayAfter } from '../../lib/backoff.js'
import { type Call, CallQueue, type Pending } from '../sql/call-queue.js'
import { StorageError } from '../storage.js'
import { Batch, jobsChanged, KnownSessions, together } from './batch.js'
import { failureOf, fenced, forgotten, isOfCaller, READ_ONLY } from './failures.js'
import { Link, type LinkOptions } from './link.js'
import type { CallPostgres } from './operations.js'
import { type Row, type Statement, StatementError } from './pipeline.js'
import { type Self, statement } from './plan.js'
import { RAISED } from './schema.js'
import { jobsAsked, type KnownJobs, knownJobs } from './tables/jobs.js'

const RECONNECT: Backoff = { firstMs: 50, longestMs: 2_000 }
/** How often a batch is planned anew because rows were not as they were read. */
const MOST_TRIES = 5

const FENCE = 'SELECT @fence_1($1, $2, $3)'
const RESUME = `UPDATE @members SET term = term + 1, backend = pg_backend_pid() WHERE n = $1 AND term >= 0 RETURNING term, batch`
/** Rows that many processes change: who changes several of them has them all, so that nobody waits for another crosswise. */
const CONTENDED = /(INSERT INTO|UPDATE) @(usage_sums|feed|daily_tokens|versions_of)/
const CONTEND = `SELECT pg_advisory_xact_lock(hashtextextended('session-gateway counts ' || tableoid, 0)) FROM @members WHERE n = $1`

export interface DatabaseTold {
  /** Of every try to connect again that fails. */
  onUnreachable?(error: StorageError): void
  /** What is written goes to another server, perhaps, after one that only read. */
  onMoved?(): void
  /** Once that nothing is taken any more: declared dead, ahead of the database, or closed. */
  onEnd?(error: StorageError): void
}

/**
 * The one connection that everything is asked on. The calls of one turn of the event loop travel together; while a batch is under way,
 * the next one gathers. Each batch that writes is one transaction, and begins with the fence: it says whose it is and which one, so that
 * after a cut the database tells whether it was done.
 */
export class PostgresDatabase {
  readonly #options: LinkOptions
  readonly #self: Self
  readonly #told: DatabaseTold
  readonly #sessions = new KnownSessions()
  #link: Link | undefined
  /** When it last answered, by the clock of `performance`. */
  #heardAt = 0
  #term = 0
  /** Of this member; the last one that the server was given, and the last one that it has confirmed. */
  #batch = 0
  #confirmed = 0
  #claims = 0
  readonly #queue = new CallQueue(
    (batch) => void this.#send(batch),
    () => this.#ended ?? this.#away,
  )
  /** Why nothing is taken: until the database is back, or for good. */
  #away: StorageError | undefined
  /** Called when it goes away. */
  #onAway = () => {}
  #ended: StorageError | undefined
  /** Nothing is tried any more. */
  readonly #over = new AbortController()
  #reconnecting: Promise<void> | undefined

  private constructor(options: LinkOptions, self: Self, told: DatabaseTold) {
    this.#options = options
    this.#self = self
    this.#told = told
  }

  /** @throws StorageError */
  static async open(options: LinkOptions, self: Self, told: DatabaseTold = {}): Promise<PostgresDatabase> {
    const database = new PostgresDatabase(options, self, told)
    await database.#connect()
    return database
  }

  get call(): CallPostgres {
    return this.#queue.call as CallPostgres
  }

  get atTurnsEnd(): CallQueue['atTurnsEnd'] {
    return this.#queue.atTurnsEnd
  }

  /** What is known of sessions may be from before somebody else had them. */
  forget(ids: readonly string[]): void {
    for (const id of ids) this.#sessions.delete(id)
  }

  /** From now on nothing is taken: this process was declared dead. */
  fence(): void {
    this.#end(fenced(this.#options.place))
  }

  /** Connects anew: what this server says may be from before, when another one is the primary by now. */
  giveUp(reason: StorageError): void {
    if (!this.#away && !this.#ended) void this.#reconnect(reason)
  }

  /** Over a new connection the database answers, after one of before `since` was silent: so is this one, unless it has been heard since. */
  giveUpUnheard(since: number): void {
    if (this.#heardAt < since) this.giveUp(failureOf(new Error('connection lost'), this.#options.place))
  }

  /** Resolves when all that was asked for is done. */
  async close(): Promise<void> {
    // whoever waits for a database that is away has waited long enough, also when it goes away meanwhile
    if (!this.#away) await Promise.race([this.#queue.idle(), new Promise<void>((resolve) => (this.#onAway = resolve))])
    this.#end(new StorageError('STORAGE_CLOSED', `${this.#options.place} is not open.`))
    await this.#link?.end()
  }

  async #send(batch: readonly Pending[]): Promise<void> {
    // A process ends when nothing is left to do, but not before it knows what became of its writes.
    this.#link?.ref()
    for (let left = batch; left.length > 0; ) {
      const refusal = this.#ended ?? this.#away
      const many = together(left.map(({ call }) => call))
      const now = left.slice(0, many)
      if (refusal) for (const { reject } of now) reject(refusal)
      else await this.#run(now)
      left = left.slice(many)
    }
    this.#link?.unref()
    this.#queue.next()
  }

  /** Does calls in one transaction, without those that are wrong. Never rejects. */
  async #run(all: readonly Pending[]): Promise<void> {
    let left = all
    for (let tries = 0; left.length > 0; ) {
      const link = this.#link!
      let batch: Batch | undefined
      let fence: Statement[] = []
      try {
        const calls = left.map(({ call }) => call)
        batch = new Batch(calls, this.#sessions, await this.#jobs(link, calls), this.#newClaim, this.#self)
        const { statements } = batch
        fence = batch.writes ? this.#fence(statements) : []
        const rows = statements.length > 0 ? await link.run([...fence, ...statements]) : []
        this.#heardAt = performance.now()
        if (fence.length > 0) this.#confirmed = this.#batch
        this.#answer(left, batch.results(rows.slice(fence.length)))
        return
      } catch (error) {
        if (!(error instanceof StatementError)) {
          for (const { reject } of left) reject(failureOf(error, this.#options.place))
          return
        }
        if (!error.isOver) return this.#onCut(error, left, batch)
        if (error.isReadOnly) {
          const refusal = failureOf(error.error, this.#options.place)
          for (const { reject } of left) reject(refusal)
          return this.giveUp(refusal)
        }
        const wrong = this.#wrong(error, batch, fence.length)
        if (wrong === 'again' && ++tries < MOST_TRIES) continue
        if (wrong === 'again' && left.length > 1) {
          // one of those that share a statement is wrong, and nobody says which
          for (const one of left) await this.#run([one])
          return
        }
        if (error.error.code === RAISED.fenced) this.#end(fenced(this.#options.place))
        const failure = failureOf(error.error, this.#options.place)
        if (typeof wrong !== 'number') {
          for (const { reject } of left) reject(failure)
          return
        }
        // what is wrong with one call hurts no other
        left[wrong]!.reject(failure)
        left = left.filter((_pending, index) => index !== wrong)
      }
    }
  }

  /** The call that has failed by itself; `again`: rows were not as they were known; undefined: the database fails. */
  #wrong(failed: StatementError, batch: Batch | undefined, fences: number): number | 'again' | undefined {
    if (!batch) return undefined
    if (failed.isDeadlock) return 'again'
    const { code } = failed.error
    const at = failed.index - fences
    if (at < 0) return undefined
    const call = batch.callOf(at)
    if (code === RAISED.stale || call === undefined) return 'again'
    return code === RAISED.refused || isOfCaller(code) ? call : undefined
  }

  async #jobs(link: Link, calls: readonly Call[]): Promise<KnownJobs> {
    const ids = jobsChanged(calls)
    if (ids.length === 0) return new Map()
    const [rows] = await link.run([jobsAsked(ids)])
    return knownJobs(ids, rows!)
  }

  /** What every batch that writes begins with. */
  #fence(statements: readonly Statement[]): Statement[] {
    const fence = statement(FENCE, this.#self.n, this.#term, ++this.#batch)
    const isContended = this.#self.isOneOfMany && statements.some(({ sql }) => CONTENDED.test(sql))
    return isContended ? [fence, statement(CONTEND, this.#self.n)] : [fence]
  }

  readonly #newClaim = (): string => `${this.#self.n}:${++this.#claims}`

  #answer(pending: readonly Pending[], results: readonly unknown[]): void {
    for (const [index, { resolve }] of pending.entries()) resolve(results[index] as never)
  }

  /** Nobody knows whether what writes was done: the database says so, once it is there again. Who only reads does not wait for that. */
  async #onCut(cut: StatementError, pending: readonly Pending[], batch: Batch | undefined): Promise<void> {
    const sent = this.#batch
    const failure = failureOf(cut.error, this.#options.place)
    const back = this.#reconnect(failure)
    for (const [call, { reject }] of pending.entries()) if (!batch?.writesBy(call)) reject(failure)
    if (!batch?.writes) return
    await back
    const isDone = !this.#ended && this.#confirmed === sent
    if (!isDone) {
      for (const { reject } of pending) reject(this.#ended ?? failure)
      return
    }
    const { statements, results } = batch.asDone()
    const fence = statement(FENCE, this.#self.n, this.#term, this.#batch)
    const asked = async (tries = 1): Promise<Row[][]> => {
      try {
        return statements.length > 0 ? await this.#link!.run([fence, ...statements]) : []
      } catch (error) {
        if (!isDeadlock(error) || tries === MOST_TRIES) throw error
        return asked(tries + 1)
      }
    }
    try {
      const rows = await asked()
      this.#answer(pending, results(rows.slice(1)))
    } catch (error) {
      if (error instanceof StatementError && (!error.isOver || error.isReadOnly))
        return this.#onCut(error, pending, batch)
      for (const { reject } of pending) reject(failureOf(error, this.#options.place))
    }
    // what they gave may be from before
    this.#sessions.clear()
  }

  /** Resolves when the database is there again, or nothing is to be done with it any more. What waits to be sent is refused at once. */
  #reconnect(failure: StorageError): Promise<void> {
    this.#away = failure
    this.#onAway()
    this.#queue.refuse(failure)
    this.#reconnecting ??= this.#connectAgain().finally(() => {
      this.#reconnecting = undefined
    })
    return this.#reconnecting
  }

  async #connectAgain(): Promise<void> {
    const old = this.#link!
    old.destroy()
    let hasOnlyRead = this.#away?.code === READ_ONLY
    for (let tries = 1; !this.#ended; tries++) {
      try {
        await this.#connect(old)
        this.#away = undefined
        if (hasOnlyRead) this.#told.onMoved?.()
        return
      } catch (error) {
        this.#away = failureOf(error, this.#options.place)
        hasOnlyRead ||= this.#away.code === READ_ONLY
        this.#told.onUnreachable?.(this.#away)
      }
      const isWaitedFor = this.#queue.underWay.length > 0
      await sleep(delayAfter(tries, RECONNECT), undefined, { ref: isWaitedFor, signal: this.#over.signal }).catch(
        () => {},
      )
    }
  }

  /** @throws StorageError */
  async #connect(old?: Link): Promise<void> {
    const { place } = this.#options
    const link = await Link.open(this.#options, this.#over.signal)
    try {
      // nothing of it can follow: how far it came can be asked then
      if (old) await link.endOther(old)
      const [rows] = await link.run([statement(RESUME, this.#self.n)])
      const [mine] = rows as unknown as { term: number; batch: number }[]
      if (!mine) this.#end(fenced(place))
      else if (mine.batch < this.#confirmed) this.#end(forgotten(place))
      if (this.#ended) throw this.#ended
      this.#term = mine!.term
      this.#batch = this.#confirmed = mine!.batch
    } catch (error) {
      link.destroy()
      throw error instanceof StatementError ? failureOf(error.error, place) : error
    }
    this.#sessions.clear()
    this.#link = link
    this.#heardAt = performance.now()
    if (this.#queue.underWay.length === 0) link.unref()
    void link.lost.then(() => {
      if (this.#link !== link || this.#ended) return
      void this.#reconnect(this.#away ?? failureOf(new Error('connection lost'), place))
    })
  }

  /** For good. */
  #end(error: StorageError): void {
    const isFirst = this.#ended === undefined
    this.#ended ??= error
    this.#over.abort()
    this.#queue.refuse(this.#ended)
    if (isFirst) this.#told.onEnd?.(error)
  }
}

const isDeadlock = (error: unknown): boolean => error instanceof StatementError && error.isDeadlock
