import type { SessionCommand } from '../../schemas/commands.js'
import type { SessionEventBody, SessionEventOf } from '../../schemas/events.js'
import type { AnsweredBy, PermissionRequest, ResolvePermissionRequest } from '../../schemas/permissions.js'
import { isRunnerEvent, rowOf } from '../engines/event-types.js'
import type {
  DeferredExecution,
  ExecutionResult,
  PermissionAsk,
  PermissionDecision,
  RunnerEvent,
} from '../engines/runner.js'
import { type ErrorCode, GatewayError, invalidField, toError } from '../errors.js'
import type { KeptKey } from '../idempotency/store.js'
import type { Principal } from '../principal.js'
import { INTERRUPTED, interruptedResult } from './asks/deferred-executions.js'
import { type AnswerBearing, carriedDecision, changedInput, decisionOf } from './asks/permissions.js'
import type { Attachment, ClientSink } from './clients/attachment.js'
import type { AttachPosition } from './clients/clients.js'
import { CommandDesk } from './clients/command-desk.js'
import { type Asked, type News, newsOf } from './kept/news.js'
import type { RunnerLink } from './life/runner-link.js'
import { SessionEngine } from './session-engine.js'
import { applyRunnerEvent } from './session-facts.js'
import type { LeftSession } from './session-state.js'
import type { SessionInit, SessionWorld } from './session-world.js'

const HELD_BACK =
  'The storage takes nothing, and no more of what the agent says can be held back. Send the message again when /readyz says ready.'

/**
 * One agent session: a small state machine whose every change is an event in its log.
 *
 *   starting ─ start() done ─▶ idle ◀─ turn_completed ─ running ◀─▶ awaiting_approval
 *                                                         └─ saved, engine gone ─▶ parked ─ result, answer ─▶ running
 *   (all) ─ session_error, engine died ─▶ failed          (all) ─ close, DELETE, shutdown ─▶ closed
 *
 * An idle session may be dormant: its engine is gone, and the next command that needs one starts it again. With a journal a shutdown
 * leaves it dormant instead of closed.
 *
 * Between live and parked it is frozen: out of service, its record being saved. Whatever arrives then waits for `parking.settled`.
 *
 * State changes first; the events that tell it follow, in that order. The status is computed from the state, never from events.
 */
export class Session extends SessionEngine {
  readonly commands: CommandDesk
  /** How much was held back for the storage when the turn was ended for it. */
  #heldBack: number | undefined

  /** When the last of what it was asked to do was done, or refused. */
  #lastAccepted: Promise<unknown> | undefined

  constructor(world: SessionWorld, init: SessionInit, left?: LeftSession) {
    super(world, init, left)
    this.commands = new CommandDesk(this, world)
  }

  /**
   * Does what it is asked to do, once that is kept.
   * @param key of the request that asks for it, kept with it
   * @throws SG_ERR_STORE_UNAVAILABLE, and then it is never done
   */
  async accept(asked: Asked, key?: KeptKey): Promise<void> {
    const done = this.#keepAndDo(newsOf(asked), key)
    this.#lastAccepted = done.catch(() => {})
    try {
      await done
      // it will be known whatever happens; so that whoever is told "done" finds its events, too
      await this.durable().catch(() => {})
    } finally {
      // while it was on its way the session could not be parked
      if (this.accepting === 0) this.world.parking.consider(this)
    }
  }

  async #keepAndDo(news: News, key: KeptKey | undefined): Promise<void> {
    this.accepting++
    try {
      const kept = this.#keep(news, key)
      if (kept) await kept
      this.#enact(news)
    } finally {
      this.accepting--
    }
  }

  /** What is to be remembered whatever becomes of this process. */
  #keep(news: News, key: KeptKey | undefined): Promise<unknown> | undefined {
    const { writer } = this
    if (!writer) {
      const isRemembered = news.type === 'result' || news.type === 'answer' || news.type === 'title'
      return this.midTurn && isRemembered ? this.world.keeping.deposit(this.id, [news]) : undefined
    }
    return writer.deposit(news, key)
  }

  #enact(what: News): void {
    this.writer?.take(what.key)
    this.touch()
    if (this.ended && what.type !== 'title' && what.type !== 'close') throw new GatewayError('SG_ERR_SESSION_ENDED')
    switch (what.type) {
      case 'message':
        this.say(what.text, what.commandId, { first: what.first ?? false, by: what.by })
        return
      case 'answer':
        this.resolvePermission(what.requestId, what.answer, what.by)
        return
      case 'result':
        this.settleExecution(what.executionId, what.result)
        return
      case 'choice':
        this.chosen = { ...this.chosen, ...what.choice }
        return
      case 'interrupt':
        this.endTurn().catch(() => {})
        return
      case 'title':
        this.facts.hostTitle = what.title ?? undefined
        return
      case 'close':
        void this.end('client')
        return
      case 'removal':
      // whoever takes it up from the journal removes it
    }
  }

  override takeUp(news: readonly News[]): void {
    for (const one of news)
      try {
        this.#enact(one)
      } catch (error) {
        this.world.logger.warn({ sessionId: this.id, type: one.type, err: toError(error) }, 'came too late')
      }
  }

  /** Denies what waits for an answer and ends the turn in progress; nothing of it has to be written down first. */
  async interrupt(): Promise<void> {
    const { parking } = this.world
    const wasIdle = !this.turns.busy
    await Promise.all(this.executions.list().map(({ executionId }) => parking.settle(executionId, INTERRUPTED)))
    await this.endTurn()
    if (this.accepting === 0) return
    // it came after a message that is still being written down, and means the turn of that one
    await this.#lastAccepted
    if (wasIdle) await this.endTurn()
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
    if (this.frozen || this.parked) await this.world.parking.answer(this, requestId, answer, bearing)
    else {
      const { by, key } = bearing
      this.answerable(requestId, answer)
      await this.accept({ type: 'answer', requestId, answer, ...(by && { by }) }, key)
    }
    this.world.operatorLog.onAnswered(this, requestId, answer.behavior, bearing.by)
  }

  /** @throws SG_ERR_PERMISSION_NOT_FOUND when the request is unknown, answered or expired */
  resolvePermission(requestId: string, answer: ResolvePermissionRequest, by?: AnsweredBy): void {
    const request = this.answerable(requestId, answer)
    this.permissions.answer(requestId, answer, by)
    this.midTurn?.decisions.push({ ...carriedDecision(request, answer, by), told: true })
  }

  /** The request that an answer is for. @throws SG_ERR_PERMISSION_NOT_FOUND · SG_ERR_UNSUPPORTED */
  answerable(requestId: string, answer: ResolvePermissionRequest): PermissionRequest {
    const request = this.permissions.get(requestId)
    if (!request) throw new GatewayError('SG_ERR_PERMISSION_NOT_FOUND')
    // an agent that cannot take a changed input must not be left to run the one that nobody allowed
    const isFixed = answer.behavior === 'allow' && this.runner?.capabilities.updatedInput === false
    if (isFixed && changedInput(request, decisionOf(request, answer)))
      throw invalidField('updatedInput', 'this agent can only run the input that it showed.', 'SG_ERR_UNSUPPORTED')
    return request
  }

  /** Carries out one command; `from` is the client that sent it over a stream, `principal` who that is. */
  handle(command: SessionCommand, from?: Attachment, principal?: Principal): Promise<void> {
    return this.commands.handle(command, from, principal)
  }

  /** Lets a client in: `attached` first, then the log from its place, then live. @throws SG_ERR_TOO_MANY */
  attach(sink: ClientSink, position: AttachPosition): Attachment {
    return this.clients.attach(sink, position, this.bridge.pending)
  }

  detach(attachment: Attachment): void {
    this.clients.detach(attachment, this.world.clock.now())
    this.world.parking.consider(this)
    this.world.dormancy.consider(this)
  }

  onRunnerEvent(link: RunnerLink, told: RunnerEvent): void {
    if (!this.hears(link)) return
    const event = told?.type === 'turn_completed' ? this.facts.withTotals(told) : told
    try {
      if (!isRunnerEvent(event)) {
        this.world.logger.warn(
          { sessionId: this.id, type: event?.type },
          'the engine emitted an event that is not its to tell',
        )
        return
      }
      applyRunnerEvent(this.facts, event)
      if (rowOf(event).goesOn) this.goesOn()
      if (event.type === 'turn_completed') this.turns.complete()
      if (event.type !== 'session_error') this.append(event.type === 'turn_completed' ? this.#endOf(event) : event)
    } catch (error) {
      this.fail(`The engine emitted an event that is not JSON: ${toError(error).message}`, 'SG_ERR_ENGINE_FAILED')
      return
    }
    if (event.type === 'session_error') this.fail(String(event.message), event.code as ErrorCode | undefined)
    // before a turn can begin in it
    else if (this.world.disableBypassPermissions && this.facts.permissionMode === 'bypassPermissions')
      this.fail('The engine runs in bypassPermissions, which this gateway disables.', 'SG_ERR_BYPASS_DISABLED')
    else if (event.type === 'system_init') this.#onProvenance(event.apiKeySource)
    else if (event.type === 'turn_completed') setImmediate(() => this.nextTurn())
    this.showStatus()
    if (event.type === 'turn_completed') this.#onTurnCompleted()
  }

  #onTurnCompleted(): void {
    this.keepSnapshot()
    if (this.midTurn) this.world.parking.checkpoint(this)
    this.onTurnOver?.()
    if (this.runner?.isSpent) this.world.dormancy.onSpent(this)
    else this.world.dormancy.consider(this)
  }

  #onProvenance(apiKeySource: string): void {
    if (apiKeySource === 'oauth') {
      if (this.world.requireApiKey) {
        this.fail(new GatewayError('SG_ERR_API_KEY_REQUIRED').message, 'SG_ERR_API_KEY_REQUIRED')
        return
      }
      this.world.onOauth(this)
    }
    this.nextTurn()
  }

  onPermissionAsked(link: RunnerLink, ask: PermissionAsk): Promise<PermissionDecision> {
    if (!this.hears(link))
      return Promise.resolve({ behavior: 'deny', message: 'The session has ended.', interrupt: true })
    return this.permissions.ask(ask)
  }

  protected override tellObservers(body: SessionEventBody, seq: number, ts: number): void {
    this.world.onEvent(this, body, seq, ts)
  }

  /** What cannot be kept must not go on: the turn ends, and an engine that goes on all the same ends its session. */
  override onBacklog(bytes: number): void {
    if (this.ended) return
    if (this.#heldBack === undefined) {
      this.#heldBack = bytes
      this.world.logger.error({ sessionId: this.id, bytes }, 'a turn is ended: what is said in it cannot be kept')
      // not inside the event that was one too many
      if (this.turns.active) setImmediate(() => this.endTurn().catch(() => {}))
      else
        this.whenDurable(() => {
          this.#heldBack = undefined
        })
    } else if (bytes > 2 * this.#heldBack) this.fail(HELD_BACK, 'SG_ERR_STORE_UNAVAILABLE')
  }

  /** The end of a turn that was ended for the storage's sake says so. */
  #endOf(event: SessionEventOf<'turn_completed'>): SessionEventOf<'turn_completed'> {
    if (this.#heldBack === undefined) return event
    this.#heldBack = undefined
    return { ...event, subtype: 'interrupted', isError: true, errors: [...(event.errors ?? []), HELD_BACK] }
  }

  override onPatientRequest(): void {
    this.world.parking.consider(this)
  }

  async onExecutionDeferred(link: RunnerLink, execution: DeferredExecution): Promise<void> {
    if (!this.hears(link)) throw new GatewayError('SG_ERR_SESSION_ENDED')
    if (!this.world.parking.register(this, execution)) return
    this.append(this.executions.add(execution, this.world.clock.now()))
    const dispatch = this.world.dispatch(this.id, execution)
    try {
      await this.durable()
    } catch (error) {
      dispatch.withdraw()
      this.#takeBack(link, execution.executionId)
      throw error
    }
    // once the engine knows that it was taken, so that a result may come from inside the dispatch
    setImmediate(() => dispatch.send())
  }

  /** The engine is told that it was not taken, so that nobody waits for it. */
  #takeBack(link: RunnerLink, executionId: string): void {
    if (!this.hears(link) || !this.world.parking.withdraw(executionId)) return
    const result = interruptedResult('It could not be written down.')
    this.append(this.executions.settle(executionId, result, this.world.clock.now()))
  }

  onWaitForExecutions(link: RunnerLink): void {
    if (!this.hears(link)) return
    this.waiting = true
    this.world.parking.consider(this)
  }

  /** Tells the queue, once, that it waits. */
  tellHeld(): void {
    if (this.held) return
    this.held = true
    this.world.onHeld(this)
  }

  /** Hands a result to the engine that serves the session. */
  settleExecution(executionId: string, result: ExecutionResult): void {
    if (this.ended) return
    this.goesOn()
    this.append(this.executions.settle(executionId, result, this.world.clock.now()))
    const carried = this.midTurn?.results.find((known) => known.executionId === executionId)
    if (carried) carried.told = true
    else this.midTurn?.results.push({ executionId, result, told: true })
    this.handResult(executionId, result)
  }

  protected override onStandstill(): void {
    this.world.dormancy.consider(this)
  }

  protected override onEnded(): void {
    this.world.onEnded(this)
  }
}
