import type { JobInfo } from '../../schemas/jobs.js'
import { toError } from '../errors.js'
import type { Clock, Timer } from '../lib/clock.js'
import type { Logger } from '../lib/logger.js'
import type { QueueAdapter } from './adapter.js'
import type { JobSessions } from './sessions.js'

export interface RetentionOptions {
  maxAgeMs: number
  sweepIntervalMs: number
  clock: Clock
  logger: Logger
  adapter: QueueAdapter
  sessions: JobSessions
  onForgotten(jobId: string): void
}

/** Removes terminal jobs when they are old enough, and what is kept about them elsewhere. */
export class Retention {
  readonly #options: RetentionOptions
  readonly #sessionsOf = new Map<string, string[]>()
  /** Terminal jobs, in the order of their end. */
  #finished: { id: string; finishedAt: number }[] = []
  #timer: Timer | undefined
  #stopped = false

  constructor(options: RetentionOptions) {
    this.#options = options
    this.#schedule()
  }

  onAttemptOver(jobId: string, sessionId: string): void {
    const sessions = this.#sessionsOf.get(jobId)
    if (sessions) sessions.push(sessionId)
    else this.#sessionsOf.set(jobId, [sessionId])
  }

  onTerminal({ id, finishedAt }: JobInfo): void {
    this.#finished.push({ id, finishedAt: finishedAt ?? this.#options.clock.now() })
  }

  stop(): void {
    this.#stopped = true
    this.#timer?.cancel()
  }

  #schedule(): void {
    if (this.#stopped) return
    this.#timer = this.#options.clock.after(this.#options.sweepIntervalMs, () => void this.#sweep())
  }

  async #sweep(): Promise<void> {
    const { adapter, clock, logger, maxAgeMs } = this.#options
    try {
      const limit = clock.now() - maxAgeMs
      await adapter.prune(maxAgeMs)
      const young = this.#finished.findIndex(({ finishedAt }) => finishedAt > limit)
      for (const { id } of this.#finished.splice(0, young < 0 ? this.#finished.length : young)) this.#forget(id)
    } catch (error) {
      logger.error({ err: toError(error) }, 'old jobs could not be removed')
    }
    this.#schedule()
  }

  #forget(jobId: string): void {
    const { sessions, onForgotten } = this.#options
    // a session that is still there has ended with its run
    for (const id of this.#sessionsOf.get(jobId) ?? []) sessions.close(id).catch(() => {})
    this.#sessionsOf.delete(jobId)
    onForgotten(jobId)
  }
}
