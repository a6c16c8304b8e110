import type { GatewayError } from '../../errors.js'
import type { KeptKey } from '../../idempotency/store.js'
import { type Backoff, delayAfter } from '../../lib/backoff.js'
import type { Clock, Timer } from '../../lib/clock.js'
import {
  asUnavailable,
  overdue,
  PATIENCE_MS,
  Patience,
  patiently,
  readInTime,
  tooLate,
  unavailable,
} from '../../lib/patience.js'
import { within } from '../../lib/within.js'
import { along, type PlannedNotification } from '../../notifications/planned.js'
import type { LogJournal } from '../log/event-log.js'
import { Backlog } from './backlog.js'
import { type JournalWrite, type KeptSnapshot, type ReadEvents, type RemovalDecision, SOLE_OWNER } from './journal.js'
import type { JournalOwner, JournalWriterParts } from './journal-owner.js'
import type { News } from './news.js'
import { type BegunWrite, NextWrite } from './next-write.js'

/** A write that failed is tried again after this, doubled each time up to the longest. */
const RETRY: Backoff = { firstMs: 1_000, longestMs: 30_000 }

interface Waiter {
  /** Runs once everything that was recorded before it is durable, however long that takes. */
  run?: () => void
  /** Told with the write that covers it. */
  done?: (error?: GatewayError) => void
}

/**
 * Writes one session down: what changed since the last write goes with the next, one write after the other, and is shown to clients when
 * it is durable. A write that fails loses nothing: it is repeated until it succeeds, and whoever asks for durability meanwhile is refused.
 */
export class JournalWriter implements LogJournal {
  readonly #parts: JournalWriterParts
  readonly #clock: Clock
  readonly #owner: JournalOwner
  readonly backlog: Backlog
  readonly oldestSeq: number
  /** The snapshot is from before the last turn, and the engine gives none: nothing can go on from it. */
  isStale: boolean
  /** The journal finds it among those that sleep. */
  sleeps: boolean
  readonly #next: NextWrite
  /** What waits for the write in progress, and for the one after it. */
  #waitingNow: Waiter[] = []
  #waitingNext: Waiter[] = []
  #state: 'idle' | 'scheduled' | 'writing' | 'failing' | 'stopped' = 'idle'
  /** Nothing is written meanwhile. */
  #removing: Promise<void> | undefined
  /** Its removal is decided, durably: what is told from now on is kept apart from it. */
  #isDecided = false
  #isAbandoned = false
  #retry: { timer: Timer; tries: number } | undefined
  #writingSince = 0
  /** What is being told right now; who comes meanwhile comes last. */
  #telling: Waiter[] | undefined

  /** @param left of a session that is in the journal already */
  constructor(
    parts: JournalWriterParts,
    clock: Clock,
    owner: JournalOwner,
    left?: { reservedSeq: number; sleeps: boolean; isStale: boolean; oldestSeq: number | undefined },
  ) {
    this.#parts = parts
    this.#clock = clock
    this.#owner = owner
    this.backlog = new Backlog(clock, parts.backlog)
    this.oldestSeq = left?.oldestSeq ?? 1
    this.#next = new NextWrite(owner, left?.reservedSeq)
    this.sleeps = left?.sleeps ?? false
    this.isStale = left?.isStale ?? false
  }

  onAppended(seq: number, json: string | undefined, bytes: number): void {
    if (this.#state === 'stopped') return
    if (json !== undefined) {
      this.#next.event(seq, json)
      this.#schedule()
    } else if (!this.#next.isReserved(seq)) this.#schedule()
    if (!this.#next.isDurable) this.#pile(bytes)
    this.#show(seq)
  }

  #pile(bytes: number): void {
    if (!this.backlog.add(bytes)) return
    // while writes go through, they keep up by themselves
    const isStuck = this.#state === 'writing' && this.#clock.steady() - this.#writingSince > PATIENCE_MS
    if (this.#retry || isStuck) this.#owner.onBacklog(this.backlog.bytes)
  }

  /** @throws SG_ERR_STORE_UNAVAILABLE */
  read(afterSeq: number, untilSeq: number, maxBytes: number): Promise<ReadEvents> {
    return readInTime(this.#clock, () => this.#parts.journal.read(this.#owner.id, afterSeq, untilSeq, maxBytes))
  }

  /** The session's state has changed. */
  touch(): void {
    this.#next.state()
    this.#schedule()
  }

  /**
   * Keeps news of the session.
   * @throws SG_ERR_STORE_UNAVAILABLE, and then it is never to be done
   */
  async deposit(news: News, key?: KeptKey, patience = new Patience(this.#clock)): Promise<void> {
    if (this.#next.isBirth) {
      this.touch()
      await this.durable(patience)
    }
    if (this.#removing) await this.#removalOver(this.#removing, patience)
    if (this.#isAbandoned) throw unavailable()
    if (this.removed) return
    const { id } = this.#owner
    // what is kept under the same key meanwhile goes with it
    if (this.#parts.overdue.has(id, news.key)) throw overdue()
    const deposited = async (isRefused: () => boolean) => {
      await this.#parts.journal.deposit(id, [news], key && [key])
      if (!isRefused()) return
      this.take(news.key)
      this.touch()
    }
    const onLate = (working: Promise<void>) => {
      const free = this.#parts.overdue.add(id, [news.key])
      working.then(() => (this.#isAbandoned ? free() : this.after(free)), free)
    }
    try {
      await patiently(this.#clock, deposited, { patience, onLate })
    } catch (error) {
      throw asUnavailable(error)
    }
  }

  /** Whoever comes while it is being removed is told how that ended. @throws SG_ERR_STORE_UNAVAILABLE when it takes too long */
  async #removalOver(removing: Promise<void>, { leftMs }: Patience): Promise<void> {
    await within(
      leftMs,
      removing.catch(() => {}),
      { clock: this.#clock, onLate: tooLate },
    )
  }

  /** The next write tells of this news. */
  take(key: string): void {
    this.#next.news(key)
  }

  /**
   * The engine can go on from here.
   * @param snapshot absent: it gives none, and turns are missing in what was kept earlier
   */
  keep(snapshot: KeptSnapshot | undefined): void {
    if (!snapshot && this.isStale) return
    if (snapshot) this.#next.snapshot(snapshot)
    this.isStale = !snapshot
    this.touch()
  }

  /** Has what is to be told of what was just appended kept in the same write. */
  keepAlong(planned: PlannedNotification): void {
    if (this.#isAbandoned) return
    const gone = this.#isDecided || this.#state === 'stopped'
    if ((gone && !this.#next.isBirth) || !this.#parts.oneWrite) planned.keep()
    else if (!gone) this.#next.telling(planned)
  }

  /** Runs `then` once all that was recorded is durable, or the session was removed: at once when it is. */
  after(then: () => void): void {
    if (this.#isAbandoned) return
    if (!this.clean) this.#waiters.push({ run: then })
    else if (this.#telling) this.#telling.push({ run: then })
    else then()
  }

  /** Resolves when all that was recorded is durable. @throws SG_ERR_STORE_UNAVAILABLE when it could not be written */
  durable(whose?: Patience): Promise<void> {
    if (this.#isAbandoned) return Promise.reject(unavailable())
    if (this.clean) return Promise.resolve()
    const written = new Promise<void>((resolve, reject) => {
      this.#waiters.push({ done: (error) => (error ? reject(error) : resolve()) })
    })
    if (this.#state === 'failing' && !this.#removing) this.#write()
    return within(whose?.leftMs ?? PATIENCE_MS, written, { clock: this.#clock, onLate: tooLate })
  }

  /** Whether the session is going, or gone, for good: nothing of it is to be kept elsewhere any more. */
  get removed(): boolean {
    return this.#removing !== undefined || this.#state === 'stopped'
  }

  /** Whether that it is removed is durable. */
  get isDecided(): boolean {
    return this.#isDecided
  }

  /** Whether what was recorded last is being written; false while the journal takes nothing. */
  get isUnderWay(): boolean {
    return (this.#state === 'scheduled' || this.#state === 'writing') && !this.#retry && !this.#removing
  }

  /** Whether the last write failed. */
  get failing(): boolean {
    return this.#state === 'failing'
  }

  /**
   * Removes the session from the journal; nothing is written meanwhile.
   * @throws what the journal throws, and SG_ERR_STORE_UNAVAILABLE when whoever asked was refused; it goes on then
   */
  remove(decision?: RemovalDecision): Promise<void> {
    if (this.#isAbandoned) return Promise.reject(unavailable())
    if (this.#state === 'stopped') return Promise.resolve()
    this.#removing ??= this.#remove(decision)
    return this.#removing
  }

  async #remove(decision: RemovalDecision | undefined): Promise<void> {
    let ending: PlannedNotification | undefined
    try {
      await this.#written()
      this.#retry?.timer.cancel()
      if (decision && !this.#next.isBirth) ending = await this.#decide(decision)
      else if (!this.#next.isBirth) await this.#removeFromJournal(undefined)
    } catch (error) {
      this.#removing = undefined
      this.#state = 'idle'
      this.#schedule()
      throw error
    }
    if (decision && !this.#next.isBirth) {
      // whose job it was is written first: the next process carries out what was decided, and knows nothing of what is gone
      if (this.#owner.jobId !== undefined) await new Promise(setImmediate)
      await this.#removeAtLast(ending)
    }
    this.#removing = undefined
    this.#stop()
  }

  async #decide({ news, isRefused, onDecided }: RemovalDecision): Promise<PlannedNotification | undefined> {
    if (isRefused()) throw unavailable()
    await this.#parts.journal.deposit(this.#owner.id, [news])
    if (isRefused()) {
      this.#next.news(news.key)
      throw unavailable()
    }
    this.#isDecided = true
    return onDecided()
  }

  async #removeAtLast(ending: PlannedNotification | undefined): Promise<void> {
    for (let tries = 1; ; tries++)
      try {
        await this.#removeFromJournal(ending)
        return
      } catch (error) {
        // whoever has it now finds that it was decided
        if (this.#isAbandoned) throw error
        this.#parts.onFault(this.#owner.id, error)
        await new Promise<void>((resolve) => this.#parts.retryAfter(delayAfter(tries, RETRY), resolve))
      }
  }

  async #removeFromJournal(ending: PlannedNotification | undefined): Promise<void> {
    const { journal } = this.#parts
    const told = ending ? [...this.#next.told, ending] : [...this.#next.told]
    try {
      const { deliveries, notifications, usage } = along(told)
      await journal.remove(this.#owner.id, deliveries, notifications, SOLE_OWNER, usage)
    } catch (error) {
      for (const planned of told) planned.unwritten()
      throw error
    }
    for (const planned of told) planned.written()
    this.#next.toldElsewhere(told)
  }

  /** The session is another node's: nothing of it is written or told any more. */
  abandon(): void {
    this.#isAbandoned = true
    this.#parts.overdue.forget(this.#owner.id)
    this.#writeNoMore()
    this.#next.drop()
    this.backlog.remove(this.backlog.bytes)
    for (const { done } of [...this.#waitingNow.splice(0), ...this.#waitingNext.splice(0)]) done?.(unavailable())
  }

  /** What nobody writes any more is no fault of the storage's. */
  #writeNoMore(): void {
    this.#state = 'stopped'
    this.#retry?.timer.cancel()
    this.#parts.onFault(this.#owner.id, undefined)
  }

  /** What follows is not kept any more; it is shown at once. */
  #stop(): void {
    this.#writeNoMore()
    const told = this.#next.drop()
    this.backlog.remove(this.backlog.bytes)
    // of one that was never there nobody is told anything
    const { isBirth } = this.#next
    for (const planned of told) if (!isBirth) planned.keep()
    this.#owner.log.show(undefined)
    const waiting = [...this.#waitingNow.splice(0), ...this.#waitingNext.splice(0)]
    this.#tell(isBirth ? waiting.map(({ done }) => (done ? { done } : {})) : waiting)
  }

  #tell(waiting: Waiter[]): void {
    // before observers: what they do takes longer than a write to a socket
    this.#owner.clients.onShown()
    this.#telling = waiting
    for (const { run, done } of waiting) {
      run?.()
      done?.()
    }
    this.#telling = undefined
  }

  async #written(): Promise<void> {
    if (this.#state !== 'writing') return
    await new Promise<void>((resolve) => this.#waitingNow.push({ done: () => resolve() }))
  }

  /** Whether nothing waits to be written. */
  get clean(): boolean {
    return !this.#removing && (this.#state === 'idle' || this.#state === 'stopped')
  }

  /** Whoever comes now waits for what is recorded by now. */
  get #waiters(): Waiter[] {
    return this.#state === 'writing' && this.#next.isEmpty ? this.#waitingNow : this.#waitingNext
  }

  #schedule(): void {
    if (this.#state !== 'idle' || this.#removing) return
    this.#state = 'scheduled'
    // all that happens to the session in this turn is one write
    this.#parts.atTurnsEnd(() => {
      if (this.#state === 'scheduled' && !this.#removing) this.#write()
    })
  }

  #write(): void {
    this.#retry?.timer.cancel()
    this.#state = 'writing'
    this.#writingSince = this.#clock.steady()
    const { bytes } = this.backlog
    this.#waitingNow.push(...this.#waitingNext.splice(0))
    const begun = this.#next.begin()
    this.#parts.journal.write(begun.write, SOLE_OWNER).then(
      () => {
        for (const planned of begun.told) planned.written()
        this.#onWritten(begun.write, bytes)
      },
      (error) => this.#onFailed(begun, error),
    )
  }

  #onWritten(write: JournalWrite, bytes: number): void {
    if (this.#state === 'stopped') return
    if (write.state) this.sleeps = write.asleep !== undefined
    if (this.#retry) this.#parts.onFault(this.#owner.id, undefined)
    this.#retry = undefined
    this.#next.written(write)
    this.backlog.remove(this.#next.isDurable ? this.backlog.bytes : bytes)
    this.#state = 'idle'
    const { lastSeq } = this.#owner.log
    this.#show(lastSeq)
    const waiting = this.#waitingNow.splice(0)
    const isDirty = !this.#next.isEmpty || this.#waitingNext.length > 0
    if (isDirty || !this.#next.isReserved(lastSeq)) this.#schedule()
    this.#tell(waiting)
  }

  #onFailed(begun: BegunWrite, error: unknown): void {
    this.#next.failed(begun)
    if (this.#state === 'stopped') return
    this.#state = 'failing'
    const tries = (this.#retry?.tries ?? 0) + 1
    this.#retry = { tries, timer: this.#parts.retryAfter(delayAfter(tries, RETRY), () => this.#write()) }
    const refusal = unavailable(error)
    const waiting = this.#waitingNow.splice(0)
    // who waits for the change itself goes on waiting
    this.#waitingNext.unshift(...waiting.filter(({ run }) => run))
    this.#parts.onFault(this.#owner.id, error)
    for (const { done } of waiting) done?.(refusal)
  }

  #show(lastSeq: number): void {
    this.#owner.log.show(this.#next.shownThrough(lastSeq))
  }
}
