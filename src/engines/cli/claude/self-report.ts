import type { PermissionMode } from '../../../../schemas/permissions.js'
import type { RunnerEvent } from '../../runner.js'
import { apiKeySourceOf } from './api-key-source.js'
import { capabilities, systemInit } from './describe.js'
import type { SdkInit, SdkInitialization } from './sdk.js'
import type { ClaudeSetup, ClaudeState } from './setup.js'

/** What the agent says of itself: which session it has, in which mode and with which model, on whose credentials. Changes of it are told. */
export class SelfReport {
  sessionId = ''
  mode: PermissionMode
  model: string | undefined
  /** The last one. */
  init: SdkInit | undefined
  readonly #setup: ClaudeSetup
  readonly #restored: ClaudeState | undefined
  readonly #emit: (event: RunnerEvent) => void
  #initialization: SdkInitialization = {}
  #isOauth = false

  constructor(setup: ClaudeSetup, restored: ClaudeState | undefined, emit: (event: RunnerEvent) => void) {
    this.#setup = setup
    this.#restored = restored
    this.#emit = emit
    const { config } = setup
    this.mode = restored?.permissionMode ?? config.permissionMode ?? 'default'
    this.model = restored ? restored.model : config.model
  }

  /** Its session is open. */
  open(init: SdkInit, initialization: SdkInitialization): void {
    this.sessionId = init.session_id
    this.mode = init.permissionMode as PermissionMode
    // the report that was kept may be from before another one was chosen
    if (!this.#restored?.parked) this.model = init.model
    this.init = init
    this.#initialization = initialization
    this.#isOauth = apiKeySourceOf(initialization.account, init.apiKeySource) === 'oauth'
    this.#emit(systemInit(init, initialization, this.#setup))
    this.#emit(capabilities(initialization))
  }

  /** @param isModelChosen another model was chosen meanwhile, and this may still name the one before */
  renew(init: SdkInit, isModelChosen: boolean): void {
    this.init = init
    this.#tellIfOther(init)
    this.modeIs(init.permissionMode as PermissionMode)
    if (init.model === this.model || isModelChosen) return
    this.modelIs(init.model)
  }

  /** A login that is said too late to hold a prompt back, for a gateway may refuse such sessions; a conversation that was begun anew. */
  #tellIfOther(init: SdkInit): void {
    const isLogin = !this.#isOauth && apiKeySourceOf(this.#initialization.account, init.apiKeySource) === 'oauth'
    if (!isLogin && init.session_id === this.sessionId) return
    this.#isOauth ||= isLogin
    this.sessionId = init.session_id
    this.#emit(systemInit(init, this.#initialization, this.#setup))
  }

  modeIs(mode: PermissionMode): void {
    if (mode === this.mode) return
    this.mode = mode
    this.#emit({ type: 'permission_mode_changed', mode })
  }

  modelIs(model: string | undefined): void {
    this.model = model
    this.#emit({ type: 'model_changed', ...(model !== undefined && { model }) })
  }
}
