import type { WebhookDelivery } from '../../schemas/jobs.js'
import type { Clock } from '../lib/clock.js'
import type { Logger } from '../lib/logger.js'
import { readInTime } from '../lib/patience.js'
import {
  type Delivery,
  deliveryTo,
  type FindTarget,
  type LeftDelivery,
  type PlannedDelivery,
  type PreparedDelivery,
  type StoredDelivery,
  storedOf,
} from './delivery.js'
import type { FailingTargets } from './failing-targets.js'
import { GoneTargets } from './gone-targets.js'
import type { Lane } from './lane.js'
import { type DelivererOptions, Making } from './making.js'
import type { DeliveryOutbox, KeptDelivery } from './outbox.js'
import { type DeliveryCounts, Outcomes } from './outcomes.js'
import type { WebhookTarget } from './target.js'

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
  /** Whose deliveries are this one's to make by now, and how many times they are still to be taken up. */
  readonly #expected = new Map<string, number>()
  readonly #gone: GoneTargets
  readonly #making: Making
  /** As `restore` was given them. */
  #findTarget: FindTarget = async () => undefined
  #takeOver: (kept: LeftDelivery) => void = () => {}

  constructor(options: DelivererOptions) {
    const { clock, logger, outbox, outlasts } = options
    const { retryAfter = (delayMs, run) => clock.after(delayMs, run) } = options
    this.#clock = clock
    this.#logger = logger
    this.#outbox = outbox
    this.#outlasts = outlasts
    const stop = new AbortController()
    const persistence = { logger, retryAfter, signal: stop.signal }
    this.#outcomes = new Outcomes({ clock, logger, outbox, outlasts, persistence })
    this.#gone = new GoneTargets(outbox, (key) => this.#rememberGone(key))
    this.#making = new Making(options, {
      ...{ outcomes: this.#outcomes, gone: this.#gone, stop },
      isExpected: (laneId) => this.#expected.has(laneId),
      takeUpBefore: (laneId, lane) => this.#takeUpBefore(laneId, lane),
    })
  }

  get failing(): FailingTargets {
    return this.#making.failing
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
    const all = kept.flatMap(({ lane, id, delivery }): LeftDelivery[] => {
      const stored = delivery as Partial<StoredDelivery> | null
      if (stored?.origin) return [{ lane, id, stored: stored as StoredDelivery }]
      this.#onUnreadable(new Error(`Delivery ${id} of ${lane} does not say where it goes.`))
      return []
    })
    const left = all.filter(({ stored }) => stored.dueAt === undefined)
    for (const later of all) if (later.stored.dueAt !== undefined) takeOver(later)
    const targets = await Promise.all(left.map(({ lane, stored }) => this.#findTarget({ ...stored, lane })))
    const deliveries = targets.filter((target) => target === 'later').length
    if (deliveries > 0) this.#logger.warn({ deliveries }, 'webhook deliveries of jobs wait for a gateway with a queue')
    /** Of each lane the last one that is here. */
    const before = new Map<string, Delivery>()
    for (const [index, { lane, id, stored }] of left.entries()) {
      const target = targets[index]
      const here = this.#making.lanes.get(lane)?.waiting.find((delivery) => delivery.id === id)
      if (here) before.set(lane, here)
      if (here || target === 'later') continue
      if (target) {
        const delivery = deliveryTo(target, { id, stored })
        this.#making.enter(lane, delivery, (known) => known.putAfter(before.get(lane), delivery))
        // it may be what was given up where too many wait
        if (this.#making.lanes.get(lane)?.waiting.includes(delivery)) before.set(lane, delivery)
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
    const lane = this.#making.lanes.get(laneId)
    if (lane) lane.isForgotten = true
    this.#outcomes.ask(this.#outbox.forget(laneId))
  }

  /** Drops the attempts of before a time, but for those of jobs. @throws what the outbox throws */
  async prune(before: number): Promise<void> {
    await this.#outbox.prune?.(before)
  }

  /** What waits in a lane is not attempted any more, by the next process neither. @param id of what alone is meant; default: all of it */
  withdraw(laneId: string, id?: string): void {
    const lane = this.#making.lanes.get(laneId)
    for (const delivery of [...(lane?.waiting ?? [])])
      if ((id === undefined || delivery.id === id) && lane!.withdraw(delivery))
        this.#outcomes.settle(laneId, delivery.id)
  }

  /** What is under way to its receiver stays kept until that is over: what other processes tell in its lane does not overtake it. */
  #takeBack(laneId: string, delivery: Delivery): void {
    const lane = this.#making.lanes.get(laneId)
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
    return this.#making.pending
  }

  /**
   * Resolves when nothing is left to deliver now. From now on nothing is waited for: what would have to be is left to the next process,
   * and so is what else waits for a receiver that is not there. When there is no next one, retries follow at once, and a receiver that
   * asked for patience is left alone.
   */
  flush(): Promise<void> {
    return this.#making.flush()
  }

  /** Ends what is under way; nothing is sent after it. Resolves when the outbox was asked for the last time. */
  close(): Promise<void> {
    return this.#making.close()
  }

  #send(laneId: string, delivery: Delivery): void {
    // it may have been taken up as what is kept
    if (this.#making.lanes.get(laneId)?.find(delivery.id)) return
    this.#making.enter(laneId, delivery, (lane) => lane.put(delivery))
  }

  #rememberGone(key: string): void {
    if (this.#outlasts && this.#outbox.rememberGone) this.#outcomes.ask(this.#outbox.rememberGone(key))
  }
}
