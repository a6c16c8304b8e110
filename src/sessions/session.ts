import { isDeepStrictEqual } from 'node:util'
import type { SessionCommand } from '../../schemas/commands.js'
import type { SessionClosedReason, SessionEvent, SessionEventOf } from '../../schemas/events.js'
import type { ResolvePermissionRequest } from '../../schemas/permissions.js'
import type {
  DeferredExecution,
  ExecutionResult,
  PermissionAsk,
  PermissionDecision,
  Runner,
  RunnerEvent,
  SessionRunnerConfig,
} from '../engines/runner.js'
import { type ErrorCode, GatewayError, invalidField, toError } from '../errors.js'
import { newId } from '../lib/clock.js'
import type { Attachment, ClientSink } from './attachment.js'
import type { AttachPosition } from './clients.js'
import { CommandDesk } from './command-desk.js'
import { INTERRUPTED } from './deferred-executions.js'
import { parkedRecord } from './park-record.js'
import { RunnerLink, type RunnerOwner } from './runner-link.js'
import { applyRunnerEvent } from './session-facts.js'
import { SessionState } from './session-state.js'
import type { SessionInit, SessionWorld } from './session-world.js'
import { snapshotFiles } from './snapshot-files.js'
import type { CarriedDecision, ParkedSessionRecord } from './store.js'

/** Events by which an engine shows that it goes on; the others say nothing about its turn. */
const GOES_ON: ReadonlySet<string> = new Set<RunnerEvent['type']>([
  'user_message',
  'assistant_message',
  'stream_delta',
  'execution_dispatched',
  'turn_completed',
])

/**
 * One agent session: a small state machine whose every change is an event in its log.
 *
 *   starting ─ start() done ─▶ idle ◀─ turn_completed ─ running ◀─▶ awaiting_approval
 *                                                         └─ saved, engine gone ─▶ parked ─ result, answer ─▶ running
 *   (all) ─ session_error, engine died ─▶ failed          (all) ─ close, DELETE, shutdown ─▶ closed
 *
 * Between live and parked it is frozen: out of service, its record being saved. Whatever arrives then waits for `parking.settled`.
 *
 * State changes first; the events that tell it follow, in that order. The status is computed from the state, never from events.
 */
export class Session extends SessionState implements RunnerOwner {
  readonly commands: CommandDesk

  /** @param restored the record of a parked session, which this one goes on from */
  constructor(world: SessionWorld, init: SessionInit, restored?: ParkedSessionRecord) {
    super(world, init, restored)
    this.commands = new CommandDesk(this, world)
  }

  /** Takes the runner that was built for this session, hands it the opening prompt and starts it. Never throws. */
  begin(runner: Runner): void {
    const link = new RunnerLink(runner, this)
    this.link = link
    this.scratchFiles = runner.files
    if (this.config.prompt !== undefined) this.say(this.config.prompt, undefined)
    const failed = (error: unknown) => {
      if (this.link === link) this.fail(toError(error).message, 'SG_ERR_ENGINE_START')
    }
    try {
      runner.start(link).then(() => this.#onStarted(link), failed)
    } catch (error) {
      failed(error)
    }
  }

  #onStarted(link: RunnerLink): void {
    if (this.link !== link || this.endedAs) return
    this.started = true
    this.showStatus()
    this.#nextTurn()
  }

  /** Accepts a message for the agent and begins its turn when the earlier ones are over. */
  say(text: string, commandId: string | undefined, options: { first?: boolean } = {}): void {
    this.turns.add({ text, ...(commandId !== undefined && { commandId }) }, options.first ?? false)
    this.facts.onPrompt(text)
    this.append({
      type: 'user_message',
      message: { role: 'user', content: text },
      uuid: newId(),
      parentToolUseId: null,
      ...(commandId !== undefined && { commandId }),
    })
    this.showStatus()
    this.#nextTurn()
  }

  /** Denies what waits for an answer and ends the turn in progress. */
  async interrupt(): Promise<void> {
    const { parking } = this.world
    await Promise.all(this.executions.list().map(({ executionId }) => parking.settle(executionId, INTERRUPTED)))
    await this.endTurn()
  }

  /** Ends the turn in progress; what it waited for elsewhere stays as it is. */
  async endTurn(): Promise<void> {
    this.permissions.denyAll('Interrupted by the user.')
    this.bridge.cancelAll('interrupted', 'The turn was interrupted.')
    if (this.turns.active) await this.link?.runner.interrupt()
  }

  /** @throws SG_ERR_PERMISSION_NOT_FOUND when the request is unknown, answered or expired */
  resolvePermission(requestId: string, answer: ResolvePermissionRequest): void {
    if (answer.behavior === 'allow') this.#assertRunnable(requestId, answer.updatedInput)
    if (!this.permissions.answer(requestId, answer)) throw new GatewayError('SG_ERR_PERMISSION_NOT_FOUND')
  }

  /** An agent that cannot take a changed input must not be left to run the one that nobody allowed. */
  #assertRunnable(requestId: string, updatedInput: object | undefined): void {
    if (updatedInput === undefined || this.runner?.capabilities.updatedInput !== false) return
    const request = this.permissions.get(requestId)
    if (request && !isDeepStrictEqual(request.input, updatedInput))
      throw invalidField('updatedInput', 'this agent can only run the input that it showed.', 'SG_ERR_UNSUPPORTED')
  }

  /** Carries out one command; `from` is the client that sent it over a stream. */
  handle(command: SessionCommand, from?: Attachment): Promise<void> {
    return this.commands.handle(command, from)
  }

  /** Lets a client in: `attached` first, then the log from its place, then live. @throws SG_ERR_TOO_MANY */
  attach(sink: ClientSink, position: AttachPosition): Attachment {
    return this.clients.attach(sink, position, this.bridge.pending)
  }

  detach(attachment: Attachment): void {
    this.clients.detach(attachment, this.world.clock.now())
    this.world.parking.consider(this)
  }

  onRunnerEvent(link: RunnerLink, event: RunnerEvent): void {
    if (this.link !== link || this.endedAs) return
    try {
      const known = applyRunnerEvent(this.facts, event)
      if (!known) {
        this.world.logger.warn(
          { sessionId: this.id, type: event?.type },
          'the engine emitted an event that is not its to tell',
        )
        return
      }
      if (GOES_ON.has(event.type)) this.waiting = false
      if (event.type === 'turn_completed') this.turns.complete()
      if (event.type !== 'session_error') this.append(event)
    } catch (error) {
      this.fail(`The engine emitted an event that is not JSON: ${toError(error).message}`, 'SG_ERR_ENGINE_FAILED')
      return
    }
    if (event.type === 'session_error') this.fail(String(event.message), event.code as ErrorCode | undefined)
    // before a turn can begin in it
    else if (this.world.disableBypassPermissions && this.facts.permissionMode === 'bypassPermissions')
      this.fail('The engine runs in bypassPermissions, which this gateway disables.', 'SG_ERR_BYPASS_DISABLED')
    else if (event.type === 'system_init') this.#onProvenance(event.apiKeySource)
    else if (event.type === 'turn_completed') setImmediate(() => this.#nextTurn())
    if (event.type === 'turn_completed' && this.recorded) this.world.parking.checkpoint(this)
    this.showStatus()
  }

  #onProvenance(apiKeySource: string): void {
    if (apiKeySource === 'oauth') {
      if (this.world.requireApiKey) {
        this.fail(new GatewayError('SG_ERR_API_KEY_REQUIRED').message, 'SG_ERR_API_KEY_REQUIRED')
        return
      }
      this.world.onOauth(this)
    }
    this.#nextTurn()
  }

  onPermissionAsked(link: RunnerLink, ask: PermissionAsk): Promise<PermissionDecision> {
    if (this.link !== link || this.endedAs)
      return Promise.resolve({ behavior: 'deny', message: 'The session has ended.', interrupt: true })
    return this.permissions.ask(ask)
  }

  protected override tellObservers(event: SessionEvent): void {
    this.world.onEvent(this, event)
  }

  override onPatientRequest(): void {
    this.world.parking.consider(this)
  }

  async onExecutionDeferred(link: RunnerLink, execution: DeferredExecution): Promise<void> {
    if (this.link !== link || this.endedAs) throw new GatewayError('SG_ERR_SESSION_ENDED')
    if (!this.world.parking.register(this, execution)) return
    this.append(this.executions.add(execution, this.world.clock.now()))
    // once the engine knows that it was taken, so that a result may come from inside the dispatch
    setImmediate(() => this.world.dispatch(this.id, execution))
  }

  onWaitForExecutions(link: RunnerLink): void {
    if (this.link !== link || this.endedAs) return
    this.waiting = true
    this.world.parking.consider(this)
  }

  /** Hands a result to the engine that serves the session. */
  settleExecution(executionId: string, result: ExecutionResult): void {
    if (this.endedAs) return
    this.append(this.executions.settle(executionId, result, this.world.clock.now()))
    this.waiting = false
    try {
      this.link?.runner.settleExecution?.(executionId, result)
    } catch (error) {
      this.fail(toError(error).message, 'SG_ERR_ENGINE_FAILED')
    }
  }

  /** Whether nothing happens here until somebody outside says something, and the engine can be built again then. */
  get canPark(): boolean {
    const runner = this.link?.runner
    if (!runner?.snapshot || runner.capabilities.parking !== 'native' || !this.started || this.endedAs) return false
    if (this.bridge.pending.length > 0 || !this.permissions.patient) return false
    return (this.waiting && this.executions.size > 0) || this.permissions.size > 0
  }

  /**
   * Takes the engine out of service in the same turn as its snapshot: what it says from here on is not heard.
   * @returns the record to save, which already tells that the session is parked
   * @throws what the engine's `snapshot()` throws; the session stays live then
   */
  freeze(): ParkedSessionRecord {
    const link = this.link!
    const snapshot = link.runner.snapshot!()
    this.link = undefined
    this.isFrozen = true
    this.permissions.suspend()
    this.runnerClosed = link.close(this.world, this.id)
    return parkedRecord(this, snapshot, { queued: this.turns.waiting, decisions: this.carried }, this.world.clock.now())
  }

  /** Answers that the engine has not asked for again yet. */
  get carried(): CarriedDecision[] {
    return this.permissions.carried
  }

  /** The record is durable: now the session is parked, and says so. */
  confirmParked({ parkedAt, snapshot }: ParkedSessionRecord): void {
    this.isFrozen = false
    this.parkedSince = parkedAt
    this.waiting = false
    this.recorded = true
    this.scratchFiles = snapshot.files && snapshotFiles(snapshot.files, parkedAt)
    this.showStatus(parkedAt)
  }

  /**
   * Goes on with an engine that was built from the record: mid-turn, in the same log. Results and answers that the record took in are
   * told and handed over once the engine accepts input.
   * @param givenUp rejects when the start is not waited for any longer
   * @throws what the engine's `start` throws; the session is as it was then, without an engine
   */
  async resume(
    runner: Runner,
    config: SessionRunnerConfig,
    record: ParkedSessionRecord,
    givenUp: Promise<never>,
  ): Promise<void> {
    const link = new RunnerLink(runner, this)
    const since = this.parkedSince
    this.config = config
    this.link = link
    this.isFrozen = false
    this.parkedSince = undefined
    this.waiting = false
    this.facts.statusDetail = undefined
    this.permissions.carried = record.decisions
    this.showStatus()
    try {
      await Promise.race([runner.start(link), givenUp])
    } catch (error) {
      if (this.link !== link) return
      this.link = undefined
      this.parkedSince = since
      void link.close(this.world, this.id)
      throw error
    }
    if (this.link !== link || this.endedAs) return
    this.scratchFiles = runner.files
    this.permissions.tellCarried()
    for (const { executionId, result } of record.results) this.settleExecution(executionId, result)
    if (record.interrupted)
      this.endTurn().catch((error) =>
        this.world.logger.error({ sessionId: this.id, err: toError(error) }, 'the engine refused to be interrupted'),
      )
  }

  /** Tells that it is parked again, and why it could not go on; what was settled meanwhile is no longer waited for. */
  showParkedAgain(detail: string, { executions, permissions }: ParkedSessionRecord): void {
    this.executions.keep(executions)
    this.permissions.keep(permissions)
    this.permissions.suspend()
    this.facts.statusDetail = detail
    this.showStatus()
  }

  #nextTurn(): void {
    const message = this.endedAs || !this.started || !this.#provenanceKnown ? undefined : this.turns.begin()
    if (!message) return
    this.showStatus()
    try {
      this.link?.runner.send(
        message.text,
        message.commandId === undefined ? undefined : { commandId: message.commandId },
      )
    } catch (error) {
      this.fail(toError(error).message, 'SG_ERR_ENGINE_FAILED')
    }
  }

  /** With `requireApiKey` no prompt reaches an engine before it said whose credentials it uses. */
  get #provenanceKnown(): boolean {
    return !this.world.requireApiKey || this.facts.apiKeySource !== undefined
  }

  /** Ends the session as failed. */
  fail(message: string, code?: ErrorCode): void {
    if (this.endedAs) return
    this.facts.statusDetail = message
    this.#finish('failed', 'error', { type: 'session_error', message, ...(code && { code }) })
  }

  /** Ends the session unless it has ended; resolves when its runner is gone or was given up on. */
  async end(reason: SessionClosedReason): Promise<void> {
    this.#finish(reason === 'error' ? 'failed' : 'closed', reason)
    await this.runnerClosed
  }

  /** Leaves the session to its record, at the process' end: the engine goes, and nothing is told. */
  async leaveToRecord(): Promise<void> {
    const link = this.link
    this.link = undefined
    await link?.close(this.world, this.id)
  }

  /** @param told what is said before everything else that follows from the end */
  #finish(as: 'failed' | 'closed', reason: SessionClosedReason, told?: SessionEventOf<'session_error'>): void {
    if (this.endedAs) return
    this.endedAs = as
    this.isFrozen = false
    this.parkedSince = undefined
    this.turns.clear()
    if (told) this.append(told)
    this.permissions.denyAll('The session ended.')
    this.bridge.close()
    this.showStatus()
    this.append({ type: 'session_closed', reason })
    const link = this.link
    this.link = undefined
    if (link) this.runnerClosed = link.close(this.world, this.id)
    this.world.onEnded(this)
  }
}
