import type { Clock, Timer } from '../lib/clock.js'
import { type Principal, visible } from '../principal.js'
import type { ClusterStorage } from '../storage/cluster.js'
import type { JobCount, QueueAdapter } from './adapter.js'
import type { DailyBudget } from './budgets.js'
import type { ActiveCounts } from './counters.js'

/** What a queue has to know of the other nodes that share its adapter. */
export type QueueCluster = Pick<
  ClusterStorage,
  'n' | 'state' | 'nodes' | 'on' | 'placeOfJob' | 'placeOfSession' | 'nudge'
>

interface SharedQueueOptions {
  cluster: QueueCluster
  adapter: QueueAdapter
  clock: Clock
  budget: DailyBudget
  /** Name of this node, where jobs may have to stay with the node that took them in; absent: they go anywhere. */
  home: string | undefined
}

/** What others have changed is seen after that long. */
const AGE_MS = 1_000
/** Counting takes at most about that part of the database's time. */
const SHARE = 1 / 10
/** A delay that is longer is left to the poll: another node may have the job by then. */
const OWN_DELAY_MS = 60_000

/** The queue as all nodes together have it: how many jobs there are, and the tokens of the day, as the adapter knows them. */
export class SharedQueue {
  readonly cluster: QueueCluster
  readonly home: string | undefined
  readonly #adapter: QueueAdapter
  readonly #clock: Clock
  readonly #budget: DailyBudget
  #counts: readonly JobCount[] = []
  /** When the counts that are there were asked for. */
  #askedAt = Number.NEGATIVE_INFINITY
  /** Counting them took so long. */
  #tookMs = 0
  /** Changes that are known of, and how many of them the counts are after. */
  #changes = 0
  #counted = 0
  /** That wait by what was done here since. */
  #waiting = 0
  #reading: Promise<void> | undefined

  /** @throws when the adapter cannot be shared */
  constructor({ cluster, adapter, clock, budget, home }: SharedQueueOptions) {
    if (!adapter.counts || !adapter.owned)
      throw new Error('A queue adapter that several nodes share needs counts and owned; see QueueAdapter.')
    this.cluster = cluster
    this.home = home
    this.#adapter = adapter
    this.#clock = clock
    this.#budget = budget
  }

  /** Slots of all nodes. */
  get slots(): number {
    return this.cluster.nodes().reduce((sum, { slots }) => sum + slots, 0)
  }

  /** Something has changed that the counts are to have in them. */
  changed(): void {
    this.#changes++
  }

  /** A job waits from now on. @param isReady whoever has a slot can claim it */
  waits(isReady: boolean): void {
    this.#waiting++
    this.changed()
    if (isReady) this.cluster.nudge()
  }

  /** Whether this process looks by itself when a job falls due. */
  reminds(nextRunAt: number): boolean {
    return nextRunAt - this.#clock.now() < OWN_DELAY_MS
  }

  /** About how many wait: those of the last count, and all that were added here since, begun or not. */
  get queued(): number {
    return this.#countedQueued + this.#waiting
  }

  /**
   * Whether this node has added its part since the last count, of the room that was left then: the other nodes may have added theirs.
   * @param bound of what all nodes may have queued
   * @param adding on their way into the database
   */
  hasUsedItsPart(bound: number, adding: number): boolean {
    const adders = this.cluster.nodes().filter(({ slots }) => slots > 0).length
    const part = Math.floor((bound - this.#countedQueued) / Math.max(adders, 1))
    return this.#waiting + adding >= Math.max(part, 1)
  }

  get #countedQueued(): number {
    const counted = this.#counts.filter(({ status }) => status === 'queued')
    return counted.reduce((sum, { count }) => sum + count, 0)
  }

  /** Counts them where the last count is old. */
  async recount(): Promise<void> {
    if (this.#countedAt <= this.#clock.now() - AGE_MS) await this.#read()
  }

  /**
   * Counts them so that all that is known by now is in it.
   * @param underWay what is on its way into the database: nobody knows whether a count has it
   */
  async recountAll(underWay: Iterable<Promise<unknown>>): Promise<void> {
    await Promise.allSettled(underWay)
    const changes = this.#changes
    do await this.#read()
    while (this.#counted < changes)
  }

  /** Of the profiles that a caller may see, all that is known to have happened by now included; the day's tokens are current then, too. */
  async visibleTo(principal: Principal): Promise<ActiveCounts> {
    const changes = this.#changes
    const asked = this.#clock.now()
    // the clock may be set back meanwhile
    const isOld = () => this.#countedAt <= Math.min(asked, this.#clock.now()) - AGE_MS
    while (this.#counted < changes || isOld()) await this.#read()
    const total = { queued: 0, running: 0, parked: 0 }
    for (const { profile, status, count } of this.#counts)
      if (visible(principal, profile)) total[status as keyof ActiveCounts] += count
    return total
  }

  /** As `#askedAt`; nobody knows how long ago that is once the clock was set back. */
  get #countedAt(): number {
    return this.#askedAt > this.#clock.now() ? Number.NEGATIVE_INFINITY : this.#askedAt
  }

  #read(): Promise<void> {
    this.#reading ??= this.#readNow().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #readNow(): Promise<void> {
    const pauseMs = Math.min(this.#tookMs / SHARE, AGE_MS) - (this.#clock.now() - this.#countedAt)
    if (pauseMs > 0) await new Promise<void>((resolve) => this.#clock.after(pauseMs, resolve))
    const at = this.#clock.now()
    const changes = this.#changes
    const waiting = this.#waiting
    const { today } = this.#budget
    // both of one moment
    const [counts, tokens] = await Promise.all([this.#adapter.counts!(), this.#adapter.dailyTokens(today)])
    this.#counts = counts
    this.#tookMs = this.#clock.now() - at
    this.#askedAt = at
    this.#counted = changes
    this.#waiting -= waiting
    this.#budget.become(today, tokens)
  }
}

/** Looks again and again, as what it is told of may be lost. */
export class Poll {
  readonly #clock: Clock
  readonly #look: () => void
  #timer: Timer | undefined

  constructor(clock: Clock, look: () => void) {
    this.#clock = clock
    this.#look = look
  }

  start(): void {
    this.#timer ??= this.#clock.after(AGE_MS, () => {
      this.#timer = undefined
      this.start()
      this.#look()
    })
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }
}
