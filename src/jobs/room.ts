import { GatewayError } from '../errors.js'
import type { JobCounters } from './counters.js'
import type { Recount } from './recount.js'
import type { SharedQueue } from './shared-queue.js'

interface RoomOptions {
  /** How many jobs may be queued. */
  bound: number
  counters: JobCounters
  recount: Recount
  /** Present when several nodes share the queue. */
  shared: SharedQueue | undefined
  /** On their way into the queue. */
  submitting: ReadonlyMap<string, Promise<unknown>>
}

const FULL =
  'As many jobs wait as the queue takes (queue.maxQueuedJobs). Try again once one of them has begun or was canceled.'

/** Whether there is room for one more job in the queue. */
export class Room {
  readonly #options: RoomOptions

  constructor(options: RoomOptions) {
    this.#options = options
  }

  /** Counts other nodes' jobs, too, where that was long ago, or where the queue seems full by it: jobs have begun since. */
  async count(): Promise<void> {
    await this.#options.shared?.recount()
    if (this.isFull) await this.countAnew()
  }

  async countAnew(): Promise<void> {
    const { recount, shared, submitting } = this.#options
    await (shared ? shared.recountAll(submitting.values()) : recount.settle())
  }

  /** @throws SG_ERR_TOO_MANY */
  assert(): void {
    if (this.isFull) throw new GatewayError('SG_ERR_TOO_MANY', { detail: FULL })
  }

  get isFull(): boolean {
    const { bound, counters, shared, submitting } = this.#options
    return (shared ?? counters).queued + submitting.size >= bound
  }

  /** Whether the queue may be full by what other nodes have taken in since the last count. */
  get mayBeFull(): boolean {
    const { bound, shared, submitting } = this.#options
    return !this.isFull && (shared?.hasUsedItsPart(bound, submitting.size) ?? false)
  }
}
