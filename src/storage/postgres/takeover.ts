import { tried } from '../../lib/tried.js'
import type { Taken } from '../cluster.js'
import type { StorageError } from '../storage.js'
import { failureOf } from './failures.js'
import { AS_LOGIN, Link, type LinkOptions } from './link.js'
import type { Neighbour } from './membership.js'
import { type Row, StatementError } from './pipeline.js'
import { statement } from './plan.js'

/** Of a row that somebody else has for longer than one waits. */
const LOCKED = '55P03'
const MOST_TRIES = 5

const TAKE = 'SELECT @take_over_4($1, $2, $3, $4, $5) AS taken'
/**
 * Of a node that runs none: one that does finds them when it joins, or sees that a member is gone, and what is to be told of jobs, each in
 * the lane of its name.
 */
const LEAVE_JOBS = `UPDATE @jobs SET owner = 0 WHERE owner = $1 AND status IN ('running', 'parked')`
const LEAVE_TOLD = 'UPDATE @deliveries SET owner = 0 WHERE owner = $1 AND lane IN (SELECT id FROM @jobs)'
const PARKED = `SELECT id, info FROM @jobs WHERE owner = $1 AND status = 'parked' AND id IN (SELECT json_array_elements_text($2::json))`
/** Of a node that runs them: a session that another one took for want of such a node goes on there. Who takes that over finds both. */
const LEAVE_PARTED = `UPDATE @jobs SET owner = 0 WHERE owner = $1 AND status = 'parked' AND id IN (
  SELECT job FROM json_to_recordset($2::json) AS parked (job text, session text) JOIN @sessions AS s ON s.id = session
  JOIN @members AS m ON m.n = s.owner WHERE m.n <> $1)`
/** One that was stopped in the middle of a batch, or is cut off, has what it sent so far open until somebody ends it. */
const END_BATCH = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE pid = $1 AND usename = current_user AND datname = current_database()
    AND xact_start < clock_timestamp() - $2 * interval '1 millisecond'`
const BACKEND_OF = 'SELECT backend FROM @members WHERE n = $1'
const LEFT = 'SELECT n, name FROM @members WHERE name IS NOT NULL AND term < 0'
const UNTOLD = 'SELECT victim, taken FROM @takeovers WHERE taker = $1 ORDER BY victim'
/** With what the victim had taken and not told, which is part of it. */
const TOLD = 'DELETE FROM @takeovers WHERE (taker = $1 AND victim = $2) OR taker = $2'

const ALL_TOLD = `DELETE FROM @takeovers WHERE taker = $1 OR NOT EXISTS (SELECT FROM @members WHERE n = taker)`

/** Told before listeners are. */
export interface MemberTold {
  onTaken(taken: Taken): void
  onLost(): void
  /** The server that it beats at takes no writes any more. */
  onReadOnly(error: StorageError): void
  /** It beats again, over a new connection: the one before went silent. @param since by the clock of `performance` */
  onAnswering(since: number): void
}

export interface TakeOverEvents {
  taken(taken: Taken): void
  /** It fails from now on, or no more. */
  untaken(reason: StorageError | undefined): void
  /** It has done what it was at, and is to be begun again. */
  late(): void
}

/** Null: what nobody has. */
type Victim = Pick<Neighbour, 'n'> | null
/** The same, where it is told of what was taken. */
const NOBODY = 0

/** Makes what nodes had that are gone this one's, each with all that it had by one write, and tells of it once. */
export class TakeOver {
  readonly #options: LinkOptions
  readonly #me: number
  readonly #leaseMs: number
  readonly #runsJobs: boolean
  readonly #on: TakeOverEvents
  readonly #told = new Set<number>()
  #underWay: Promise<void> | undefined
  /** Nobody may have something by now. */
  #isToLook = false
  /** What was taken may not have been told. */
  #isUnsure = false
  #isOver = false
  /** It was to begin while it was at it, and may have looked before that was so. */
  #isLate = false
  /** The last try did. */
  #fails = false

  /** @param runsJobs it goes on with them, too; else it leaves them to others */
  constructor(options: LinkOptions, me: number, leaseMs: number, runsJobs: boolean, on: TakeOverEvents) {
    this.#options = options
    this.#on = on
    this.#me = me
    this.#runsJobs = runsJobs
    this.#leaseMs = leaseMs
  }

  /** Of what nobody has, and of nodes that are known to be gone: at the start, when nobody is to be told of it. */
  async atOnce(victims: readonly Victim[]): Promise<void> {
    const link = await Link.open(this.#options)
    try {
      for (const victim of [...victims, null]) {
        const taken = await this.#take(link, victim, victim !== null)
        if (taken !== null) await this.#leaveParted(link, takenJobs(taken))
      }
      await link.run([statement(ALL_TOLD, this.#me)])
    } finally {
      await link.end()
    }
  }

  /**
   * While it is at it, `late` is called as soon as that is done. What fails is tried again with the next beat.
   * @param mayBeLeft some of what others had may be nobody's: a session whose home is another node, jobs of a node that runs none, what has a
   * profile that its taker has not
   * @param isForOthers what nobody has is, for now: sessions go to one node with the jobs that they are of
   */
  begin(victims: readonly Victim[], mayBeLeft: boolean, isForOthers: boolean): void {
    if (mayBeLeft) this.#isToLook = true
    const looks = this.#isToLook && !isForOthers
    if (victims.length === 0 && !this.#isUnsure && !looks) {
      // another one may have it by now
      this.#onWorks()
      return
    }
    this.#isLate = this.#underWay !== undefined
    void this.#run(async () => [...victims, ...(looks ? [null] : [])])
  }

  /** Those that have left by now. */
  async left(): Promise<void> {
    await this.#underWay
    await this.#run(async (link) => (await link.run([statement(LEFT)]))[0] as unknown as Victim[])
  }

  async close(): Promise<void> {
    this.#isOver = true
    await this.#underWay
  }

  #run(find: (link: Link) => Promise<readonly Victim[]>): Promise<void> {
    this.#underWay ??= this.#all(find).finally(() => {
      this.#underWay = undefined
      if (!this.#isLate) return
      this.#isLate = false
      this.#on.late()
    })
    return this.#underWay
  }

  async #all(find: (link: Link) => Promise<readonly Victim[]>): Promise<void> {
    let link: Link | undefined
    try {
      link = await Link.open(this.#options)
      if (this.#isUnsure) await this.#tell(link)
      let took = false
      for (const victim of await find(link)) {
        if (this.#isOver) return
        if (victim === null) this.#isToLook = false
        this.#isUnsure = true
        if ((await this.#take(link, victim, false)) !== null) await this.#tell(link)
        this.#isUnsure = false
        took = true
      }
      if (took) this.#onWorks()
    } catch (error) {
      // with the next beat
      this.#isToLook = true
      if (!this.#fails && !this.#isOver)
        this.#on.untaken(failureOf(error instanceof StatementError ? error.error : error, this.#options.place))
      this.#fails = true
    } finally {
      await link?.end()
    }
  }

  #onWorks(): void {
    if (this.#fails) this.#on.untaken(undefined)
    this.#fails = false
  }

  /** Before it is told as taken, however often the connection is lost in between: whoever is told reads what is this one's. */
  async #leaveParted(link: Link, jobIds: readonly string[]): Promise<void> {
    if (!this.#runsJobs || jobIds.length === 0) return
    const [rows] = await link.run([statement(PARKED, this.#me, JSON.stringify(jobIds))])
    const parked = rows!.flatMap(({ id, info }) => {
      const session: unknown = tried(() => JSON.parse(info as string))?.sessionId
      return typeof session === 'string' ? { job: id, session } : []
    })
    if (parked.length > 0) await link.run([statement(LEAVE_PARTED, this.#me, JSON.stringify(parked))])
  }

  /** @returns what was taken, as JSON; null when another one has */
  async #take(link: Link, victim: Victim, isKnownDead: boolean): Promise<string | null> {
    const waitMs = Math.ceil(this.#leaseMs / 4)
    const n = victim?.n ?? null
    const take = [
      statement(TAKE, this.#me, n, isKnownDead, Math.ceil(this.#leaseMs), waitMs),
      ...(this.#runsJobs ? [] : [statement(LEAVE_JOBS, this.#me), statement(LEAVE_TOLD, this.#me)]),
    ]
    for (let tries = 1, isFreed = false; ; tries++)
      try {
        const [rows] = await link.run(take)
        return rows![0]!.taken as string | null
      } catch (error) {
        if (!(error instanceof StatementError)) throw error
        // a join that fails is a gateway that does not start
        if (error.isDeadlock && tries < MOST_TRIES) continue
        if (error.error.code !== LOCKED || isFreed) throw error
        isFreed = true
        const [backends] = await link.run([statement(BACKEND_OF, n)])
        for (const { backend } of backends!)
          await link.run([statement(AS_LOGIN), statement(END_BATCH, backend as number, waitMs / 2)])
      }
  }

  async #tell(link: Link): Promise<void> {
    const [rows] = await link.run([statement(UNTOLD, this.#me)])
    if (rows!.every(({ victim }) => victim !== NOBODY)) this.#told.delete(NOBODY)
    for (const row of rows!) {
      const victim = row.victim as number
      const taken = takenOf(victim, row)
      const isNew = !this.#told.has(victim) && !(victim === NOBODY && isNothing(taken))
      if (isNew) await this.#leaveParted(link, taken.jobIds)
      if (isNew && !this.#isOver) this.#on.taken(this.#runsJobs ? taken : { ...taken, jobIds: [] })
      this.#told.add(victim)
      await link.run([statement(TOLD, this.#me, victim)])
      // nobody may have something again
      this.#told.delete(NOBODY)
    }
  }
}

const takenJobs = (taken: string): readonly string[] => (JSON.parse(taken) as Taken).jobIds

const isNothing = ({ sessionIds, jobIds, lanes, keys }: Taken): boolean =>
  [sessionIds, jobIds, lanes, keys].every(({ length }) => length === 0)

function takenOf(victim: number, { taken }: Row): Taken {
  const { name, ...all } = JSON.parse(taken as string) as { name: string | null } & Omit<Taken, 'from'>
  return { ...(victim > 0 && { from: { n: victim, name: name ?? '' } }), ...all }
}
