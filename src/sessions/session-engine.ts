import type { SessionEventBody } from '../../schemas/events.js'
import type {
  DeferredExecution,
  ExecutionResult,
  PermissionAsk,
  PermissionDecision,
  Runner,
  RunnerEvent,
  SessionRunnerConfig,
} from '../engines/runner.js'
import { toError } from '../errors.js'
import { interruptedResult } from './deferred-executions.js'
import { parkedRecord } from './park-record.js'
import { RunnerLink, type RunnerOwner } from './runner-link.js'
import { interruptedTurn } from './session-facts.js'
import { SessionTurns } from './session-turns.js'
import { snapshotFiles } from './snapshot-files.js'
import type { CarriedDecision, ParkedSessionRecord } from './store.js'
import type { Accepted } from './write-ahead.js'

/** How long an engine may take to end its turn when the process ends. */
const TURN_END_GRACE_MS = 5_000
const HISTORY_LOST: SessionEventBody = {
  type: 'engine_event',
  payload: { type: 'history_lost', message: 'The engine was started anew and does not know what was said before.' },
}

/** How a session comes by its engine, lets it go and gets another one. */
export abstract class SessionEngine extends SessionTurns implements RunnerOwner {
  /** Called when the turn in progress is over. */
  protected onTurnOver: (() => void) | undefined

  abstract onRunnerEvent(link: RunnerLink, event: RunnerEvent): void
  abstract onPermissionAsked(link: RunnerLink, ask: PermissionAsk): Promise<PermissionDecision>
  abstract onExecutionDeferred(link: RunnerLink, execution: DeferredExecution): Promise<void>
  abstract onWaitForExecutions(link: RunnerLink): void
  abstract settleExecution(executionId: string, result: ExecutionResult): void
  /** Does what an earlier process had accepted and not done. */
  abstract takeUp(accepted: readonly Accepted[]): void
  /** Nothing is in progress: the engine may be let go. */
  protected abstract onStandstill(): void

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
    this.keepSnapshot()
    this.nextTurn()
    this.onStandstill()
  }

  /**
   * Writes down what the engine could go on from, when there is a journal and it is between two turns. What was kept earlier is not gone
   * on from when it gives nothing: turns are missing in it.
   */
  keepSnapshot(): void {
    const runner = this.link?.runner
    if (!this.writer || !runner || !this.started || this.opening || this.turns.active || this.endedAs) return
    const wasStale = this.isStale
    try {
      if (runner.snapshot) this.writer.keep(runner.snapshot())
      this.isStale = !runner.snapshot
    } catch (error) {
      this.isStale = true
      this.world.logger.error({ sessionId: this.id, err: toError(error) }, 'the engine gave no snapshot')
    }
    if (this.isStale !== wasStale) this.touch()
  }

  /** Whether nothing happens here until somebody outside says something, and the engine can be built again then. */
  get canPark(): boolean {
    const runner = this.link?.runner
    if (!runner?.snapshot || runner.capabilities.parking !== 'native' || !this.started || this.endedAs) return false
    // a record that is saved while the session is being removed would bring it back
    if (this.writer?.removed) return false
    // a message or an answer that is on its way to the engine would be in neither
    if (this.handing || this.permissions.handing || this.ahead.list) return false
    if (this.bridge.pending.length > 0 || !this.permissions.patient || runner.canPark === false) return false
    return (this.waiting && this.executions.size > 0) || this.permissions.size > 0
  }

  /** Since when it waits, as far as the queue is concerned whose run it is. */
  get heldFrom(): number {
    this.waitsSince ??= this.world.clock.now()
    return this.waitsSince
  }

  /**
   * Takes the engine out of service in the same turn as its snapshot: what it says from here on is not heard.
   * @returns the record to save, which already tells that the session is parked
   * @throws what the engine's `snapshot()` throws; the session stays live then
   */
  freeze(): ParkedSessionRecord {
    const link = this.link!
    const record = this.#record(link.runner)
    this.link = undefined
    this.isFrozen = true
    this.permissions.suspend()
    this.runnerClosed = link.close(this.world, this.id)
    return record
  }

  /** What to go on from should its engine, which stays, be lost while it waits. @throws what the engine's `snapshot()` throws */
  heldRecord(): ParkedSessionRecord {
    return { ...this.#record(this.link!.runner), isHeld: true }
  }

  #record(runner: Runner): ParkedSessionRecord {
    const standing = { queued: this.turns.waiting, decisions: this.carried }
    return parkedRecord(this, runner.snapshot!(), standing, this.world.clock.now())
  }

  /** Answers that the engine has not asked for again yet. */
  get carried(): CarriedDecision[] {
    return this.permissions.carried
  }

  /** The record is durable: now the session is parked, and says so. */
  confirmParked({ parkedAt, snapshot }: ParkedSessionRecord): void {
    this.isFrozen = false
    this.parkedSince = parkedAt
    this.goesOn()
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
    for (const { executionId, result, told } of record.results)
      if (told) this.handResult(executionId, result)
      else this.settleExecution(executionId, result)
    this.takeUp(this.ahead.take())
    this.touch()
    if (record.interrupted)
      this.endTurn().catch((error) =>
        this.world.logger.error({ sessionId: this.id, err: toError(error) }, 'the engine refused to be interrupted'),
      )
  }

  /** Hands the engine a result that was told. */
  protected handResult(executionId: string, result: ExecutionResult): void {
    this.goesOn()
    try {
      this.link?.runner.settleExecution?.(executionId, result)
    } catch (error) {
      this.fail(toError(error).message, 'SG_ERR_ENGINE_FAILED')
    }
  }

  /** Tells that it is parked again, and why it could not go on; what was settled meanwhile is no longer waited for. */
  showParkedAgain(detail: string, { executions, permissions }: ParkedSessionRecord): void {
    this.executions.keep(executions)
    this.permissions.keep(permissions)
    this.permissions.suspend()
    const isNew = this.facts.statusDetail !== detail
    this.facts.statusDetail = detail
    if (!this.showStatus() && isNew) this.append({ type: 'status_changed', status: this.status, detail })
  }

  /** Whether its engine may go, to be started again by the next command. */
  get canRelease(): boolean {
    const isIdle = !this.turns.busy && this.permissions.size === 0 && this.executions.size === 0
    const isAlone = this.clients.count === 0 && this.bridge.pending.length === 0 && this.concerns === 0
    return this.started && this.serving && !this.endedAs && isIdle && isAlone && this.runner?.snapshot !== undefined
  }

  /**
   * Takes the engine from a session between two turns, to be started again by the next command; resolves when it is gone.
   * @throws what its `snapshot()` throws
   */
  async release(): Promise<void> {
    const link = this.link!
    const snapshot = link.runner.snapshot?.()
    this.kept = snapshot
    this.isStale = !snapshot
    if (snapshot) this.writer?.keep(snapshot)
    else this.touch()
    this.link = undefined
    this.scratchFiles = snapshot?.files && snapshotFiles(snapshot.files, this.facts.lastActivityAt)
    await link.close(this.world, this.id)
  }

  /**
   * Gives a dormant session an engine again; it takes up the messages that wait.
   * @param givenUp rejects when the start is not waited for any longer
   * @throws what the engine's `start` throws; the session is as it was then
   */
  async reopen(runner: Runner, config: SessionRunnerConfig, givenUp: Promise<never>): Promise<void> {
    const link = new RunnerLink(runner, this)
    const { apiKeySource } = this.facts
    this.config = config
    this.link = link
    this.opening = true
    // it may use other credentials than the one before
    if (this.world.requireApiKey) this.facts.apiKeySource = undefined
    try {
      await Promise.race([runner.start(link), givenUp])
    } catch (error) {
      if (this.link === link) this.link = undefined
      this.facts.apiKeySource ??= apiKeySource
      void link.close(this.world, this.id)
      throw error
    } finally {
      this.opening = false
    }
    if (this.link !== link || this.endedAs) return
    this.scratchFiles = runner.files
    this.facts.statusDetail = undefined
    if (!this.kept) this.facts.countFromHere()
    if (!this.kept && this.facts.numTurns > 0) this.append(HISTORY_LOST)
    this.kept = undefined
    this.nextTurn()
    this.onStandstill()
  }

  /** Leaves the session to what is kept of it, at the process' end; one that nothing is kept of ends. Resolves when its engine is gone. */
  async leave(): Promise<void> {
    if (this.parked || this.ended) await this.durable().catch(() => {})
    else if (this.recorded) await this.leaveToRecord()
    else if (this.writer) await this.suspend()
    else await this.end('server')
  }

  /** Lets the engine go at the process' end: the turn in progress ends, what waits is kept; resolves when that is durable. */
  protected async suspend(): Promise<void> {
    if (this.turns.active && this.link) await this.#endTurnSoon()
    this.keepSnapshot()
    const link = this.link
    this.link = undefined
    this.cutOff('The gateway was shut down.')
    await Promise.all([link?.close(this.world, this.id), this.durable().catch(() => {})])
  }

  async #endTurnSoon(): Promise<void> {
    let giveUp: { cancel(): void } | undefined
    const over = new Promise<void>((resolve) => {
      this.onTurnOver = resolve
      giveUp = this.world.clock.after(TURN_END_GRACE_MS, resolve)
    })
    const ending = this.endTurn().then(
      () => (this.turns.active ? over : undefined),
      () => {},
    )
    await Promise.race([over, ending])
    giveUp?.cancel()
  }

  /** Tells what a session without an engine cannot go on with: a turn, questions, executions. */
  cutOff(message: string): void {
    if (this.endedAs) return
    this.handing = undefined
    this.permissions.denyAll(message)
    for (const { executionId } of this.executions.list())
      this.append(this.executions.settle(executionId, interruptedResult(message), this.world.clock.now()))
    if (this.turns.active) {
      this.turns.complete()
      this.append(interruptedTurn(this.facts, message))
    }
    this.showStatus()
  }

  /** Leaves the session to its record, at the process' end: the engine goes, and nothing is told. */
  protected async leaveToRecord(): Promise<void> {
    const link = this.link
    this.link = undefined
    await link?.close(this.world, this.id)
  }
}
