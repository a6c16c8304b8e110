import type { Call } from '../sql/call-queue.js'
import type { SessionWrite } from '../sql/rows.js'
import type { PostgresOperations } from './operations.js'
import type { Row, Statement } from './pipeline.js'
import { does, type Plan, type Plans, type Self } from './plan.js'
import { carriedPlans } from './tables/carried.js'
import { JobChanges } from './tables/job-changes.js'
import { jobPlans, type KnownJobs } from './tables/jobs.js'
import { listed } from './tables/listed-sessions.js'
import { notificationPlans } from './tables/notifications.js'
import { NOBODY } from './tables/riding.js'
import { Appends, besides, journalPlans, type KnownSession } from './tables/sessions.js'
import {
  channelPlans,
  idempotencyPlans,
  outboxPlans,
  parkedPlans,
  probePlans,
  profilePlans,
  signInPlans,
  versionPlans,
} from './tables/small.js'
import { usagePlans } from './tables/usage.js'

/** What is forgotten is looked up by the next write. */
const MOST_KNOWN = 20_000

const OTHER_PLANS = {
  ...parkedPlans,
  ...notificationPlans,
  ...channelPlans,
  ...signInPlans,
  ...carriedPlans,
  ...usagePlans,
  ...versionPlans,
  ...probePlans,
}

/** Sessions that this process has written to, by id, in the order of their last writes. */
export class KnownSessions extends Map<string, KnownSession> {
  note(id: string, known: KnownSession | undefined): void {
    this.delete(id)
    if (known) this.set(id, known)
    if (this.size > MOST_KNOWN) this.delete(this.keys().next().value!)
  }
}

const NEEDS_JOB: ReadonlySet<string> = new Set(['jobs.update', 'jobs.settle'])

/** Ids of the jobs that calls are going to change. */
export const jobsChanged = (calls: readonly Call[]): string[] => [
  ...new Set(calls.flatMap(([name, id]) => (NEEDS_JOB.has(name) ? [id as string] : []))),
]

/**
 * How many of the calls make one transaction: a claim changes jobs that nobody knows before, so that what changes a job after it has to
 * wait for its answer.
 */
export function together(calls: readonly Call[]): number {
  const claim = calls.findIndex(([name]) => name === 'jobs.claim' || name === 'jobs.prune')
  if (claim < 0) return calls.length
  const next = calls.findIndex(([name], index) => index > claim && NEEDS_JOB.has(name))
  return next < 0 ? calls.length : next
}

/** Calls that are done in one transaction, as statements in the order of the calls. */
export class Batch {
  readonly calls: readonly Call[]
  /** What sessions are after the calls that were planned so far; undefined: somebody has to look. */
  readonly #ahead = new Map<string, KnownSession | undefined>()
  readonly #sessions: KnownSessions
  readonly #plans: Plan[] = []
  /** Statements in their order, each with the call, or the group of calls, that it is of. */
  readonly #steps: { of: number | Appends | JobChanges; statement: Statement | undefined }[] = []

  constructor(calls: readonly Call[], sessions: KnownSessions, jobs: KnownJobs, newClaim: () => string, self: Self) {
    this.calls = calls
    this.#sessions = sessions
    const plans: Plans = {
      ...journalPlans(self, (id, known) => sessions.note(id, known)),
      ...jobPlans(jobs, newClaim, self.n),
      ...idempotencyPlans(self),
      ...outboxPlans(self),
      ...profilePlans(self.n),
      ...OTHER_PLANS,
    }
    let appends: Appends | undefined
    let changes: JobChanges | undefined
    for (const call of calls) {
      const [name, ...args] = call as [keyof PostgresOperations, ...unknown[]]
      if (name === 'journal.write') {
        const write = args[0] as SessionWrite
        const known = this.#sessionOf(write.id)
        const group: Appends = appends ?? new Appends()
        const after = known && group.add(known, write)
        if (after) {
          if (!appends) this.#steps.push({ of: group, statement: undefined })
          appends = group
          const listing = listed(write, known.listed, self.isOneOfMany ? self.n : null)
          const next = { ...after, listed: listing.after }
          this.#ahead.set(write.id, next)
          this.#plan({
            ...does(...besides(write, self.n), ...listing.statements),
            result: () => sessions.note(write.id, next),
          })
          continue
        }
      }
      if (name.startsWith('journal.') || name.startsWith('cluster.')) {
        // what else is done with sessions stays between what is written to them before it and after it
        appends = undefined
        if (name === 'journal.write') this.#ahead.set((args[0] as SessionWrite).id, undefined)
        else if (name === 'journal.remove' || name === 'cluster.claim') this.#ahead.set(args[0] as string, undefined)
        else if (name === 'cluster.release') for (const id of args[0] as string[]) this.#ahead.set(id, undefined)
      }
      const plan = (plans[name] as (...args: unknown[]) => Plan)(...args)
      if (plan.change) {
        if (!changes?.add(plan.change)) {
          changes = new JobChanges(self.runsNoJobs ? NOBODY : self.n)
          changes.add(plan.change)
          this.#steps.push({ of: changes, statement: undefined })
        }
      } else if (name.startsWith('jobs.')) changes = undefined
      this.#plan(plan)
    }
  }

  get writes(): boolean {
    return this.#plans.some(({ onlyReads }) => !onlyReads)
  }

  /** Whether a call, by its place, changes anything. */
  writesBy(call: number): boolean {
    return !this.#plans[call]!.onlyReads
  }

  get statements(): Statement[] {
    return this.#steps.map(({ of, statement }) => statement ?? (of as Appends | JobChanges).statement())
  }

  /** Of which call a statement is; undefined: of several. */
  callOf(statement: number): number | undefined {
    const { of } = this.#steps[statement]!
    if (typeof of === 'number') return of
    if (of instanceof JobChanges) return undefined
    // one of them is not there any more: each is looked up the next time
    for (const id of of.ids) this.#sessions.delete(id)
    return undefined
  }

  /** What each call gives. @param rows of each statement */
  results(rows: readonly Row[][]): unknown[] {
    const given: Row[][][] = this.#plans.map(() => [])
    for (const [index, { of }] of this.#steps.entries()) if (typeof of === 'number') given[of]!.push(rows[index]!)
    return this.#plans.map(({ result }, call) => result(given[call]!))
  }

  /** As a batch that was done, of which nobody heard what it gave. Nobody waits any more for what only reads. */
  asDone(): { statements: Statement[]; results(rows: readonly Row[][]): unknown[] } {
    const asked = this.#plans.map(({ onlyReads, again, statements }) => (onlyReads ? [] : (again ?? statements)))
    return {
      statements: asked.flat(),
      results: (rows) => {
        const left = [...rows]
        return this.#plans.map(({ onlyReads, result }, call) =>
          onlyReads ? undefined : result(left.splice(0, asked[call]!.length)),
        )
      },
    }
  }

  #sessionOf(id: string): KnownSession | undefined {
    return this.#ahead.has(id) ? this.#ahead.get(id) : this.#sessions.get(id)
  }

  #plan(plan: Plan): void {
    const call = this.#plans.push(plan) - 1
    for (const statement of plan.statements) this.#steps.push({ of: call, statement })
  }
}
