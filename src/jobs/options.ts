import { defaultsOf, GatewayConfig } from '../../schemas/config.js'
import type { JobEvent } from '../../schemas/jobs.js'
import type { QueueAdapter } from './adapter.js'

/** Options of the job queue. */
export interface QueueServerOptions {
  /** Concurrent job sessions. Default 1. */
  maxConcurrency?: number
  /** Jobs that may wait; beyond it a job is refused with 429. Default 100,000. */
  maxQueuedJobs?: number
  /** Tokens of one run, of all four kinds together; beyond it the run is interrupted and fails. Default: off. */
  sessionTokenLimit?: number
  /** Tokens of all jobs of a UTC day; once used up, queued jobs wait for the next day. Default: off. */
  dailyTokenLimit?: number
  /** Wall-clock time of one run, parked time not counted. Default: off. */
  maxJobDurationMs?: number
  /** All the time that one run may be parked; beyond it the job fails. Default: off. */
  maxParkedDurationMs?: number
  /** From interrupting a run to ending it by force. Default 5,000. */
  killGraceMs?: number
  /** Default: terminal jobs are kept. `sweepIntervalMs` defaults to a minute. Their sessions go with them. */
  retention?: { maxAgeMs: number; sweepIntervalMs?: number }
  /** Default: in memory. */
  adapter?: QueueAdapter
  /** Attempts per webhook event. Default 3. */
  webhookAttempts?: number
  /** Before the second attempt; doubled for every further one. Default 500. */
  webhookRetryDelayMs?: number
  /** Signs deliveries (Standard Webhooks); two while rotating. Default: unsigned. */
  webhookSecret?: string | string[]
  /** Hears of every job event in this process. */
  onEvent?: (event: JobEvent) => unknown
}

const { queue } = GatewayConfig.properties

export const QUEUE_DEFAULTS = { ...defaultsOf(queue), ...defaultsOf(queue.properties.retention) }
