import { toError } from '../../errors.js'
import { type Backoff, delayAfter } from '../../lib/backoff.js'
import { graceUntil } from '../../lib/grace.js'
import { within } from '../../lib/within.js'
import type { JournalWrite } from '../kept/journal.js'
import { asleep } from '../kept/mid-turn.js'
import type { Session } from '../session.js'
import type { SleepParts, Waking } from './waking.js'

/** When engines go. */
export interface SleepTimes {
  /** How long after the last client left a waiting session is parked. */
  parkDelayMs: number
  /** After that long without a turn or a client the engine of a session goes; `undefined`: never. */
  idleReleaseMs: number | undefined
}

/** No engine that works in the background is looked at sooner than that after the last look. */
const LOOK_MS = 1_000

/** How long an engine has at the process' end to finish what keeps it from being parked, such as a message of its model. */
const PARK_GRACE_MS = 2_000

/** After a park that could not be written: before the next try, doubled each time up to the longest. */
const RETRY: Backoff = { firstMs: 1_000, longestMs: 5 * 60_000 }

/**
 * What may happen to a session next, and when: it is parked in the middle of its turn; it is held, which is the same to the queue of a
 * job's run while somebody is attached; or its engine is released, between two turns.
 */
interface Due {
  what: 'park' | 'hold' | 'release'
  /** As `Clock.steady` counts: a clock that is set changes nothing. */
  at: number
}

/** Takes engines from sessions that wait for somebody outside, or for nothing. */
export class FallingAsleep {
  readonly #parts: SleepParts & SleepTimes
  readonly #waking: Waking
  /** Those whose last park could not be written down. */
  readonly #refused = new Map<string, Session>()
  /** Called when the process is about to end. */
  readonly #onClose = new Set<() => void>()
  /** Called when something changed in a session that is about to be parked at the process' end. */
  readonly #onChange = new Map<Session, () => void>()
  #closed = false

  constructor(parts: SleepParts & SleepTimes, waking: Waking) {
    this.#parts = parts
    this.#waking = waking
  }

  /** Whether a park could not be written down that is tried again. */
  get isRefused(): boolean {
    for (const session of this.#refused.values()) if (waits(session) && session.clients.count === 0) return true
    return false
  }

  /** A session has ended, or was removed. */
  forget(id: string): void {
    this.#refused.delete(id)
  }

  /** Something changed that may let the engine of this session go. */
  consider(session: Session): void {
    session.goingLook?.cancel()
    session.goingLook = undefined
    this.#onChange.get(session)?.()
    // nobody tries any more to write down what it waited for
    if (session.parkRefused && !waits(session)) this.#notRefused(session)
    const due = this.#closed ? undefined : this.#due(session)
    if (!due) return
    const { clock, retryAfter, mailbox } = this.#parts
    const delayMs = due.at - clock.steady()
    const { parkRefused } = session
    const again = () => {
      if (parkRefused) parkRefused.at = 0
      this.consider(session)
    }
    // a turn later: what the engine still hands over in this one belongs to the snapshot
    if (delayMs <= 0) setImmediate(() => void mailbox.run(session.id, () => this.#inTurn(session)))
    else session.goingLook = parkRefused ? retryAfter(delayMs, again) : clock.after(delayMs, again)
  }

  #due(session: Session): Due | undefined {
    const { clients, activeAt } = session
    const { parkDelayMs, idleReleaseMs, clock } = this.#parts
    if (session.leaveDesk.canPark) {
      // what an engine that goes would refuse is kept by then as if it had taken it
      if (session.concerns > 0) return undefined
      const earliest = session.parkRefused?.at ?? 0
      const park = { what: 'park' as const, at: Math.max(parkedFrom(session, parkDelayMs), earliest) }
      // whoever looks at a job that waits neither holds its slot nor lets its clock run
      if (session.jobId === undefined || session.held) return park.at === Infinity ? undefined : park
      const hold = { what: 'hold' as const, at: Math.max(session.leaveDesk.heldFrom + parkDelayMs, earliest) }
      return park.at <= hold.at ? park : hold
    }
    if (idleReleaseMs === undefined || !session.leaveDesk.canRelease) return undefined
    const aloneSince = Math.max(activeAt, clients.leftAt ?? 0)
    // what goes on in the background keeps it, and what comes of that, once it is over, is looked at again
    const nextLook = session.link?.isAtWork ? clock.steady() + Math.max(idleReleaseMs, LOOK_MS) : 0
    return { what: 'release', at: Math.max(aloneSince + idleReleaseMs, nextLook) }
  }

  /** Its engine may have been started since, and somebody may have come. */
  async #inTurn(session: Session): Promise<void> {
    const due = this.#closed ? undefined : this.#due(session)
    if (!due) return
    if (due.at > this.#parts.clock.steady()) this.consider(session)
    else if (due.what === 'hold') await this.#hold(session)
    else await this.#sleep(session, due.what === 'park')
  }

  /** Whoever is told that the job is parked finds it parked after a crash, too. */
  async #hold(session: Session): Promise<void> {
    const { keeping, clock } = this.#parts
    const since = session.leaveDesk.heldFrom
    let write: JournalWrite | undefined
    try {
      write = session.leaveDesk.hold(clock.now())
    } catch (error) {
      this.#onNoSnapshot(session, true, error)
      return
    }
    try {
      await (write ? keeping.write(write) : session.durable())
      this.#notRefused(session)
      if (session.leaveDesk.canPark && session.leaveDesk.heldFrom === since) session.leaveDesk.tellHeld()
    } catch (error) {
      this.#refuse(session, error)
    }
    this.consider(session)
  }

  async #sleep(session: Session, parks: boolean): Promise<void> {
    try {
      session.leaveDesk.letGo(parks)
    } catch (error) {
      this.#onNoSnapshot(session, parks, error)
      return
    }
    await this.#fallAsleep(session, parks)
  }

  async #fallAsleep(session: Session, parks: boolean): Promise<void> {
    const { keeping, clock, table } = this.#parts
    const since = clock.now()
    // what the engine itself keeps of the session is whole only then
    await this.#goneInTime(session)
    try {
      if (parks && !keeping.hasAll) {
        await keeping.park(asleep(session, session.leaveDesk.snapshot!, since), session)
        session.isAhead = false
      }
    } catch (error) {
      await this.#onRefused(session, error)
      return
    }
    if (session.ended) return
    session.leaveDesk.fallAsleep(parks ? since : undefined)
    session.goingLook?.cancel()
    this.#notRefused(session)
    // one that cannot be written down yet is kept in memory until it can be
    if (parks) await session.durable().catch((error) => this.#report(session, parks, error))
    if (!session.live) table.onEngine(session, false)
  }

  /** Its engine is gone, or the process may end before it is: nobody goes on with the session here any more. */
  #goneInTime({ engineGone }: Session): Promise<void> {
    return new Promise((resolve) => {
      if (this.#closed) resolve()
      else this.#onClose.add(resolve)
      const gone = () => {
        this.#onClose.delete(resolve)
        resolve()
      }
      void engineGone?.then(gone)
    })
  }

  /** Not parked, since nobody would find it after a crash: it goes on with a new engine until the store is well again. */
  async #onRefused(session: Session, refusal: unknown): Promise<void> {
    this.#refuse(session, refusal)
    // nobody would end an engine that is built now
    if (this.#closed) return
    try {
      await this.#waking.bringBack(session, session.leaveDesk.snapshot)
    } catch (error) {
      session.fail(toError(error).message, 'SG_ERR_ENGINE_START')
    }
    this.consider(session)
  }

  /** Its engine stays. That is no fault of the store, which is asked for nothing more. */
  #onNoSnapshot(session: Session, parks: boolean, error: unknown): void {
    this.#report(session, parks, error)
    this.#notRefused(session)
  }

  #refuse(session: Session, error: unknown): void {
    this.#report(session, true, error)
    const tries = (session.parkRefused?.tries ?? 0) + 1
    this.#refused.set(session.id, session)
    session.parkRefused = { at: this.#parts.clock.steady() + delayAfter(tries, RETRY), tries }
  }

  #notRefused(session: Session): void {
    session.parkRefused = undefined
    this.#refused.delete(session.id)
  }

  #report({ id: sessionId }: Session, parks: boolean, error: unknown): void {
    const { keeping, logger } = this.#parts
    if (parks) keeping.report(error, { sessionId, phase: 'park' })
    else logger.error({ sessionId, err: toError(error) }, 'the engine of an idle session could not be let go')
  }

  /** The engine of this session is gone although the session goes on. */
  onSpent(session: Session): void {
    try {
      session.leaveDesk.letGo(false)
    } catch (error) {
      this.#report(session, false, error)
      return
    }
    void this.#parts.mailbox.run(session.id, async () => {
      await this.#fallAsleep(session, false)
      const hasMessages = session.queued !== undefined || session.messagesComing > 0
      if (hasMessages && !this.#closed) void this.#waking.goOn(session)
    })
  }

  /** For the end of the process: engines are taken by `sleepNow` alone. */
  close(): void {
    this.#closed = true
    for (const goOn of this.#onClose) goOn()
  }

  /** Parks one that waits, attached clients or not, and takes the engine of any other. */
  async sleepNow(session: Session, endsAt: number): Promise<void> {
    session.goingLook?.cancel()
    if (session.leaveDesk.parksSoon) await this.#engineReady(session, endsAt)
    const park = () => (session.leaveDesk.canPark ? this.#sleep(session, true) : undefined)
    await this.#parts.mailbox.run(session.id, park)
    await session.leaveDesk.sleepNow(endsAt)
    await session.engineGone
  }

  /** What somebody is asked would be denied only because the model had not ended its message. */
  async #engineReady(session: Session, endsAt: number): Promise<void> {
    const { clock } = this.#parts
    const ready = new Promise<void>((resolve) => {
      // a turn later, as any park
      this.#onChange.set(session, () => session.leaveDesk.parksSoon || setImmediate(resolve))
    })
    await within(graceUntil(endsAt, PARK_GRACE_MS, clock), ready, { clock })
    this.#onChange.delete(session)
  }
}

const waits = ({ executions, permissions }: Session): boolean => executions.size + permissions.size > 0

/** `Infinity` while somebody is attached. */
const parkedFrom = ({ clients: { count, leftAt } }: Session, delayMs: number): number =>
  count > 0 ? Infinity : leftAt === undefined ? 0 : leftAt + delayMs
