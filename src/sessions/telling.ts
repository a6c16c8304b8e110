import type { SessionClosedReason, SessionEventBody } from '../../schemas/events.js'
import type { PermissionRequest } from '../../schemas/permissions.js'
import type { ProfileInfo } from '../../schemas/profiles.js'
import type { SessionInfo, TokenUsage } from '../../schemas/sessions.js'
import { DEFAULT_AGENT } from '../engines/cli/agent-table.js'
import { EVENT_TYPES, type MomentEvent } from '../engines/event-types.js'
import type { Clock } from '../lib/clock.js'
import { copyOf } from '../lib/json-value.js'
import type { Listeners } from '../lib/listeners.js'
import type { PlannedNotification } from '../notifications/planned.js'
import type { CountedSession } from '../usage/count.js'
import { waitedFor } from './kept/asleep.js'
import type { JournaledSession } from './kept/journal.js'
import type { Asked } from './kept/news.js'
import type { OperatorLog } from './operator-log.js'
import type { RegistryEvents, SessionEventTold, SessionObservers } from './registry-options.js'
import type { Session } from './session.js'

/** Numbers that a session may still use while it is being removed. */
const ENDING_AHEAD = 1_000

export interface TellingParts {
  clock: Clock
  operatorLog: OperatorLog
  listeners: Listeners<RegistryEvents>
}

/** Tells of what happens to sessions, once it is durable: observers in this process, and whoever is notified outside. */
export class Telling {
  readonly #parts: TellingParts
  #observers: Partial<SessionObservers> = {}
  /** What the runs of jobs told that is not durable yet, by session. */
  readonly #untold = new Map<string, SessionEventTold[]>()

  constructor(parts: TellingParts) {
    this.#parts = parts
  }

  observe(observers: SessionObservers): void {
    this.#observers = observers
  }

  onEvent(session: Session, body: SessionEventBody, seq: number, ts: number): void {
    const { listeners, operatorLog } = this.#parts
    operatorLog.onEvent(session, body, seq)
    let info: SessionInfo | undefined
    // all who are told of an event are told of the session as it is then
    const infoThen = () => {
      info ??= session.info(seq)
      return info
    }
    if (EVENT_TYPES[body.type].isMoment) this.#onMoment(session, body as MomentEvent, { seq, ts }, infoThen)
    if (!listeners.has('session_event', session)) return
    // an engine may go on with its own objects before this is told
    const event = { seq, ts, ...copyOf(body) }
    event.seq = seq
    event.ts = ts
    const told: SessionEventTold = { sessionId: session.id, event, session: infoThen() }
    if (session.held) told.held = true
    // what is not written down is told at once
    if (session.jobId === undefined || !session.writer) this.tell(session, 'session_event', told)
    else this.#tellOfRun(session, told)
  }

  #onMoment(session: Session, body: MomentEvent, place: { seq: number; ts: number }, info: () => SessionInfo): void {
    const { seq, ts } = place
    const { notifier, inbox, usage } = this.#observers
    if (body.type === 'permission_requested') this.#onAsked(session, body.request, seq, ts)
    else if (body.type === 'permission_resolved') inbox?.onResolved(session.id, body.requestId)
    const { ending } = session
    // told ahead, and kept with the removal; what waited for an answer is told with it
    if (ending && body.type === 'session_closed') session.whenDurable(ending.send)
    else if (!ending || body.type !== 'permission_resolved') {
      const notification = notifier?.notify(body, place, info)
      if (notification) session.tell(notification)
    }
    const counted = usage?.count(body, ts, new Counted(session))
    if (counted) session.tell(counted)
  }

  /** The queue may have the end of a job written with the end of its turn, before that is told to anybody. */
  #tellOfRun(session: Session, told: SessionEventTold): void {
    const { listeners } = this.#parts
    const { id: sessionId } = session
    const untold = this.#untold.get(sessionId) ?? []
    untold.push(told)
    this.#untold.set(sessionId, untold)
    session.whenDurable(() => {
      untold.shift()
      if (untold.length === 0) this.#untold.delete(sessionId)
      listeners.emit('session_event', told, session)
    })
    const { onTurnOver, onCallCounted } = this.#observers
    const { type } = told.event
    // what the storage has of a removal is that it was decided: the job's end is asked of it before the session is gone
    const isOver = type === 'turn_completed' || (type === 'session_closed' && session.writer?.isDecided)
    const hears = isOver ? onTurnOver : type === 'assistant_message' ? onCallCounted : undefined
    if (!hears || untold.length === 0) return
    const all = [...untold]
    // not inside the change that it is told of
    queueMicrotask(() => hears(sessionId, all))
  }

  #onAsked(session: Session, request: PermissionRequest, seq: number, since: number): void {
    const { inbox } = this.#observers
    if (!inbox) return
    const place = { seq, since, order: inbox.nextOrder(since) }
    const { id: sessionId, profile, permissions } = session
    permissions.place(request.id, place)
    const waiting = { sessionId, profile: profile.info.name, request, place }
    inbox.onAsked(waiting)
    session.whenDurable(() => {
      if (permissions.get(request.id)) inbox.onWaiting(waiting)
    })
  }

  /** What an earlier process left parked waits on, but for what was answered meanwhile. */
  onAdopted(left: JournaledSession): void {
    const { inbox } = this.#observers
    const { id: sessionId, profile, state } = left
    const { info, midTurn, asked = {} } = state
    if (!inbox || !midTurn) return
    const { since } = midTurn
    for (const request of waitedFor(left).permissions) {
      const place = asked[request.id] ?? { seq: info.lastSeq, since, order: inbox.nextOrder(since) }
      inbox.onWaiting({ sessionId, profile, request, place })
    }
  }

  /** A parked session was told something; its log tells that when it has an engine again. */
  onNews(sessionId: string, news: readonly Asked[]): void {
    const { inbox } = this.#observers
    for (const one of news)
      if (one.type === 'answer') inbox?.onResolved(sessionId, one.requestId)
      else if (one.type === 'interrupt') inbox?.onNothingWaits(sessionId)
  }

  onHeld(session: Session): void {
    // a session that waits for an approval alone waits for no execution
    const executionId = session.executions.list()[0]?.executionId
    this.tell(session, 'session_held', { sessionId: session.id, executionId })
  }

  onRestored({ id, permissions }: Session): void {
    const asked = [...permissions.list(), ...permissions.lost]
    if (asked.length === 0) return
    this.#observers.notifier?.onRestored(
      id,
      asked.map(({ id: requestId }) => ({ requestId, since: permissions.waitedSince(requestId) })),
    )
  }

  onRemoved(sessionId: string): void {
    this.#untold.delete(sessionId)
    this.#observers.inbox?.onNothingWaits(sessionId)
  }

  /** Nobody hears of what a crash could take back. */
  tell<E extends keyof RegistryEvents & string>(session: Session, event: E, payload: RegistryEvents[E]): void {
    session.whenDurable(() => this.#parts.listeners.emit(event, payload, session))
  }

  /**
   * What is to be told of a session's end, for the removal that is decided to keep: in case the process dies before the session has ended.
   * Not sooner: its turn may be over, or it may end by itself, while that is being decided.
   */
  endingOf(session: Session, reason: SessionClosedReason): PlannedNotification | undefined {
    const { notifier } = this.#observers
    if (!notifier || session.ended) return undefined
    const place = { seq: session.log.lastSeq + ENDING_AHEAD, ts: this.#parts.clock.now() }
    const info = () => ({ ...session.info(place.seq), status: 'closed' as const, pendingPermissions: 0 })
    const planned = notifier.notify({ type: 'session_closed', reason }, place, info)
    // told once, by whichever process
    session.ending = planned
    session.closingSeq = place.seq
    return planned
  }
}

/** What usage is counted of a session; what it does not ask for is not looked up. */
class Counted implements CountedSession {
  readonly #session: Session

  constructor(session: Session) {
    this.#session = session
  }

  get profile(): string {
    return this.#session.profile.info.name
  }

  get agent(): string {
    return agentOf(this.#session.profile.info)
  }

  get person(): string {
    return this.#session.askedBy ?? ''
  }

  get jobId(): string | undefined {
    return this.#session.jobId
  }

  takeCost(): number {
    return this.#session.facts.takeCost()
  }

  takeLastUsage(): TokenUsage | undefined {
    return this.#session.facts.takeLastUsage()
  }

  waitedSince(requestId: string): number | undefined {
    return this.#session.permissions.waitedSince(requestId)
  }
}

const agentOf = ({ engine, agent }: ProfileInfo): string => (engine === 'cli' ? (agent ?? DEFAULT_AGENT) : engine)
