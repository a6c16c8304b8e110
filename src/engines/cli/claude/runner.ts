import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { PermissionMode } from '../../../../schemas/permissions.js'
import { GatewayError, toError } from '../../../errors.js'
import type { Runner, RunnerCapabilities, RunnerEvent, RunnerHost, RunnerSnapshot } from '../../runner.js'
import { control, whenAborted } from '../control.js'
import { configDirOf } from '../environment.js'
import { type AgentSetup, beginLaunch, type Launch, START_TIMEOUT_MS, startError } from '../launch.js'
import type { AgentProcess } from '../process.js'
import { apiKeySourceOf } from './api-key-source.js'
import { assumedInit, capabilities, systemInit } from './describe.js'
import { replayOf } from './history.js'
import { Opening } from './opening.js'
import { claudeSettings } from './options.js'
import { askPerson, guardPlan } from './permissions.js'
import { PromptStream } from './prompt-stream.js'
import type { ClaudeSdk, SdkInit, SdkInitialization, SdkMessage, SdkQuery, SdkResult, SdkStatus } from './sdk.js'
import { Totals, type TotalsState } from './totals.js'
import { ClaudeTranslator } from './translate.js'

/** Seconds. A call may wait for a person; for how long is the gateway's to decide. */
const HOOK_TIMEOUT_S = 10 * 365 * 24 * 3600

export interface ClaudeSetup extends AgentSetup {
  readonly sdk: ClaudeSdk
  /** Where the SDK is loaded from, for the thread that reads transcripts. */
  readonly sdkSpecifier: string
  /** Whether the agent would run in `bypassPermissions` here. */
  readonly canBypass: boolean
}

/** What a successor needs to go on. */
export interface ClaudeState extends TotalsState {
  agent: string
  sdkSessionId: string
  permissionMode: PermissionMode
  model?: string
  /** No turn was taken, so there may be no transcript to resume. */
  isFresh: boolean
}

/**
 * Runs Claude through its Agent SDK: one process per session, prompts in as a stream, messages out as one.
 *
 * `start` waits for the agent's own account of the session before anything is asked of a model. A turn ends with the result that
 * answers its prompt; what works in the background may take turns in between.
 */
export class ClaudeRunner implements Runner {
  readonly capabilities: RunnerCapabilities
  readonly #setup: ClaudeSetup
  readonly #restored: ClaudeState | undefined
  readonly #prompts = new PromptStream()
  readonly #translator: ClaudeTranslator
  readonly #opening = new Opening()
  #host: RunnerHost | undefined
  #query: SdkQuery | undefined
  #process: AgentProcess | undefined
  #sdkSessionId = ''
  #mode: PermissionMode
  #model: string | undefined
  #isFresh: boolean
  #isOpen = false
  #initialization: SdkInitialization = {}
  #isOauth = false
  /** Id of the prompt whose turn is in progress. */
  #turn: string | undefined
  #interrupting = false
  #closing: Promise<void> | undefined

  constructor(setup: ClaudeSetup, restored: ClaudeState | undefined) {
    this.#setup = setup
    this.#restored = restored
    const { config, row } = setup
    this.#mode = restored?.permissionMode ?? config.permissionMode ?? 'default'
    this.#model = restored ? restored.model : config.model
    this.#isFresh = restored?.isFresh ?? true
    const emit = (event: RunnerEvent) => this.#emit(event)
    this.#translator = new ClaudeTranslator(emit, config.includePartialMessages ?? true, new Totals(restored))
    this.capabilities = {
      permissionModes: row.permissionModes.filter((mode) => mode !== 'bypassPermissions' || setup.canBypass),
      parking: 'none',
      setModel: true,
      resume: true,
      fork: true,
      files: false,
    }
  }

  async start(host: RunnerHost): Promise<void> {
    this.#host = host
    const signal = AbortSignal.any([host.signal, AbortSignal.timeout(START_TIMEOUT_MS)])
    const launch = await beginLaunch(this.#setup, signal)
    try {
      if (this.#closing) throw startError('The session was closed.')
      const query = this.#createQuery(launch)
      this.#query = query
      const ended = this.#consume(query)
      await Promise.race([
        this.#open(query),
        ended.then((detail) => Promise.reject(startError(detail))),
        whenAborted(signal).then(() => Promise.reject(startError('The agent did not start in time.'))),
      ])
      // The next agent may start while this one's history is read.
      await launch.end()
      await this.#replay()
    } catch (error) {
      await this.close()
      throw error instanceof GatewayError ? error : startError(toError(error).message, error)
    } finally {
      await launch.end()
    }
  }

  send(text: string): void {
    this.#turn = randomUUID()
    this.#interrupting = false
    this.#isFresh = false
    this.#prompts.push({
      type: 'user',
      uuid: this.#turn,
      message: { role: 'user', content: text },
      parent_tool_use_id: null,
    })
  }

  async interrupt(): Promise<void> {
    if (this.#turn === undefined) return
    this.#interrupting = true
    await this.#query?.interrupt()
  }

  async setPermissionMode(mode: PermissionMode): Promise<void> {
    await this.#control((query) => query.setPermissionMode(mode))
    this.#modeIs(mode)
  }

  async setModel(model: string | undefined): Promise<void> {
    await this.#control((query) => query.setModel(model))
    this.#model = model
    this.#emit({ type: 'model_changed', ...(model !== undefined && { model }) })
  }

  snapshot(): RunnerSnapshot {
    const state: ClaudeState = {
      agent: this.#setup.row.name,
      sdkSessionId: this.#sdkSessionId,
      permissionMode: this.#mode,
      ...(this.#model !== undefined && { model: this.#model }),
      isFresh: this.#isFresh,
      ...this.#translator.totals.state,
    }
    return { engine: 'cli', state }
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      this.#prompts.end()
      await this.#process?.stop()
      this.#query?.close()
    })()
    return this.#closing
  }

  async #replay(): Promise<void> {
    const { config, env, sdkSpecifier } = this.#setup
    if (config.resume === undefined || this.#restored) return
    for (const event of await replayOf(sdkSpecifier, env, config.resume)) this.#emit(event)
  }

  #createQuery(launch: Launch): SdkQuery {
    const { sdk, config, row, env } = this.#setup
    const { model: _asked, ...rest } = config
    const settings = claudeSettings({
      config: { ...rest, permissionMode: this.#mode, ...(this.#model !== undefined && { model: this.#model }) },
      command: row.command,
      resume: this.#isFresh ? undefined : this.#restored?.sdkSessionId,
    })
    this.#sdkSessionId = settings.sessionId ?? settings.resume ?? ''
    const configDir = configDirOf(row, env)
    const plans = configDir && join(configDir, 'plans')
    return sdk.query({
      prompt: this.#prompts,
      options: {
        ...settings,
        env,
        canUseTool: async (...call) => {
          // The question overtakes the messages that are still on their way from the SDK; the call itself must be told first.
          await new Promise(setImmediate)
          this.#translator.flush()
          return askPerson(this.#host!, ...call)
        },
        hooks: {
          PreToolUse: [
            {
              hooks: [async (call) => (this.#mode === 'plan' ? guardPlan(call, plans) : {})],
              timeout: HOOK_TIMEOUT_S,
            },
          ],
        },
        spawnClaudeCodeProcess: (request) => {
          this.#process = launch.spawn(request.command, request.args, request.env)
          return this.#process.child
        },
      },
    })
  }

  /** Reads until the agent's end. @returns how it ended, in a sentence */
  async #consume(query: SdkQuery): Promise<string> {
    let failure = ''
    try {
      for await (const message of query) this.#receive(message)
    } catch (error) {
      failure = toError(error).message
    }
    const detail = [failure, await this.#process?.lastWords()].filter(Boolean).join(' ')
    if (this.#isOpen && !this.#closing) {
      this.#emit({ type: 'session_error', message: detail, code: 'SG_ERR_ENGINE_FAILED' })
      void this.close()
    }
    return detail
  }

  /** Learns all about the session that can be known without a model, and tells it. */
  async #open(query: SdkQuery): Promise<void> {
    // The SDK's own binary needs not be asked for its version first.
    if (this.#setup.row.command === undefined) this.#opening.ask(this.#prompts)
    const initialization = await query.initializationResult()
    const init =
      (await this.#opening.report(initialization, this.#prompts, this.#translator.totals)) ??
      assumedInit(initialization, this.#setup, {
        sdkSessionId: this.#sdkSessionId,
        model: this.#model,
        mode: this.#mode,
      })
    this.#sdkSessionId = init.session_id
    this.#mode = init.permissionMode as PermissionMode
    this.#model = init.model
    this.#isOpen = true
    this.#initialization = initialization
    this.#isOauth = apiKeySourceOf(initialization.account, init.apiKeySource) === 'oauth'
    this.#emit(systemInit(init, initialization, this.#setup))
    this.#emit(capabilities(initialization))
  }

  #receive(message: SdkMessage): void {
    if (!this.#isOpen) this.#opening.receive(message)
    else if (message.type === 'result') this.#receiveResult(message)
    else if (message.type !== 'system') this.#translator.translate(message)
    else if (message.subtype === 'init') this.#receiveInit(message)
    else this.#receiveStatus(message)
  }

  #receiveStatus(message: SdkStatus): void {
    // An interrupt that comes before the agent has taken the prompt up is lost.
    if (this.#interrupting && message.status === 'requesting') void this.#query?.interrupt().catch(() => {})
    if (message.permissionMode) this.#modeIs(message.permissionMode as PermissionMode)
    // Said before every call of the model, and after.
    if (message.subtype === 'status' && (!message.status || message.status === 'requesting')) return
    this.#translator.translate(message)
  }

  /** It comes before every turn. */
  #receiveInit(init: SdkInit): void {
    this.#translator.flush()
    this.#sdkSessionId = init.session_id
    this.#tellIfOauth(init)
    this.#modeIs(init.permissionMode as PermissionMode)
    if (init.model === this.#model) return
    this.#model = init.model
    this.#emit({ type: 'model_changed', model: init.model })
  }

  /** Said too late to hold a prompt back, and still said: a gateway may refuse such sessions. */
  #tellIfOauth(init: SdkInit): void {
    if (this.#isOauth || apiKeySourceOf(this.#initialization.account, init.apiKeySource) !== 'oauth') return
    this.#isOauth = true
    this.#emit(systemInit(init, this.#initialization, this.#setup))
  }

  #receiveResult(result: SdkResult): void {
    const answered = result.user_message_uuids
    const isOther = this.#turn !== undefined && answered !== undefined && !answered.includes(this.#turn)
    if (isOther) {
      // Its tokens are counted with the turn that it came in between of.
      this.#translator.flush()
      return
    }
    this.#turn = undefined
    this.#translator.complete(result, this.#interrupting)
    this.#interrupting = false
    void this.#tellContextUsage()
  }

  async #tellContextUsage(): Promise<void> {
    const usage = await this.#query?.getContextUsage({ detail: 'summary' }).catch(() => undefined)
    if (!usage || this.#closing) return
    const { totalTokens, maxTokens, percentage } = usage
    this.#emit({ type: 'context_usage', usage: { totalTokens, maxTokens, percentage } })
  }

  #control(command: (query: SdkQuery) => Promise<void>): Promise<void> {
    return control(
      async () => {
        if (!this.#query) throw new Error('The agent does not run.')
        await command(this.#query)
      },
      (error) => toError(error).message,
    )
  }

  #modeIs(mode: PermissionMode): void {
    if (mode === this.#mode) return
    this.#mode = mode
    this.#emit({ type: 'permission_mode_changed', mode })
  }

  #emit(event: RunnerEvent): void {
    this.#host?.emit(event)
  }
}
