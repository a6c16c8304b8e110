import type { AnsweredBy, ResolvePermissionRequest } from '../../schemas/permissions.js'
import type { ExecutionResult } from '../engines/runner.js'
import type { KeptKey } from '../idempotency/store.js'
import { LazyMap } from '../lib/lazy-map.js'
import type { JournaledState } from './journal.js'
import type { JournalWriter } from './journal-writer.js'

/** Something that a session was asked to do, as it is written down before it is done. */
export type Accepted =
  | { type: 'message'; text: string; commandId?: string; first?: true }
  | { type: 'answer'; requestId: string; answer: ResolvePermissionRequest; by?: AnsweredBy }
  | { type: 'result'; executionId: string; result: ExecutionResult }
  | { type: 'choice'; choice: NonNullable<JournaledState['chosen']> }
  | { type: 'title'; title: string | null }
  | { type: 'close' }

/**
 * What a session was asked to do and has not done yet. It is written down first: what cannot be is refused and is never done, and what
 * was written down is done, by the next process when this one dies.
 */
export class WriteAhead {
  #waiting: Accepted[] | undefined
  /** Of the requests that asked for it. */
  readonly #keys = new LazyMap<Accepted, KeptKey>()
  /** Resolves when the last of them was done, or refused. */
  #last: Promise<unknown> | undefined

  /** What is on its way, in the order in which it came. */
  get list(): readonly Accepted[] | undefined {
    return this.#waiting
  }

  /** Of the requests that asked for what is on its way: they are written down with it. */
  get keys(): readonly KeptKey[] {
    return [...this.#keys.values()]
  }

  /** Takes up what an earlier process had accepted, and nobody can do yet. */
  restore(accepted: readonly Accepted[] | undefined): void {
    this.#waiting = accepted && [...accepted]
  }

  /** What was taken up; the caller does it now. */
  take(): readonly Accepted[] {
    const waiting = this.#waiting ?? []
    this.#waiting = undefined
    return waiting
  }

  /**
   * Has `what` written down, then does it.
   * @param key of the request that asks for it
   * @throws SG_ERR_STORE_UNAVAILABLE, and then it is never done; what `act` throws
   */
  async run(
    what: Accepted,
    writer: JournalWriter | undefined,
    act: (what: Accepted) => void,
    key?: KeptKey,
  ): Promise<void> {
    if (!writer) {
      act(what)
      return
    }
    if (key) this.#keys.set(what, key)
    const outcome = this.#inTurn(what, writer, act)
    this.#last = outcome.catch(() => {})
    await outcome
    // it will be known whatever happens; so that whoever is told "done" finds its events, too
    await writer.durable().catch(() => {})
  }

  async #inTurn(what: Accepted, writer: JournalWriter, act: (what: Accepted) => void): Promise<void> {
    this.#waiting = [...(this.#waiting ?? []), what]
    writer.touch()
    try {
      await writer.durable()
      act(what)
    } finally {
      const left = this.#waiting.filter((other) => other !== what)
      this.#waiting = left.length > 0 ? left : undefined
      this.#keys.delete(what)
      writer.touch()
    }
  }

  /** Resolves when all that is on its way was done, or refused. */
  async settled(): Promise<void> {
    await this.#last
  }
}
