import { Type } from '@sinclair/typebox'
import { Dictionary, Milliseconds } from '../../schemas/common.js'
import { CLI_PERMISSION_MODES, type PermissionMode, PROVIDER_PERMISSION_MODES } from '../../schemas/permissions.js'
import type { ProfileInfo } from '../../schemas/profiles.js'
import { CreateSessionRequest, type Engine } from '../../schemas/sessions.js'
import { lackOf, letGo } from '../engines/built-runner.js'
import type {
  ClientBridge,
  CreateEngineRunner,
  CutOffTurn,
  DeferredTool,
  EngineRunnerContext,
  Runner,
  RunnerCapabilities,
  RunnerSnapshot,
  SessionRunnerConfig,
} from '../engines/runner.js'
import { type FieldError, GatewayError, invalidField, isOf } from '../errors.js'
import type { Clock } from '../lib/clock.js'
import { assertMeta, copyOf, isRecord, metaProblem } from '../lib/json-value.js'
import { type PathResult, type PathRoots, resolveWithinRoots } from '../lib/paths-within-roots.js'
import type { Standstill } from '../lib/standstill.js'
import { type Checker, compileSchema } from '../lib/validation.js'
import { type Principal, UNLIMITED } from '../principal.js'
import type { ProfileCatalog, ResolvedProfile } from '../profiles/catalog.js'

const requestChecker: Checker<CreateSessionRequest> = compileSchema(CreateSessionRequest)

const { cwd: _cwd, permissionMode: _mode, capabilities: _granted, ...ofRequest } = CreateSessionRequest.properties
/**
 * What the form of a config must be, beside what policy refuses as it does in a request; more may be in it, for an engine of the host. A
 * limit that is a text would be one that nothing reaches.
 */
const hostConfigChecker = compileSchema(
  Type.Object({
    ...ofRequest,
    capabilities: Type.Optional(Type.Array(Type.String())),
    env: Type.Optional(Dictionary(Type.Union([Type.String(), Type.Undefined()]))),
    defaultApprovalTimeoutMs: Type.Optional(Milliseconds(0)),
    agentOptions: Type.Optional(Type.Object({})),
  }),
)

export type BuildRunnerConfig = (request: CreateSessionRequest) => SessionRunnerConfig | Promise<SessionRunnerConfig>

export interface AdmissionOptions {
  clock: Clock
  profiles: ProfileCatalog
  roots: PathRoots | undefined
  disableBypassPermissions: boolean
  buildRunnerConfig: BuildRunnerConfig | undefined
  /** What every engine is given, beside its own tools. */
  deferredTools: readonly DeferredTool[]
  /** By engine name. */
  engines: { cli: CreateEngineRunner; provider: CreateEngineRunner | undefined }
  /** Refuses what the agent of a profile does not have; absent: that shows when it is built. */
  assertSuitsAgent?: ((profile: ProfileInfo, request: SessionRunnerConfig) => void) | undefined
  /** No engine is built while it stands still; absent: it never does. */
  standstill?: Standstill | undefined
}

/** What was decided about a request before an engine is built. */
export interface Admitted {
  profile: ResolvedProfile
  /** The request after defaults. */
  request: SessionRunnerConfig
  /** What `buildRunnerConfig` made of it, pinned to the profile. */
  config: SessionRunnerConfig
}

/**
 * The door that every session comes through, from REST, the library and jobs alike: each step refuses or hands on, and nothing is
 * registered before the last.
 */
export class Admission {
  readonly #options: AdmissionOptions

  constructor(options: AdmissionOptions) {
    this.#options = options
  }

  /** @param recalled the profile, when it was decided about earlier */
  async admit(
    given: CreateSessionRequest,
    principal: Principal = UNLIMITED,
    recalled?: ResolvedProfile,
  ): Promise<Admitted> {
    requestChecker.assert(given)
    assertMeta(given.meta, 'meta')
    // the host may use its own again while the disk is asked, and after that
    const request = copyOf({ ...given })
    const { profiles, roots } = this.#options
    const refreshed = recalled ? undefined : profiles.refreshed()
    if (refreshed) await refreshed
    const profile = recalled ?? profiles.resolve(request.profile, principal)
    // one promise for the disk, none for the rest: every session comes through here
    const cwd = pathOrRefusal(await resolveWithinRoots(request.cwd, roots), 'cwd')
    return this.#configure(this.#policy(withDefaults(request, profile, cwd), profile), profile)
  }

  /**
   * Lets a parked session in again: as the same profile, through the same policy, configured afresh by the host.
   * @throws SG_ERR_PROFILE_CHANGED when its profile is gone or someone else
   */
  async readmit(request: SessionRunnerConfig, profile: string, generation: string): Promise<Admitted> {
    const refreshed = this.#options.profiles.refreshed()
    if (refreshed) await refreshed
    const recalled = this.#options.profiles.recall(profile, generation)
    const asked = this.#policy({ ...request, cwd: await this.#resolveCwd(request.cwd) }, recalled)
    return this.#configure(asked, recalled)
  }

  #configure(asked: SessionRunnerConfig, profile: ResolvedProfile): Admitted | Promise<Admitted> {
    const { buildRunnerConfig } = this.#options
    const pinned = (config: SessionRunnerConfig): Admitted => ({
      profile,
      request: asked,
      config: this.#options.profiles.pin(config, profile),
    })
    // the hook gets a copy when there is one: what is kept is what was asked
    return buildRunnerConfig ? this.#hostConfig(buildRunnerConfig, copyOf(asked), profile).then(pinned) : pinned(asked)
  }

  /**
   * Refuses at once what `admit`, or the agent that is built then, would refuse later. The host's hook is not asked: where there is one,
   * what the agent is given is not known yet.
   * @param request its form was checked
   * @returns the profile and the resolved `cwd`
   */
  async examine(
    request: CreateSessionRequest,
    principal: Principal = UNLIMITED,
  ): Promise<{ profile: ResolvedProfile; cwd: string }> {
    const refreshed = this.#options.profiles.refreshed()
    if (refreshed) await refreshed
    const profile = this.#options.profiles.resolve(request.profile, principal)
    const { buildRunnerConfig, assertSuitsAgent } = this.#options
    const asked = this.#policy(withDefaults(request, profile, await this.#resolveCwd(request.cwd)), profile)
    if (profile.info.engine === 'cli' && !buildRunnerConfig) assertSuitsAgent?.(profile.info, asked)
    return { profile, cwd: asked.cwd }
  }

  /** As `examine`, the form too. @throws what `admit` would refuse it with, whatever room there is */
  async examineUnchecked(given: CreateSessionRequest, principal: Principal = UNLIMITED): Promise<void> {
    requestChecker.assert(given)
    assertMeta(given.meta, 'meta')
    await this.examine(copyOf({ ...given }), principal)
  }

  /** @throws SG_ERR_ENGINE_START, or a 400 for what the engine cannot do; the runner is closed again then */
  async buildRunner(
    { profile, config }: Admitted,
    sessionId: string,
    bridge: ClientBridge,
    restore?: RunnerSnapshot,
    cutOff: readonly CutOffTurn[] = [],
  ): Promise<Runner> {
    const { engines, deferredTools, profiles, standstill } = this.#options
    if (standstill?.stands) await standstill.goesOn
    const create = engines[profile.info.engine]
    if (!create) throw new GatewayError('SG_ERR_ENGINE_START', { detail: 'No createEngineRunner is configured.' })
    const context: EngineRunnerContext = { sessionId, config, profile: profile.info, bridge }
    if (deferredTools.length > 0) context.deferredTools = deferredTools
    if (restore) context.restore = restore
    if (cutOff.length > 0) context.cutOff = cutOff
    const fetch = profiles.fetchFor(profile.info)
    if (fetch) context.fetch = fetch
    const mayReadKey = profiles.mayReadKey(profile.info)
    if (mayReadKey !== undefined) context.mayReadKey = mayReadKey
    let runner: Runner
    let lack: string | undefined
    try {
      runner = await create(context)
      lack = lackOf(runner)
    } catch (error) {
      throw startFailure(error)
    }
    if (lack) throw new GatewayError('SG_ERR_ENGINE_START', { detail: lack })
    try {
      assertRunnerCan(config, runner.capabilities)
    } catch (refusal) {
      await letGo(runner, this.#options.clock)
      throw refusal
    }
    return runner
  }

  async #hostConfig(
    buildRunnerConfig: BuildRunnerConfig,
    asked: SessionRunnerConfig,
    profile: ResolvedProfile,
  ): Promise<SessionRunnerConfig> {
    // kept here, since the hook may write into what it is given
    const { cwd: acceptedCwd, permissionMode: acceptedMode } = asked
    let built: SessionRunnerConfig | undefined
    let wrong: FieldError | undefined
    try {
      const returned: unknown = await buildRunnerConfig(asked)
      if (isRecord(returned)) {
        // a getter of the host's may throw: each is read here, and no more
        built = { ...(returned as unknown as SessionRunnerConfig) }
        ;[wrong = metaProblem(built.meta, 'meta')] = hostConfigChecker.errors(built)
      }
    } catch (error) {
      throw startFailure(error)
    }
    if (!built) throw new GatewayError('SG_ERR_ENGINE_START', { detail: 'buildRunnerConfig returned no config.' })
    if (wrong)
      throw new GatewayError('SG_ERR_ENGINE_START', {
        detail: `buildRunnerConfig returned a config that cannot be used: ${wrong.path}: ${wrong.message}`,
      })
    // who a session runs as was decided with its caller in view
    if (built.profile !== undefined && built.profile !== profile.info.name)
      throw invalidField('profile', 'is not for buildRunnerConfig to change.', 'SG_ERR_PROFILE_FORBIDDEN')
    const cwd = built.cwd === acceptedCwd ? acceptedCwd : await this.#resolveCwd(built.cwd)
    const permissionMode = built.permissionMode ?? acceptedMode
    const own = { ...built, cwd, ...(built.meta && { meta: copyOf(built.meta) }) }
    return this.#policy({ ...own, ...(permissionMode !== undefined && { permissionMode }) }, profile)
  }

  /**
   * The policy that every way to start a session passes, on the request and again on what `buildRunnerConfig` made of it.
   * @returns the config, without a pre-authorisation that is not to be had
   */
  #policy(config: SessionRunnerConfig, { info: profile }: ResolvedProfile): SessionRunnerConfig {
    const { disableBypassPermissions } = this.#options
    if (config.permissionMode !== undefined)
      assertPermissionMode(config.permissionMode, profile.engine, disableBypassPermissions)
    if (profile.engine === 'provider' && config.mcpServers !== undefined)
      throw new GatewayError('SG_ERR_MCP_SERVERS_NOT_ALLOWED', {
        errors: [{ path: 'mcpServers', message: 'Not for provider sessions.' }],
      })
    if (config.capabilities !== undefined) assertGranted(config.capabilities, profile)
    if (config.forkSession && config.resume === undefined)
      throw invalidField('forkSession', 'needs resume, the session to fork from.')
    if (disableBypassPermissions && config.allowDangerouslySkipPermissions !== undefined) {
      const { allowDangerouslySkipPermissions: _stripped, ...rest } = config
      return rest
    }
    return config
  }

  async #resolveCwd(cwd: string): Promise<string> {
    return pathOrRefusal(await resolveWithinRoots(cwd, this.#options.roots), 'cwd')
  }
}

/** Fills in what the profile has defaults for; an explicit value wins. The mode is always explicit towards the engine. */
function withDefaults(request: CreateSessionRequest, { info }: ResolvedProfile, cwd: string): SessionRunnerConfig {
  const permissionMode = request.permissionMode ?? info.defaults?.permissionMode ?? 'default'
  const model = request.model ?? info.defaults?.model
  // spread last: V8 makes a shape for each object that something is added to after it was spread
  const config: SessionRunnerConfig = { permissionMode, ...request }
  config.permissionMode = permissionMode
  config.cwd = cwd
  if (model !== undefined) config.model = model
  return config
}

/** The resolved path, or the refusal that the contract has for why there is none. */
export function pathOrRefusal(resolved: PathResult, field: string): string {
  if (resolved.ok) return resolved.path
  switch (resolved.reason) {
    case 'outside':
      throw invalidField(field, 'lies outside the allowed roots.', 'SG_ERR_CWD_FORBIDDEN')
    case 'missing':
      throw invalidField(field, 'does not exist.', 'SG_ERR_CWD_INVALID')
    case 'not-a-directory':
      throw invalidField(field, 'is no directory.', 'SG_ERR_CWD_INVALID')
    case 'invalid':
      throw invalidField(field, 'must be an absolute path of at most 4096 bytes.', 'SG_ERR_CWD_INVALID')
  }
}

/** A refusal of ours says what to do; what a host's code threw may hold anything and goes to the log only, as the cause. */
const startFailure = (error: unknown): GatewayError =>
  isOf(GatewayError, error) && error.code !== 'SG_ERR_OPTION'
    ? error
    : new GatewayError('SG_ERR_ENGINE_START', { cause: error })

/** Refuses a permission mode that policy or the engine excludes; `at` names the field. */
export function assertPermissionMode(
  mode: PermissionMode,
  engine: Engine,
  disableBypassPermissions: boolean,
  at = 'permissionMode',
): void {
  if (mode === 'bypassPermissions' && disableBypassPermissions)
    throw new GatewayError('SG_ERR_BYPASS_DISABLED', {
      errors: [{ path: at, message: 'bypassPermissions is disabled on this gateway.' }],
    })
  const modes = engine === 'provider' ? PROVIDER_PERMISSION_MODES : CLI_PERMISSION_MODES
  if (!modes.includes(mode))
    throw invalidField(at, `a ${engine} session has ${modes.join(', ')}, not ${mode}.`, 'SG_ERR_PERMISSION_MODE')
}

/** Capabilities may only narrow what the profile grants by name. */
function assertGranted(capabilities: readonly string[], profile: ProfileInfo): void {
  if (profile.engine !== 'provider') throw invalidField('capabilities', 'only provider sessions have capabilities.')
  if (!profile.session)
    throw invalidField('capabilities', `profile ${profile.name} grants none by name.`, 'SG_ERR_CAPABILITY_NOT_GRANTED')
  const granted: readonly string[] = profile.session.capabilities ?? []
  const refused = capabilities.find((capability) => !granted.includes(capability))
  if (refused !== undefined)
    throw invalidField(
      'capabilities',
      `profile ${profile.name} does not grant ${refused}.`,
      'SG_ERR_CAPABILITY_NOT_GRANTED',
    )
}

/** Refuses what the runner that was built cannot do. */
function assertRunnerCan(config: SessionRunnerConfig, can: RunnerCapabilities): void {
  if (config.permissionMode !== undefined && !can.permissionModes.includes(config.permissionMode))
    throw invalidField(
      'permissionMode',
      `this engine has ${can.permissionModes.join(', ')}, not ${config.permissionMode}.`,
      'SG_ERR_PERMISSION_MODE',
    )
  if (config.resume !== undefined && !can.resume)
    throw invalidField('resume', 'this engine cannot resume a session.', 'SG_ERR_UNSUPPORTED')
  if (config.forkSession && !can.fork)
    throw invalidField('forkSession', 'this engine cannot fork a session.', 'SG_ERR_UNSUPPORTED')
}
