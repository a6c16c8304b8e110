import { randomUUID } from 'node:crypto'
import type { PermissionMode } from '../../../../schemas/permissions.js'
import { GatewayError, startError } from '../../../errors.js'
import { whenAborted } from '../../../lib/aborted.js'
import { deferred } from '../../../lib/deferred.js'
import { within } from '../../../lib/within.js'
import type {
  ExecutionResult,
  Runner,
  RunnerCapabilities,
  RunnerEvent,
  RunnerHost,
  RunnerSnapshot,
} from '../../runner.js'
import { contextUsage } from '../../token-usage.js'
import type { Written } from '../carry/carried-runner.js'
import { agentDied, answered, control } from '../control.js'
import { beginLaunch, type Launch, lateStart } from '../launch.js'
import { Pausing } from '../pausing.js'
import type { AgentProcess } from '../process.js'
import { assertSayable } from './arguments.js'
import { callRules } from './call-rules.js'
import { assumedInit, runnerCapabilities } from './describe.js'
import { denialIn, failureOf, isItsEnd, refusalIn } from './failure.js'
import { Gate } from './gate.js'
import { heardBySdk } from './heard.js'
import { isForgotten, replayOf, takenOver } from './history.js'
import { BROKEN_OFF, Interruption, NOT_TAKEN } from './interruption.js'
import { budgetLeft, spentBefore } from './limits.js'
import { Opening } from './opening.js'
import { assertUntold, beforeEachCall, claudeSettings } from './options.js'
import { Comeback, type ParkedTurn, PUT_OFF_GRACE_MS, refusals } from './parked-turn.js'
import { PromptStream } from './prompt-stream.js'
import { initializationIn, Reader } from './readable.js'
import type { SdkInit, SdkMessage, SdkQuery, SdkResult, SdkStatus } from './sdk.js'
import { SelfReport } from './self-report.js'
import type { ClaudeSetup, ClaudeState } from './setup.js'
import { ClaudeTranslator, isUsual } from './translate.js'
import { isOfItsOwn, type TurnTaken, TurnWatch } from './turn-watch.js'

/**
 * Runs Claude through its Agent SDK: one process per session, prompts in as a stream, messages out as one.
 *
 * `start` waits for the agent's own account of the session before anything is asked of a model. A turn ends with the result that
 * answers its prompt; what works in the background may take turns in between. A session that is parked ends its agent at the call that
 * waits; the next agent comes to that call again by itself.
 */
export class ClaudeRunner implements Runner {
  readonly capabilities: RunnerCapabilities
  readonly #setup: ClaudeSetup
  readonly #restored: ClaudeState | undefined
  readonly #prompts = new PromptStream()
  readonly #translator: ClaudeTranslator
  readonly #opening: Opening
  readonly #gate: Gate
  readonly #opened = deferred()
  readonly #deferred = deferred()
  #host: RunnerHost | undefined
  #query: SdkQuery | undefined
  #process: AgentProcess | undefined
  readonly #report: SelfReport
  readonly #reader: Reader
  #isFresh: boolean
  #isOpen = false
  /** Id of the prompt whose turn is in progress. */
  #turn: string | undefined
  readonly #watch: TurnWatch
  readonly #comeback = new Comeback()
  #isParked = false
  readonly #interruption: Interruption
  #closing: Promise<void> | undefined
  readonly #pausing = new Pausing()

  constructor(setup: ClaudeSetup, restored: ClaudeState | undefined) {
    this.#setup = setup
    this.#restored = restored
    const { config } = setup
    this.#isFresh = restored?.isFresh ?? true
    const emit = (event: RunnerEvent) => this.#emit(event)
    this.#report = new SelfReport(setup, restored, emit)
    this.#reader = new Reader(setup)
    this.#translator = new ClaudeTranslator(emit, config.includePartialMessages ?? true, restored)
    this.#opening = new Opening(setup.clock)
    this.#gate = this.#createGate()
    this.#watch = new TurnWatch(this.#gate, config)
    this.#interruption = new Interruption(setup.clock, () => void this.#giveUp())
    this.capabilities = runnerCapabilities(setup)
  }

  get written(): Written {
    return { sessionId: this.#report.sessionId, last: this.#translator.lastUuid }
  }

  /** Only a call that waits can be put off; whatever else runs would end with the agent. */
  get canPark(): boolean {
    return this.#gate.held !== undefined && this.#watch.isQuiet
  }

  get canRelease(): boolean {
    return this.#watch.isIdle
  }

  /** Whether the agent was ended because it did not follow an interrupt. */
  get isSpent(): boolean {
    return this.#interruption.isSpent
  }

  async start(host: RunnerHost): Promise<void> {
    this.#host = host
    if (this.#pausing.over) await this.#pausing.passed(host.signal)
    const resume = await takenOver(this.#setup, this.#restored)
    const launch = await beginLaunch(this.#setup, host.signal)
    try {
      if (this.#closing) throw startError('The session was closed.')
      const query = this.#createQuery(launch, resume)
      this.#query = query
      const died = this.#consume(query).then((detail) => Promise.reject(startError(detail)))
      await Promise.race([
        // the SDK tells the end of its process sooner than it is known what the process said
        this.#open(query).catch((error) => (isItsEnd(error) ? died : Promise.reject(error))),
        died,
        whenAborted(launch.signal).then(() => Promise.reject(lateStart(this.#process))),
      ])
      // The next agent may start while this one's history is read.
      await launch.end()
      await this.#replay()
      this.#opened.resolve()
      if (this.#restored?.parked) this.#continue(this.#restored.parked)
    } catch (error) {
      await this.close()
      if (resume !== undefined && (await isForgotten(this.#setup, resume)))
        throw new GatewayError('SG_ERR_AGENT_STATE_GONE', { cause: error })
      throw error instanceof GatewayError ? error : startError(refusalIn(error), error)
    } finally {
      await launch.end()
    }
  }

  send(text: string): void {
    this.#turn = randomUUID()
    this.#watch.begin()
    const end = this.isSpent ? NOT_TAKEN : spentBefore(this.#setup.config, this.#translator.totals.costUsd)
    if (end) return void setImmediate(() => !this.#closing && this.#end(end))
    this.#prompts.push({
      type: 'user',
      uuid: this.#turn,
      message: { role: 'user', content: text },
      parent_tool_use_id: null,
    })
  }

  async interrupt(): Promise<void> {
    if (this.#turn === undefined && !this.#watch.isOwn) return
    await this.#interruption.ask(this.#turn, () => this.#control(async (query) => void (await query.interrupt())))
  }

  async setPermissionMode(mode: PermissionMode): Promise<void> {
    await this.#control(async (query) => {
      await query.setPermissionMode(mode)
      this.#report.modeIs(mode)
    })
  }

  async setModel(model: string | undefined): Promise<void> {
    assertSayable({ model })
    await this.#control(async (query) => {
      await query.setModel(model)
      this.#watch.isModelChosen = true
      this.#report.modelIs(model)
    })
  }

  pause = (): void => this.#pausing.pause()
  resume = (): void => this.#pausing.resume()

  settleExecution(executionId: string, result: ExecutionResult): void {
    this.#gate.settle(executionId, result)
  }

  /** Taken while a call waits, it is the beginning of a park: the agent that is closed then is put off at that call. */
  snapshot(): RunnerSnapshot {
    const call = this.#gate.held
    this.#isParked = call !== undefined
    const { sessionId, mode, model, init } = this.#report
    const state: ClaudeState = {
      agent: this.#setup.row.name,
      sdkSessionId: sessionId,
      permissionMode: mode,
      ...(model !== undefined && { model }),
      isFresh: this.#isFresh && !call,
      ...this.#translator.state,
      ...(call &&
        init && {
          parked: {
            ...{ call, refused: this.#gate.refusedThen, init },
            ...{ agent: this.#translator.totals.agent, taken: this.#watch.taken },
          },
        }),
    }
    return { engine: 'cli', state }
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      this.#opening.end()
      this.#interruption.end()
      this.#comeback.end()
      if (this.#isParked && this.#gate.held && !this.#pausing.over) await this.#putOff()
      this.#prompts.end()
      await this.#process?.stop()
      this.#query?.close()
    })()
    return this.#closing
  }

  /** The agent does not listen: its successor goes on with the session. */
  async #giveUp(): Promise<void> {
    await this.#process?.stop()
    this.#prompts.end()
    this.#query?.close()
    // it may have ended the turn at last
    if (this.#closing || (this.#turn === undefined && !this.#watch.isOwn)) return
    const isLost = this.#turn !== undefined && this.#interruption.endOwn()
    this.#end(isLost ? NOT_TAKEN : BROKEN_OFF, this.#watch.taken)
  }

  /** The agent writes down at which call it ended, and would not find it again otherwise. */
  async #putOff(): Promise<void> {
    this.#gate.putOff()
    await within(PUT_OFF_GRACE_MS, this.#deferred.promise)
    this.#prompts.end()
    await within(PUT_OFF_GRACE_MS, this.#process?.exited)
  }

  /** The agent goes on by itself with the call that it was put off at. */
  #continue({ call, refused, agent, taken }: ParkedTurn): void {
    this.#turn = call.toolUseId
    this.#watch.begin(taken)
    this.#translator.totals.continueFrom(agent)
    for (const event of refusals(refused)) this.#emit(event)
    this.#comeback.expect(this.#setup.clock, (message) => this.#prompts.push(message))
  }

  /** The call was never written down, or has been swept since. What the agent's own turn used counts for the one that is lost. */
  #onCallLost({ result: _said, num_turns: _steps, ...own }: SdkResult): void {
    const errors = ['The agent no longer knows the call that it waited for.']
    this.#end({ ...own, subtype: 'error_during_execution', is_error: true, errors })
  }

  async #replay(): Promise<void> {
    const { config, env, sdkSpecifier } = this.#setup
    if (config.resume === undefined || this.#restored) return
    for (const event of await replayOf(sdkSpecifier, env, config.resume)) this.#emit(event)
  }

  #createQuery(launch: Launch, resume: string | undefined): SdkQuery {
    const { sdk, config, row, env } = this.#setup
    const { mode: permissionMode, model } = this.#report
    const { model: _asked, ...rest } = config
    const settings = claudeSettings({
      config: { ...rest, permissionMode, ...(model !== undefined && { model }) },
      trusted: this.#setup.trusted,
      command: row.command,
      resume,
      maxBudgetUsd: budgetLeft(config, this.#translator.totals.costUsd),
      ours: this.#setup.hostedTools?.server,
    })
    this.#report.sessionId = settings.sessionId ?? settings.resume ?? ''
    return sdk.query({
      prompt: this.#prompts,
      options: {
        ...settings,
        env,
        canUseTool: this.#gate.ask,
        hooks: beforeEachCall(this.#gate.before),
        spawnClaudeCodeProcess: (request) => {
          assertUntold(settings, request.args)
          const agent = this.#pausing.of(launch.spawn(request.command, request.args, request.env))
          this.#process = agent
          // the SDK waits for its end, and one that says nothing more might never come to it
          agent.child.stdout.once('end', () => void agent.lastWords())
          return heardBySdk(agent, (said) => this.#reader.read(said) !== undefined)
        },
      },
    })
  }

  #createGate(): Gate {
    return new Gate({
      ...callRules(this.#setup, () => this.#report.mode),
      hostedTools: this.#setup.hostedTools,
      restored: this.#restored?.parked?.call,
      onReturned: () => this.#comeback.end(),
      host: () => this.#host!,
      told: async () => {
        await this.#opened.promise
        // The question overtakes the messages that are still on their way from the SDK; the call itself must be told first.
        await new Promise(setImmediate)
        this.#translator.flush()
      },
      isInterrupted: () => this.#interruption.isWanted,
      // an agent that cannot take it any more has ended, which tells itself
      interrupt: () => void this.interrupt().catch(() => {}),
    })
  }

  /** Reads until the agent's end. @returns how it ended, in a sentence */
  async #consume(query: SdkQuery): Promise<string> {
    let failure = ''
    try {
      for await (const said of query) {
        const message = this.#reader.read(said)
        if (message) this.#receive(message)
      }
    } catch (error) {
      failure = failureOf(error)
    }
    const detail = [failure, await this.#process?.lastWords()].filter(Boolean).join(' ')
    if (this.#isOpen && !this.#closing && !this.isSpent) {
      this.#translator.breakOff()
      this.#emit(agentDied(detail, this.#isFresh ? undefined : this.#report.sessionId))
      void this.close()
    }
    return detail
  }

  /** Learns all about the session that can be known without a model, and tells it. */
  async #open(query: SdkQuery): Promise<void> {
    const parked = this.#restored?.parked
    // The SDK's own binary needs not be asked for its version first. One that goes on with a call answers only after its turn.
    if (this.#setup.row.command === undefined && !parked) this.#opening.ask(this.#prompts)
    const initialization = initializationIn(await query.initializationResult())
    const init =
      (parked
        ? { ...parked.init, permissionMode: this.#report.mode, model: this.#report.model ?? parked.init.model }
        : await this.#opening.report(initialization, this.#prompts, this.#translator.totals)) ??
      assumedInit(initialization, this.#setup, {
        sdkSessionId: this.#report.sessionId,
        model: this.#report.model,
        mode: this.#report.mode,
      })
    this.#isOpen = true
    this.#report.open(init, initialization)
  }

  #receive(message: SdkMessage): void {
    this.#watch.receive(message)
    if (this.#watch.isBeyond && !this.#interruption.isWanted) void this.interrupt().catch(() => {})
    if (!this.#isOpen) this.#opening.receive(message)
    else if (message.type === 'result') this.#receiveResult(message)
    else if (message.type === 'system' && message.subtype === 'init') this.#receiveInit(message)
    else if (message.type === 'system' && message.subtype === 'status') this.#receiveStatus(message)
    else this.#translator.translate(message)
    // Each event says that the agent goes on. It does not.
    if (this.canPark) this.#host?.waitForExecutions()
  }

  #receiveStatus(message: SdkStatus): void {
    // An interrupt that comes before the agent has taken the prompt up is lost.
    if (this.#interruption.isWanted && message.status === 'requesting') void this.#query?.interrupt().catch(() => {})
    if (message.permissionMode) this.#report.modeIs(message.permissionMode as PermissionMode)
    if (!isUsual(message)) this.#translator.translate(message)
  }

  /** What the agent says of itself before every turn. */
  #receiveInit(init: SdkInit): void {
    this.#translator.flush()
    this.#report.renew(init, this.#watch.isModelChosen)
  }

  #receiveResult(result: SdkResult): void {
    if (this.#closing) {
      this.#deferred.resolve()
      return
    }
    const isLost = this.#comeback.isLost(result)
    if (isLost) this.#onCallLost(result)
    if (isLost !== undefined) return
    const answered = result.user_message_uuids
    const isOther = this.#turn !== undefined && (answered ? !answered.includes(this.#turn) : isOfItsOwn(result))
    if (isOther) {
      // Its tokens are counted with the turn that it came in between of.
      this.#translator.flush()
      this.#interruption.endOwn()
      return
    }
    if (!result.is_error) this.#isFresh = false
    this.#end(result)
    void this.#tellContextUsage()
  }

  /** @param earlier what the turn has taken beside what the result tells */
  #end(result: SdkResult, earlier: TurnTaken = this.#watch.earlier): void {
    const { isWanted } = this.#interruption
    this.#turn = undefined
    const judged = this.#watch.end(result)
    this.#interruption.end()
    this.#comeback.end()
    this.#translator.complete(judged, isWanted, earlier)
  }

  async #tellContextUsage(): Promise<void> {
    const told = await this.#query?.getContextUsage({ detail: 'summary' }).catch(() => undefined)
    const usage = contextUsage(told?.totalTokens, told?.maxTokens)
    if (usage && !this.#closing) this.#emit({ type: 'context_usage', usage })
  }

  #control(command: (query: SdkQuery) => Promise<void>): Promise<void> {
    const run = async () => {
      if (!this.#query) throw new Error('The agent does not run.')
      await command(this.#query)
    }
    return control(() => answered(run(), this.#setup.clock), denialIn)
  }

  #emit(event: RunnerEvent): void {
    this.#host?.emit(event)
    const drained = this.#host?.drained
    if (drained) this.#process?.leaveUnread(drained)
  }
}
