import type { Clock } from '../lib/clock.js'
import type { JobRecord } from './adapter.js'
import { endPatch, retryPatch, unbegunPatch } from './attempt-patches.js'
import type { AttemptOutcome, StoredJob } from './job.js'
import { type JobEvents, UNHEARD, withStart } from './job-events.js'
import type { JobStore } from './job-store.js'
import type { Slots } from './slots.js'
import type { Ending, Tracked } from './tracked.js'

interface AttemptEndsParts {
  clock: Clock
  store: JobStore
  events: JobEvents
  slots: Slots
  /** Whether the end of its attempt is still to be told. */
  isTracked(tracked: Tracked): boolean
  /** The end of its attempt is told next. */
  forget(tracked: Tracked): void
  /** A job can be claimed. */
  onSlot(): void
  onTerminal(job: StoredJob): void
}

/** How attempts end: with another one, with their job, or as if they had not been. That is written down, then told. */
export class AttemptEnds {
  readonly #parts: AttemptEndsParts
  /** Tokens of attempts that are over and whose charge is being written. */
  uncharged = 0

  constructor(parts: AttemptEndsParts) {
    this.#parts = parts
  }

  /** In turn with what else is written about the run. */
  async finish(tracked: Tracked, outcome: AttemptOutcome): Promise<void> {
    const { run } = tracked
    if (tracked.canceled) {
      this.#over(tracked, 'end', tracked.canceled)
      return
    }
    if (outcome.unbegun && tracked.claimed && !run.cancelRequested) {
      await this.#putBack(tracked, tracked.claimed)
      return
    }
    // one whose session is refused hears of that first
    if (run.endedEarly) await new Promise(setImmediate)
    const { attempt, maxAttempts } = run.record.info
    const retries = outcome.status === 'failed' && !outcome.final && attempt < maxAttempts
    // the next attempt works in the same directory: not before the engine of this one is gone; and whoever claims it waits until this
    // one is told
    if (retries) await Promise.all([run.closed, tracked.ahead?.durable])
    await this.#settle(tracked, outcome, retries)
  }

  /** That it is canceled is written first, then the run is stopped. */
  async cancel(tracked: Tracked, isRefused: () => boolean): Promise<void> {
    const { run } = tracked
    if (isRefused()) return
    if (run.ended) {
      run.cancel(isRefused)
      return
    }
    const { store, events } = this.#parts
    const { tokens, record } = run
    const { today: day } = store
    const patch = endPatch(run, { status: 'canceled' }, this.#parts.clock.now())
    const told = withStart(tracked.start, events.announce('job_completed', record, { patch }))
    const written = await store.settle(record, patch, tokens, told, true)
    if (written && isRefused()) {
      told.withdraw()
      run.record = (await store.restore(record, { day, tokens })) ?? record
      return
    }
    tracked.canceled = { written, told }
    run.cancel()
  }

  async #settle(tracked: Tracked, outcome: AttemptOutcome, retries: boolean): Promise<void> {
    const { store, events } = this.#parts
    const { run } = tracked
    const { record, cancelRequested } = run
    const { today: day } = store
    const next = retries && !cancelRequested ? 'retry' : 'end'
    const now = this.#parts.clock.now()
    const patch = next === 'retry' ? retryPatch(run, outcome, now) : endPatch(run, outcome, now)
    const type = next === 'retry' ? 'job_retrying' : 'job_completed'
    const told = withStart(tracked.start, events.announce(type, record, { patch }))
    const { tokens } = run
    this.uncharged += tokens
    const writing = store.settle(record, patch, tokens, told)
    tracked.stored = writing
    if (store.claimsTogether) void run.closed.then(() => this.#free(tracked))
    const written = await writing
    this.uncharged -= tokens
    if (written && cancelRequested && !run.cancelRequested && outcome.status === 'failed') {
      // whoever canceled it was told meanwhile that it goes on
      told.withdraw()
      run.record = (await store.restore(record, { day, tokens })) ?? record
      await this.#settle(tracked, outcome, retries)
      return
    }
    await tracked.ahead?.durable
    this.#over(tracked, next, { written, told })
  }

  /** Gives the slot of an attempt that is over to the next job in the turn in which its end is written, so that both are one write. */
  #free(tracked: Tracked): void {
    if (!this.#parts.isTracked(tracked)) return
    this.#parts.slots.free(tracked)
  }

  async #putBack(tracked: Tracked, claimed: JobRecord): Promise<void> {
    const { record } = tracked.run
    tracked.start?.withdraw()
    const written = await this.#parts.store.putBack(record, unbegunPatch(claimed))
    this.#over(tracked, 'retry', { written, told: UNHEARD })
  }

  #over(tracked: Tracked, next: 'retry' | 'end', { written, told }: Ending): void {
    const { run, settle } = tracked
    const { slots, forget, onSlot, onTerminal } = this.#parts
    if (written) run.record = written
    forget(tracked)
    slots.onOver(tracked)
    settle()
    if (!written) return
    told.send()
    if (next === 'end') onTerminal(written.info)
    onSlot()
  }
}
