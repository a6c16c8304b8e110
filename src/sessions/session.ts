import { CLOSE } from '../../schemas/close-codes.js'
import type { SessionCommand } from '../../schemas/commands.js'
import type { AnsweredBy, PermissionRequest, ResolvePermissionRequest } from '../../schemas/permissions.js'
import { GatewayError, invalidField, toError } from '../errors.js'
import type { KeptKey } from '../idempotency/store.js'
import { caught } from '../lib/caught.js'
import { LazyMap } from '../lib/lazy-map.js'
import { Patience } from '../lib/patience.js'
import type { PlannedNotification } from '../notifications/planned.js'
import type { Principal } from '../principal.js'
import { INTERRUPTED } from './asks/deferred-executions.js'
import {
  type AnswerBearing,
  answerAsked,
  assertAnswers,
  carriedDecision,
  changedInput,
  decisionOf,
} from './asks/permissions.js'
import type { Attachment, ClientSink } from './clients/attachment.js'
import type { AttachPosition } from './clients/clients.js'
import { CommandDesk } from './clients/command-desk.js'
import { chosenWith } from './kept/choice.js'
import type { JournaledWhole, MidTurn, QueuedMessage, RemovalDecision } from './kept/journal.js'
import { type Asked, type Choice, isForEngine, type News, newsOf } from './kept/news.js'
import { EngineDesk } from './life/engine-desk.js'
import { LeaveDesk } from './life/leave-desk.js'
import { TurnDesk } from './life/turn-desk.js'
import { SessionState } from './session-state.js'
import type { LeftSession, SessionInit, SessionWorld } from './session-world.js'

/**
 * One agent session: a small state machine whose every change is an event in its log.
 *
 *   starting ─ start() done ─▶ idle ◀─ turn_completed ─ running ◀─▶ awaiting_approval
 *                                                         └─ saved, engine gone ─▶ parked ─ result, answer ─▶ running
 *   (all) ─ session_error, engine died ─▶ failed          (all) ─ close, DELETE, shutdown ─▶ closed
 *
 * An idle session may be asleep: its engine is gone, and the next command that needs one starts it again. With a journal a shutdown
 * leaves it asleep instead of closed.
 *
 * Between live and parked it is frozen: out of service, its record being saved. Whatever arrives then waits for `sleep.unfrozen`.
 *
 * State changes first; the events that tell it follow, in that order. The status is computed from the state, never from events. What
 * happens to the state is done by its desks: to its turns, to its engine and to that engine's leave, to what clients command.
 */
export class Session extends SessionState {
  readonly turnDesk: TurnDesk
  readonly leaveDesk: LeaveDesk
  readonly engine: EngineDesk
  readonly #commands: CommandDesk
  /** Answers that are being kept, by request; each resolves when it is, or was refused. */
  readonly #answering = new LazyMap<string, Promise<void>>()
  /** What was told since it was last kept has no place but this one, and its numbers would be given again. */
  isAhead = false
  /** When the last message was taken, or refused. */
  #lastMessage: Promise<unknown> | undefined
  /** Ends the turn of an interrupt with the last result that it brings, before the engine goes on with that. */
  #onAllSettled: (() => void) | undefined

  constructor(world: SessionWorld, init: SessionInit, left?: LeftSession) {
    super(world, init, left)
    this.turnDesk = new TurnDesk(this)
    this.leaveDesk = new LeaveDesk(this, this.turnDesk)
    this.engine = new EngineDesk(this, this.turnDesk, this.leaveDesk)
    this.#commands = new CommandDesk(this, world)
  }

  /**
   * Does what it is asked to do, once that is kept.
   * @param key of the request that asks for it, kept with it
   * @returns a message as it waits, or waited, for its turn
   * @throws SG_ERR_STORE_UNAVAILABLE, and then it is never done
   */
  async accept(
    asked: Asked,
    key?: KeptKey,
    patience = new Patience(this.world.clock),
  ): Promise<QueuedMessage | undefined> {
    const done = this.#keepAndDo(newsOf(asked), key, patience)
    if (asked.type === 'message') this.#lastMessage = done.catch(() => {})
    try {
      const message = await done
      // it will be known whatever happens; so that whoever is told "done" finds its events, too
      await this.durable(patience).catch(() => {})
      return message
    } finally {
      // while it was on its way the session could not be parked
      if (this.accepting === 0) this.world.sleep.consider(this)
    }
  }

  async #keepAndDo(news: News, key: KeptKey | undefined, patience: Patience): Promise<QueuedMessage | undefined> {
    const messages = news.type === 'message' ? 1 : 0
    this.accepting++
    this.messagesComing += messages
    try {
      const kept = this.#keep(news, key, patience)
      if (kept) await kept
      return this.#enact(news)
    } finally {
      this.accepting--
      this.messagesComing -= messages
    }
  }

  /** What is to be remembered whatever becomes of this process. */
  #keep(news: News, key: KeptKey | undefined, patience: Patience): Promise<unknown> | undefined {
    const { writer } = this
    if (!writer) {
      const isRemembered = news.type === 'result' || news.type === 'answer' || news.type === 'title'
      if (!this.midTurn || !isRemembered) return undefined
      return this.world.keeping.deposit(this.id, [this.#withRequest(news)], undefined, patience)
    }
    const deposited = () => writer.deposit(news, key, patience)
    // a crash in between would leave an answer to what nobody knows was asked
    const mayComeFirst = (news.type === 'result' || news.type === 'answer') && !writer.clean
    return mayComeFirst ? writer.durable(patience).then(deposited) : deposited()
  }

  /** What is answered may have been asked after the session was written. */
  #withRequest(news: News): News {
    const request = news.type === 'answer' && this.permissions.get(news.requestId)
    return request ? { ...news, request } : news
  }

  #enact(what: News): QueuedMessage | undefined {
    this.writer?.take(what.key)
    this.touch()
    if (this.ended && what.type !== 'title' && what.type !== 'close') throw new GatewayError('SG_ERR_SESSION_ENDED')
    switch (what.type) {
      case 'message':
        return this.turnDesk.say(what.text, what.commandId, { first: what.first ?? false, by: what.by })
      case 'answer':
        this.resolvePermission(what.requestId, what.answer, what.by)
        this.rememberCommand(what.commandId)
        return undefined
      case 'result':
        // it may have been cut off while that was being written down, or dispatched in a write that a crash took
        if (!this.executions.knows(what.executionId) || this.executions.isSettled(what.executionId)) return undefined
        this.engine.settle(what.executionId, what.result)
        if (this.executions.size === 0) this.#onAllSettled?.()
        return undefined
      case 'choice':
        // what a journal keeps can be taken back there; a record of what is parked gets what the engine has taken
        if (!this.writer) return undefined
        this.chosen = chosenWith(this.chosen, what.choice)
        this.rememberCommand(what.commandId)
        return undefined
      case 'interrupt':
        this.turnDesk.interrupt().catch(() => {})
        return undefined
      case 'title':
        this.facts.hostTitle = what.title ?? undefined
        return undefined
      case 'close':
        this.rememberCommand(what.commandId)
        void this.close('client')
        return undefined
      case 'removal':
        // whoever takes it up from the journal removes it
        return undefined
    }
  }

  /** Does what was kept, and nobody has done. */
  takeUp(news: readonly News[]): void {
    for (const one of news)
      try {
        this.#enact(one)
      } catch (error) {
        this.world.logger.warn({ sessionId: this.id, type: one.type, err: toError(error) }, 'came too late')
      }
  }

  /** Takes up what came in while it was parked; it is told once an engine goes on with it. */
  takeIn({ log, state, news = [] }: JournaledWhole): void {
    // one that is kept whole has its news in it
    if (log) this.midTurn = state.midTurn
    this.expectNoMore(news)
    for (const { executionId } of this.midTurn?.results ?? []) this.executions.takeOff(executionId)
    for (const { requestId } of this.midTurn?.decisions ?? []) this.permissions.takeOff(requestId)
  }

  /** What came in while it is parked is not waited for any more. */
  expectNoMore(news: readonly News[]): void {
    for (const one of news.filter(isForEngine)) {
      if (this.midTurn) this.#carry(one, this.midTurn)
      if (one.type === 'answer') this.rememberCommand(one.commandId)
      this.writer?.take(one.key)
    }
  }

  #carry(news: News, midTurn: MidTurn): void {
    const { results, decisions } = midTurn
    if (news.type === 'result') {
      const { executionId, result } = news
      if (!results.some((known) => known.executionId === executionId)) results.push({ executionId, result })
      this.executions.takeOff(executionId)
    } else if (news.type === 'answer') {
      const request = this.permissions.takeOff(news.requestId)
      if (request) decisions.push(carriedDecision(request, news.answer, news.by))
    } else midTurn.interrupted = true
  }

  /** Denies what waits for an answer and ends the turn in progress; nothing of it has to be written down first. */
  async interrupt(): Promise<void> {
    const { executions } = this.world
    const { busy, inTurn, turnsBegun } = this
    const coming = this.messagesComing > 0 ? this.#lastMessage : undefined
    let ended: Promise<void> | undefined
    const end = () => {
      // not the turn of a message that waited for this one
      if (!inTurn || this.turnsBegun === turnsBegun) ended ??= this.#endTurn({ next: !inTurn })
      ended?.catch(() => {})
    }
    this.#onAllSettled = end
    await Promise.all(
      this.executions.list().map(({ executionId }) => executions.submit(executionId, INTERRUPTED)),
    ).finally(() => {
      if (this.#onAllSettled === end) this.#onAllSettled = undefined
    })
    end()
    await ended
    if (busy || !coming) return
    // it came after a message that is still being written down, and means the turn of that one
    await coming
    await this.#endTurn({ next: true })
  }

  /** Of one that is parked meanwhile, as the process ends, nothing more is told before that is kept. */
  #endTurn(which: { next: boolean }): Promise<void> {
    const isAsleep = this.frozen || this.parked
    return isAsleep ? this.world.sleep.interrupt(this) : this.turnDesk.interrupt(undefined, which)
  }

  /**
   * Answers a request once that is kept.
   * @throws SG_ERR_PERMISSION_NOT_FOUND · SG_ERR_STORE_UNAVAILABLE
   */
  async answerPermission(
    requestId: string,
    answer: ResolvePermissionRequest,
    bearing: AnswerBearing = {},
  ): Promise<void> {
    // whoever comes second finds it answered, or takes the place of one that could not be kept
    while (this.#answering.has(requestId)) await this.#answering.get(requestId)
    if (this.frozen || this.parked) await this.world.sleep.answer(this, requestId, answer, bearing)
    else await this.answerLive(requestId, answer, bearing)
    this.world.operatorLog.onAnswered(this, requestId, answer.behavior, bearing.by)
  }

  /** Answers a request of a session that an engine serves, for whoever tells the operator. */
  async answerLive(requestId: string, answer: ResolvePermissionRequest, bearing: AnswerBearing): Promise<void> {
    while (this.#answering.has(requestId)) await this.#answering.get(requestId)
    const { key, patience } = bearing
    assertAnswers(this.answerable(requestId, answer), answer)
    await this.answering(requestId, this.accept(answerAsked(requestId, answer, bearing), key, patience))
  }

  /** Nobody else answers the request before that is done. */
  async answering(requestId: string, answered: Promise<unknown>): Promise<void> {
    this.#answering.set(
      requestId,
      answered.then(
        () => {},
        () => {},
      ),
    )
    try {
      await answered
    } finally {
      this.#answering.delete(requestId)
    }
  }

  /** @throws SG_ERR_PERMISSION_NOT_FOUND when the request is unknown, answered or expired */
  resolvePermission(requestId: string, answer: ResolvePermissionRequest, by?: AnsweredBy): void {
    const request = this.answerable(requestId, answer)
    this.permissions.answer(requestId, answer, by)
    this.midTurn?.decisions.push({ ...carriedDecision(request, answer, by), told: true })
  }

  /** The request that an answer is for. @throws SG_ERR_PERMISSION_NOT_FOUND · SG_ERR_UNSUPPORTED */
  answerable(requestId: string, answer: ResolvePermissionRequest): PermissionRequest {
    const request = this.pendingPermissions.find(({ id }) => id === requestId)
    if (!request) throw new GatewayError('SG_ERR_PERMISSION_NOT_FOUND')
    // an agent that cannot take a changed input must not be left to run the one that nobody allowed
    const isFixed = answer.behavior === 'allow' && this.runner?.capabilities.updatedInput === false
    if (isFixed && changedInput(request, decisionOf(request, answer)))
      throw invalidField('updatedInput', 'this agent can only run the input that it showed.', 'SG_ERR_UNSUPPORTED')
    return request
  }

  /** Carries out one command; `from` is the client that sent it over a stream, `principal` who that is. */
  handle(command: SessionCommand, from?: Attachment, principal?: Principal, patience?: Patience): Promise<void> {
    return this.#commands.handle(command, from, principal, patience)
  }

  /** Lets a client in: `attached` first, then the log from its place, then live. @throws SG_ERR_TOO_MANY */
  attach(sink: ClientSink, position: AttachPosition): Attachment {
    return this.clients.attach(sink, position, this.bridge.pending)
  }

  detach(attachment: Attachment): void {
    this.clients.detach(attachment, this.world.clock.steady())
    this.world.sleep.consider(this)
  }

  /** Whether the job whose run it is was told that it waits, with its engine. */
  get held(): boolean {
    return this.link?.hold?.told ?? false
  }

  /** Whether the session could be built again from what is stored, so that it need not stay in memory. */
  get isStored(): boolean {
    // what is still being written would be written by nobody's session
    if (this.accepting > 0 || this.isAhead || (this.writer && !this.writer.clean)) return false
    const isAlone = this.asleepIdle && !this.busy && this.concerns === 0
    return this.parked || (this.writer !== undefined && (isAlone || this.ended))
  }

  /** Whether all that happened to it is written down and nobody does anything to it. */
  get isAtRest(): boolean {
    return !this.live && this.concerns === 0 && this.accepting === 0 && (this.writer?.clean ?? false)
  }

  /** Removes the session from the journal, for good. @throws what the journal throws; nothing was removed then */
  async erase(decision?: RemovalDecision): Promise<void> {
    await this.writer?.remove(decision)
  }

  /** Has what was just appended told outside, once it is durable: that is kept in the same write. */
  tell(planned: PlannedNotification): void {
    this.keepAlong(planned)
    this.whenDurable(planned.send)
  }

  override onBacklog(bytes: number): void {
    this.turnDesk.onBacklog(bytes)
  }

  override onHas(choice: Choice): void {
    this.#commands.onHas(choice)
  }

  /** Another node has the session: its engine is ended, and nothing more is told or written of it. Resolves when the engine is gone. */
  async abandon(): Promise<void> {
    const { link, clients, writer, world } = this
    clients.disconnectAll(CLOSE.sessionMoved)
    writer?.abandon()
    this.goingLook?.cancel()
    if (!this.ended) this.become({ is: 'ended', as: 'closed' })
    // whatever it would do at its end it must not do any more; one that cannot be held up is ended all the same
    caught(
      () => link?.runner.pause?.(),
      () => {},
    )
    await link?.close(world, this.id)
  }
}
