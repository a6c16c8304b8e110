import { realpath } from 'node:fs/promises'
import type { AvailableCommand, SessionConfigOption, SessionUpdate } from '@agentclientprotocol/sdk'
import type { PermissionMode } from '../../../../schemas/permissions.js'
import { startError } from '../../../errors.js'
import { whenAborted } from '../../../lib/aborted.js'
import type { Timer } from '../../../lib/clock.js'
import { deferred } from '../../../lib/deferred.js'
import { within } from '../../../lib/within.js'
import type { Runner, RunnerCapabilities, RunnerEvent, RunnerHost, RunnerSnapshot } from '../../runner.js'
import type { Written } from '../carry/carried-runner.js'
import { agentDied, answered, control } from '../control.js'
import { beginLaunch, lateStart } from '../launch.js'
import { Misshapen } from '../misshapen.js'
import { Pausing } from '../pausing.js'
import type { AgentProcess } from '../process.js'
import { AgentAsks } from './asks.js'
import { type AcpConnection, connectAcp, instead, reasonOf } from './connection.js'
import { SessionCost } from './cost.js'
import { capabilities, systemInit, TOOLS_MISSING } from './describe.js'
import { hasTranscript } from './forgotten.js'
import { GrantedTools } from './granted.js'
import { introduce } from './introduction.js'
import { prepareLoad } from './overwritten.js'
import { priorCostUsd } from './prior-cost.js'
import { openSession, stateGone } from './session.js'
import { chosenIn, type SessionConfig, sessionConfig } from './session-config.js'
import { SessionMode } from './session-mode.js'
import type { AcpSetup, AcpState } from './setup.js'
import { hasBegun, ToolCalls } from './tool-calls.js'
import { AcpTranslator } from './translate.js'
import { Turn } from './turn.js'
import { whyUnanswered } from './unanswered.js'

/** So long after its last word an agent has said all that it says after the end of a turn. */
export const AFTERWARDS_MS = 1_000
/** How long is waited for an agent that looks at its tools only after its session is open. */
const LISTING_MS = 10_000

/** What an agent says before its session is open is kept until then: an earlier conversation, told from its beginning. */
const MAX_SAID_OPENING = 128 * 1024 ** 2

const LATE = Symbol('late')
const UNANSWERED =
  'It answered nothing in the Agent Client Protocol: check the command of the agent, and whether its args have it speak that.'

const TOO_MUCH = `The agent said more than ${MAX_SAID_OPENING / 1024 ** 2} MiB before its session was open, which is not kept.`

/**
 * Runs any agent that speaks the Agent Client Protocol over stdio: one process per session. The permission modes are the agent's own
 * where it has them, and ours in who answers what it asks.
 */
export class AcpRunner implements Runner {
  readonly capabilities: RunnerCapabilities
  /** Present once the agent has said that a later process of it can go on with the session. */
  snapshot?: () => RunnerSnapshot
  readonly #setup: AcpSetup
  readonly #restored: AcpState | undefined
  readonly #calls: ToolCalls
  readonly #translator: AcpTranslator
  #host: RunnerHost | undefined
  #process: AgentProcess | undefined
  #connection: AcpConnection | undefined
  #config: SessionConfig | undefined
  #sdkSessionId = ''
  readonly #mode: SessionMode
  #isFresh: boolean
  #hasTranscript: boolean
  #numTurns: number
  readonly #cost: SessionCost
  readonly #granted: GrantedTools
  readonly #asks: AgentAsks
  #isIntroduced = false
  #isOpen = false
  #isSpent = false
  readonly #pausing = new Pausing()
  /** How it ended, once it has. */
  #ended: Promise<string> | undefined
  readonly #early: RunnerEvent[] = []
  /** How much it had said at the last event before its session was open, and how much of all that is not kept. */
  #saidUntil = 0
  #saidInVain = 0
  /** Resolves when it says too much before its session is open. */
  readonly #flooded = deferred()
  readonly #commandsTold = deferred()
  #commands: AvailableCommand[] = []
  /** Present while one is in progress. */
  #turn: Turn | undefined
  #closing: Promise<void> | undefined
  /** Runs while what it says after the end of a turn may not be over. */
  #afterwards: Timer | undefined
  /** Aborted when it is closed. */
  readonly #gone = new AbortController()

  constructor(setup: AcpSetup, restored: AcpState | undefined) {
    this.#setup = setup
    this.#restored = restored
    const { config, row } = setup
    this.#mode = new SessionMode(restored?.permissionMode ?? config.permissionMode ?? 'default', {
      ...{ row, clock: setup.clock, tell: (event) => this.#emit(event) },
      giveUp: (detail) => this.#turn?.giveUp(detail),
    })
    this.#isFresh = restored?.isFresh ?? true
    this.#hasTranscript = restored?.hasTranscript ?? false
    this.#numTurns = restored?.numTurns ?? 0
    const isNew = !restored && config.resume === undefined
    this.#cost = new SessionCost(restored ?? { costUsd: 0, ...(isNew && { agentCostUsd: 0 }) })
    this.#granted = new GrantedTools(setup)
    this.#calls = new ToolCalls(row.acp?.toolName)
    this.#translator = new AcpTranslator({
      emit: (event) => this.#emit(event),
      withDeltas: config.includePartialMessages ?? true,
      calls: this.#calls,
      traits: row.acp,
      cost: this.#cost,
      title: restored?.title,
    })
    this.#asks = new AgentAsks({
      ...{ row, calls: this.#calls, translator: this.#translator, mode: this.#mode, granted: this.#granted },
      turn: () => this.#turn,
      host: () => this.#host!,
      interrupt: () => void this.interrupt(),
    })
    this.capabilities = {
      permissionModes: [...row.permissionModes],
      parking: 'none',
      setModel: true,
      resume: row.acp?.resume ?? false,
      fork: row.acp?.fork ?? false,
      files: false,
      updatedInput: false,
    }
  }

  get written(): Written {
    return { sessionId: this.#sdkSessionId }
  }

  /** Whether the agent's process was ended: it did not listen, or would have left running what was interrupted. */
  get isSpent(): boolean {
    return this.#isSpent
  }

  async start(host: RunnerHost): Promise<void> {
    this.#host = host
    if (this.#pausing.over) await this.#pausing.passed(host.signal)
    const launch = await beginLaunch(this.#setup, host.signal)
    try {
      if (this.#closing) throw startError('The session was closed.')
      const agent = this.#pausing.of(
        launch.spawn(this.#setup.command, [...this.#setup.row.args, ...this.#granted.args]),
      )
      this.#process = agent
      const misshapen = new Misshapen(this.#setup)
      this.#connection = connectAcp(agent, {
        onUpdate: (update, sessionId) => this.#update(update, sessionId),
        onPermission: (...asked) => this.#asks.answer(...asked),
        onUnreadable: ({ type, problem }) => misshapen.tell(type, problem),
      })
      const ended = this.#connection.closed.then(() => this.#end(agent))
      this.#ended = ended
      await Promise.race([
        this.#open(this.#connection).catch((error) => instead(ended, error)),
        ended.then((detail) => Promise.reject(startError(detail))),
        whenAborted(launch.signal).then(() => Promise.reject(LATE)),
        this.#flooded.promise.then(() => Promise.reject(startError(TOO_MUCH))),
      ])
    } catch (error) {
      await this.close()
      throw error === LATE ? lateStart(this.#process, this.#isIntroduced ? undefined : UNANSWERED) : error
    } finally {
      await launch.end()
    }
  }

  send(text: string): void {
    this.#turn = new Turn({
      clock: this.#setup.clock,
      connection: this.#connection!,
      sessionId: this.#sdkSessionId,
      row: this.#setup.row,
      // what it says may be left unread
      isBusy: () => this.#host?.drained !== undefined || this.#calls.open().some(({ isDenied }) => !isDenied),
      tell: (event) => this.#emit(event),
      giveUp: () => {
        this.#isSpent = true
        return this.#process!.stop()
      },
    })
    this.#afterwards?.cancel()
    this.#translator.startTurn()
    this.#mode.startTurn(this.#config!)
    void this.#prompt(text, this.#turn)
  }

  /** What it said after its turn, which may not be all of it. */
  tellRest(): void {
    this.#afterwards?.cancel()
    // what is replayed as a session opens is told whole
    if (!this.#turn && this.#isOpen) this.#translator.flush()
  }

  pause = (): void => this.#pausing.pause()

  resume = (): void => this.#pausing.resume()

  async interrupt(): Promise<void> {
    await this.#turn?.interrupt()
  }

  async setPermissionMode(mode: PermissionMode): Promise<void> {
    await this.#control(async (session) => {
      await this.#mode.enter(session, mode, true)
      this.#emit({ type: 'permission_mode_changed', mode })
    })
  }

  async setModel(model: string | undefined): Promise<void> {
    await this.#control(async (session) => {
      await session.setModel(model)
      const chosen = session.model ?? model
      this.#translator.model = chosen ?? ''
      this.#emit({ type: 'model_changed', ...(chosen && { model: chosen }) })
    })
  }

  #snapshot(): RunnerSnapshot {
    const { model, defaultModel } = this.#config ?? {}
    const state: AcpState = {
      agent: this.#setup.row.name,
      sdkSessionId: this.#sdkSessionId,
      permissionMode: this.#mode.current,
      ...(model && { model }),
      ...(defaultModel && { defaultModel }),
      isFresh: this.#isFresh,
      ...(this.#hasTranscript && { hasTranscript: true }),
      numTurns: this.#numTurns,
      ...this.#cost.state,
      ...(this.#translator.title !== undefined && { title: this.#translator.title }),
    }
    return { engine: 'cli', state }
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      this.#gone.abort()
      this.#afterwards?.cancel()
      this.#turn?.drop()
      await this.#process?.stop()
    })()
    return this.#closing
  }

  async #open({ agent }: AcpConnection): Promise<void> {
    const { config } = this.#setup
    // The agent looks its directory up by name: the name must still lead to where the process was started.
    if ((await realpath(config.cwd).catch(() => '')) !== config.cwd) throw startError('The working directory is gone.')
    const resume = this.#restored?.sdkSessionId ?? config.resume
    this.#translator.isReplaying = resume !== undefined
    // some begin an empty session under the old id
    if (this.#restored?.hasTranscript && (await hasTranscript(this.#setup, resume!)) === false) throw stateGone()
    const loading = resume === undefined ? undefined : await prepareLoad(this.#setup, resume, this.#gone.signal)
    const prior =
      !this.#restored && resume !== undefined ? priorCostUsd(this.#setup, resume, this.#gone.signal) : undefined
    const earlier = resume === undefined ? undefined : this.#earlier(resume)
    const hello = await introduce(agent)
    this.#isIntroduced = true
    const session = await openSession(agent, this.#setup, hello, earlier)
    if (session.isResumed && this.#setup.row.acp?.replaysLate) await this.#commandsTold.promise
    const cost = session.isResumed ? await prior : 0
    if (cost !== undefined) this.#cost.startFrom(cost)
    if (session.isResumed) await loading?.tidy()
    this.#translator.endTurn()
    this.#translator.isReplaying = false
    this.#sdkSessionId = session.sessionId
    if (session.canResume) this.snapshot = () => this.#snapshot()
    this.#config = sessionConfig(agent, session.sessionId, session.answer, this.#restored?.defaultModel)
    await this.#configure(this.#config)
    if (this.#setup.row.acp?.listsToolsLate && this.#setup.hostedTools)
      await within(LISTING_MS, this.#setup.hostedTools.listed)
    const init = await systemInit(this.#setup, session, this.#config.model, this.#mode.current)
    this.#isOpen = true
    this.#emit(init)
    const { hostedTools } = this.#setup
    if (hostedTools && !session.servers.includes(hostedTools.server)) this.#emit(TOOLS_MISSING)
    if (this.#config.models.length > 0 || this.#commands.length > 0) this.#tellCapabilities()
    for (const event of this.#early.splice(0)) this.#emit(event)
    this.#mode.opened(this.#config)
  }

  #earlier(sessionId: string) {
    return {
      sessionId,
      orNew: this.#restored?.isFresh ?? false,
      isOurs: this.#restored !== undefined,
      fork: !this.#restored && Boolean(this.#setup.config.forkSession),
      hasHistory: () => this.#translator.hasHistory,
    }
  }

  async #configure(session: SessionConfig): Promise<void> {
    const model = this.#restored ? this.#restored.model : this.#setup.config.model
    try {
      if (model !== undefined && model !== session.model) await session.setModel(model)
      await this.#mode.enter(session, this.#mode.current)
    } catch (error) {
      throw startError(`The agent refused: ${reasonOf(error)}`, error)
    }
    this.#translator.model = session.model
  }

  async #prompt(text: string, turn: Turn): Promise<void> {
    const startedAt = performance.now()
    const end = await turn.take(text, (toldTokens) => {
      this.#translator.flush()
      return whyUnanswered(this.#setup.row, { text, toldTokens, said: this.#translator, commands: this.#commands })
    })
    // That the agent itself is gone is told by its end.
    if (!end) return
    if (end.subtype === 'interrupted' && this.#setup.row.acp?.runsOn && this.#calls.open().some(hasBegun)) {
      this.#isSpent = true
      await this.#process?.stop()
    }
    this.#turn = undefined
    if (end.subtype === 'success') this.#isFresh = false
    if (!this.#isFresh && !this.#hasTranscript)
      this.#hasTranscript = (await hasTranscript(this.#setup, this.#sdkSessionId).catch(() => undefined)) ?? false
    this.#numTurns += 1
    this.#translator.endTurn()
    this.#emit({
      type: 'turn_completed',
      subtype: end.subtype,
      isError: end.isError,
      durationMs: Math.round(performance.now() - startedAt),
      numTurns: this.#numTurns,
      totalCostUsd: this.#cost.totalUsd,
      usage: end.usage ?? this.#translator.usage,
      ...(end.errors && { errors: end.errors }),
      ...(end.subtype === 'success' && this.#translator.lastText && { result: this.#translator.lastText }),
    })
  }

  /** @returns how the agent ended, in a sentence */
  async #end(agent: AgentProcess): Promise<string> {
    const last = await agent.lastWords()
    const breach = this.#connection?.breach
    const detail = breach ? `${breach} ${last}` : last
    if (this.#isOpen && !this.#closing && !this.#isSpent) {
      this.#translator.flush()
      this.#emit(agentDied(detail, this.snapshot && !this.#isFresh ? this.#sdkSessionId : undefined))
      void this.close()
    }
    return detail
  }

  #update(update: SessionUpdate, sessionId: string): void {
    if (!this.#isOpen && this.#endsIfFlooding()) return
    this.#turn?.heard()
    if (!this.#turn && this.#isOpen && !this.#closing) {
      this.#afterwards?.cancel()
      this.#afterwards = this.#setup.clock.after(AFTERWARDS_MS, () => this.tellRest())
    }
    // The id of a session that is being opened is not known yet.
    if (this.#isOpen && sessionId !== this.#sdkSessionId) {
      this.#translator.translate(update, sessionId)
      return
    }
    if (update.sessionUpdate === 'available_commands_update') {
      this.#commandsTold.resolve()
      this.#commands = update.availableCommands
      // before that its models are not known
      if (this.#isOpen) this.#tellCapabilities()
    }
    if (update.sessionUpdate === 'current_mode_update')
      this.#mode.agentIs(update.currentModeId, this.#config, this.#isOpen)
    if (update.sessionUpdate === 'config_option_update') this.#choicesAre(update.configOptions)
    this.#translator.translate(update)
  }

  /** One that has said too much to be opened is read no more, and its start fails. @returns whether it has */
  #endsIfFlooding(): boolean {
    const agent = this.#process!
    if (agent.saidBytes - this.#saidInVain <= MAX_SAID_OPENING) return false
    agent.leaveUnread(agent.exited.then(() => {}))
    this.#flooded.resolve()
    return true
  }

  /** Its mode or its model, where both are options of its own. */
  #choicesAre(options: SessionConfigOption[]): void {
    const { mode, model } = chosenIn(options)
    if (mode !== undefined) this.#mode.agentIs(mode, this.#config, this.#isOpen)
    if (model === undefined || !this.#config?.modelIs(model) || !this.#isOpen) return
    this.#translator.model = model
    this.#emit({ type: 'model_changed', model })
  }

  #tellCapabilities(): void {
    this.#emit(capabilities(this.#config?.models ?? [], this.#commands))
  }

  #control(command: (session: SessionConfig) => Promise<void>): Promise<void> {
    const run = async () => {
      if (!this.#config) throw new Error('The agent does not run.')
      await command(this.#config).catch(async (error) => {
        throw this.#connection?.signal.aborted ? new Error(await this.#ended) : error
      })
    }
    return control(() => answered(run(), this.#setup.clock), reasonOf)
  }

  /** What comes while the session is being opened is told after it is. */
  #emit(event: RunnerEvent): void {
    if (!this.#isOpen) {
      const said = this.#process?.saidBytes ?? 0
      // a session that goes on has told it already
      if (this.#restored && 'replay' in event) this.#saidInVain += said - this.#saidUntil
      else this.#early.push(event)
      this.#saidUntil = said
      return
    }
    this.#host!.emit(event)
    const { drained } = this.#host!
    if (drained) this.#process?.leaveUnread(drained)
  }
}
