import { AsyncResource } from 'node:async_hooks'
import { toError } from '../errors.js'
import type { Clock, Timer } from '../lib/clock.js'
import type { Logger } from '../lib/logger.js'
import { newId } from '../lib/new-id.js'
import type { Standstill } from '../lib/standstill.js'
import type { Place } from '../sessions/places.js'
import type { JobRecord, QueueAdapter } from './adapter.js'
import type { Attempts } from './attempts.js'
import type { DailyBudget } from './budgets.js'
import type { JobCounters } from './counters.js'
import type { DelayedJobs } from './delayed-jobs.js'
import type { JobStore } from './job-store.js'
import type { Recount } from './recount.js'
import type { JobSessions } from './sessions.js'
import { Poll, type SharedQueue } from './shared-queue.js'

export interface ClaimsOptions {
  adapter: QueueAdapter
  clock: Clock
  logger: Logger
  sessions: JobSessions
  maxConcurrency: number
  counters: JobCounters
  recount: Recount
  due: DelayedJobs
  budget: DailyBudget
  store: JobStore
  attempts: Attempts
  /** Present when several nodes share the adapter. */
  shared: SharedQueue | undefined
  /** Nothing is claimed while it stands still; absent: it never does. */
  standstill?: Standstill | undefined
  /** Jobs whose submission is not told yet, and whether it came about. */
  submitting: ReadonlyMap<string, Promise<boolean>>
  /** The daily budget ran out, or is there again. */
  onPause(paused: boolean): void
}

const CLAIM_RETRY_MS = 1_000

/** Brings queued jobs into the slots that are free, as many at a time as there are. */
export class Claims {
  readonly #options: ClaimsOptions
  #open = false
  #paused = false
  /** There may be something to claim. */
  #work = true
  #claiming = false
  #wakesSoon = false
  /** The storage refused what a run begins with: nothing is claimed meanwhile. */
  #refused: Timer | undefined
  /** While it stands still: wakes the claims when that is over. */
  #held: Timer | undefined
  /** The last try to claim failed: the next one that nobody asks for. */
  #again: Timer | undefined
  /** Claims and the cancels of queued jobs, one after the other. */
  #exclusive: Promise<unknown> = Promise.resolve()
  /** Refused submissions that are being taken back. */
  readonly #disowning = new Set<Promise<void>>()
  readonly #poll: Poll
  /** The last claim of an adapter that gives one job at a time gave one: perhaps one that another process added. */
  #gaveOne = false
  /** Why the last try to claim failed. */
  #failure: string | undefined
  /** Away from what a host keeps beside a request (`AsyncLocalStorage`): whoever wakes it has not submitted what it begins. */
  readonly #fillApart = AsyncResource.bind(() => this.#fill())

  constructor(options: ClaimsOptions) {
    this.#options = options
    this.#poll = new Poll(options.clock, () => this.wake())
  }

  /** Begins to claim. */
  open(): void {
    this.#open = true
    if (this.#options.shared) this.#poll.start()
    this.wake()
  }

  /** Claims nothing more. */
  close(): void {
    this.#open = false
    this.#poll.stop()
    this.#refused?.cancel()
    this.#again?.cancel()
  }

  /** Resolves when what was claimed is begun, or taken back: as a run that was cut off it would be tried again by the next process. */
  async idle(): Promise<void> {
    await this.#exclusive
    await Promise.all(this.#disowning)
  }

  /** Whether something may be claimed that was not begun yet. */
  get isClaiming(): boolean {
    return this.#claiming
  }

  /** Runs `work` while nothing is claimed. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#exclusive.then(work)
    this.#exclusive = result.catch(() => {})
    return result
  }

  /** There may be something to claim, or a slot, a place or tokens for it. */
  wake(): void {
    this.#work = true
    const { clock, standstill } = this.#options
    if (standstill?.stands)
      this.#held ??= clock.after(0, () => {
        this.#held = undefined
        this.wake()
      })
    else if (!this.#claiming && this.#mayClaim) void this.#fillApart()
  }

  /** Once all that ends in this turn has ended: one claim for all the slots, in the write of those ends. */
  wakeSoon(): void {
    if (this.#wakesSoon) return
    this.#wakesSoon = true
    process.nextTick(() => {
      this.#wakesSoon = false
      this.wake()
    })
  }

  /** Not as soon as it takes something: it may take that and refuse again what is larger. */
  awaitStorage(): void {
    this.#refused ??= this.#options.clock.after(CLAIM_RETRY_MS, () => {
      this.#refused = undefined
      this.wake()
    })
  }

  get #mayClaim(): boolean {
    const { shared, standstill } = this.#options
    return this.#open && !this.#refused && !standstill?.stands && (shared?.cluster.state ?? 'serving') === 'serving'
  }

  async #fill(): Promise<void> {
    const { budget, logger, clock } = this.#options
    this.#claiming = true
    let claimed = false
    try {
      if (!budget.isCurrent) await budget.refresh()
      const places = this.#mayClaim && this.#mayBegin ? this.#reserve() : []
      if (places.length > 0) {
        this.#work = false
        await this.inTurn(() => this.#claim(places)).finally(() => {
          for (const place of places.splice(0)) place.release()
        })
        claimed = true
      }
      this.#tellPause()
      this.#failure = undefined
    } catch (error) {
      const failure = toError(error)
      // once for what lets no try succeed, however long it lasts
      if (failure.message !== this.#failure)
        logger.error({ err: failure }, 'jobs could not be claimed; it is tried again')
      this.#failure = failure.message
      this.#again ??= clock.after(CLAIM_RETRY_MS, () => {
        this.#again = undefined
        this.wake()
      })
    } finally {
      this.#claiming = false
    }
    if (claimed && this.#work) this.wakeSoon()
  }

  /** Whether the day has tokens left when those are counted whose charge is being written. */
  get #mayBegin(): boolean {
    const { budget, attempts } = this.#options
    const { limit, used, exhausted } = budget
    return !exhausted && (limit === undefined || used + attempts.uncharged < limit)
  }

  /** Places for as many sessions as there are slots and jobs. Only those are kept while the adapter is asked. */
  #reserve(): Place[] {
    const { sessions } = this.#options
    const places: Place[] = []
    for (let wanted = this.#claimable; wanted > 0; wanted--) {
      const place = sessions.reserve()
      if (!place) break
      places.push(place)
    }
    return places
  }

  /** How many jobs to ask for; an adapter that tells of work knows of jobs that nobody here has counted. */
  get #claimable(): number {
    const { adapter, attempts, counters, due, maxConcurrency, shared, store } = this.#options
    const slots = maxConcurrency - attempts.slots
    const isToldOfWork = adapter.onWork !== undefined || shared !== undefined
    if (counters.queued === 0 && !isToldOfWork && !this.#gaveOne) return 0
    if (!store.claimsTogether) return Math.min(slots, 1)
    // one that waits for its time may be due by the adapter's clock
    return isToldOfWork ? slots : Math.min(slots, Math.max(counters.queued - due.size, 1))
  }

  /** Begins what it claims, in that order, in the places, and takes those from the list. */
  async #claim(places: Place[]): Promise<void> {
    const { adapter, attempts, clock, counters, due, recount, store } = this.#options
    const sessionIds = places.map(() => newId())
    const records = await store.claim(places.length, { at: clock.now(), sessionIds })
    // a write that failed alone is repeated
    await attempts.freed()
    this.#gaveOne = !store.claimsTogether && records.length > 0
    // there may be more
    if (records.length === places.length) this.#work = true
    else {
      due.claimedAll()
      // others that share the adapter have claimed some
      if ((adapter.onWork || !store.claimsTogether) && counters.queued > records.length + due.size) recount.doubt()
    }
    for (const [index, record] of records.entries()) {
      const sessionId = sessionIds[index]!
      // what is stored can be claimed before it was told: a submission, or the attempt before
      const { id } = record.info
      const isThere = await this.#cameAbout(record)
      await attempts.over(id)
      if (!isThere) continue
      store.take(record)
      attempts.start(record, places.shift()!, sessionId)
    }
  }

  /** Whether a job that was claimed is one. A submission that its adapter refused and stored all the same is taken back. */
  async #cameAbout(record: JobRecord): Promise<boolean> {
    try {
      return (await this.#options.submitting.get(record.info.id)) ?? true
    } catch {
      const disowning = this.#disown(record)
      this.#disowning.add(disowning)
      void disowning.then(() => this.#disowning.delete(disowning))
      return false
    }
  }

  /** Holds up neither what was claimed with it nor who cancels. */
  async #disown(record: JobRecord): Promise<void> {
    const { logger, store } = this.#options
    try {
      await store.disown(record)
    } catch (error) {
      logger.error({ err: toError(error), jobId: record.info.id }, 'a refused submission could not be taken back')
    }
  }

  #tellPause(): void {
    const { budget, onPause } = this.#options
    if (budget.exhausted === this.#paused) return
    this.#paused = budget.exhausted
    onPause(this.#paused)
  }
}
