import { along, type PlannedNotification } from '../../notifications/planned.js'
import { asleepOf } from './asleep.js'
import type { JournaledEvent, JournalWrite, KeptSnapshot } from './journal.js'
import type { JournalOwner } from './journal-owner.js'
import { originOf, stateOf } from './record.js'

/** Numbers reserved ahead with a write, so that none is used twice whatever a crash cuts off. */
const RESERVED_AHEAD = 1_000

/** A write, and what it keeps of what is told. */
export interface BegunWrite {
  readonly write: JournalWrite
  readonly told: readonly PlannedNotification[]
}

/** What of one session is not written down: it goes with the next write, and comes back from one that fails. */
export class NextWrite {
  readonly #owner: JournalOwner
  #events: JournaledEvent[] = []
  /** What is to be told of them. */
  #told: PlannedNotification[] = []
  /** Keys of the news that it tells of. */
  #taken: string[] = []
  #isBirth: boolean
  #stateDue = false
  #snapshot: KeptSnapshot | undefined
  #reservedSeq: number
  /** Seq of the first event that is not durable. */
  #openFrom: number | undefined

  /** @param reservedSeq of a session that is in the journal already */
  constructor(owner: JournalOwner, reservedSeq: number | undefined) {
    this.#owner = owner
    this.#isBirth = reservedSeq === undefined
    this.#reservedSeq = reservedSeq ?? 0
  }

  /** Whether the journal has nothing of the session. */
  get isBirth(): boolean {
    return this.#isBirth
  }

  /** Whether the session has said and become nothing that is not written, or being written. */
  get isEmpty(): boolean {
    return this.#events.length === 0 && !this.#stateDue && !this.#snapshot
  }

  /** Whether all events are durable. */
  get isDurable(): boolean {
    return this.#openFrom === undefined
  }

  /** Whether a number is reserved already. */
  isReserved(seq: number): boolean {
    return seq <= this.#reservedSeq
  }

  /** What is durable, and what needs not be, up to the numbers that are reserved. */
  shownThrough(lastSeq: number): number {
    return Math.min(this.#openFrom === undefined ? lastSeq : this.#openFrom - 1, this.#reservedSeq)
  }

  event(seq: number, json: string): void {
    this.#openFrom ??= seq
    this.#events.push({ seq, json })
  }

  state(): void {
    this.#stateDue = true
  }

  snapshot(snapshot: KeptSnapshot): void {
    this.#snapshot = snapshot
  }

  news(key: string): void {
    this.#taken.push(key)
  }

  telling(planned: PlannedNotification): void {
    this.#told.push(planned)
  }

  /** What is to be told, which another write keeps. */
  get told(): readonly PlannedNotification[] {
    return this.#told
  }

  toldElsewhere(told: readonly PlannedNotification[]): void {
    this.#told = this.#told.filter((planned) => !told.includes(planned))
  }

  /** Begins it; `written` or `failed` follows. */
  begin(): BegunWrite {
    const owner = this.#owner
    const { id, log, key } = owner
    const write: JournalWrite = { id }
    if (this.#isBirth) {
      write.origin = originOf(owner)
      if (key) write.keys = [key]
    }
    if (this.#stateDue || this.#isBirth || this.#taken.length > 0) {
      write.state = stateOf(owner)
      if (!owner.live) write.asleep = asleepOf(write.state)
    }
    if (this.#snapshot) write.snapshot = this.#snapshot
    if (this.#events.length > 0) write.events = this.#events
    if (this.#taken.length > 0) write.taken = this.#taken
    const told = this.#told
    if (told.length > 0) Object.assign(write, along(told))
    if (log.lastSeq > this.#reservedSeq - RESERVED_AHEAD / 2 || this.#isBirth)
      write.reservedSeq = Math.max(log.lastSeq, this.#reservedSeq) + RESERVED_AHEAD
    this.#events = []
    this.#taken = []
    this.#told = []
    this.#stateDue = false
    this.#snapshot = undefined
    return { write, told }
  }

  written({ origin, reservedSeq, events }: JournalWrite): void {
    if (origin) this.#isBirth = false
    if (reservedSeq !== undefined) this.#reservedSeq = reservedSeq
    if (events) this.#openFrom = this.#events[0]?.seq
  }

  failed({ write, told }: BegunWrite): void {
    for (const planned of told) planned.unwritten()
    this.#told = [...told, ...this.#told]
    this.#events = [...(write.events ?? []), ...this.#events]
    this.#taken = [...(write.taken ?? []), ...this.#taken]
    this.#stateDue ||= write.state !== undefined
    this.#snapshot ??= write.snapshot
  }

  /** There is none: what was to be written is not. @returns what was to be told */
  drop(): PlannedNotification[] {
    this.#events = []
    this.#openFrom = undefined
    return this.#told.splice(0)
  }
}
