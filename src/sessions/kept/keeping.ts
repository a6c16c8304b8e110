import type { SessionClosedReason } from '../../../schemas/events.js'
import { hasCode, toError } from '../../errors.js'
import type { KeptKey } from '../../idempotency/store.js'
import { caught } from '../../lib/caught.js'
import type { Clock } from '../../lib/clock.js'
import { KeyedLock } from '../../lib/keyed-lock.js'
import type { Logger } from '../../lib/logger.js'
import {
  overdue,
  PATIENCE_MS,
  type Patience,
  patiently,
  patientlyInTurn,
  persistently,
  tooLate,
  unavailable,
} from '../../lib/patience.js'
import { within } from '../../lib/within.js'
import type { PlannedNotification } from '../../notifications/planned.js'
import type {
  AtRestQuery,
  JournaledSession,
  JournaledWhole,
  JournalWrite,
  ListedQuery,
  MidTurn,
  RemovalDecision,
  SessionJournal,
  SessionsAtRest,
} from './journal.js'
import type { JournalWriterParts } from './journal-owner.js'
import { type News, newsOf } from './news.js'
import { Overdue } from './overdue.js'
import type { SessionStore } from './store.js'

export type ParkingPhase = 'park' | 'wake' | 'adopt' | 'store'
type ParkingContext = { sessionId?: string; phase: ParkingPhase }
export type OnParkingError = (error: Error, context: ParkingContext) => unknown

/** A host's callback that throws, or rejects later, is logged. */
export const tellOnError = (
  onError: OnParkingError | undefined,
  logger: Logger,
  ...told: Parameters<OnParkingError>
): void =>
  caught(
    async () => onError?.(...told),
    (err) => logger.error({ err }, 'parking.onError failed'),
  )

export interface ParkingOptions {
  store: SessionStore | undefined
  /** How long after the last client left a waiting session is parked. */
  parkDelayMs: number
  /** Grace at start for deadlines that lapsed while the process was down. */
  expiredGraceMs: number
  onError: OnParkingError | undefined
}

/** A session that is in memory. */
interface KeptSession {
  midTurn: MidTurn | undefined
  /** Removes it from the journal, when that has all. */
  erase(decision?: RemovalDecision): Promise<void>
}

/** The journal as a registry uses it: its failures are told, to the operator with the cause, to the caller as "come again". */
export class Keeping implements JournalWriterParts {
  readonly journal: SessionJournal
  readonly retryAfter: Clock['after']
  readonly backlog = { bytes: 0 }
  readonly overdue = new Overdue()
  readonly oneWrite: boolean
  readonly atTurnsEnd: (work: () => void) => void
  readonly #onError: OnParkingError | undefined
  readonly #logger: Logger
  readonly #clock: Clock
  readonly #lock = new KeyedLock()
  /** Why the journal last failed, until it answers. */
  #failure: string | undefined
  /** Sessions whose last write failed. */
  readonly #unwritable = new Map<string, string>()

  constructor(
    journal: SessionJournal,
    options: {
      clock: Clock
      logger: Logger
      retryAfter: Clock['after']
      oneWrite?: boolean
      atTurnsEnd?: ((work: () => void) => void) | undefined
      onError: OnParkingError | undefined
    },
  ) {
    this.journal = journal
    this.retryAfter = options.retryAfter
    this.oneWrite = options.oneWrite ?? false
    this.atTurnsEnd = options.atTurnsEnd ?? queueMicrotask
    this.#onError = options.onError
    this.#logger = options.logger
    this.#clock = options.clock
  }

  /** Whether the journal has every session, from its first event on. */
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
    const failure = toError(error)
    const before = this.#unwritable.get(sessionId)
    this.#unwritable.set(sessionId, failure.message)
    // once for what keeps every try of a session from being made, however long it lasts
    if (before !== failure.message)
      this.#logger.error({ sessionId, err: failure }, 'a session cannot be written down; it is tried again')
  }

  /** What the journal gives of sessions at rest; undefined: they are in memory. */
  get atRest(): SessionsAtRest | undefined {
    return this.journal.atRest && (this.journal as SessionJournal & SessionsAtRest)
  }

  /** Every session that can be read, those at rest only when they are in memory; the others are reported. @throws what the journal throws */
  list(): Promise<JournaledSession[]> {
    const onUnreadable = (error: Error) => this.report(error, { phase: 'adopt' })
    return this.atRest?.awake(onUnreadable) ?? this.journal.list(onUnreadable)
  }

  /** Some at rest, or of all processes' sessions. @throws SG_ERR_STORE_UNAVAILABLE */
  readListed(query: ListedQuery, ofAll: boolean): ReturnType<SessionsAtRest['atRest']> {
    const onUnreadable = (error: Error) => this.report(error, { phase: 'adopt' })
    const { journal } = this
    const ask = () =>
      ofAll ? journal.listed!(query, onUnreadable) : journal.atRest!(query as AtRestQuery, onUnreadable)
    return this.asked(ask)
  }

  /** What the journal says to a question of no one session. @throws SG_ERR_STORE_UNAVAILABLE */
  asked<T>(ask: () => Promise<T>): Promise<T> {
    return this.#guarded(undefined, () => within(PATIENCE_MS, ask(), { clock: this.#clock, onLate: tooLate }))
  }

  /** @throws SG_ERR_STORE_UNAVAILABLE */
  get(id: string, patience?: Patience): Promise<JournaledWhole | undefined> {
    return this.#guarded(id, () => this.#inTurn(id, () => this.journal.get(id), { patience }))
  }

  /** False: there is no such session. @throws SG_ERR_STORE_UNAVAILABLE, and then nothing of it is kept */
  deposit(
    id: string,
    news: readonly News[],
    keys?: readonly KeptKey[] | undefined,
    patience?: Patience,
  ): Promise<boolean> {
    const taken = news.map(({ key }) => key)
    const deposited = async (isRefused: () => boolean) => {
      const isThere = await this.journal.deposit(id, news, keys)
      if (isThere && isRefused()) await this.#takeBack(() => this.journal.write({ id, taken }))
      return isThere
    }
    return this.#guarded(id, () => this.#inTurn(id, deposited, { patience, keys: taken }))
  }

  /** Writes a session that sleeps, into a journal that has no other. @throws what the journal throws · SG_ERR_STORE_UNAVAILABLE */
  write(write: JournalWrite): Promise<void> {
    return this.#inTurn(write.id, () => this.journal.write(write))
  }

  /** As `write`, for a session that goes on when it cannot be kept. @throws as `write`, and then nothing of it is kept */
  park(write: JournalWrite, session: KeptSession): Promise<void> {
    const { id } = write
    return this.#inTurn(id, async (isRefused) => {
      await this.journal.write(write)
      if (isRefused() && !session.midTurn) await this.#takeBack(() => this.journal.remove(id))
    })
  }

  /**
   * Removes a session for somebody who asked for it. Resolves once that is decided, durably: then it is done, in the write that comes
   * next, whatever becomes of this process.
   * @param ending gives what is to be told of its end, once that is decided
   * @throws SG_ERR_STORE_UNAVAILABLE; the session stays as it is then
   */
  async remove(
    id: string,
    session: KeptSession | undefined,
    { reason, ending }: { reason: SessionClosedReason; ending(): PlannedNotification | undefined },
  ): Promise<void> {
    const news = newsOf({ type: 'removal', reason })
    if (session && this.hasAll)
      await this.#guarded(id, () =>
        patiently(
          this.#clock,
          (isRefused) =>
            new Promise<void>((decided, reject) => {
              const onDecided = () => {
                decided()
                // what is not kept in one write with it is told by the session itself, as it ends
                return this.oneWrite ? ending() : undefined
              }
              session.erase({ news, isRefused, onDecided }).then(decided, reject)
            }),
        ),
      )
    else if (!session || session.midTurn) {
      if (await this.deposit(id, [news])) void this.#takeBack(() => this.journal.remove(id))
    }
    this.#unwritable.delete(id)
  }

  /** Removes what is kept of a session that nobody asked about. @throws SG_ERR_STORE_UNAVAILABLE */
  async erase(id: string, session: KeptSession | undefined): Promise<void> {
    const erased = async () => {
      if (session && this.hasAll) await session.erase()
      else if (!session || session.midTurn) await this.journal.remove(id)
    }
    await this.#guarded(id, () => this.#inTurn(id, erased))
    if (session) session.midTurn = undefined
    this.#unwritable.delete(id)
  }

  async close(): Promise<void> {
    await this.journal.close?.()
  }

  report(error: unknown, context: ParkingContext): void {
    this.#logger.error({ err: toError(error), ...context }, 'parking: something failed')
    tellOnError(this.#onError, this.#logger, toError(error), context)
  }

  #takeBack(write: () => Promise<void>): Promise<void> {
    return persistently(write, { logger: this.#logger, retryAfter: this.retryAfter })
  }

  /**
   * One after the other: until what was refused is taken back nothing more is asked about the session, so that nobody goes on from it.
   */
  async #inTurn<T>(
    id: string,
    work: (isRefused: () => boolean) => Promise<T>,
    { patience, keys = [] }: { patience?: Patience | undefined; keys?: readonly string[] } = {},
  ): Promise<T> {
    if (this.overdue.has(id)) throw overdue()
    const onLate = (working: Promise<T>) => {
      const done = this.overdue.add(id, keys)
      working.then(done, done)
    }
    return patientlyInTurn(this.#clock, { lock: this.#lock, key: id }, work, { onLate, patience })
  }

  async #guarded<T>(sessionId: string | undefined, work: () => Promise<T>): Promise<T> {
    try {
      const answer = await work()
      this.#failure = undefined
      return answer
    } catch (error) {
      const context: ParkingContext = { ...(sessionId !== undefined && { sessionId }), phase: 'store' }
      const { message } = toError(error)
      // once: as long as it is away everybody's requests fail of it
      if (message === this.#failure) tellOnError(this.#onError, this.#logger, toError(error), context)
      else this.report(error, context)
      this.#failure = message
      throw hasCode(error, 'SG_ERR_STORE_UNAVAILABLE') ? error : unavailable(error)
    }
  }
}
