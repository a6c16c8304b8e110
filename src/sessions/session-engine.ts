import type { SessionEventBody } from '../../schemas/events.js'
import type {
  DeferredExecution,
  ExecutionResult,
  PermissionAsk,
  PermissionDecision,
  Runner,
  RunnerEvent,
  RunnerSnapshot,
  SessionRunnerConfig,
} from '../engines/runner.js'
import { toError } from '../errors.js'
import { within } from '../lib/within.js'
import { interruptedResult } from './asks/deferred-executions.js'
import { carriedDecision } from './asks/permissions.js'
import type { JournaledWhole, JournalWrite, MidTurn } from './kept/journal.js'
import { keptConfig, withChoice } from './kept/journaled-state.js'
import { isForEngine, type News } from './kept/news.js'
import { RunnerLink, type RunnerOwner } from './life/runner-link.js'
import { snapshotFiles } from './life/snapshot-files.js'
import { interruptedTurn } from './session-facts.js'
import { SessionTurns } from './session-turns.js'

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
  /** Nothing is in progress: the engine may be let go. */
  protected abstract onStandstill(): void

  /** Takes the runner that was built for this session, hands it the opening prompt and starts it. Never throws. */
  begin(runner: Runner): void {
    const link = new RunnerLink(runner, this)
    this.become({ is: 'starting', link })
    this.scratchFiles = runner.files
    if (this.config.prompt !== undefined) this.say(this.config.prompt, undefined)
    const failed = (error: unknown) => {
      if (this.hears(link)) this.fail(toError(error).message, 'SG_ERR_ENGINE_START')
    }
    try {
      runner.start(link).then(() => this.#onStarted(link), failed)
    } catch (error) {
      failed(error)
    }
  }

  #onStarted(link: RunnerLink): void {
    if (!this.hears(link)) return
    this.become({ is: 'live', link })
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
    if (!this.writer || !runner || !this.started || !this.serving || this.turns.active) return
    const wasStale = this.isStale
    try {
      if (runner.snapshot) this.writer.keep(runner.snapshot())
      this.isStale = !runner.snapshot
    } catch (error) {
      this.isStale = true
      this.world.logger.error({ sessionId: this.id, err: toError(error) }, 'the engine gave no snapshot')
    }
    this.midTurn = undefined
    if (this.isStale !== wasStale) this.touch()
  }

  /** Whether nothing happens here until somebody outside says something, and the engine can be built again then. */
  get canPark(): boolean {
    const runner = this.link?.runner
    if (!runner?.snapshot || runner.capabilities.parking !== 'native' || !this.started) return false
    // what is written while the session is being removed would bring it back
    if (this.isGoing) return false
    // a message or an answer that is on its way to the engine would not be in its snapshot
    if (this.handing || this.permissions.handing || this.accepting > 0) return false
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
   * @throws what the engine's `snapshot()` throws; the session stays live then
   */
  freeze(): RunnerSnapshot {
    const link = this.link!
    const snapshot = link.runner.snapshot!()
    this.become({ is: 'leaving' })
    this.permissions.suspend()
    this.engineGone = link.close(this.world, this.id)
    return snapshot
  }

  #midTurnAt(since: number): MidTurn {
    const executions = this.executions.list().map(({ executionId }) => executionId)
    const waits = [...executions, ...this.permissions.list().map(({ id }) => id)]
    return { since, waits, results: [], decisions: this.permissions.carried }
  }

  /**
   * A session whose engine is gone, whole, for a journal that has only what sleeps.
   * @param parksAt it is about to be parked, and the event that tells it is in the log already
   * @param isHeld its engine stays
   */
  asleep(snapshot: RunnerSnapshot, parksAt?: number, isHeld = false): JournalWrite {
    const { id, log, profile, facts } = this
    const state = this.state()
    const write = { id, snapshot, state, reservedSeq: log.lastSeq }
    const events = log.toText()
    if (parksAt === undefined) return { ...write, log: { epoch: log.epoch, oldestSeq: log.oldestSeq, events } }
    const told = log.previewText({ type: 'status_changed', status: 'parked' }, parksAt)
    const config = keptConfig(withChoice(this), facts.hostTitle)
    const parked = this.parkedInfo(parksAt)
    return {
      ...write,
      origin: { profile: profile.info.name, generation: profile.generation, config, epoch: log.epoch },
      state: {
        ...{ ...state, midTurn: { ...this.#midTurnAt(parksAt), ...(isHeld && { isHeld }) } },
        info: { ...state.info, status: 'parked', parked, lastActivityAt: parksAt },
      },
      reservedSeq: log.lastSeq + 1,
      log: { epoch: log.epoch, oldestSeq: log.oldestSeq, events: events === '' ? told : `${events}\n${told}` },
    }
  }

  /** From here on it is parked, and says so. */
  park(snapshot: RunnerSnapshot, since: number): void {
    this.midTurn = this.#midTurnAt(since)
    this.isStale = false
    this.become({ is: 'asleep', parkedSince: since })
    this.goesOn()
    this.scratchFiles = snapshot.files && snapshotFiles(snapshot.files, since)
    this.writer?.keep(snapshot)
    this.showStatus(since)
  }

  /** Takes up what came in while it was parked; it is told once an engine goes on with it. */
  takeIn({ log, state, news = [] }: JournaledWhole): void {
    // one that is kept whole has its news in it
    if (log) this.midTurn = state.midTurn
    this.expect(news)
    for (const { executionId } of this.midTurn?.results ?? []) this.executions.takeOff(executionId)
    for (const { requestId } of this.midTurn?.decisions ?? []) this.permissions.takeOff(requestId)
  }

  /** What came in is not waited for any more. */
  expect(news: readonly News[]): void {
    for (const one of news.filter(isForEngine)) {
      if (this.midTurn) this.#carry(one, this.midTurn)
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

  /** Does what was kept, and nobody has done. */
  abstract takeUp(news: readonly News[]): void

  /**
   * Takes a snapshot to go on from should the engine, which stays, be lost while it waits.
   * @returns the session whole, for a journal that has nothing of it yet
   * @throws what the engine's `snapshot()` throws
   */
  hold(since: number): JournalWrite | undefined {
    const snapshot = this.link!.runner.snapshot!()
    const write = this.writer ? undefined : this.asleep(snapshot, since, true)
    this.midTurn = this.#midTurnAt(since)
    this.writer?.keep(snapshot)
    return write
  }

  /**
   * Goes on with an engine that was built from the snapshot: mid-turn, in the same log. Results and answers that were taken in are told
   * and handed over once the engine accepts input.
   * @param givenUp rejects when the start is not waited for any longer
   * @throws what the engine's `start` throws; the session is as it was then, without an engine
   */
  async resume(runner: Runner, config: SessionRunnerConfig, midTurn: MidTurn, givenUp: Promise<never>): Promise<void> {
    const link = new RunnerLink(runner, this)
    const { parkedSince } = this
    this.config = config
    this.become({ is: 'waking', link, inTurn: true })
    this.waiting = false
    this.facts.statusDetail = undefined
    midTurn.due = true
    this.permissions.carried = [...midTurn.decisions]
    this.showStatus()
    try {
      await Promise.race([runner.start(link), givenUp])
    } catch (error) {
      if (!this.hears(link)) return
      this.become({ is: 'asleep', parkedSince })
      void link.close(this.world, this.id)
      throw error
    }
    if (!this.hears(link)) return
    this.become({ is: 'live', link })
    this.scratchFiles = runner.files
    this.permissions.tellCarried()
    for (const carried of [...midTurn.results])
      if (carried.told) this.handResult(carried.executionId, carried.result)
      else this.settleExecution(carried.executionId, carried.result)
    if (midTurn.interrupted)
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

  /** Tells that it is parked again, and why it could not go on; what the engine asked for meanwhile it will ask for again. */
  showParkedAgain(detail: string): void {
    const waits = new Set(this.midTurn?.waits)
    this.executions.keep(waits)
    this.permissions.keep(waits)
    this.permissions.suspend()
    const isNew = this.facts.statusDetail !== detail
    this.facts.statusDetail = detail
    if (!this.showStatus() && isNew) this.append({ type: 'status_changed', status: this.status, detail })
  }

  /** Whether its engine may go, to be started again by the next command. */
  get canRelease(): boolean {
    const isIdle = !this.turns.busy && this.permissions.size === 0 && this.executions.size === 0
    const isAlone = this.clients.count === 0 && this.bridge.pending.length === 0 && this.concerns === 0
    return this.started && this.serving && isIdle && isAlone && this.runner?.snapshot !== undefined
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
    this.become({ is: 'asleep', parkedSince: undefined })
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
    this.become({ is: 'waking', link, inTurn: false })
    // it may use other credentials than the one before
    if (this.world.requireApiKey) this.facts.apiKeySource = undefined
    try {
      await Promise.race([runner.start(link), givenUp])
    } catch (error) {
      if (this.hears(link)) this.become({ is: 'asleep', parkedSince: undefined })
      this.facts.apiKeySource ??= apiKeySource
      void link.close(this.world, this.id)
      throw error
    }
    if (!this.hears(link)) return
    this.become({ is: 'live', link })
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
    else if (this.midTurn) await this.leaveMidTurn()
    else if (this.writer) await this.suspend()
    else await this.end('server')
  }

  /** Lets the engine go at the process' end: the turn in progress ends, what waits is kept; resolves when that is durable. */
  protected async suspend(): Promise<void> {
    if (this.turns.active && this.link) await this.#endTurnSoon()
    this.keepSnapshot()
    const { link } = this
    this.#goToSleep()
    this.cutOff('The gateway was shut down.')
    await Promise.all([link?.close(this.world, this.id), this.durable().catch(() => {})])
  }

  async #endTurnSoon(): Promise<void> {
    const over = new Promise<void>((resolve) => {
      this.onTurnOver = resolve
    })
    const ending = this.endTurn().then(
      () => (this.turns.active ? over : undefined),
      () => {},
    )
    await within(TURN_END_GRACE_MS, Promise.race([over, ending]), { clock: this.world.clock })
  }

  /** Tells what a session without an engine cannot go on with: a turn, questions, executions. */
  cutOff(message: string): void {
    if (this.ended) return
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

  /** Leaves the turn to an engine of the next process, which is built from the same snapshot: this one goes, and nothing is told. */
  protected async leaveMidTurn(): Promise<void> {
    const { link } = this
    this.#goToSleep()
    await Promise.all([link?.close(this.world, this.id), this.durable().catch(() => {})])
  }

  /** The engine is not heard any more. */
  #goToSleep(): void {
    if (this.link) this.become({ is: 'asleep', parkedSince: undefined })
  }
}
