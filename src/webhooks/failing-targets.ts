import type { PostOutcome } from './post.js'
import type { WebhookTarget } from './target.js'

/** How a target fails. */
export interface TargetFailure {
  /** When it began to, epoch milliseconds. */
  since: number
  /** Attempts since then. */
  failures: number
  status?: number
  error?: string
}

/** Targets of the operator whose last attempt failed. */
export class FailingTargets {
  readonly #failing = new Map<string, TargetFailure>()

  onOutcome({ key, name }: WebhookTarget, at: number, { status, error }: PostOutcome): void {
    // those that callers name come and go with their jobs
    if (name === undefined) return
    if (error === undefined) {
      this.#failing.delete(key)
      return
    }
    const { since = at, failures = 0 } = this.#failing.get(key) ?? {}
    this.#failing.set(key, { since, failures: failures + 1, error, ...(status !== undefined && { status }) })
  }

  of({ key }: WebhookTarget): TargetFailure | undefined {
    return this.#failing.get(key)
  }
}
