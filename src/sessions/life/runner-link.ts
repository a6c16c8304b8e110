import { letGo } from '../../engines/built-runner.js'
import type {
  DeferredExecution,
  PermissionAsk,
  PermissionDecision,
  Runner,
  RunnerEvent,
  RunnerHost,
  RunnerSnapshot,
  SessionFiles,
} from '../../engines/runner.js'
import { GatewayError, toError } from '../../errors.js'
import { onceAborted } from '../../lib/aborted.js'
import type { Clock } from '../../lib/clock.js'
import type { Logger } from '../../lib/logger.js'
import { tried } from '../../lib/tried.js'
import type { QueuedMessage } from '../kept/journal.js'
import { engineFiles } from './engine-files.js'

/** How long an engine may take to start, or to be built, before it is left behind; one agent has to wait for the next minute first. */
export const START_LIMIT_MS = 120_000

/** The session that a runner serves. */
interface ServedSession {
  hears(link: RunnerLink): boolean
  /** As `RunnerHost.drained`. */
  readonly drained: Promise<void> | undefined
  /** Its runner is not to wait any longer. */
  relieve(): void
}

/** What is done about what a session hears from its runner. */
export interface RunnerOwner {
  onRunnerEvent(event: RunnerEvent): void
  onPermissionAsked(ask: PermissionAsk, takenBack?: AbortSignal): Promise<PermissionDecision>
  onExecutionDeferred(link: RunnerLink, execution: DeferredExecution, takenBack?: AbortSignal): Promise<void>
  onWaitForExecutions(): void
}

/**
 * The tie between a session and one runner. A session may outlive its runner: what comes over a link that it does not hold any more is
 * not heard.
 */
export class RunnerLink implements RunnerHost {
  readonly runner: Runner
  readonly #session: ServedSession
  readonly #owner: RunnerOwner
  /** Whether the runner cannot go on with its turn until an execution settles. */
  waiting = false
  /** Since when the run of a job could be parked, and whether the job was told that it waits, with its engine. */
  hold: { readonly since: number; told: boolean } | undefined
  /** A message whose turn has begun and that the engine is not given before that is durable. */
  handing: QueuedMessage | undefined
  /** How many answers of the engine are waited for. */
  #answersDue = 0
  /** Whether the turn, or the runner itself, is to end. */
  #isEnding = false
  #abort: AbortController | undefined
  #aborted = false

  constructor(runner: Runner, session: ServedSession, owner: RunnerOwner) {
    this.runner = runner
    this.#session = session
    this.#owner = owner
  }

  /** Of one that is done when it returns, and gives no promise, too; a promise stays what it is: who starts at once has started then. */
  start(): Promise<void> {
    return Promise.resolve(this.runner.start(this))
  }

  get #isHeard(): boolean {
    return this.#session.hears(this)
  }

  // What a host's engine says of itself may be asked in the middle of what is done with it: one that throws then says nothing.

  /** Whether something goes on in it beside its turns. */
  get isAtWork(): boolean {
    return tried(() => this.runner.canRelease) === false
  }

  /** Whether another engine could go on from what it gives. */
  get givesSnapshot(): boolean {
    return typeof tried(() => this.runner.snapshot) === 'function'
  }

  /** Whether it may be let go in the middle of a turn. */
  get canPark(): boolean {
    return this.parks && tried(() => this.runner.canPark !== false) === true
  }

  /** As `canPark`, whatever it is in the middle of. */
  get parks(): boolean {
    return tried(() => this.runner.capabilities.parking) === 'native' && this.givesSnapshot
  }

  get isSpent(): boolean {
    return tried(() => this.runner.isSpent) === true
  }

  get files(): SessionFiles | undefined {
    return this.#filesOf(false)
  }

  /** For what is kept of them: one without a time is as old as that. */
  get keptFiles(): SessionFiles | undefined {
    return this.#filesOf(true)
  }

  #filesOf(mayLackTimes: boolean): SessionFiles | undefined {
    const files = tried(() => this.runner.files)
    return files && engineFiles(files, { mayLackTimes })
  }

  emit(event: RunnerEvent): void {
    if (this.#isHeard) this.#owner.onRunnerEvent(event)
  }

  /** What is waited for comes the same way as what the engine says, so that it is not slowed meanwhile. */
  get drained(): Promise<void> | undefined {
    const isSlowed = !this.#isEnding && this.#answersDue === 0 && this.#isHeard
    return isSlowed ? this.#session.drained : undefined
  }

  /** The turn that begins now may be slowed. */
  begin(): void {
    this.#isEnding = false
  }

  /** What it says until the end is told as fast as it comes. */
  end(): void {
    this.#isEnding = true
    this.#session.relieve()
  }

  /** Asks the engine something, and lets its answer through. */
  async ask(question: () => Promise<void> | undefined): Promise<void> {
    this.#answersDue++
    this.#session.relieve()
    try {
      await question()
    } finally {
      this.#answersDue--
    }
  }

  /** Async, so that an ask which cannot be shown is a rejection to its asker and no exception. */
  async requestPermission(ask: PermissionAsk, takenBack?: AbortSignal): Promise<PermissionDecision> {
    const decision: PermissionDecision = this.#isHeard
      ? await this.#owner.onPermissionAsked(ask, takenBack && this.#whileHeard(takenBack))
      : { behavior: 'deny', message: 'The session has ended.', interrupt: true }
    // the engine interrupts itself then
    if (decision.behavior === 'deny' && decision.interrupt) this.end()
    return decision
  }

  /** What an engine takes back because it is closed goes on waiting, for its successor. */
  #whileHeard(takenBack: AbortSignal): AbortSignal {
    const heard = new AbortController()
    onceAborted(takenBack, () => {
      if (this.#isHeard) heard.abort()
    })
    return heard.signal
  }

  async deferExecution(execution: DeferredExecution, takenBack?: AbortSignal): Promise<void> {
    if (!this.#isHeard) throw new GatewayError('SG_ERR_SESSION_ENDED')
    await this.#owner.onExecutionDeferred(this, execution, takenBack && this.#whileHeard(takenBack))
  }

  waitForExecutions(): void {
    if (!this.#isHeard) return
    this.waiting = true
    this.#owner.onWaitForExecutions()
  }

  /**
   * What the next engine can go on from, as it would be read back: this one may go on with the parts of what it gives. With it goes
   * since when the files are as they are, which is told of them while there is no engine.
   * @returns undefined when it gives none
   * @throws what it throws; TypeError when that is not JSON, or a promise: nothing could write it down
   */
  snapshot(): RunnerSnapshot | undefined {
    const snapshot = this.runner.snapshot?.()
    if (typeof (snapshot as Partial<Promise<never>> | undefined)?.then === 'function')
      throw new TypeError('snapshot() gave a promise: what it gives must be there when it returns.')
    const kept: RunnerSnapshot | undefined = snapshot && JSON.parse(JSON.stringify(snapshot))
    const times =
      kept?.files &&
      tried(() => this.keptFiles?.list().map(({ path, modifiedAt }) => [path, Number(modifiedAt)] as const))
    return times ? { ...kept!, filesModifiedAt: Object.fromEntries(times) } : kept
  }

  /** The snapshot in the middle of a turn, which no engine could go on with otherwise. @throws TypeError when there is none, too */
  snapshotInTurn(): RunnerSnapshot {
    const snapshot = this.snapshot()
    if (!snapshot)
      throw new TypeError('snapshot() gave nothing while its turn waits: no other engine could go on with that.')
    return snapshot
  }

  /** Made when first asked for: most runners of idle sessions never do. */
  get signal(): AbortSignal {
    if (!this.#abort) {
      this.#abort = new AbortController()
      if (this.#aborted) this.#abort.abort()
    }
    return this.#abort.signal
  }

  /** Aborts and closes the runner; resolves when it is gone, or was given up on. Never rejects. */
  close({ clock, logger }: { clock: Clock; logger: Logger }, sessionId: string): Promise<void> {
    this.end()
    this.#aborted = true
    this.#abort?.abort()
    return letGo(this.runner, clock, {
      onLate: () => logger.error({ sessionId }, 'the engine did not close in time and was left behind'),
      onFailed: (error) => logger.error({ sessionId, err: toError(error) }, 'the engine failed to close'),
    })
  }
}
