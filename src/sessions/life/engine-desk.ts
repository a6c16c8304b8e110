import type { SessionEventBody } from '../../../schemas/events.js'
import { ENGINE_EVENT_TYPES } from '../../engines/event-types.js'
import type {
  DeferredExecution,
  ExecutionResult,
  PermissionAsk,
  PermissionDecision,
  Runner,
  RunnerEvent,
  RunnerSnapshot,
  SessionRunnerConfig,
} from '../../engines/runner.js'
import { type ErrorCode, GatewayError, toError } from '../../errors.js'
import { caught } from '../../lib/caught.js'
import { INTERRUPTED } from '../asks/deferred-executions.js'
import { reshaped, wrongIn } from '../engine-events.js'
import { inSnapshot, takeUpChoice } from '../kept/choice.js'
import type { JournalWrite } from '../kept/journal.js'
import { asleep, midTurnAt } from '../kept/mid-turn.js'
import { applyRunnerEvent, textOf } from '../session-facts.js'
import type { SessionState } from '../session-state.js'
import { Deferring } from './deferring.js'
import { RunnerLink, type RunnerOwner, START_LIMIT_MS } from './runner-link.js'
import { snapshotFiles } from './snapshot-files.js'
import type { TurnDesk } from './turn-desk.js'

const HISTORY_LOST: SessionEventBody = {
  type: 'engine_event',
  payload: { type: 'history_lost', message: 'The engine was started anew and does not know what was said before.' },
}

const ENGINE_GONE = 'The engine that asked for it is gone.'

const UNEXPLAINED = 'The engine failed, and did not say why.'

/** How a session comes by its engine, hears it, lets it go and gets another one. */
export class EngineDesk implements RunnerOwner {
  readonly #session: SessionState
  readonly #turns: TurnDesk
  readonly #deferring: Deferring
  /** Types of events that came in another shape. */
  #misshapen: Set<string> | undefined
  /** Resolves when its first engine has started, or could not. */
  begun: Promise<void> = Promise.resolve()

  constructor(session: SessionState, turns: TurnDesk) {
    this.#session = session
    this.#turns = turns
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
    session.files = runner.files
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
    this.keepSnapshot()
    this.#turns.next()
    session.world.sleep.consider(session)
  }

  /**
   * Goes on with an engine that was built from the snapshot, in the same log: in the middle of its turn, or with the messages that wait.
   * @param givenUp rejects when the start is not waited for any longer
   * @throws what the engine's `start` throws; the session is as it was then, without an engine
   */
  async wake(runner: Runner, config: SessionRunnerConfig, givenUp: Promise<never>): Promise<void> {
    const session = this.#session
    const { life: before, facts, world } = session
    const { apiKeySource } = facts
    const inTurn = session.frozen || session.parked
    const knowsBefore = inTurn || (before.is === 'asleep' && before.snapshot !== undefined)
    const link = new RunnerLink(runner, session, this)
    session.config = config
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
    session.files = runner.files
    if (inTurn) this.#goOnWithTurn()
    else this.#goOn(knowsBefore)
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

  #goOn(knowsHistory: boolean): void {
    const session = this.#session
    const { facts, world } = session
    facts.statusDetail = undefined
    if (!knowsHistory) facts.countFromHere()
    if (!knowsHistory && facts.numTurns > 0) session.append(HISTORY_LOST)
    if (session.chosen?.ahead) this.keepSnapshot()
    this.#turns.next()
    world.sleep.consider(session)
  }

  // ── what it says ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  onRunnerEvent(told: RunnerEvent): void {
    const session = this.#session
    const { world, facts } = session
    const event = told?.type === 'turn_completed' ? facts.withTotals(told) : told
    const row = ENGINE_EVENT_TYPES.get(event?.type)
    if (!row) {
      const { id: sessionId } = session
      world.logger.warn({ sessionId, type: event?.type }, 'the engine emitted an event that is not its to tell')
      return
    }
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

  #onTurnCompleted(): void {
    const session = this.#session
    const { sleep } = session.world
    session.permissions.forgetCarried()
    this.#keepOrErase()
    this.#turns.onOver?.()
    if (session.runner?.isSpent) sleep.onSpent(session)
    else sleep.consider(session)
  }

  /** A journal that has only what sleeps has nothing of it any more. */
  #keepOrErase(): void {
    const session = this.#session
    this.keepSnapshot()
    if (session.midTurn && !session.writer) session.world.sleep.checkpoint(session)
  }

  #onProvenance(apiKeySource: string): void {
    const session = this.#session
    const { world } = session
    if (apiKeySource === 'oauth') {
      if (world.requireApiKey) {
        session.fail(new GatewayError('SG_ERR_API_KEY_REQUIRED').message, 'SG_ERR_API_KEY_REQUIRED')
        return
      }
      world.operatorLog.onOauth(session)
    }
    this.#turns.next()
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
  }

  // ── going ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Writes down what the engine could go on from, when there is a journal and it is between two turns. What was kept earlier is not gone
   * on from when it gives nothing: turns are missing in it.
   */
  keepSnapshot(): void {
    const session = this.#session
    const { id, writer, link, world, started, serving, inTurn } = session
    if (!writer || !link || !started || !serving || inTurn) return
    try {
      const snapshot = link.snapshot()
      session.chosen = inSnapshot(session.chosen)
      writer.keep(snapshot)
    } catch (error) {
      writer.keep(undefined)
      world.logger.error({ sessionId: id, err: toError(error) }, 'the engine gave no snapshot')
    }
    session.midTurn = undefined
  }

  /** Whether nothing happens here until somebody outside says something, and the engine can be built again then. */
  get canPark(): boolean {
    const { link, started, writer, permissions, executions, bridge, accepting } = this.#session
    if (!link?.runner.snapshot || link.runner.capabilities.parking !== 'native' || !started) return false
    // what is written while the session is being removed would bring it back
    if (writer?.removed) return false
    // a message or an answer that is on its way to the engine would not be in its snapshot
    if (link.handing || permissions.handing || accepting > 0) return false
    if (bridge.pending.length > 0 || !permissions.patient || link.runner.canPark === false) return false
    return (link.waiting && executions.size > 0) || permissions.size > 0
  }

  /** Whether it may go, to be started again by the next command. */
  get canRelease(): boolean {
    const { busy, permissions, executions, clients, bridge, concerns, started, serving, runner } = this.#session
    const isIdle = !busy && permissions.size === 0 && executions.size === 0
    const isAlone = clients.count === 0 && bridge.pending.length === 0 && concerns === 0
    return started && serving && isIdle && isAlone && runner?.snapshot !== undefined
  }

  /** Since when it waits, as far as the queue is concerned whose run it is; it has an engine. */
  get heldFrom(): number {
    const { link, world } = this.#session
    link!.hold ??= { since: world.clock.now(), told: false }
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
    session.writer?.keep(snapshot)
    return write
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
    const snapshot = parks ? link.snapshotInTurn() : link.snapshot()
    if (!parks) session.writer?.keep(snapshot)
    session.become({ is: 'leaving', snapshot, parks })
    if (parks) session.permissions.suspend()
    else this.#turns.giveUpWaits(ENGINE_GONE)
    session.engineGone = link.close(session.world, session.id)
  }

  /** What the next engine goes on from, while there is none. */
  get snapshot(): RunnerSnapshot | undefined {
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
    session.writer?.keep(snapshot)
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

  /** Puts the session to sleep whatever it does, at the process' end; one that nothing is kept of is closed. Resolves when its engine is gone. */
  async sleepNow(): Promise<void> {
    const session = this.#session
    const { parked, ended, midTurn, writer } = session
    if (!parked && !ended && !midTurn && !writer) return session.close('server')
    // the turn that is in the middle is left to an engine of the next process, which is built from the same snapshot, and nothing is told
    const isOver = parked || ended || midTurn !== undefined
    if (!isOver && this.#turns.isAtWork && session.link) await this.#turns.endSoon()
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
