import type { WebhookDelivery } from '../../schemas/jobs.js'
import { toError } from '../errors.js'
import type { Clock } from '../lib/clock.js'
import type { Logger } from '../lib/logger.js'
import { type Persistence, persistently } from '../lib/patience.js'
import { type Delivery, storedOf } from './delivery.js'
import type { DeliveryOutbox } from './outbox.js'
import type { PostError, Tried } from './post.js'

/** How deliveries went, since the start. */
export interface DeliveryCounts {
  delivered: number
  /** Attempts that failed, those that were repeated included. */
  failedAttempts: number
  /** Deliveries that were given up. */
  lost: number
}

interface OutcomesParts {
  clock: Clock
  logger: Logger
  outbox: DeliveryOutbox
  outlasts: boolean
  persistence: Persistence
}

/** What became of deliveries: counted, logged, and said to the outbox, which is not waited for: one that fails keeps nothing from going out. */
export class Outcomes {
  readonly counts: DeliveryCounts = { delivered: 0, failedAttempts: 0, lost: 0 }
  readonly #parts: OutcomesParts

  constructor(parts: OutcomesParts) {
    this.#parts = parts
  }

  /** An attempt was made. */
  tried(laneId: string, delivery: Delivery, attempt: number, { at, durationMs, status, error }: Tried): void {
    this.#log(laneId, delivery, {
      ...{ attempt, at, durationMs },
      ...(status !== undefined && { status }),
      ...(error !== undefined && { error }),
    })
  }

  /** A delivery is given up. */
  lose(laneId: string, delivery: Delivery, error: PostError | 'dropped', status?: number): void {
    const { clock, logger } = this.#parts
    const { id, type, target } = delivery
    this.counts.lost++
    if (error === 'dropped') this.#log(laneId, delivery, { attempt: 0, at: clock.now(), error, durationMs: 0 })
    logger.warn(
      { delivery: id, type, lane: laneId, origin: new URL(target.url).origin, error, ...(status && { status }) },
      'a webhook delivery was given up',
    )
  }

  /** How often it has failed, and when it may be attempted again: the next process goes on from there. */
  failed(lane: string, delivery: Delivery): void {
    const { outbox, outlasts } = this.#parts
    if (outlasts && outbox.change) this.ask(outbox.change({ id: delivery.id, lane, delivery: storedOf(delivery) }))
  }

  /** A delivery is over. One that stayed in the outbox would hold up for ever what other processes tell in its lane. */
  settle(laneId: string, id: string): void {
    const { outbox, outlasts, persistence } = this.#parts
    if (outlasts) this.ask(persistently(() => outbox.remove(laneId, id), persistence))
  }

  ask(asked: Promise<void>): void {
    asked.catch((error) => this.#parts.logger.warn({ err: toError(error) }, 'the outbox of webhook deliveries failed'))
  }

  #log(laneId: string, delivery: Delivery, attempt: Omit<WebhookDelivery, 'id' | 'type' | 'channel'>): void {
    const { id, type, target, logLane = laneId } = delivery
    const channel = target.channel !== undefined && { channel: target.channel }
    this.ask(this.#parts.outbox.log(logLane, { id, type, ...channel, ...attempt }))
  }
}
