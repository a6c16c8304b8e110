import type { SessionEventBody } from '../../../schemas/events.js'
import { ENGINE_EVENT_TYPES } from '../../engines/event-types.js'
import type {
  DeferredExecution,
  ExecutionResult,
  PermissionAsk,
  PermissionDecision,
  Runner,
  RunnerEvent,
  SessionRunnerConfig,
} from '../../engines/runner.js'
import { type ErrorCode, GatewayError, toError } from '../../errors.js'
import { caught } from '../../lib/caught.js'
import { INTERRUPTED } from '../asks/deferred-executions.js'
import { reshaped, saidBy, wrongIn } from '../engine-events.js'
import { choiceIn, takeUpChoice } from '../kept/choice.js'
import { withDelivered } from '../kept/snapshot-files.js'
import { applyRunnerEvent, textOf } from '../session-facts.js'
import type { SessionState } from '../session-state.js'
import { Deferring } from './deferring.js'
import { ENGINE_GONE, type LeaveDesk } from './leave-desk.js'
import { RunnerLink, type RunnerOwner, START_LIMIT_MS } from './runner-link.js'
import type { TurnDesk } from './turn-desk.js'

const HISTORY_LOST: SessionEventBody = {
  type: 'engine_event',
  payload: { type: 'history_lost', message: 'The engine was started anew and does not know what was said before.' },
}

const UNEXPLAINED = 'The engine failed, and did not say why.'

/** How a session comes by its engine, hears it and gets another one. */
export class EngineDesk implements RunnerOwner {
  readonly #session: SessionState
  readonly #turns: TurnDesk
  readonly #leave: LeaveDesk
  readonly #deferring: Deferring
  /** What was said in the session that this one resumes was told by an engine before this one, which may have it from its agent again. */
  #knowsHistory = false
  /** Types of events that came in another shape. */
  #misshapen: Set<string> | undefined
  /** Resolves when its first engine has started, or could not. */
  begun: Promise<void> = Promise.resolve()

  constructor(session: SessionState, turns: TurnDesk, leave: LeaveDesk) {
    this.#session = session
    this.#turns = turns
    this.#leave = leave
    this.#deferring = new Deferring(session)
    // a crash in that turn is not gone on from what was before it
    turns.onAfterWait = () => this.#keepOrErase()
  }

  // ── starting ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Takes the runner that was built for this session, hands it the opening prompt and starts it. Never throws. */
  begin(runner: Runner): void {
    const session = this.#session
    const link = new RunnerLink(runner, session, this)
    session.become({ is: 'starting', link })
    session.files = link.files
    const { prompt } = session.config
    // that of a job's run has begun, and may be over
    if (prompt !== undefined && session.jobId === undefined) this.#turns.say(prompt, undefined)
    const failed = (error: unknown) => {
      if (session.hears(link)) session.fail(toError(error).message, 'SG_ERR_ENGINE_START')
    }
    // a command-line agent has a limit of its own, which does not run while it waits for others to start
    const limit =
      session.profile.info.engine === 'cli'
        ? undefined
        : session.world.clock.after(START_LIMIT_MS, () => failed(new Error('The engine did not start in time.')))
    try {
      this.begun = this.#start(link).then(() => this.#onStarted(link), failed)
    } catch (error) {
      failed(error)
    }
    this.begun.then(() => limit?.cancel())
  }

  #start(link: RunnerLink): Promise<void> {
    const { standstill } = this.#session.world
    if (!standstill?.stands) return link.start()
    return standstill.passed(link.signal).then(() => link.start())
  }

  #onStarted(link: RunnerLink): void {
    const session = this.#session
    if (!session.hears(link)) return
    session.become({ is: 'live', link })
    session.showStatus()
    this.#leave.keepSnapshot()
    this.#turns.next()
    session.world.sleep.consider(session)
  }

  /**
   * Goes on with an engine that was built from the snapshot, in the same log: in the middle of its turn, or with the messages that wait.
   * @param givenUp rejects when the start is not waited for any longer
   * @param isAhead the engine was given turns that the snapshot does not have
   * @throws what the engine's `start` throws; the session is as it was then, without an engine
   */
  async wake(runner: Runner, config: SessionRunnerConfig, givenUp: Promise<never>, isAhead = false): Promise<void> {
    const session = this.#session
    const { life: before, facts, world } = session
    const { apiKeySource } = facts
    const inTurn = session.frozen || session.parked
    const knowsBefore = inTurn || (before.is === 'asleep' && before.snapshot !== undefined)
    const link = new RunnerLink(runner, session, this)
    session.config = config
    this.#knowsHistory = facts.toldHistory ?? false
    session.become({ is: 'waking', link, inTurn })
    if (inTurn) this.#showAwake()
    // it may use other credentials than the one before
    else if (world.requireApiKey) facts.apiKeySource = undefined
    try {
      const started = this.#start(link)
      await Promise.race([knowsBefore ? started.then(() => takeUpChoice(session, runner)) : started, givenUp])
    } catch (error) {
      if (session.hears(link)) session.become(before.is === 'asleep' ? before : { is: 'asleep' })
      if (inTurn) session.bridge.cancelAll('withdrawn', ENGINE_GONE)
      else this.#turns.giveUpWaits(ENGINE_GONE)
      facts.apiKeySource ??= apiKeySource
      void link.close(world, session.id)
      throw error
    }
    if (!session.hears(link)) return
    session.become({ is: 'live', link })
    session.files = link.files
    if (inTurn) this.#goOnWithTurn()
    else this.#goOn(knowsBefore, isAhead)
  }

  #showAwake(): void {
    const { facts, midTurn, permissions, clients, log } = this.#session
    facts.statusDetail = undefined
    if (midTurn) midTurn.due = true
    permissions.carried = [...(midTurn?.decisions ?? [])]
    clients.hurry(log.lastSeq + 1)
    this.#session.showStatus()
  }

  /** Results and answers that were taken in are told and handed over. */
  #goOnWithTurn(): void {
    const { id, midTurn, world } = this.#session
    this.#turns.tellTakenIn()
    for (const { executionId, result } of [...(midTurn?.results ?? [])]) this.#handResult(executionId, result)
    if (midTurn?.interrupted)
      this.#turns
        .interrupt()
        .catch((error) =>
          world.logger.error({ sessionId: id, err: toError(error) }, 'the engine refused to be interrupted'),
        )
    // what was said meanwhile, when it had not waited inside of a turn
    this.#turns.next()
  }

  #goOn(knowsHistory: boolean, isAhead: boolean): void {
    const session = this.#session
    const { facts, world } = session
    facts.statusDetail = undefined
    if (!knowsHistory) facts.countFromHere()
    if (!knowsHistory && facts.numTurns > 0) session.append(HISTORY_LOST)
    // of messages that overtook others no log tells whose turn was which, but for those since a snapshot
    if (session.chosen?.ahead || isAhead) this.#leave.keepSnapshot()
    this.#turns.next()
    world.sleep.consider(session)
  }

  // ── what it says ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  onRunnerEvent(engineSays: RunnerEvent): void {
    const session = this.#session
    const { world, facts } = session
    if (this.#knowsHistory && (engineSays as { replay?: unknown } | undefined)?.replay === true) return
    const said = saidBy(engineSays)
    if (!said) {
      const { id: sessionId } = session
      world.logger.warn({ sessionId, type: engineSays?.type }, 'the engine emitted an event that is not its to tell')
      return
    }
    if (said.type === 'session_error' && this.#turns.endWithoutEngine()) {
      // no event tells what may have been a crash
      world.logger.warn(
        { sessionId: session.id, reason: said.message },
        'the engine was gone before its turn was ended',
      )
      return
    }
    const event = said.type === 'turn_completed' ? facts.withTotals(said) : said
    const row = ENGINE_EVENT_TYPES.get(event.type)!
    // what it does in the background may take turns of its own
    const endsTurn = event.type === 'turn_completed' && !this.#turns.isUnbegun
    try {
      applyRunnerEvent(facts, event)
      if (row.goesOn) session.goesOn()
      if (endsTurn) {
        // some end it as they start again, before they are handed what came in for it
        this.#turns.tellTakenIn()
        session.inTurn = false
      }
      const shown = event.type === 'session_error' ? undefined : this.#shapely(event)
      if (shown) session.append(endsTurn && shown.type === 'turn_completed' ? this.#turns.endOf(shown) : shown)
      // what a call has used is known after a crash, too
      if (event.type === 'assistant_message' && facts.turnUsage) session.touch()
      if (event.type === 'file_delivered') this.#keepDelivered(event.path)
      const has = choiceIn(event)
      if (has) session.onHas(has)
    } catch (error) {
      const message = `The engine emitted an event that cannot be taken: ${toError(error).message}`
      session.fail(message, 'SG_ERR_ENGINE_FAILED')
      return
    }
    if (event.type === 'session_error')
      session.fail(textOf(event.message) ?? UNEXPLAINED, textOf(event.code) as ErrorCode | undefined)
    // before a turn can begin in it
    else if (world.disableBypassPermissions && facts.permissionMode === 'bypassPermissions')
      session.fail('The engine runs in bypassPermissions, which this gateway disables.', 'SG_ERR_BYPASS_DISABLED')
    else if (event.type === 'system_init') this.#onProvenance(event.apiKeySource)
    else if (endsTurn) setImmediate(() => this.#turns.next())
    if (!row.leavesState) session.showStatus()
    if (endsTurn) this.#onTurnCompleted()
  }

  /** An event as it is kept; of the first of each type that has another shape, the operator is told. */
  #shapely(event: RunnerEvent): RunnerEvent | undefined {
    const wrong = wrongIn(event)
    if (wrong === undefined) return event
    const { id: sessionId, world, facts } = this.#session
    const { type } = event
    this.#misshapen ??= new Set()
    if (!this.#misshapen.has(type))
      world.logger.warn({ sessionId, type, problem: wrong.problem }, 'the engine emitted an event of the wrong shape')
    this.#misshapen.add(type)
    return reshaped(event, wrong, facts)
  }

  /** In the write that tells of it. */
  #keepDelivered(path: string): void {
    const session = this.#session
    if (!session.writer) return
    session.delivered = withDelivered(session.delivered, path, session.link?.keptFiles)
    session.touch()
  }

  #onTurnCompleted(): void {
    const session = this.#session
    const { sleep } = session.world
    session.permissions.forgetCarried()
    this.#keepOrErase()
    this.#turns.onOver?.()
    if (session.link?.isSpent) sleep.onSpent(session)
    else sleep.consider(session)
  }

  /** A journal that has only what sleeps has nothing of it any more. */
  #keepOrErase(): void {
    const session = this.#session
    this.#leave.keepSnapshot()
    if (session.midTurn && !session.writer) session.world.sleep.checkpoint(session)
  }

  #onProvenance(apiKeySource: string): void {
    const session = this.#session
    const { world } = session
    if (apiKeySource === 'oauth' && world.requireApiKey)
      session.fail(new GatewayError('SG_ERR_API_KEY_REQUIRED').message, 'SG_ERR_API_KEY_REQUIRED')
    else {
      if (apiKeySource === 'oauth') world.operatorLog.onOauth(session)
      this.#turns.next()
    }
  }

  /** Asks the engine something whose answer is not to be slowed. */
  async ask(question: () => Promise<void> | undefined): Promise<void> {
    const { link } = this.#session
    await (link ? link.ask(question) : question())
  }

  async onPermissionAsked(ask: PermissionAsk, takenBack?: AbortSignal): Promise<PermissionDecision> {
    const session = this.#session
    const { link } = session
    const decision = await session.permissions.ask(ask, takenBack)
    this.#turns.lookWhetherTaken()
    if (decision.behavior === 'deny' && decision.interrupt && link && session.hears(link)) this.#giveUpRest()
    return decision
  }

  /** The engine ends its turn by itself: nobody is to answer for that turn what else it asked for. */
  #giveUpRest(): void {
    this.#turns.denyWaits()
    for (const { executionId } of this.#session.executions.list()) this.#deferring.giveUp(executionId, INTERRUPTED)
  }

  onExecutionDeferred(link: RunnerLink, execution: DeferredExecution, takenBack?: AbortSignal): Promise<void> {
    return this.#deferring.take(link, execution, takenBack)
  }

  onWaitForExecutions(): void {
    this.#session.world.sleep.consider(this.#session)
  }

  /** Tells a result and hands it to the engine. */
  settle(executionId: string, result: ExecutionResult): void {
    const session = this.#session
    if (session.ended) return
    session.goesOn()
    session.append(session.executions.settle(executionId, result, session.world.clock.now()))
    const carried = session.midTurn?.results.find((known) => known.executionId === executionId)
    if (carried) carried.told = true
    else session.midTurn?.results.push({ executionId, result, told: true })
    this.#handResult(executionId, result)
  }

  #handResult(executionId: string, result: ExecutionResult): void {
    const session = this.#session
    session.goesOn()
    const { link } = session
    if (!link) return
    caught(
      () => link.runner.settleExecution?.(executionId, result),
      ({ message }) => session.hears(link) && session.fail(message, 'SG_ERR_ENGINE_FAILED'),
    )
    this.#turns.lookWhetherTaken()
  }
}
