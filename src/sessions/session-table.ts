import type { PermissionRequest } from '../../schemas/permissions.js'
import type { Engine, ListSessionsQuery, SessionInfo } from '../../schemas/sessions.js'
import type { Clock } from '../lib/clock.js'
import type { KeyedLock } from '../lib/keyed-lock.js'
import { nextOf } from '../lib/node-numbers.js'
import { decodeOrder } from '../lib/paging.js'
import { byText, SortedList } from '../lib/sorted-list.js'
import { type Principal, visible } from '../principal.js'
import { wakesAt } from './kept/asleep.js'
import type { Places } from './places.js'
import type { Session } from './session.js'
import { infoOf, isOver, SessionEntry, statusOf } from './session-entry.js'
import type { Sharing } from './sharing.js'

/** How long a parked session that was looked at stays in memory. */
const RELEASE_AFTER_MS = 5_000
/** A sleeping session is taken into memory so long before its time. */
const NEAR_MS = 30_000

/** Which sessions there are, in memory or parked, in the order in which they were created. */
export class SessionTable {
  #entries = new Map<string, SessionEntry>()
  /** All entries in their order: a page of them is found without a look at the others. */
  readonly #inOrder = new SortedList<SessionEntry>((a, b) => a.order - b.order || byText(a.id, b.id))
  /** Told of sessions at rest that are in the journal alone now; absent: they all stay here. */
  onDropped: ((dropped: SessionInfo) => void) | undefined
  /** Told of sessions whose engine can only start on another node, and that are not here any more. */
  onLetGo: ((id: string) => void) | undefined
  /** Has the clients of a session that goes on elsewhere look for it there. */
  disconnect: ((session: Session) => void) | undefined
  /** How many work with what is here and not in the journal alone: nothing is dropped meanwhile. */
  #holders = 0
  #isStopped = false
  readonly #clock: Clock
  readonly #places: Places
  readonly #mailbox: KeyedLock
  readonly #sharing: Sharing | undefined
  #lastOrder = 0

  /**
   * @param places which sessions take that live
   * @param mailbox in which something is done to sessions, which are then not let go of
   * @param sharing absent: one process has all sessions
   */
  constructor(clock: Clock, places: Places, mailbox: KeyedLock, sharing?: Sharing) {
    this.#clock = clock
    this.#places = places
    this.#mailbox = mailbox
    this.#sharing = sharing
  }

  add(session: Session): void {
    const { id, profile } = session
    const entry = this.#enter(id, this.orderFrom(this.#clock.now()), profile.info.name, profile.info.engine)
    entry.session = session
    session.order = entry.order
    entry.lives = true
  }

  #enter(id: string, order: number, profile: string, engine: Engine): SessionEntry {
    this.goOnAfter(order)
    const entry = new SessionEntry(id, order, profile, engine)
    this.#entries.set(id, entry)
    this.#inOrder.add(entry)
    return entry
  }

  /** A place behind all others, of which no other node has the same. @param earliest epoch milliseconds */
  orderFrom(earliest: number): number {
    if (!this.#sharing) return Math.max(this.#lastOrder + 1, earliest)
    return nextOf(this.#sharing.storage.n, this.#lastOrder, earliest)
  }

  /** Where a session stands that was written earlier: where several processes list it, it keeps its place. */
  orderAgain(order: number): number {
    return this.#sharing ? order : this.orderFrom(order)
  }

  /** Sessions that are created from now on stand behind this place. */
  goOnAfter(order: number): void {
    this.#lastOrder = Math.max(this.#lastOrder, order)
  }

  /**
   * Enters a session that an earlier process left in a store.
   * @param lastSeq where the numbering goes on, when the journal has its log
   */
  adopt(id: string, order: number, profile: string, info: SessionInfo, lastSeq: number | undefined): SessionEntry {
    const entry = this.#enter(id, order, profile, info.engine)
    this.#store(entry, info)
    entry.lastSeq = lastSeq
    return entry
  }

  get(id: string): SessionEntry | undefined {
    return this.#entries.get(id)
  }

  /** The session, when it is in memory. */
  resident(id: string): Session | undefined {
    return this.#entries.get(id)?.session
  }

  /** A session is about to have an engine again, or has none any more: it takes a place, or leaves it and soon the memory. */
  onEngine(session: Session, has: boolean): void {
    const entry = this.#entries.get(session.id)
    if (!entry) return
    if (has) entry.isDue = false
    if (entry.lives !== has) {
      entry.lives = has
      if (has) this.#places.retake()
      else this.#places.leave()
    }
    if (!has && session.parked) this.unload(session.id)
    // nobody comes back to it as to one that sleeps: whoever wants to read it finds it by the journal
    else if (!has && session.ended) session.whenDurable(() => this.unload(session.id))
    else if (!has && session.log.isJournaled) this.unloadLater(session.id)
  }

  /** Something came in for a session that sleeps: it is not left to the journal before an engine has it. */
  onNews(id: string): void {
    const entry = this.#entries.get(id)
    if (entry) entry.isDue = true
  }

  /** A request that waits, and its session. */
  waitingRequest(id: string, requestId: string): { request: PermissionRequest; session: SessionInfo } | undefined {
    const entry = this.#entries.get(id)
    const session = entry && infoOf(entry)
    const requests = entry?.session?.pendingPermissions ?? session?.parked?.permissions
    const request = requests?.find((pending) => pending.id === requestId)
    return session && request && { request, session }
  }

  /** @returns whether it was there */
  remove(id: string): boolean {
    const entry = this.#entries.get(id)
    if (!entry) return false
    entry.retention?.cancel()
    // a Map that is rebuilt leaves its old table behind, which may stay for long and would keep the whole session
    entry.session = undefined
    // one that is old would get every table that it grows and shrinks through among what is old
    this.#inOrder.delete(entry)
    if (this.#entries.size === 1) this.#entries = new Map()
    else this.#entries.delete(id)
    return true
  }

  /** The process ends, or its gateway: nothing is removed or let go of any more. */
  stop(): void {
    this.#isStopped = true
    for (const { retention, releasing } of this.#entries.values()) {
      retention?.cancel()
      releasing?.cancel()
    }
  }

  /** The sessions that are in memory. */
  all(): Session[] {
    return [...this.#entries.values()].flatMap(({ session }) => session ?? [])
  }

  /** Of all that are here, also only by what they are. */
  ids(): string[] {
    return [...this.#entries.keys()]
  }

  isParked(id: string): boolean {
    const entry = this.#entries.get(id)
    return entry !== undefined && (entry.session ? entry.session.parked : entry.storedStatus === 'parked')
  }

  /** Those that have not ended, newest first. */
  unended(): SessionInfo[] {
    return [...this.#inOrder.descending()].filter((entry) => !isOver(statusOf(entry))).map(infoOf)
  }

  /** Newest first; looked for only as far as somebody asks. */
  *matching(query: ListSessionsQuery, principal: Principal): Generator<SessionEntry, void> {
    const before = query.cursor === undefined ? Number.POSITIVE_INFINITY : decodeOrder(query.cursor)
    for (const entry of this.#inOrder.descending(({ order }) => order < before)) {
      const matches =
        visible(principal, entry.profile) &&
        (query.status === undefined || statusOf(entry) === query.status) &&
        (query.profile === undefined || entry.profile === query.profile) &&
        (query.engine === undefined || entry.engine === query.engine)
      if (matches) yield entry
    }
  }

  count(): { live: number; parked: number; ended: number } {
    const count = { live: 0, parked: 0, ended: 0 }
    for (const entry of this.#entries.values()) {
      const status = statusOf(entry)
      if (status === 'parked') count.parked++
      else if (isOver(status)) count.ended++
      else count.live++
    }
    return count
  }

  /** Whether a session that has not ended is an agent's own session of that id, or is being opened from it. */
  isContinued(sdkSessionId: string): boolean {
    return [...this.#entries.values()].some((entry) => {
      const { session, storedInfo } = entry
      if (isOver(statusOf(entry))) return false
      if (session) return (session.facts.sdkSessionId ?? session.config.resume) === sdkSessionId
      // most texts need not be read for it
      return storedInfo!.includes(sdkSessionId) && infoOf(entry).sdkSessionId === sdkSessionId
    })
  }

  /** Holds a stored session in memory for somebody who looks at it or is about to wake it. */
  hold(session: Session): void {
    const entry = this.#entries.get(session.id)
    if (!entry) return
    entry.session = session
    session.order = entry.order
    entry.storedInfo = undefined
    entry.lookedAt = this.#clock.steady()
    this.unloadLater(session.id)
  }

  /** Somebody asked for the session itself and may be about to attach to it. */
  onLook(entry: SessionEntry): void {
    entry.lookedAt = this.#clock.steady()
  }

  /** Lets go of a stored session that nobody looks at, or later when somebody does. */
  unload(id: string): void {
    const entry = this.#entries.get(id)
    const session = entry?.session
    if (!entry || session?.live || (!session && !this.#isDroppable(entry))) return
    if (session && !(entry.away === undefined ? session.isStored : session.isAtRest)) {
      if (session.log.isJournaled) session.whenDurable(() => this.unloadLater(id))
      else if (session.accepting > 0 || session.isAhead) this.unloadLater(id)
      return
    }
    // where its engine can start it is asked for again: whoever asks here, and is refused, does not keep it from there
    const isLeft = entry.away !== undefined && this.#isThere(entry.away)
    if (isLeft && session) this.disconnect?.(session)
    else if (
      (session?.clients.count ?? 0) > 0 ||
      (!isLeft && this.#clock.steady() - entry.lookedAt < RELEASE_AFTER_MS)
    ) {
      this.unloadLater(id)
      return
    }
    if (session) {
      const info = session.info()
      entry.lastSeq = session.log.isJournaled ? session.log.lastSeq : undefined
      if (!session.ended) entry.stays = !session.writer?.sleeps
      entry.session = undefined
      entry.storedStatus = info.status
      // most that end go at once: what they are need not be made text for that
      if (session.ended && entry.away === undefined && this.#holders === 0 && this.#isDroppable(entry)) {
        this.#drop(entry, info)
        return
      }
      this.#store(entry, info)
      // what it waits for may be about to come: it is known here for a while
      if (session.parked && entry.away === undefined) {
        this.unloadLater(id)
        return
      }
    }
    if (this.#isDroppable(entry)) this.#drop(entry)
  }

  #isDroppable(entry: SessionEntry): boolean {
    if (entry.away !== undefined) return this.#isThere(entry.away) || infoOf(entry).pendingPermissions === 0
    if (this.onDropped === undefined || entry.stays || entry.isDue) return false
    // one that wakes soon waits for it here
    return entry.storedStatus !== 'parked' || !this.isNear(wakesAt(infoOf(entry)))
  }

  /** Until then what a person is asked in a session of it stands in the inbox here. */
  #isThere(node: string): boolean {
    return this.#sharing?.storage.nodes().some(({ name, draining }) => name === node && !draining) ?? false
  }

  /** Whether a sleeping session is to be here for what happens at that time. */
  isNear(wakesAt: number | undefined): boolean {
    return wakesAt !== undefined && this.whenNear(wakesAt) <= this.#clock.now()
  }

  /** From when on it is. */
  whenNear(wakesAt: number): number {
    return wakesAt - NEAR_MS
  }

  /** Leaves a session at rest to the journal. */
  #drop(entry: SessionEntry, info?: SessionInfo): void {
    const { id } = entry
    if (this.#holders > 0) {
      this.unloadLater(id)
      return
    }
    if (entry.away !== undefined) {
      this.remove(id)
      this.onLetGo?.(id)
      return
    }
    const dropped = info ?? infoOf(entry)
    this.remove(id)
    this.onDropped?.(dropped)
  }

  /** Drops nothing while `work` is done. */
  async holding<T>(work: () => Promise<T>): Promise<T> {
    this.#holders++
    try {
      return await work()
    } finally {
      this.#holders--
    }
  }

  #store(entry: SessionEntry, info: SessionInfo): void {
    entry.storedInfo = JSON.stringify(info)
    entry.storedStatus = info.status
  }

  /** Lets go of sessions whose engine can only start on a node that is there again. */
  leaveTo(node: string): void {
    for (const entry of [...this.#entries.values()]) {
      if (entry.away !== node) continue
      if (entry.session) this.disconnect?.(entry.session)
      if (this.#mailbox.isHeld(entry.id)) this.unloadLater(entry.id)
      else this.unload(entry.id)
    }
  }

  /** Lets go of a session at once. @returns false when something is done with it */
  leave(id: string): boolean {
    const entry = this.#entries.get(id)
    if (!entry || this.#holders > 0 || this.#mailbox.isHeld(id) || entry.session?.isAtRest === false) return false
    if (entry.session) this.disconnect?.(entry.session)
    this.remove(id)
    this.onLetGo?.(id)
    return true
  }

  unloadLater(id: string): void {
    const entry = this.#entries.get(id)
    if (!entry || entry.releasing || this.#isStopped) return
    entry.releasing = this.#clock.after(RELEASE_AFTER_MS, () => {
      entry.releasing = undefined
      if (this.#mailbox.isHeld(id)) this.unloadLater(id)
      else this.unload(id)
    })
  }
}
