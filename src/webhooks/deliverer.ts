import type { WebhookDelivery } from '../../schemas/jobs.js'
import type { Clock, Timer } from '../lib/clock.js'
import type { Logger } from '../lib/logger.js'
import { DeliveryLog } from './delivery-log.js'
import { type PostError, type PostOutcome, post } from './post.js'
import { deliveryHeaders } from './signing.js'
import type { WebhookTarget } from './target.js'

/** What is given up first when a lane is full: `progress`, then `normal`, `last` never. */
export type Importance = 'progress' | 'normal' | 'last'

export interface Delivery {
  /** Sent as `webhook-id`, the same in every attempt. */
  id: string
  type: string
  /** Sent as JSON; nobody changes it any more. */
  payload: object
  target: WebhookTarget
  importance: Importance
}

/** How deliveries went, since the start. */
export interface DeliveryCounts {
  delivered: number
  /** Attempts that failed, those that were repeated included. */
  failedAttempts: number
  /** Deliveries that were given up. */
  lost: number
}

interface Lane {
  waiting: Delivery[]
  /** What the lane is held up by, when it waits between two attempts. */
  pause: { timer: Timer; go(): void; asked: boolean } | undefined
}

const MAX_WAITING = 256
/** A receiver that asks for more patience than this gets this much. */
const MAX_PAUSE_MS = 60 * 60 * 1000
/** Targets remembered as gone. */
const MAX_GONE = 10_000
const GONE = 410

/**
 * Delivers JSON bodies to URLs. Deliveries of one lane (a job, a session) go one after the other, in order, each with its retries;
 * lanes do not wait for each other. Whatever a receiver does, what is delivered about is not affected.
 */
export class WebhookDeliverer {
  readonly counts: DeliveryCounts = { delivered: 0, failedAttempts: 0, lost: 0 }
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #lanes = new Map<string, Lane>()
  readonly #log = new DeliveryLog()
  readonly #gone = new Set<string>()
  readonly #stop = new AbortController()
  #flushing = false
  #onIdle: (() => void) | undefined

  constructor({ clock, logger }: { clock: Clock; logger: Logger }) {
    this.#clock = clock
    this.#logger = logger
  }

  enqueue(laneId: string, delivery: Delivery): void {
    // the answer that stopped this target was told
    if (this.#gone.has(delivery.target.key)) return
    if (this.#stop.signal.aborted) {
      this.#lose(laneId, delivery, 'dropped')
      return
    }
    const running = this.#lanes.get(laneId)
    if (running) {
      running.waiting.push(delivery)
      if (running.waiting.length > MAX_WAITING) this.#makeRoom(laneId, running)
      return
    }
    const lane: Lane = { waiting: [delivery], pause: undefined }
    this.#lanes.set(laneId, lane)
    void this.#run(laneId, lane)
  }

  /** The last attempts of a lane, newest first. */
  deliveries(laneId: string): WebhookDelivery[] {
    return this.#log.list(laneId)
  }

  /** Drops what is known about a lane; what still waits in it is delivered. */
  forget(laneId: string): void {
    this.#log.forget(laneId)
  }

  /** Deliveries that wait or are under way. */
  get pending(): number {
    let count = 0
    for (const lane of this.#lanes.values()) count += lane.waiting.length
    return count
  }

  /**
   * Resolves when nothing is left to deliver. From now on nothing is waited for: retries follow at once, and a receiver that asked for
   * patience is left alone.
   */
  async flush(): Promise<void> {
    this.#flushing = true
    for (const lane of this.#lanes.values()) lane.pause?.go()
    if (this.#lanes.size > 0)
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve
      })
  }

  /** Ends what is under way; nothing is sent after it. */
  close(): void {
    this.#stop.abort()
    for (const lane of this.#lanes.values()) lane.pause?.go()
  }

  /** The first one is under way and stays. */
  #makeRoom(laneId: string, lane: Lane): void {
    const droppable = (importance: Importance) =>
      lane.waiting.findIndex((delivery, index) => index > 0 && delivery.importance === importance)
    const progress = droppable('progress')
    const index = progress >= 0 ? progress : droppable('normal')
    const [dropped] = index >= 0 ? lane.waiting.splice(index, 1) : []
    if (dropped) this.#lose(laneId, dropped, 'dropped')
  }

  async #run(laneId: string, lane: Lane): Promise<void> {
    for (let next = lane.waiting[0]; next; next = lane.waiting[0]) {
      if (this.#stop.signal.aborted) this.#lose(laneId, next, 'dropped')
      else if (!this.#gone.has(next.target.key)) await this.#deliver(laneId, lane, next)
      lane.waiting.shift()
    }
    this.#lanes.delete(laneId)
    if (this.#lanes.size === 0) this.#onIdle?.()
  }

  async #deliver(laneId: string, lane: Lane, delivery: Delivery): Promise<void> {
    const { id, target } = delivery
    const body = Buffer.from(JSON.stringify(delivery.payload))
    for (let attempt = 1; ; attempt++) {
      const at = this.#clock.now()
      const headers = deliveryHeaders(id, body, target.signingKeys, Math.floor(at / 1000))
      const outcome = await post(target, { body, headers }, this.#clock, this.#stop.signal)
      this.#record(laneId, delivery, { attempt, at, ...outcome })
      if (outcome.error === undefined) {
        this.counts.delivered++
        return
      }
      this.counts.failedAttempts++
      if (outcome.status === GONE) this.#rememberGone(target.key)
      const goesOn = attempt < target.attempts && outcome.status !== GONE && outcome.error !== 'blocked'
      if (!goesOn || !(await this.#pause(lane, target.retryDelayMs * 2 ** (attempt - 1), outcome))) {
        this.#lose(laneId, delivery, outcome.error, outcome.status)
        return
      }
    }
  }

  /** @returns whether to try again */
  async #pause(lane: Lane, delayMs: number, { retryAfterMs }: PostOutcome): Promise<boolean> {
    const asked = retryAfterMs !== undefined
    if (this.#flushing) return !asked && !this.#stop.signal.aborted
    const waitMs = Math.min(Math.max(delayMs, retryAfterMs ?? 0), MAX_PAUSE_MS)
    await new Promise<void>((go) => {
      lane.pause = { timer: this.#clock.after(waitMs, go), go, asked }
    })
    const cutShort = this.#flushing || this.#stop.signal.aborted
    lane.pause?.timer.cancel()
    lane.pause = undefined
    return !this.#stop.signal.aborted && !(cutShort && asked)
  }

  #rememberGone(key: string): void {
    this.#gone.add(key)
    if (this.#gone.size > MAX_GONE) this.#gone.delete(this.#gone.keys().next().value!)
  }

  #record(laneId: string, { id, type }: Delivery, outcome: PostOutcome & { attempt: number; at: number }): void {
    const { attempt, at, status, error } = outcome
    this.#log.add(laneId, {
      id,
      type,
      attempt,
      at,
      ...(status !== undefined && { status }),
      ...(error !== undefined && { error }),
      durationMs: Math.max(0, this.#clock.now() - at),
    })
  }

  #lose(laneId: string, { id, type, target }: Delivery, error: PostError | 'dropped', status?: number): void {
    this.counts.lost++
    if (error === 'dropped')
      this.#log.add(laneId, { id, type, attempt: 0, at: this.#clock.now(), error, durationMs: 0 })
    this.#logger.warn(
      { delivery: id, type, lane: laneId, origin: new URL(target.url).origin, error, ...(status && { status }) },
      'a webhook delivery was given up',
    )
  }
}
