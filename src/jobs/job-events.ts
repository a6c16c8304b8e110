import type { CreateJobRequest, JobEvent, JobEventType, JobProgress } from '../../schemas/jobs.js'
import { assertEvent } from '../lib/argument.js'
import type { Clock } from '../lib/clock.js'
import { type EventRows, Listeners } from '../lib/listeners.js'
import type { Logger } from '../lib/logger.js'
import { newId } from '../lib/new-id.js'
import { PlannedOnce } from '../notifications/planned.js'
import type { WebhookDeliverer } from '../webhooks/deliverer.js'
import type { Delivery, DeliveryOrigin, Importance, PlannedDelivery } from '../webhooks/delivery.js'
import type { EgressGuard } from '../webhooks/egress.js'
import type { KeptDelivery } from '../webhooks/outbox.js'
import type { WebhookTarget } from '../webhooks/target.js'
import type { JobPatch, JobRecord } from './adapter.js'
import type { StoredJob } from './job.js'
import { listed } from './patch.js'

/** What observers of the queue hear, after it took effect. */
export interface QueueEvents extends Record<string, unknown> {
  job_event: { event: JobEvent }
  /** The daily budget ran out, or is there again. */
  budget_changed: { paused: boolean }
  /** Nothing is accepted or begun any more. */
  draining: object
}
const EVENTS: EventRows<QueueEvents> = { job_event: true, budget_changed: true, draining: true }

/** How job events reach the webhooks that jobs name. */
export interface JobWebhookOptions {
  deliverer: WebhookDeliverer
  guard: EgressGuard
  signingKeys: readonly Buffer[]
  attempts: number
  retryDelayMs: number
}

/** An event about a write that has yet to be made. */
export interface Announcement {
  /** What the write is to keep of it, each time that it is tried. */
  readonly kept: readonly KeptDelivery[]
  /** Has that kept by a write of its own: to be called in the turn of a write that cannot take it along, again when that is repeated. */
  keep(): void
  /** What was kept is not to be told. */
  withdraw(): void
  /** The write was made; ends the announcement. */
  send(): void
}

/** Of a change that nobody is told of. */
export const UNHEARD: Announcement = { kept: [], keep() {}, withdraw() {}, send() {} }

/** An announcement with the start of its attempt before it, unless that is kept already. */
export function withStart(start: PlannedOnce | undefined, told: Announcement): Announcement {
  if (!start || start.isKept) return told
  return {
    get kept() {
      return [...start.write().deliveries, ...told.kept]
    },
    keep() {
      start.keep()
      told.keep()
    },
    withdraw() {
      told.withdraw()
      // it is true, whatever becomes of what follows it
      start.send()
    },
    send() {
      start.written()
      start.send()
      told.send()
    },
  }
}

interface EventDetails {
  /** As it is now; default: as it is stored. */
  job?: StoredJob
  /** What the write changes about the job. */
  patch?: JobPatch
  progress?: JobProgress
  executionId?: string | undefined
}

const IMPORTANCE: Partial<Record<JobEventType, Importance>> = { job_progress: 'progress', job_completed: 'last' }

type JobOrigin = Extract<DeliveryOrigin, { kind: 'job' }>

const whereabouts = ({ url, headers }: NonNullable<CreateJobRequest['webhook']>) => ({
  url,
  ...(headers && { headers }),
})

/** Tells what happens to jobs: observers in this process, and the webhook of the job. */
export class JobEvents {
  readonly #clock: Clock
  readonly #webhooks: JobWebhookOptions
  readonly #listeners: Listeners<QueueEvents>

  constructor({ clock, logger, webhooks }: { clock: Clock; logger: Logger; webhooks: JobWebhookOptions }) {
    this.#clock = clock
    this.#webhooks = webhooks
    this.#listeners = new Listeners<QueueEvents>((error, event) =>
      logger.error({ err: error, event }, 'an observer of the queue failed'),
    )
  }

  on<E extends keyof QueueEvents & string>(event: E, listener: (payload: QueueEvents[E]) => unknown): () => void {
    assertEvent('queue.on(event, listener)', event, EVENTS)
    return this.#listeners.on(event, listener)
  }

  emit(type: JobEventType, record: JobRecord, more: EventDetails = {}): void {
    const announcement = this.announce(type, record, more)
    announcement.keep()
    announcement.send()
  }

  announce(type: JobEventType, record: JobRecord, more: EventDetails): Announcement {
    const planned = this.#plan(type, record, more)
    if (!planned) return UNHEARD
    const { delivery, tell } = planned
    return {
      kept: delivery?.kept ? [delivery.kept] : [],
      keep: () => delivery?.keep(),
      withdraw: () => delivery?.withdraw(),
      send: () => {
        tell()
        delivery?.send()
      },
    }
  }

  /** That an attempt begins: observers are told now. @returns what the webhook is told; whichever write of it comes first keeps that */
  begin(record: JobRecord, job: StoredJob): PlannedOnce | undefined {
    const planned = this.#plan('job_started', record, { job })
    planned?.tell()
    return planned?.delivery && new PlannedOnce([planned.delivery])
  }

  /** @returns undefined when nobody wants to hear it */
  #plan(
    type: JobEventType,
    { info, request: { webhook } }: JobRecord,
    more: EventDetails,
  ): { delivery: PlannedDelivery | undefined; tell(): void } | undefined {
    const delivers =
      webhook && type !== 'job_submitted' && !(type === 'job_progress' && webhook.progress === 'completion')
    const observed = this.#listeners.has('job_event')
    if (!delivers && !observed) return undefined
    const { job = info, patch, progress, executionId } = more
    const event: JobEvent = { id: newId(), type, job: listed(job, patch), ts: this.#clock.now() }
    if (progress) event.progress = progress
    if (executionId !== undefined) event.executionId = executionId
    const delivery = delivers && this.#deliveryOf(event, { kind: 'job', ...whereabouts(webhook) })
    return {
      delivery: delivery ? this.#webhooks.deliverer.plan(info.id, delivery) : undefined,
      tell: () => {
        if (observed) this.#listeners.emit('job_event', { event })
      },
    }
  }

  #deliveryOf(event: JobEvent, origin: JobOrigin): Delivery {
    const { id, type, job } = event
    const importance = IMPORTANCE[type] ?? 'normal'
    return { id, type, payload: event, importance, origin, target: this.targetOf(job.id, origin) }
  }

  /** The webhook of a job. */
  targetOf(jobId: string, { url, headers }: JobOrigin): WebhookTarget {
    const { guard, signingKeys, attempts, retryDelayMs } = this.#webhooks
    return { key: jobId, url, headers, guard, signingKeys, attempts, retryDelayMs }
  }

  draining(): void {
    this.#listeners.emit('draining', {})
  }

  budgetChanged(paused: boolean): void {
    this.#listeners.emit('budget_changed', { paused })
  }
}
