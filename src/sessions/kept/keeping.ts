import { GatewayError, toError } from '../../errors.js'
import type { KeptKey } from '../../idempotency/store.js'
import type { Clock } from '../../lib/clock.js'
import type { Logger } from '../../lib/logger.js'
import type { PlannedNotification } from '../../notifications/planned.js'
import type { JournaledSession, JournaledWhole, JournalWrite, MidTurn, SessionJournal } from './journal.js'
import type { JournalWriterParts } from './journal-writer.js'
import type { News } from './news.js'

export type ParkingPhase = 'park' | 'wake' | 'adopt' | 'store'
export type OnParkingError = (error: Error, context: { sessionId?: string; phase: ParkingPhase }) => void

/** A session that is in memory. */
interface KeptSession {
  midTurn: MidTurn | undefined
  /** Removes it from the journal, when that has all. */
  erase(ending?: PlannedNotification): Promise<void>
}

/** The journal as a registry uses it: its failures are told, to the operator with the cause, to the caller as "come again". */
export class Keeping implements JournalWriterParts {
  readonly journal: SessionJournal
  readonly retryAfter: Clock['after']
  readonly backlog = { bytes: 0 }
  readonly oneWrite: boolean
  readonly #onError: OnParkingError | undefined
  readonly #logger: Logger
  /** Sessions whose last write failed. */
  readonly #unwritable = new Set<string>()

  constructor(
    journal: SessionJournal,
    options: {
      logger: Logger
      retryAfter: Clock['after']
      oneWrite?: boolean
      onError: OnParkingError | undefined
    },
  ) {
    this.journal = journal
    this.retryAfter = options.retryAfter
    this.oneWrite = options.oneWrite ?? false
    this.#onError = options.onError
    this.#logger = options.logger
  }

  /** Whether it has every session, from its first event on. */
  get hasAll(): boolean {
    return !this.journal.onlyAsleep
  }

  /** Whether what happens to sessions can be written down. */
  get isWritable(): boolean {
    return this.#unwritable.size === 0
  }

  readonly onFault = (sessionId: string, error: unknown): void => {
    if (error === undefined) {
      this.#unwritable.delete(sessionId)
      return
    }
    this.#unwritable.add(sessionId)
    this.#logger.error({ sessionId, err: toError(error) }, 'a session cannot be written down; it is tried again')
  }

  /** Every session that can be read; the others are reported. @throws what the journal throws */
  list(): Promise<JournaledSession[]> {
    return this.journal.list((error) => this.report(error, { phase: 'adopt' }))
  }

  /** @throws SG_ERR_STORE_UNAVAILABLE */
  get(id: string): Promise<JournaledWhole | undefined> {
    return this.#guarded(id, () => this.journal.get(id))
  }

  /** False: there is no such session. @throws SG_ERR_STORE_UNAVAILABLE, and then nothing of it is kept */
  deposit(id: string, news: readonly News[], keys?: readonly KeptKey[]): Promise<boolean> {
    return this.#guarded(id, () => this.journal.deposit(id, news, keys))
  }

  /** Writes a session that sleeps, into a journal that has no other. @throws what the journal throws */
  write(write: JournalWrite): Promise<void> {
    return this.journal.write(write)
  }

  /**
   * Removes a session, in memory or not; durable when it resolves.
   * @param ending what is to be told of its end
   * @throws SG_ERR_STORE_UNAVAILABLE; the session stays as it is then
   */
  async erase(id: string, session: KeptSession | undefined, ending?: PlannedNotification): Promise<void> {
    await this.#guarded(id, async () => {
      if (session && this.hasAll) await session.erase(ending)
      else if (!session || session.midTurn) await this.journal.remove(id)
    })
    if (session) session.midTurn = undefined
    this.#unwritable.delete(id)
  }

  async close(): Promise<void> {
    await this.journal.close?.()
  }

  report(error: unknown, context: { sessionId?: string; phase: ParkingPhase }): void {
    this.#logger.error({ err: toError(error), ...context }, 'parking: something failed')
    try {
      this.#onError?.(toError(error), context)
    } catch (thrown) {
      this.#logger.error({ err: toError(thrown) }, 'parking.onError threw')
    }
  }

  async #guarded<T>(sessionId: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      this.report(error, { sessionId, phase: 'store' })
      throw new GatewayError('SG_ERR_STORE_UNAVAILABLE', { cause: error, retryAfterS: 5 })
    }
  }
}
