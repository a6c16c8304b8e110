import { setMaxListeners } from 'node:events'
import { setImmediate as nextTick } from 'node:timers/promises'
import type { ToolSet } from 'ai'
import { type PermissionMode, PROVIDER_PERMISSION_MODES } from '../../../schemas/permissions.js'
import { GatewayError } from '../../errors.js'
import { onceAborted } from '../../lib/aborted.js'
import type { Clock } from '../../lib/clock.js'
import { Hold } from '../../lib/hold.js'
import type {
  ExecutionResult,
  Runner,
  RunnerCapabilities,
  RunnerEvent,
  RunnerHost,
  RunnerSnapshot,
  SessionRunnerConfig,
} from '../runner.js'
import { NO_USAGE } from '../token-usage.js'
import { CallDesk } from './calls.js'
import type { ScratchFiles } from './files.js'
import { callIdAsShown } from './kept-answer.js'
import type { McpConnections } from './mcp.js'
import { toolSet } from './model-call.js'
import type { ModelSource } from './models.js'
import { changeModel, type SessionState, type TurnState, toSnapshot } from './state.js'
import type { ToolBox } from './tool.js'
import { toolCallIds, userMessage } from './transcript-messages.js'
import { runTurn, type TurnContext } from './turn.js'
import type { ModelPrice } from './usage.js'

/** What a session is made of when its runner is built. */
export interface ProviderSession {
  config: SessionRunnerConfig
  source: ModelSource
  defaultModel: string
  state: SessionState
  files: ScratchFiles
  tools: ToolBox
  mcp: Pick<McpConnections, 'servers' | 'close'>
  system: string
  prices: Record<string, ModelPrice>
  maxOutputTokens: number | undefined
  clock: Clock
}

interface ActiveTurn {
  controller: AbortController
  /** As `clock.steady` counts, moved on by the time the turn spent in snapshots. */
  startedAt: number
  done: Promise<void>
}

/** A session of the `provider` engine: the AI SDK asks the model, the tools run here, and everything between two steps is plain JSON. */
export class ProviderRunner implements Runner {
  readonly capabilities: RunnerCapabilities = {
    permissionModes: [...PROVIDER_PERMISSION_MODES],
    parking: 'native',
    setModel: true,
    resume: false,
    fork: false,
    files: true,
  }
  readonly files: ScratchFiles
  readonly #session: ProviderSession
  readonly #tools: ToolSet
  /** As other models are shown them, which each id is one of: a model may take up what it was shown. */
  readonly #callIds: Set<string>
  readonly #warned = new Set<string>()
  #host: RunnerHost | undefined
  #calls: CallDesk | undefined
  #active: ActiveTurn | undefined
  #isClosed = false
  readonly #hold = new Hold()

  constructor(session: ProviderSession) {
    const { messages, turn } = session.state
    this.#session = session
    this.files = session.files
    this.#tools = toolSet(session.tools.all())
    const ids = toolCallIds(turn?.work ? [...messages, turn.work.answer] : messages)
    this.#callIds = new Set([...ids].map(callIdAsShown))
  }

  /** A turn that the snapshot had in progress goes on in the next turn of the event loop, after results that are handed over at once. */
  async start(host: RunnerHost): Promise<void> {
    const { state, config, tools, source, mcp } = this.#session
    this.#host = host
    const interrupt = () => this.#active?.controller.abort()
    this.#calls = new CallDesk({ ...this.#session, host, hold: this.#hold, interrupt }, this.#emit)
    this.#emit({
      type: 'system_init',
      sdkSessionId: state.sdkSessionId,
      model: state.model,
      cwd: config.cwd,
      apiKeySource: source.apiKeySource,
      permissionMode: state.permissionMode,
      tools: tools.names,
      skills: [],
      slashCommands: [],
      mcpServers: mcp.servers,
    })
    const models = source.models ?? [state.model]
    this.#emit({
      type: 'capabilities',
      models: models.map((value) => ({ value, displayName: value })),
      commands: [],
    })
    if (state.turn) this.#begin(state.turn, host, this.#calls)
  }

  send(text: string): void {
    if (!this.#host || !this.#calls || this.#isClosed) throw new GatewayError('SG_ERR_SESSION_ENDED')
    if (this.#active) throw new GatewayError('SG_ERR_SESSION_BUSY')
    const { state } = this.#session
    const turn = { elapsedMs: 0, steps: 0, usage: NO_USAGE, work: null }
    state.messages.push(userMessage(text))
    state.turn = turn
    this.#begin(turn, this.#host, this.#calls)
  }

  async interrupt(): Promise<void> {
    this.#active?.controller.abort()
    await this.#active?.done
  }

  /** @throws {GatewayError} `SG_ERR_PERMISSION_MODE` for a mode that only other engines have */
  async setPermissionMode(mode: PermissionMode): Promise<void> {
    if (!PROVIDER_PERMISSION_MODES.includes(mode)) throw new GatewayError('SG_ERR_PERMISSION_MODE')
    this.#session.state.permissionMode = mode
    this.#emit({ type: 'permission_mode_changed', mode })
  }

  /**
   * From the next model call on.
   * @param model undefined: the model that the session began with
   * @throws {GatewayError} `SG_ERR_UNSUPPORTED` for a model that the profile does not list
   */
  async setModel(model: string | undefined): Promise<void> {
    const { source, state, defaultModel } = this.#session
    if (model !== undefined) assertListed(source, model)
    changeModel(state, model ?? defaultModel)
    this.#emit({ type: 'model_changed', model: state.model })
  }

  pause(): void {
    this.#hold.put()
  }

  resume(): void {
    this.#hold.lift()
  }

  settleExecution(executionId: string, result: ExecutionResult): void {
    this.#calls?.settle(executionId, result)
  }

  /** Taken while a tool runs, it is still sound: that call is not run again, and the model is told so. */
  snapshot(): RunnerSnapshot {
    const { state, files } = this.#session
    if (state.turn && this.#active) state.turn.elapsedMs = this.#elapsed(this.#active)
    return toSnapshot(state, files.save())
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.interrupt()
    await this.#session.mcp.close()
  }

  #begin(turn: TurnState, host: RunnerHost, calls: CallDesk): void {
    const controller = new AbortController()
    // each of its calls waits for it
    setMaxListeners(0, controller.signal)
    const forget = onceAborted(host.signal, () => {
      this.#isClosed = true
      controller.abort()
    })
    const active: ActiveTurn = {
      controller,
      startedAt: this.#session.clock.steady() - turn.elapsedMs,
      done: Promise.resolve(),
    }
    this.#active = active
    active.done = this.#run(turn, calls, active).finally(forget)
  }

  async #run(turn: TurnState, calls: CallDesk, active: ActiveTurn): Promise<void> {
    await nextTick()
    const { state } = this.#session
    const outcome = await runTurn(this.#turnContext(calls), turn, active.controller.signal)
    // Before the event, because whoever hears it may take a snapshot or send the next message at once.
    state.turn = null
    this.#active = undefined
    this.#emit({
      type: 'turn_completed',
      ...outcome,
      isError: outcome.subtype !== 'success' && outcome.subtype !== 'interrupted',
      durationMs: this.#elapsed(active),
      numTurns: state.totals.numTurns,
      totalCostUsd: state.totals.costUsd,
      usage: turn.usage,
    })
  }

  #turnContext(calls: CallDesk): TurnContext {
    const { system, maxOutputTokens } = this.#session
    const claimId = (id: string) => {
      const shown = callIdAsShown(id)
      const isFree = !this.#callIds.has(shown)
      this.#callIds.add(shown)
      return isFree
    }
    return {
      ...this.#session,
      calls,
      request: {
        ...{ system, tools: this.#tools, claimId, maxOutputTokens, onWarning: this.#onWarning },
        drained: (signal) =>
          this.#hold.over ? this.#hold.passed(signal).then(() => this.#host?.drained) : this.#host?.drained,
      },
      hold: this.#hold,
      emit: this.#emit,
    }
  }

  #elapsed({ startedAt }: ActiveTurn): number {
    return Math.round(this.#session.clock.steady() - startedAt)
  }

  /** The SDK repeats a warning with every call; a session tells it once. */
  readonly #onWarning = (warning: unknown): void => {
    const key = JSON.stringify(warning)
    if (this.#warned.has(key)) return
    this.#warned.add(key)
    this.#emit({ type: 'engine_event', payload: { type: 'model_warning', warning } })
  }

  readonly #emit = (event: RunnerEvent): void => {
    if (!this.#isClosed) this.#host?.emit(event)
  }
}

/** @throws {GatewayError} `SG_ERR_UNSUPPORTED` for a model that the profile does not list */
export function assertListed({ models }: ModelSource, model: string): void {
  if (models && !models.includes(model)) {
    const detail = `The profile does not offer the model ${model}. It offers: ${models.join(', ')}.`
    throw new GatewayError('SG_ERR_UNSUPPORTED', { detail, errors: [{ path: 'model', message: detail }] })
  }
}
