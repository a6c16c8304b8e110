import { setMaxListeners } from 'node:events'
import type { WebhookDelivery } from '../../schemas/jobs.js'
import { toError } from '../errors.js'
import { type Backoff, delayAfter } from '../lib/backoff.js'
import type { Clock } from '../lib/clock.js'
import type { Logger } from '../lib/logger.js'
import { readInTime } from '../lib/patience.js'
import type { Standstill } from '../lib/standstill.js'
import { Attempts } from './attempts.js'
import {
  type Delivery,
  type FindTarget,
  type LeftDelivery,
  type PlannedDelivery,
  type PreparedDelivery,
  type StoredDelivery,
  storedOf,
} from './delivery.js'
import { FailingTargets } from './failing-targets.js'
import { GoneTargets, saysGone } from './gone-targets.js'
import { Lane } from './lane.js'
import type { DeliveryOutbox, KeptDelivery } from './outbox.js'
import { type DeliveryCounts, Outcomes } from './outcomes.js'
import type { PostError, PostOutcome } from './post.js'
import { type ConnectionLimits, Slots } from './slots.js'
import type { WebhookTarget } from './target.js'
import { WaitingCounts } from './waiting.js'

export interface DelivererOptions {
  clock: Clock
  logger: Logger
  outbox: DeliveryOutbox
  /** Whether the next process finds in the outbox what this one leaves there. */
  outlasts: boolean
  /** Before the outbox is asked again. Default: `clock.after`. */
  retryAfter?: Clock['after']
  connections?: ConnectionLimits | undefined
  /** Whether another process has forgotten a job, and with it its lane, while this one was at it; absent: none does. */
  isForgotten?: ((jobId: string) => Promise<boolean>) | undefined
  /** Nothing is sent while it stands still; absent: it never does. */
  standstill?: Standstill | undefined
}

/** Before a lane that another process has to finish first is looked at again. */
const HELD_UP_MS = 250
/** Where no pause is asked for there is none before the second attempt, and then one that comes to a second: there may be any number of them. */
const UNASKED: Backoff = { firstMs: 1, longestMs: 1_000 }
/** A receiver that asks for more patience than this gets this much. */
const MAX_PAUSE_MS = 60 * 60 * 1000
/** Failures that another attempt would not change. */
const FINAL: ReadonlySet<string> = new Set<PostError>(['blocked', 'unwritten'])

const UNWANTED: PlannedDelivery = { kept: undefined, keep() {}, send() {}, withdraw() {} }

/**
 * Delivers JSON bodies to URLs. Deliveries of one lane (a job, a session) go one after the other, in order, each with its retries;
 * lanes do not wait for each other. Whatever a receiver does, what is delivered about is not affected. A delivery stands in the outbox
 * until it was made or given up: one whose process dies is made by the next one, under the same id.
 */
export class WebhookDeliverer {
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #outbox: DeliveryOutbox
  readonly #outlasts: boolean
  readonly #outcomes: Outcomes
  readonly #lanes = new Map<string, Lane>()
  /** Whose deliveries are this one's to make by now, and how many times they are still to be taken up. */
  readonly #expected = new Map<string, number>()
  readonly #gone: GoneTargets
  readonly #attempts: Attempts
  readonly #stop = new AbortController()
  readonly #slots: Slots
  readonly #isForgotten: DelivererOptions['isForgotten']
  /** Lanes that have not come to rest. */
  #running = 0
  readonly #waiting = new WaitingCounts()
  readonly failing = new FailingTargets()
  #flushing = false
  /** As `restore` was given them. */
  #findTarget: FindTarget = async () => undefined
  #takeOver: (kept: LeftDelivery) => void = () => {}
  #onIdle: (() => void)[] = []

  constructor(options: DelivererOptions) {
    const { clock, logger, outbox, outlasts, connections, standstill } = options
    const { retryAfter = (delayMs, run) => clock.after(delayMs, run) } = options
    this.#clock = clock
    this.#logger = logger
    this.#outbox = outbox
    this.#outlasts = outlasts
    this.#isForgotten = options.isForgotten
    const persistence = { logger, retryAfter, signal: this.#stop.signal }
    this.#outcomes = new Outcomes({ clock, logger, outbox, outlasts, persistence })
    this.#slots = new Slots(connections)
    this.#gone = new GoneTargets(outbox, (key) => this.#rememberGone(key))
    const { signal } = this.#stop
    this.#attempts = new Attempts({ clock, logger, gone: this.#gone, slots: this.#slots, standstill, signal })
    // every attempt under way listens to it
    setMaxListeners(0, signal)
  }

  get counts(): DeliveryCounts {
    return this.#outcomes.counts
  }

  /** Asks the outbox before it returns: what is written in the same turn can become durable together with it. */
  prepare(laneId: string, delivery: Delivery): PreparedDelivery {
    const planned = this.plan(laneId, delivery)
    planned.keep()
    return planned
  }

  /** Leaves it to the caller to have it kept. */
  plan(laneId: string, delivery: Delivery): PlannedDelivery {
    const { id, target } = delivery
    // the answer that stopped this target was told
    if (this.#gone.has(target.key)) return UNWANTED
    const kept = this.#outlasts ? { id, lane: laneId, delivery: storedOf(delivery) } : undefined
    return {
      kept,
      keep: () => kept && this.#outcomes.ask(this.#outbox.add(kept)),
      send: () => this.#send(laneId, delivery),
      withdraw: () => this.#takeBack(laneId, delivery),
    }
  }

  /**
   * Makes what earlier processes left. Call it once, before anything else is delivered.
   * @param takeOver gets what is due later and is somebody else's to make
   * @throws what the outbox throws
   */
  async restore(findTarget: FindTarget, takeOver: (kept: LeftDelivery) => void = () => {}): Promise<void> {
    await this.#gone.learn()
    this.#findTarget = findTarget
    this.#takeOver = takeOver
    await this.#goOn(await this.#outbox.list(undefined, this.#onUnreadable), takeOver)
  }

  /** Nothing is told in these lanes before `takeUp` is called with them, as many times as this. */
  expect(lanes: readonly string[]): void {
    for (const lane of lanes) this.#expected.set(lane, (this.#expected.get(lane) ?? 0) + 1)
  }

  /**
   * Makes what another process had to make and is this one's now. Call it before anything else is told in its lanes.
   * @param lanes those that were taken over
   * @param takeOver as `restore` is given it, which is the default; may be told again of what is here already
   * @throws what the outbox throws
   */
  async takeUp(lanes: readonly string[], takeOver?: (kept: LeftDelivery) => void): Promise<void> {
    if (lanes.length === 0) return
    await this.#takeUp(lanes, takeOver)
    for (const lane of lanes) {
      const times = (this.#expected.get(lane) ?? 0) - 1
      if (times > 0) this.#expected.set(lane, times)
      else this.#expected.delete(lane)
    }
  }

  async #takeUp(lanes: readonly string[], takeOver = this.#takeOver): Promise<void> {
    await this.#gone.learn()
    await this.#goOn(await this.#outbox.list(lanes, this.#onUnreadable), takeOver)
  }

  /** Makes what came before all that waits in a lane: what this process has there beside that it may have kept and not told of yet. */
  async #takeUpBefore(laneId: string, lane: Lane): Promise<void> {
    const kept = await this.#outbox.list([laneId], this.#onUnreadable)
    const inLane = kept.filter((one) => one.lane === laneId)
    const first = inLane.findIndex(({ id }) => lane.find(id))
    await this.#goOn(first < 0 ? inLane : inLane.slice(0, first), this.#takeOver)
  }

  readonly #onUnreadable = (err: Error): void => this.#logger.error({ err }, 'a webhook delivery cannot be made')

  async #goOn(kept: readonly KeptDelivery[], takeOver: (kept: LeftDelivery) => void): Promise<void> {
    const all = kept.map(
      ({ lane, id, delivery }): LeftDelivery => ({
        ...{ lane, id, stored: delivery as StoredDelivery },
      }),
    )
    const left = all.filter(({ stored }) => stored.dueAt === undefined)
    for (const later of all) if (later.stored.dueAt !== undefined) takeOver(later)
    const targets = await Promise.all(left.map(({ lane, stored }) => this.#findTarget({ ...stored, lane })))
    const deliveries = targets.filter((target) => target === 'later').length
    if (deliveries > 0) this.#logger.warn({ deliveries }, 'webhook deliveries of jobs wait for a gateway with a queue')
    /** Of each lane the last one that is here. */
    const before = new Map<string, Delivery>()
    for (const [index, { lane, id, stored }] of left.entries()) {
      const target = targets[index]
      const here = this.#lanes.get(lane)?.waiting.find((delivery) => delivery.id === id)
      if (here) before.set(lane, here)
      if (here || target === 'later') continue
      if (target) {
        const delivery = { ...stored, id, target }
        this.#enter(lane, delivery, (known) => known.putAfter(before.get(lane), delivery))
        // it may be what was given up where too many wait
        if (this.#lanes.get(lane)?.waiting.includes(delivery)) before.set(lane, delivery)
      } else {
        this.counts.lost++
        this.#logger.warn({ delivery: id, type: stored.type, lane }, 'a webhook delivery from before has no target now')
        this.#outcomes.settle(lane, id)
      }
    }
  }

  /** The last attempts of a lane, newest first. @throws SG_ERR_STORE_UNAVAILABLE */
  deliveries(laneId: string): Promise<WebhookDelivery[]> {
    return readInTime(this.#clock, () => this.#outbox.attempts(laneId))
  }

  /** Drops what is known about a lane; what still waits in it is delivered, and then that is dropped, too. */
  forget(laneId: string): void {
    this.#gone.forget(laneId)
    const lane = this.#lanes.get(laneId)
    if (lane) lane.isForgotten = true
    this.#outcomes.ask(this.#outbox.forget(laneId))
  }

  /** Drops the attempts of before a time, but for those of jobs. @throws what the outbox throws */
  async prune(before: number): Promise<void> {
    await this.#outbox.prune?.(before)
  }

  /** What waits in a lane is not attempted any more, by the next process neither. @param id of what alone is meant; default: all of it */
  withdraw(laneId: string, id?: string): void {
    const lane = this.#lanes.get(laneId)
    for (const delivery of [...(lane?.waiting ?? [])])
      if ((id === undefined || delivery.id === id) && lane!.withdraw(delivery))
        this.#outcomes.settle(laneId, delivery.id)
  }

  /** What is under way to its receiver stays kept until that is over: what other processes tell in its lane does not overtake it. */
  #takeBack(laneId: string, delivery: Delivery): void {
    const lane = this.#lanes.get(laneId)
    const here = lane?.find(delivery.id)
    const isUnderWay = here !== undefined && lane!.isMaking(here)
    if (here) lane!.withdraw(here, isUnderWay)
    if (!isUnderWay) this.#outcomes.settle(laneId, delivery.id)
  }

  /** Whether a target has answered that nothing is to be sent to it any more, to this process or one before. */
  isGone({ key }: WebhookTarget): boolean {
    return this.#gone.has(key)
  }

  /** Deliveries that wait or are under way. */
  get pending(): number {
    let count = 0
    for (const lane of this.#lanes.values()) count += lane.waiting.length
    return count
  }

  /**
   * Resolves when nothing is left to deliver now. From now on nothing is waited for: what would have to be is left to the next process,
   * and so is what else waits for a receiver that is not there. When there is no next one, retries follow at once, and a receiver that
   * asked for patience is left alone.
   */
  flush(): Promise<void> {
    this.#flushing = true
    if (this.#outlasts) this.#attempts.leaveAway()
    return this.#rest()
  }

  /** Ends what is under way; nothing is sent after it. Resolves when the outbox was asked for the last time. */
  close(): Promise<void> {
    this.#stop.abort()
    this.#slots.close()
    return this.#rest()
  }

  async #rest(): Promise<void> {
    for (const lane of this.#lanes.values()) lane.pause?.go()
    if (this.#running > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve))
  }

  #send(laneId: string, delivery: Delivery): void {
    // it may have been taken up as what is kept
    if (this.#lanes.get(laneId)?.find(delivery.id)) return
    this.#enter(laneId, delivery, (lane) => lane.put(delivery))
  }

  #enter(laneId: string, delivery: Delivery, put: (lane: Lane) => void): void {
    if (this.#stop.signal.aborted) {
      if (!this.#outlasts) this.#outcomes.lose(laneId, delivery, 'dropped')
      return
    }
    if (!this.#waiting.enter(delivery.target)) {
      this.#outcomes.lose(laneId, delivery, 'dropped')
      this.#outcomes.settle(laneId, delivery.id)
      return
    }
    const known = this.#lanes.get(laneId)
    const lane = known ?? new Lane()
    put(lane)
    if (known) {
      this.#makeRoom(laneId, known)
      return
    }
    this.#lanes.set(laneId, lane)
    void this.#run(laneId, lane)
  }

  #makeRoom(laneId: string, lane: Lane): void {
    const dropped = lane.makeRoom()
    if (!dropped) return
    this.#waiting.leave(dropped.target)
    if (lane.isWithdrawn(dropped)) return
    this.#outcomes.lose(laneId, dropped, 'dropped')
    this.#outcomes.settle(laneId, dropped.id)
  }

  /** A lane that is left to the next process stays, so that nothing overtakes what waits in it. */
  async #run(laneId: string, lane: Lane): Promise<void> {
    this.#running++
    let isOfJob = false
    // other processes may have told something in it since the one before
    while (lane.waiting.length > 0 && (await this.#turnOf(laneId, lane))) {
      const next = lane.waiting[0]!
      lane.isAtWork = true
      isOfJob = next.origin.kind === 'job'
      const isOver = await this.#finish(laneId, lane, next)
      lane.isAtWork = false
      if (!isOver) break
      if (lane.isKept(next)) this.#outcomes.settle(laneId, next.id)
      this.#waiting.leave(next.target)
      lane.waiting.shift()
    }
    if (lane.waiting.length === 0) {
      this.#lanes.delete(laneId)
      if (lane.isForgotten || (isOfJob && (await this.#isForgottenElsewhere(laneId))))
        this.#outcomes.ask(this.#outbox.forget(laneId))
    }
    this.#running--
    if (this.#running === 0) for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  /** What a storage that fails does not say is no reason to wait: then what is known stays. */
  async #isForgottenElsewhere(jobId: string): Promise<boolean> {
    const ask = this.#isForgotten
    return ask !== undefined && readInTime(this.#clock, () => ask(jobId)).catch(() => false)
  }

  /** Waits while another process has what comes before in that lane. @returns false when the lane is left to the next process */
  async #turnOf(laneId: string, lane: Lane): Promise<boolean> {
    if (!this.#outbox.isHeldUp) return true
    for (let wasHeldUp = false; !lane.isWithdrawn(lane.waiting[0]!); ) {
      try {
        const isHeldUp = await this.#outbox.isHeldUp(laneId, lane.ids)
        if (!isHeldUp && !this.#expected.has(laneId)) {
          // what came before may be this one's by now
          if (wasHeldUp) await this.#takeUpBefore(laneId, lane)
          return true
        }
        wasHeldUp = true
      } catch (error) {
        this.#logger.warn({ err: toError(error) }, 'the outbox of webhook deliveries failed')
      }
      if (!(await this.#pause(lane, HELD_UP_MS))) return false
    }
    return true
  }

  /** @returns false when the delivery is left to the next process */
  async #finish(laneId: string, lane: Lane, delivery: Delivery): Promise<boolean> {
    if (!this.#stop.signal.aborted) return this.#gone.has(delivery.target.key) || this.#deliver(laneId, lane, delivery)
    if (!this.#outlasts) this.#outcomes.lose(laneId, delivery, 'dropped')
    return !this.#outlasts
  }

  async #deliver(laneId: string, lane: Lane, delivery: Delivery): Promise<boolean> {
    const { target } = delivery
    if (!(await this.#mayBegin(lane, delivery))) return false
    for (let attempt = (delivery.failed ?? 0) + 1; ; attempt++) {
      if (lane.isWithdrawn(delivery)) return true
      const outcome = await this.#attempts.make(delivery, () => lane.isWithdrawn(delivery))
      if (outcome === 'unwanted') return true
      if (outcome) {
        this.#outcomes.tried(laneId, delivery, attempt, outcome)
        this.failing.onOutcome(target, outcome.at, outcome)
      }
      const { error, status } = outcome ?? { error: 'stopped' as const }
      if (error === undefined) {
        this.counts.delivered++
        return true
      }
      this.counts.failedAttempts++
      // while it was under way: what comes after it does not wait either
      if (lane.isWithdrawn(delivery)) return true
      const isLast = attempt >= target.attempts || saysGone(target, status) || FINAL.has(error)
      if (!isLast || error === 'stopped') {
        const retryAfterMs = outcome?.retryAfterMs
        // one that this process cut off has not failed
        if (error !== 'stopped') {
          delivery.failed = attempt
          delivery.notBefore =
            retryAfterMs === undefined ? undefined : this.#clock.now() + Math.min(retryAfterMs, MAX_PAUSE_MS)
          this.#outcomes.failed(laneId, delivery)
        }
        if (await this.#pause(lane, pauseAfter(attempt, target), retryAfterMs)) continue
        if (this.#outlasts) return false
      }
      this.#outcomes.lose(laneId, delivery, error, status)
      return true
    }
  }

  /** Waits for as long as a receiver has asked an earlier process to. @returns false when it is left to the next one */
  async #mayBegin(lane: Lane, { notBefore = 0 }: Delivery): Promise<boolean> {
    const waitMs = notBefore - this.#clock.now()
    return waitMs <= 0 || this.#pause(lane, waitMs, waitMs)
  }

  /** @param retryAfterMs asked for by the receiver @returns whether this process tries again */
  async #pause(lane: Lane, delayMs: number, retryAfterMs?: PostOutcome['retryAfterMs']): Promise<boolean> {
    if (!this.#flushing && !this.#stop.signal.aborted) {
      const waitMs = Math.min(Math.max(delayMs, retryAfterMs ?? 0), MAX_PAUSE_MS)
      await new Promise<void>((go) => {
        lane.pause = { timer: this.#clock.after(waitMs, go), go }
      })
      lane.pause?.timer.cancel()
      lane.pause = undefined
    }
    if (this.#stop.signal.aborted) return false
    return !this.#flushing || !(this.#outlasts || retryAfterMs !== undefined)
  }

  #rememberGone(key: string): void {
    if (this.#outlasts && this.#outbox.rememberGone) this.#outcomes.ask(this.#outbox.rememberGone(key))
  }
}

function pauseAfter(attempt: number, { retryDelayMs }: WebhookTarget): number {
  if (retryDelayMs > 0) return delayAfter(attempt, { firstMs: retryDelayMs })
  return attempt === 1 ? 0 : delayAfter(attempt - 1, UNASKED)
}
