import { setMaxListeners } from 'node:events'
import { toError } from '../errors.js'
import { type Backoff, delayAfter } from '../lib/backoff.js'
import type { Clock } from '../lib/clock.js'
import type { Logger } from '../lib/logger.js'
import { readInTime } from '../lib/patience.js'
import type { Standstill } from '../lib/standstill.js'
import { Attempts } from './attempts.js'
import type { Delivery } from './delivery.js'
import { FailingTargets } from './failing-targets.js'
import { type GoneTargets, saysGone } from './gone-targets.js'
import { Lane } from './lane.js'
import type { DeliveryOutbox } from './outbox.js'
import type { Outcomes } from './outcomes.js'
import type { PostError, PostOutcome } from './post.js'
import { type ConnectionLimits, Slots } from './slots.js'
import type { WebhookTarget } from './target.js'
import { WaitingCounts } from './waiting.js'

/** Before a lane that another process has to finish first is looked at again. */
const HELD_UP_MS = 250
/** Where no pause is asked for there is none before the second attempt, and then one that comes to a second: there may be any number of them. */
const UNASKED: Backoff = { firstMs: 1, longestMs: 1_000 }
/** A receiver that asks for more patience than this gets this much. */
const MAX_PAUSE_MS = 60 * 60 * 1000
/** Failures that another attempt would not change. */
const FINAL: ReadonlySet<string> = new Set<PostError>(['blocked', 'unwritten'])

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

interface MakingParts {
  outcomes: Outcomes
  gone: GoneTargets
  /** Nothing more is sent once it is aborted. */
  stop: AbortController
  /** Whether what is kept in a lane is this process's by now, and is yet to be taken up. */
  isExpected(laneId: string): boolean
  /** Takes up what is kept in a lane and comes before all that waits there. */
  takeUpBefore(laneId: string, lane: Lane): Promise<void>
}

/** Makes what stands in lanes: what is in one lane one after the other, each with its retries. */
export class Making {
  readonly lanes = new Map<string, Lane>()
  readonly failing = new FailingTargets()
  readonly #options: DelivererOptions
  readonly #parts: MakingParts
  readonly #slots: Slots
  readonly #attempts: Attempts
  readonly #waiting = new WaitingCounts()
  /** Lanes that have not come to rest. */
  #running = 0
  #flushing = false
  #onIdle: (() => void)[] = []

  constructor(options: DelivererOptions, parts: MakingParts) {
    this.#options = options
    this.#parts = parts
    const { clock, logger, connections, standstill } = options
    const { signal } = parts.stop
    this.#slots = new Slots(connections)
    this.#attempts = new Attempts({ clock, logger, gone: parts.gone, slots: this.#slots, standstill, signal })
    // every attempt under way listens to it
    setMaxListeners(0, signal)
  }

  get #isStopped(): boolean {
    return this.#parts.stop.signal.aborted
  }

  get pending(): number {
    let count = 0
    for (const lane of this.lanes.values()) count += lane.waiting.length
    return count
  }

  flush(): Promise<void> {
    this.#flushing = true
    if (this.#options.outlasts) this.#attempts.leaveAway()
    return this.#rest()
  }

  close(): Promise<void> {
    this.#parts.stop.abort()
    this.#slots.close()
    return this.#rest()
  }

  async #rest(): Promise<void> {
    for (const lane of this.lanes.values()) lane.pause?.go()
    if (this.#running > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve))
  }

  /** @param put puts it to its place among what waits there */
  enter(laneId: string, delivery: Delivery, put: (lane: Lane) => void): void {
    if (this.#isStopped) {
      if (!this.#options.outlasts) this.#parts.outcomes.lose(laneId, delivery, 'dropped')
      return
    }
    if (!this.#waiting.enter(delivery.target)) {
      this.#parts.outcomes.lose(laneId, delivery, 'dropped')
      this.#parts.outcomes.settle(laneId, delivery.id)
      return
    }
    const known = this.lanes.get(laneId)
    const lane = known ?? new Lane()
    put(lane)
    if (known) {
      this.#makeRoom(laneId, known)
      return
    }
    this.lanes.set(laneId, lane)
    void this.#run(laneId, lane)
  }

  #makeRoom(laneId: string, lane: Lane): void {
    const dropped = lane.makeRoom()
    if (!dropped) return
    this.#waiting.leave(dropped.target)
    if (lane.isWithdrawn(dropped)) return
    this.#parts.outcomes.lose(laneId, dropped, 'dropped')
    this.#parts.outcomes.settle(laneId, dropped.id)
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
      if (lane.isKept(next)) this.#parts.outcomes.settle(laneId, next.id)
      this.#waiting.leave(next.target)
      lane.waiting.shift()
    }
    if (lane.waiting.length === 0) {
      this.lanes.delete(laneId)
      if (lane.isForgotten || (isOfJob && (await this.#isForgottenElsewhere(laneId))))
        this.#parts.outcomes.ask(this.#options.outbox.forget(laneId))
    }
    this.#running--
    if (this.#running === 0) for (const resolve of this.#onIdle.splice(0)) resolve()
  }

  /** What a storage that fails does not say is no reason to wait: then what is known stays. */
  async #isForgottenElsewhere(jobId: string): Promise<boolean> {
    const ask = this.#options.isForgotten
    return ask !== undefined && readInTime(this.#options.clock, () => ask(jobId)).catch(() => false)
  }

  /** Waits while another process has what comes before in that lane. @returns false when the lane is left to the next process */
  async #turnOf(laneId: string, lane: Lane): Promise<boolean> {
    if (!this.#options.outbox.isHeldUp) return true
    for (let wasHeldUp = false; !lane.isWithdrawn(lane.waiting[0]!); ) {
      try {
        const isHeldUp = await this.#options.outbox.isHeldUp(laneId, lane.ids)
        if (!isHeldUp && !this.#parts.isExpected(laneId)) {
          // what came before may be this one's by now
          if (wasHeldUp) await this.#parts.takeUpBefore(laneId, lane)
          return true
        }
        wasHeldUp = true
      } catch (error) {
        this.#options.logger.warn({ err: toError(error) }, 'the outbox of webhook deliveries failed')
      }
      if (!(await this.#pause(lane, HELD_UP_MS))) return false
    }
    return true
  }

  /** @returns false when the delivery is left to the next process */
  async #finish(laneId: string, lane: Lane, delivery: Delivery): Promise<boolean> {
    if (!this.#isStopped) return this.#parts.gone.has(delivery.target.key) || this.#deliver(laneId, lane, delivery)
    if (!this.#options.outlasts) this.#parts.outcomes.lose(laneId, delivery, 'dropped')
    return !this.#options.outlasts
  }

  async #deliver(laneId: string, lane: Lane, delivery: Delivery): Promise<boolean> {
    const { target } = delivery
    if (!(await this.#mayBegin(lane, delivery))) return false
    for (let attempt = (delivery.failed ?? 0) + 1; ; attempt++) {
      if (lane.isWithdrawn(delivery)) return true
      const outcome = await this.#attempts.make(delivery, () => lane.isWithdrawn(delivery))
      if (outcome === 'unwanted') return true
      if (outcome) {
        this.#parts.outcomes.tried(laneId, delivery, attempt, outcome)
        this.failing.onOutcome(target, outcome.at, outcome)
      }
      const { error, status } = outcome ?? { error: 'stopped' as const }
      if (error === undefined) {
        this.#parts.outcomes.counts.delivered++
        return true
      }
      this.#parts.outcomes.counts.failedAttempts++
      // while it was under way: what comes after it does not wait either
      if (lane.isWithdrawn(delivery)) return true
      const isLast = attempt >= target.attempts || saysGone(target, status) || FINAL.has(error)
      if (!isLast || error === 'stopped') {
        const retryAfterMs = outcome?.retryAfterMs
        // one that this process cut off has not failed
        if (error !== 'stopped') {
          delivery.failed = attempt
          delivery.notBefore =
            retryAfterMs === undefined ? undefined : this.#options.clock.now() + Math.min(retryAfterMs, MAX_PAUSE_MS)
          this.#parts.outcomes.failed(laneId, delivery)
        }
        if (await this.#pause(lane, pauseAfter(attempt, target), retryAfterMs)) continue
        if (this.#options.outlasts) return false
      }
      this.#parts.outcomes.lose(laneId, delivery, error, status)
      return true
    }
  }

  /** Waits for as long as a receiver has asked an earlier process to. @returns false when it is left to the next one */
  async #mayBegin(lane: Lane, { notBefore = 0 }: Delivery): Promise<boolean> {
    const waitMs = notBefore - this.#options.clock.now()
    return waitMs <= 0 || this.#pause(lane, waitMs, waitMs)
  }

  /** @param retryAfterMs asked for by the receiver @returns whether this process tries again */
  async #pause(lane: Lane, delayMs: number, retryAfterMs?: PostOutcome['retryAfterMs']): Promise<boolean> {
    if (!this.#flushing && !this.#isStopped) {
      const waitMs = Math.min(Math.max(delayMs, retryAfterMs ?? 0), MAX_PAUSE_MS)
      await new Promise<void>((go) => {
        lane.pause = { timer: this.#options.clock.after(waitMs, go), go }
      })
      lane.pause?.timer.cancel()
      lane.pause = undefined
    }
    if (this.#isStopped) return false
    return !this.#flushing || !(this.#options.outlasts || retryAfterMs !== undefined)
  }
}

function pauseAfter(attempt: number, { retryDelayMs }: WebhookTarget): number {
  if (retryDelayMs > 0) return delayAfter(attempt, { firstMs: retryDelayMs })
  return attempt === 1 ? 0 : delayAfter(attempt - 1, UNASKED)
}
