import type { JobEvent, JobEventType, JobProgress } from '../../schemas/jobs.js'
import { toError } from '../errors.js'
import { type Clock, newId } from '../lib/clock.js'
import { Listeners } from '../lib/listeners.js'
import type { Logger } from '../lib/logger.js'
import type { Importance, WebhookDeliverer } from '../webhooks/deliverer.js'
import type { EgressGuard } from '../webhooks/egress.js'
import type { JobRecord } from './adapter.js'
import { type StoredJob, shown } from './job.js'

/** What observers of the queue hear, after it took effect. */
export interface QueueEvents extends Record<string, unknown> {
  job_event: { event: JobEvent }
  /** The daily budget ran out, or is there again. */
  budget_changed: { paused: boolean }
  /** Nothing is accepted or begun any more. */
  draining: object
}

/** How job events reach the webhooks that jobs name. */
export interface JobWebhookOptions {
  deliverer: WebhookDeliverer
  guard: EgressGuard
  signingKeys: readonly Buffer[]
  attempts: number
  retryDelayMs: number
}

const IMPORTANCE: Partial<Record<JobEventType, Importance>> = { job_progress: 'progress', job_completed: 'last' }

/** Tells what happens to jobs: observers in this process, and the webhook of the job. */
export class JobEvents {
  readonly #clock: Clock
  readonly #webhooks: JobWebhookOptions
  readonly #listeners: Listeners<QueueEvents>

  constructor({ clock, logger, webhooks }: { clock: Clock; logger: Logger; webhooks: JobWebhookOptions }) {
    this.#clock = clock
    this.#webhooks = webhooks
    this.#listeners = new Listeners<QueueEvents>((error, event) =>
      logger.error({ err: toError(error), event }, 'an observer of the queue failed'),
    )
  }

  on<E extends keyof QueueEvents & string>(event: E, listener: (payload: QueueEvents[E]) => unknown): () => void {
    return this.#listeners.on(event, listener)
  }

  /** @param job as it is now; default: as it is stored */
  emit(
    type: JobEventType,
    { info, request }: JobRecord,
    more: { job?: StoredJob; progress?: JobProgress; executionId?: string | undefined } = {},
  ): void {
    const { webhook } = request
    const delivers =
      webhook && type !== 'job_submitted' && !(type === 'job_progress' && webhook.progress === 'completion')
    const observed = this.#listeners.has('job_event')
    if (!delivers && !observed) return
    const { job = info, progress, executionId } = more
    const event: JobEvent = {
      id: newId(),
      type,
      job: shown(job),
      ts: this.#clock.now(),
      ...(progress && { progress }),
      ...(executionId !== undefined && { executionId }),
    }
    if (observed) this.#listeners.emit('job_event', { event })
    if (!delivers) return
    const { deliverer, guard, signingKeys, attempts, retryDelayMs } = this.#webhooks
    deliverer.enqueue(info.id, {
      id: event.id,
      type,
      payload: event,
      importance: IMPORTANCE[type] ?? 'normal',
      target: { key: info.id, url: webhook.url, headers: webhook.headers, guard, signingKeys, attempts, retryDelayMs },
    })
  }

  draining(): void {
    this.#listeners.emit('draining', {})
  }

  budgetChanged(paused: boolean): void {
    this.#listeners.emit('budget_changed', { paused })
  }
}
