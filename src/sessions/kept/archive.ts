import type { SessionClosedReason } from '../../../schemas/events.js'
import type { ProfileInfo } from '../../../schemas/profiles.js'
import type { SessionInfo } from '../../../schemas/sessions.js'
import { hasCode, toError } from '../../errors.js'
import type { Executions } from '../../executions/executions.js'
import { type Backoff, delayAfter } from '../../lib/backoff.js'
import type { Timer } from '../../lib/clock.js'
import type { Patience } from '../../lib/patience.js'
import { isUnreadable } from '../../storage/storage.js'
import type { Sleep } from '../life/sleep.js'
import type { Session } from '../session.js'
import type { SessionEntry } from '../session-entry.js'
import type { LeftSession, SessionInit } from '../session-world.js'
import type { Telling } from '../telling.js'
import { asleepOf, isCutOff, isMidTurn, waitedFor, wakesAt } from './asleep.js'
import { type DueParts, DueRemovals, DueSleepers } from './due.js'
import {
  executionsOf,
  isTerminal,
  type JournaledSession,
  type JournaledWhole,
  type ListedQuery,
  orderOf,
  type RestStatus,
  type SessionsAtRest,
} from './journal.js'
import type { Keeping } from './keeping.js'
import { isForEngine, removalIn } from './news.js'

export interface ArchiveParts extends DueParts {
  keeping: Keeping
  executions: Executions
  sleep: Sleep
  telling: Telling
  profileInfo(name: string): ProfileInfo | undefined
  /** Builds a session as it was left. */
  build(init: SessionInit, left: LeftSession): Session
  /** Closes a session and removes it. @throws SG_ERR_STORE_UNAVAILABLE */
  remove(id: string, reason: SessionClosedReason): Promise<unknown>
  /** A session ended before this process began. */
  onTerminal(id: string, endedAt: number): void
  /** Somebody asks for one that has not ended and is not in the table, where several processes have sessions. */
  onMissed(left: JournaledWhole): Promise<void>
}

const AGAIN: Backoff = { firstMs: 1_000, longestMs: 30_000 }
const RESTARTED = 'The gateway was restarted while this was in progress.'

/**
 * The sessions that are in the journal and not in memory. Those at rest that nobody asks for are not in the table either, when the journal
 * gives them one by one: whoever asks for one by its id, or for an execution of it, has it entered there for a while; so has one that
 * sleeps when its time comes.
 */
export class Archive {
  readonly #parts: ArchiveParts
  /** What the journal gives of those at rest; absent: they are all in the table. */
  readonly #journal: SessionsAtRest | undefined
  readonly #sleepers: DueSleepers | undefined
  readonly #removals: DueRemovals | undefined
  readonly #lookUps = new Map<string, Promise<SessionEntry | undefined>>()
  /** Of sessions that could not be read or removed when they were taken up. */
  readonly #again = new Set<Timer>()
  #isStopped = false
  /** Sessions that are on their way out: nobody finds them any more. */
  readonly #hidden = new Set<string>()
  /** How many are in the journal alone, by their status; none where several processes have sessions: none of these counts all. */
  readonly counts: Record<RestStatus, number> = { closed: 0, failed: 0, idle: 0, parked: 0 }

  constructor(parts: ArchiveParts) {
    this.#parts = parts
    const { table, keeping } = parts
    const { atRest } = keeping
    if (!atRest) return
    const find = (id: string) => this.find(id)
    this.#journal = atRest
    this.#sleepers = new DueSleepers(atRest, parts, find)
    this.#removals = new DueRemovals(atRest, parts, find)
    table.onDropped = (info) => this.#onDropped(info)
  }

  // ── at the start ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Takes up what an earlier process left, in the order in which it was created. @throws what the journal throws */
  async adoptAll(): Promise<void> {
    const { keeping, sharing, table } = this.#parts
    const journal = sharing ? undefined : this.#journal
    const totals = await journal?.restTotals()
    const [first] = (await journal?.endedFirst(1)) ?? []
    if (totals) {
      const { lastOrder: _order, ...counts } = totals
      Object.assign(this.counts, counts)
    }
    sharing?.storage.on('nodes', () => this.lookForDue())
    const left = await keeping.list()
    // a host may have created some already, in a storage that needs no opening
    await Promise.all(left.sort((a, b) => orderOf(a) - orderOf(b)).map((session) => this.takeUp(session)))
    if (totals) table.goOnAfter(totals.lastOrder)
    if (first) this.#removals?.expect(first.endedAt)
    if (sharing) this.#removals?.look()
    if (sharing || this.counts.parked > 0) this.lookForDue()
  }

  /** Takes up one that is this process's by now; never rejects. */
  async takeUp(left: JournaledSession): Promise<void> {
    if (!this.#parts.table.get(left.id)) await this.#adopt(left)
  }

  /** Lists one that has ended and that somebody asks for, until nobody looks at it any more. */
  enterEnded(left: JournaledSession): void {
    const { table, executions, onTerminal } = this.#parts
    const { id, profile, reservedSeq, lastSeq, state } = left
    // the journal may not be asked for them any more: none may be left in it alone
    for (const executionId of executionsOf(state)) executions.remember(id, executionId)
    table.onLook(table.adopt(id, orderOf(left), profile, { ...state.info, lastSeq }, reservedSeq))
    onTerminal(id, state.info.lastActivityAt)
    table.unloadLater(id)
  }

  /** Never rejects. */
  async #adopt(left: JournaledSession): Promise<void> {
    const { executions, sleep, keeping } = this.#parts
    const { id, state, lastSeq, news = [] } = left
    const removal = removalIn(news)
    if (removal) {
      this.#enter(left, { ...(isMidTurn(left) ? parkedInfo(left) : state.info), lastSeq })
      await this.#removeAtLast(id, removal.reason)
      return
    }
    if (isMidTurn(left)) {
      this.#enter(left, { ...parkedInfo(left), lastSeq })
      try {
        sleep.adopt(left)
      } catch (error) {
        keeping.report(error, { sessionId: id, phase: 'adopt' })
      }
      return
    }
    this.#enter(left, { ...state.info, lastSeq })
    // what nobody settled is settled below, as cut off
    const waitedFor = state.executions?.map(({ executionId }) => executionId) ?? []
    for (const executionId of [...(state.settled ?? []), ...waitedFor]) executions.remember(id, executionId)
    if (isTerminal(state.info) || !isCutOff(left)) return
    await this.#tellCutOff(id)
  }

  /** Has one say that it was cut off: until then whoever waits for its end hears nothing. Never rejects. */
  async #tellCutOff(id: string, tries = 1): Promise<void> {
    const { table, logger } = this.#parts
    try {
      const session = await this.load(id)
      await session?.durable()
    } catch (error) {
      logger.error({ sessionId: id, err: toError(error) }, 'a session could not be taken up as it was left')
      // what is in memory is written by itself, and what cannot be read never is
      if (table.resident(id) || isUnreadable((error as Error).cause)) return
      this.#tryAgain(error, tries, () => this.#tellCutOff(id, tries + 1))
    }
  }

  /** Whoever removed it was told so. Never rejects. */
  async #removeAtLast(id: string, reason: SessionClosedReason, tries = 1): Promise<void> {
    const { keeping, remove } = this.#parts
    try {
      await remove(id, reason)
    } catch (error) {
      keeping.report(error, { sessionId: id, phase: 'adopt' })
      this.#tryAgain(error, tries, () => this.#removeAtLast(id, reason, tries + 1))
    }
  }

  /** When the storage was why it failed, unless the process ends. @param tries so far */
  #tryAgain(error: unknown, tries: number, work: () => Promise<void>): void {
    if (this.#isStopped || !hasCode(error, 'SG_ERR_STORE_UNAVAILABLE')) return
    const timer = this.#parts.retryAfter(delayAfter(tries, AGAIN), () => {
      this.#again.delete(timer)
      void work()
    })
    this.#again.add(timer)
  }

  /** Lists a session that stays in the journal until it is needed. */
  #enter(left: JournaledSession, info: SessionInfo): void {
    const { table, telling, onTerminal } = this.#parts
    const { id, profile, reservedSeq } = left
    telling.onAdopted(left)
    const order = left.sleeps ? orderOf(left) : table.orderAgain(orderOf(left))
    const entry = table.adopt(id, order, profile, info, reservedSeq)
    entry.away = this.#awayOf(left)
    entry.stays = entry.away === undefined && !left.sleeps
    entry.isDue = left.news !== undefined
    if (!entry.stays) table.unloadLater(id)
    else if (isTerminal(info)) onTerminal(id, info.lastActivityAt)
    else this.#letRest(left, entry)
  }

  /** Has one found by the journal from now on that nobody has to work with: its process died while an engine served it. */
  #letRest({ id, state, news }: JournaledSession, entry: SessionEntry): void {
    const { keeping, table } = this.#parts
    const known = { ...state, order: entry.order }
    const asleep = news || !keeping.atRest ? undefined : asleepOf(known)
    if (!asleep) return
    keeping.journal.write({ id, state: known, asleep }).then(
      () => {
        entry.stays = false
        table.unloadLater(id)
      },
      (error) => keeping.report(error, { sessionId: id, phase: 'adopt' }),
    )
  }

  #awayOf({ state: { home } }: JournaledSession): string | undefined {
    const { sharing } = this.#parts
    return sharing?.homes && home !== sharing.node ? home : undefined
  }

  // ── at rest ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Whether there may be some in the journal alone. */
  get hasSome(): boolean {
    if (!this.#journal) return false
    return this.#parts.sharing !== undefined || Object.values(this.counts).some((count) => count > 0)
  }

  #count({ status }: Pick<SessionInfo, 'status'>, by: 1 | -1): void {
    if (!this.#parts.sharing) this.counts[status as RestStatus] += by
  }

  /** Whoever asks next finds it by the journal. */
  #onDropped(info: SessionInfo): void {
    const { executions, sleep } = this.#parts
    executions.forget(info.id)
    sleep.forget(info.id)
    this.#count(info, 1)
    if (isTerminal(info)) this.#removals?.expect(info.lastActivityAt)
    else this.#sleepers?.expect(wakesAt(info))
  }

  /** There may be some that sleep and that nobody sees to: what slept at another node may be this one's to wake. */
  lookForDue(): void {
    this.#sleepers?.look()
  }

  /** The entry of one at rest, which the table has from now on. @throws SG_ERR_STORE_UNAVAILABLE */
  async find(id: string, patience?: Patience): Promise<SessionEntry | undefined> {
    if (!this.hasSome) return undefined
    const known = this.#lookUps.get(id)
    if (known) return known
    const lookUp = this.#lookUp(id, patience).finally(() => this.#lookUps.delete(id))
    this.#lookUps.set(id, lookUp)
    return lookUp
  }

  async #lookUp(id: string, patience: Patience | undefined): Promise<SessionEntry | undefined> {
    const { keeping, table, sharing, onMissed } = this.#parts
    const left = await keeping.get(id, patience).catch((error) => {
      // reported; it stays in the journal, as one does that cannot be read at the start
      if (isUnreadable(error.cause)) return undefined
      throw error
    })
    const entry = table.get(id)
    if (entry || !left || this.isHidden(id)) return entry
    const { info } = left.state
    if (!isTerminal(info) && sharing) {
      await onMissed(left)
      return table.get(id)
    }
    if (removalIn(left.news)) return undefined
    if (isTerminal(info)) this.enterEnded(left)
    else if (left.sleeps) await this.takeUp(left)
    else return undefined
    this.#count(info, -1)
    return table.get(id)
  }

  /** The session in the journal that has had an execution. @throws SG_ERR_STORE_UNAVAILABLE */
  async sessionOf(executionId: string): Promise<string | undefined> {
    return this.hasSome ? this.#parts.keeping.asked(() => this.#journal!.sessionOf(executionId)) : undefined
  }

  /** Whether one that sleeps goes on from that session of an agent's own. @throws SG_ERR_STORE_UNAVAILABLE */
  async continues(sdkSessionId: string): Promise<boolean> {
    return this.hasSome && this.#parts.keeping.asked(() => this.#journal!.continues(sdkSessionId))
  }

  /** Some of them; where several processes have sessions, of all. @throws SG_ERR_STORE_UNAVAILABLE */
  async read(query: ListedQuery): ReturnType<SessionsAtRest['atRest']> {
    const { sessions, next } = await this.#parts.keeping.readListed(query, this.#parts.sharing !== undefined)
    return { sessions: sessions.filter(({ id }) => !this.isHidden(id)), next }
  }

  /** Hides one that was refused, or is removed, until it is gone from the journal, too. */
  hide(id: string): void {
    this.#hidden.add(id)
  }

  unhide(id: string): void {
    this.#hidden.delete(id)
  }

  isHidden(id: string): boolean {
    return this.#hidden.has(id)
  }

  stop(): void {
    this.#isStopped = true
    for (const timer of this.#again) timer.cancel()
    this.#removals?.stop()
    this.#sleepers?.stop()
  }

  // ── into memory ───────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Reads a session into memory. @param known what the journal has of it @throws SG_ERR_STORE_UNAVAILABLE */
  readonly load = async (id: string, known?: JournaledWhole, patience?: Patience): Promise<Session | undefined> => {
    const { keeping, table, telling, executions, sleep, profileInfo, build } = this.#parts
    if (table.resident(id)) return table.resident(id)
    const whole = known ?? (await keeping.get(id, patience))
    const place = table.get(id)
    const resident = table.resident(id)
    // somebody else was faster, or has removed it
    if (resident || !whole || !place) return resident
    const { lastSeq = whole.reservedSeq } = place
    const { hostTitle, info } = whole.state
    const { title: _asked, ...asked } = whole.config
    const config = hostTitle === undefined ? asked : { ...asked, title: hostTitle }
    const shown = profileInfo(whole.profile) ?? { name: whole.profile, engine: info.engine }
    const profile = { info: shown, generation: whole.generation }
    if (!isMidTurn(whole)) delete whole.state.midTurn
    const session = build({ id, request: config, config, jobId: info.jobId, profile }, { whole, lastSeq })
    table.hold(session)
    telling.onRestored(session)
    const { news = [] } = whole
    if (isMidTurn(whole)) {
      session.permissions.denyLost(RESTARTED)
      // nobody is to be asked again for what came in
      session.takeIn(whole)
      for (const event of session.executions.endLost(RESTARTED, session.midTurn?.results ?? [])) {
        session.append(event)
        executions.giveUp(id, event.executionId)
      }
      session.takeUp(news.filter((one) => !isForEngine(one)))
    } else if (!isTerminal(info) && isCutOff(whole)) {
      session.takeUp(news)
      session.turnDesk.cutOff(RESTARTED)
      if (session.busy && place.away === undefined && !removalIn(news)) void sleep.goOn(session)
    }
    return session
  }
}

function parkedInfo(left: JournaledSession): SessionInfo {
  const { info, midTurn } = left.state
  const { executions, permissions: asks } = waitedFor(left)
  const parked = { since: midTurn!.since, executions, ...(asks.length > 0 && { permissions: asks }) }
  return { ...info, status: 'parked', pendingPermissions: asks.length, parked }
}
