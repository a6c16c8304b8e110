import { toError } from '../../errors.js'
import { inSnapshot } from '../kept/choice.js'
import type { JournalWrite, KeptSnapshot } from '../kept/journal.js'
import { asleep, midTurnAt } from '../kept/mid-turn.js'
import { notIn, snapshotFiles } from '../kept/snapshot-files.js'
import type { SessionState } from '../session-state.js'
import type { RunnerLink } from './runner-link.js'
import type { TurnDesk } from './turn-desk.js'

export const ENGINE_GONE = 'The engine that asked for it is gone.'

/** How a session lets its engine go: when that may be, what is kept for the next one, and what the session is without one. */
export class LeaveDesk {
  readonly #session: SessionState
  readonly #turns: TurnDesk

  constructor(session: SessionState, turns: TurnDesk) {
    this.#session = session
    this.#turns = turns
  }

  /**
   * Writes down what the engine could go on from, when there is a journal and it is between two turns. What was kept earlier is not gone
   * on from when it gives nothing: turns are missing in it.
   */
  keepSnapshot(): void {
    const session = this.#session
    const { id, writer, link, world, started, serving, inTurn } = session
    if (!writer || !link || !started || !serving || inTurn) return
    try {
      const snapshot = this.#snapshotBetweenTurns(link)
      session.chosen = inSnapshot(session.chosen)
      this.#keep(snapshot)
    } catch (error) {
      writer.keep(undefined)
      world.logger.error({ sessionId: id, err: toError(error) }, 'the engine gave no snapshot')
    }
    session.midTurn = undefined
  }

  /** With what of the log it can know of: an agent on the command line keeps by itself what was said. @throws as `RunnerLink.snapshot` */
  #snapshotBetweenTurns(link: RunnerLink): KeptSnapshot | undefined {
    const { log, queued, profile } = this.#session
    const snapshot = link.snapshot()
    if (!snapshot || profile.info.engine !== 'provider') return snapshot
    return { ...snapshot, logged: { throughSeq: log.headSeq, ...(queued && { waiting: queued }) } }
  }

  /** Whether nothing happens here until somebody outside says something, and the engine can be built again then. */
  get canPark(): boolean {
    return this.#session.link?.canPark === true && this.#isParkable
  }

  /** Whether only what its engine is in the middle of keeps it from being parked. */
  get parksSoon(): boolean {
    const { link } = this.#session
    return link?.parks === true && !link.canPark && this.#isParkable
  }

  get #isParkable(): boolean {
    const { link, started, writer, permissions, executions, bridge, accepting, queued, inTurn } = this.#session
    if (!link || !started) return false
    // what is written while the session is being removed would bring it back
    if (writer?.removed) return false
    // a message or an answer that is on its way to the engine would not be in its snapshot
    if (this.#turns.isUnbegun || (queued && !inTurn) || permissions.handing || accepting > 0) return false
    if (bridge.pending.length > 0 || !permissions.patient) return false
    return (link.waiting && executions.size > 0) || permissions.size > 0
  }

  /** Whether the engine may go, to be started again by the next command. */
  get canRelease(): boolean {
    const { busy, permissions, executions, clients, bridge, concerns, started, serving, link } = this.#session
    const isIdle = !busy && permissions.size === 0 && executions.size === 0
    const isAlone = clients.count === 0 && bridge.pending.length === 0 && concerns === 0
    return started && serving && isIdle && isAlone && link?.givesSnapshot === true
  }

  /** Since when it waits, as `Clock.steady` counts, as far as the queue is concerned whose run it is; it has an engine. */
  get heldFrom(): number {
    const { link, world } = this.#session
    link!.hold ??= { since: world.clock.steady(), told: false }
    return link!.hold.since
  }

  /**
   * Takes a snapshot to go on from should the engine, which stays, be lost while it waits.
   * @returns the session whole, for a journal that has nothing of it yet
   * @throws as `RunnerLink.snapshotInTurn`
   */
  hold(since: number): JournalWrite | undefined {
    const session = this.#session
    const snapshot = session.link!.snapshotInTurn()
    const write = session.writer ? undefined : asleep(session, snapshot, since, true)
    session.midTurn = midTurnAt(session, since)
    session.chosen = inSnapshot(session.chosen)
    this.#keep(snapshot)
    return write
  }

  #keep(snapshot: KeptSnapshot | undefined): void {
    const session = this.#session
    if (!session.writer) return
    if (snapshot) session.delivered = notIn(snapshot, session.delivered)
    session.writer.keep(snapshot)
  }

  /** Tells the queue, once, that it waits. */
  tellHeld(): void {
    const { link, world } = this.#session
    if (!link?.hold || link.hold.told) return
    link.hold.told = true
    world.observer.onHeld(this.#session)
  }

  /**
   * Takes the engine out of service in the same turn as its snapshot: what it says from here on is not heard.
   * @param parks in the middle of a turn
   * @throws as `RunnerLink.snapshot`, or `snapshotInTurn`; the session stays live then
   */
  letGo(parks: boolean): void {
    const session = this.#session
    const link = session.link!
    const snapshot = parks ? link.snapshotInTurn() : this.#snapshotBetweenTurns(link)
    if (!parks) this.#keep(snapshot)
    session.become({ is: 'leaving', snapshot, parks })
    if (parks) session.permissions.suspend()
    else this.#turns.giveUpWaits(ENGINE_GONE)
    session.engineGone = link.close(session.world, session.id)
  }

  /** What the next engine goes on from, while there is none. */
  get snapshot(): KeptSnapshot | undefined {
    const { life } = this.#session
    return 'snapshot' in life ? life.snapshot : undefined
  }

  /** The engine is gone, and all is kept. @param since it is parked, and says so */
  fallAsleep(since?: number): void {
    const session = this.#session
    const { snapshot } = this
    session.files = snapshotFiles(snapshot, since ?? session.facts.lastActivityAt)
    session.chosen = inSnapshot(session.chosen)
    if (since === undefined) {
      session.become({ is: 'asleep', snapshot })
      return
    }
    session.midTurn = midTurnAt(session, since)
    session.become({ is: 'asleep', parkedSince: since })
    this.#keep(snapshot)
    session.showStatus(since)
  }

  /**
   * Tells that it is parked again; what the engine asked for meanwhile it will ask for again.
   * @param detail why it could not go on; undefined: nobody wants that any more
   */
  showParkedAgain(detail: string | undefined): void {
    const session = this.#session
    const { facts, executions, permissions, log } = session
    const { headSeq } = log
    const waits = new Set(session.midTurn?.waits)
    const isNew = detail !== undefined && facts.statusDetail !== detail
    facts.statusDetail = detail
    executions.retain(waits)
    permissions.retain(waits, 'The engine that asked did not start.')
    permissions.suspend()
    // who was told of a denial was told the status with it
    if (!session.showStatus() && isNew && log.headSeq === headSeq)
      session.append({ type: 'status_changed', status: session.status, detail })
  }

  /**
   * Puts the session to sleep whatever it does, at the process' end; one that nothing is kept of is closed. Resolves when its engine is gone.
   * @param endsAt as `Sleep.sleepNow`
   */
  async sleepNow(endsAt: number): Promise<void> {
    const session = this.#session
    const { parked, ended, midTurn, writer } = session
    if (!parked && !ended && !midTurn && !writer) return session.close('server')
    // the turn that is in the middle is left to an engine of the next process, which is built from the same snapshot, and nothing is told
    const isOver = parked || ended || midTurn !== undefined
    if (!isOver && this.#turns.isAtWork && session.link) await this.#turns.endSoon(endsAt)
    if (!isOver) this.keepSnapshot()
    const { link } = session
    if (link) {
      // it does not end this process
      delete midTurn?.endedSoon
      session.become({ is: 'asleep' })
      session.touch()
    }
    if (!isOver) this.#turns.cutOff('The gateway was shut down.')
    await Promise.all([link?.close(session.world, session.id), session.durable().catch(() => {})])
  }
}
