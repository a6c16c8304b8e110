import { homedir } from 'node:os'
import type {
  CreateProfileRequest,
  GetProfileResponse,
  ListProfilesResponse,
  ProfileInfo,
  ProfileOptions,
  UpdateProfileRequest,
} from '../../schemas/profiles.js'
import { type AgentDeclaration, type AgentRow, agentTable, DEFAULT_AGENT } from '../engines/cli/agent-table.js'
import type { CredentialVerdict } from '../engines/cli/credentials.js'
import { cannotDistrust } from '../engines/cli/workspace/trust.js'
import type { SessionRunnerConfig } from '../engines/runner.js'
import { aboutProfile, GatewayError, optionError, startError, unknownProfile } from '../errors.js'
import type { TakenKey } from '../idempotency/making.js'
import type { KeptKey } from '../idempotency/store.js'
import type { Clock } from '../lib/clock.js'
import type { Logger } from '../lib/logger.js'
import type { PathRoots } from '../lib/paths-within-roots.js'
import { mayManage, type Principal, visible } from '../principal.js'
import type { EgressPolicy } from '../webhooks/egress.js'
import { comparablePath, LEADS_ELSEWHERE } from './config-dir.js'
import { configDirRoots, type DeclareOptions, declareProfiles } from './declare.js'
import { generationOf } from './generation.js'
import { type ManagedProfile, ManagedProfiles } from './managed.js'
import { pinConfigDir } from './pin.js'
import { type ManagedProfileGrants, ProviderGrants } from './provider-grants.js'
import { ConfigSnapshots, emptySnapshot } from './snapshot.js'
import type { ProfileStore } from './store.js'

export interface ProfileCatalogOptions {
  /** undefined: the operator's own directory as `default`, when there is one. `[]`: none. */
  declared: readonly ProfileOptions[] | undefined
  /** Makes profiles manageable. */
  store?: ProfileStore | undefined
  /** Whether other processes change the store, too. */
  shared?: boolean | undefined
  /** Where managed `cli` profiles may point; undefined: there are none. */
  allowedConfigDirRoots?: readonly string[] | undefined
  /** What managed provider profiles may use; default nothing. */
  managedProfiles?: ManagedProfileGrants | undefined
  /** Where the models of managed profiles may be, beside the operator's endpoints. Default: public addresses. */
  egress?: EgressPolicy | undefined
  /** Where sessions may start; undefined: anywhere. */
  cwdRoots?: PathRoots | undefined
  /** Accepts config directories in which sessions may start, or that lie around such a place. */
  allowConfigDirOverlap: boolean
  hasEngineRunner: boolean
  /** Whether the host builds the runners of provider profiles, and resolves their credentials. Default: the bundled engine does. */
  isHostsEngine?: boolean | undefined
  disableBypassPermissions: boolean
  /** Beyond the built-in ones. */
  agents?: readonly AgentDeclaration[] | undefined
  /** The gateway's environment. */
  env: NodeJS.ProcessEnv
  /** Whether the gateway hosts tools for every agent. */
  servesTools?: boolean | undefined
  logger: Logger
  /** Where what every operator is to see goes; default `logger`. */
  notices?: Logger | undefined
  clock: Clock
  /** As `Clock.after`, or sooner: as soon as the store takes something again. */
  retryAfter: Clock['after']
  /** Keeps a key before a profile is saved by a store that cannot take it along. */
  keepKey?: ((key: KeptKey) => Promise<void>) | undefined
}

/** A profile at the moment it was asked for. */
export interface ResolvedProfile {
  readonly info: ProfileInfo
  /** Changes when a name comes to stand for someone else; see `generationOf`. */
  readonly generation: string
}

/** Nothing is declared: sessions run on the default engine, as the operator. */
const NO_PROFILE: ResolvedProfile = Object.freeze({
  info: Object.freeze({ name: '', engine: 'cli' as const }),
  generation: '',
})

/**
 * Every profile there is, declared and managed, and who may use which. A profile is resolved once per session; what it says later
 * does not reach sessions that run.
 */
export class ProfileCatalog {
  readonly #agents: ReadonlyMap<string, AgentRow>
  readonly #env: NodeJS.ProcessEnv
  readonly #servesTools: boolean
  readonly #notices: Logger
  readonly #declared: ReadonlyMap<string, ResolvedProfile>
  readonly #managed: ManagedProfiles | undefined
  readonly #grants: ProviderGrants
  readonly #snapshots: ConfigSnapshots
  /** By name and generation: a verdict says nothing about who comes after, nor about another one in the same directory. */
  readonly #credentials = new Map<string, CredentialVerdict>()

  /** @throws SG_ERR_OPTION, one sentence for each thing that keeps the service from starting */
  constructor(options: ProfileCatalogOptions) {
    const { store, logger, env, clock } = options
    assertNamedOnce(options.agents ?? [])
    const agents = agentTable(options.agents)
    this.#agents = agents
    for (const { name } of [...agents.values()].filter(({ modesUnknown }) => modesUnknown))
      logger.warn(
        { agent: name },
        'whether a declared agent asks before it acts is not known, and dontAsk is refused for it: name its modes in agents[].modes',
      )
    this.#env = env
    this.#servesTools = options.servesTools ?? false
    this.#notices = options.notices ?? logger
    this.#snapshots = new ConfigSnapshots(clock)
    const declare: DeclareOptions = { ...options, agents }
    this.#declared = new Map(
      declareProfiles(declare).map((info) => [info.name, { info, generation: generationOf(info) }]),
    )
    const roots = configDirRoots(options.allowedConfigDirRoots, declare)
    const grants = new ProviderGrants(options.managedProfiles, {
      env,
      policy: options.egress,
      isHostsEngine: options.isHostsEngine,
    })
    this.#grants = grants
    const parts = { roots, agents, grants, declared: this.#declared }
    this.#managed = store && new ManagedProfiles({ ...options, ...parts, store })
  }

  /**
   * Reads the store; call it once, before anything is resolved.
   * @throws SG_ERR_OPTION when what is stored cannot be read
   */
  async load(): Promise<void> {
    await this.#managed?.load()
    for (const profile of this.#all()) this.#warnOfTrust(profile)
  }

  /**
   * To be waited for before a profile is resolved, recalled, shown or listed that another process may have changed; undefined: there is
   * none. @throws SG_ERR_STORE_UNAVAILABLE
   */
  refreshed(): Promise<void> | undefined {
    return this.#managed?.refreshed()
  }

  async close(): Promise<void> {
    await this.#managed?.close()
    await this.#grants.close()
  }

  /** Of those that there are from the start on, declared or found. */
  get declaredNames(): string[] {
    return [...this.#declared.keys()]
  }

  /** Whether profiles can be created, changed and deleted at all. */
  get isManageable(): boolean {
    return this.#managed !== undefined
  }

  /**
   * The profile that a new session or job runs as.
   * @param name what the request names; absent when it names none
   * @throws SG_ERR_PROFILE_REQUIRED (400) none named and there are several · SG_ERR_PROFILE_FORBIDDEN (403) outside `allowedProfiles`,
   * there or not, named or implicit · SG_ERR_PROFILE_UNKNOWN (400) · SG_ERR_ENGINE_START (502) a stored profile that cannot run here
   */
  resolve(name: string | undefined, principal: Principal): ResolvedProfile {
    const found = name === undefined ? this.#implicit() : this.#find(name)
    if (!visible(principal, name ?? found!.info.name))
      throw aboutProfile('SG_ERR_PROFILE_FORBIDDEN', 'This caller may not use that profile.')
    if (!found) throw unknownProfile()
    return usable(found)
  }

  #implicit(): ResolvedProfile {
    const [only, second] = this.#all()
    if (second) throw aboutProfile('SG_ERR_PROFILE_REQUIRED', 'Several profiles are declared; name one.')
    return only ?? NO_PROFILE
  }

  /** The empty name, which sessions without a profile bear, exists as long as no profile is. */
  #find(name: string): ResolvedProfile | undefined {
    return this.get(name) ?? (name === '' && this.#all().length === 0 ? NO_PROFILE : undefined)
  }

  /**
   * The profile of a job or a session that was resolved earlier: as it is now, but only if it still is who it was.
   * @throws SG_ERR_PROFILE_CHANGED when it was deleted, replaced, or points elsewhere · SG_ERR_ENGINE_START when it cannot run here
   */
  recall(name: string, generation: string): ResolvedProfile {
    // A gateway that declares nothing still runs nameless sessions as the operator, whatever was created over HTTP since.
    const found = name === '' && this.#declared.size === 0 ? NO_PROFILE : this.get(name)
    if (found?.generation !== generation)
      throw new GatewayError('SG_ERR_PROFILE_CHANGED', {
        detail: `Profile ${JSON.stringify(name)} ${found ? 'now runs as someone else' : 'no longer exists'}.`,
      })
    return usable(found)
  }

  get(name: string): ResolvedProfile | undefined {
    return this.#declared.get(name) ?? this.#managed?.get(name)
  }

  #all(): ResolvedProfile[] {
    return [...this.#declared.values(), ...(this.#managed?.all() ?? [])]
  }

  /** Declared profiles in their order, then managed ones in theirs. */
  list(principal: Principal): ListProfilesResponse {
    return {
      profiles: this.#all()
        .filter(({ info }) => visible(principal, info.name))
        .map((profile) => this.#shown(profile)),
      canManage: this.isManageable && mayManage(principal),
    }
  }

  /** @throws SG_ERR_PROFILE_FORBIDDEN (403) · SG_ERR_PROFILE_NOT_FOUND (404) */
  async describe(name: string, principal: Principal): Promise<GetProfileResponse> {
    assertVisible(name, principal)
    const found = this.get(name)
    if (!found) throw new GatewayError('SG_ERR_PROFILE_NOT_FOUND')
    const { info } = found
    const row = this.agentOf(info)
    const config =
      info.configDir && row && problemOf(found) === undefined
        ? await this.#snapshots.read(info.configDir, row)
        : emptySnapshot()
    return { profile: this.#shown(found), config }
  }

  /**
   * @throws SG_ERR_PROFILES_NOT_MANAGEABLE, SG_ERR_PROFILE_FORBIDDEN (403) · SG_ERR_PROFILE_EXISTS (409) · SG_ERR_PROFILE_INVALID
   * (400) · SG_ERR_CONFIG_DIR_FORBIDDEN, SG_ERR_BYPASS_DISABLED (403)
   * @param takenKey of the request: kept in the same write
   */
  async create(request: CreateProfileRequest, principal: Principal, takenKey?: TakenKey): Promise<ProfileInfo> {
    return this.#shown(await this.authorize(principal, request.name).create(request, principal, takenKey))
  }

  /** Merges into a managed profile; `null` clears. @throws as `create`, SG_ERR_PROFILE_DECLARED (403), SG_ERR_PROFILE_NOT_FOUND (404) */
  async update(name: string, request: UpdateProfileRequest, principal: Principal): Promise<ProfileInfo> {
    return this.#shown(await this.authorizeChange(principal, name).update(name, request, principal))
  }

  /** Sessions that run go on; what is queued or parked fails when its turn comes. @throws as `update` */
  async remove(name: string, principal: Principal): Promise<void> {
    await this.authorizeChange(principal, name).remove(name)
  }

  /**
   * Whether the caller may manage, and this name: both have to hold, and neither tells whether the name exists.
   * @param name absent while it is not known yet
   */
  authorize(principal: Principal, name?: string): ManagedProfiles {
    if (!this.#managed) throw new GatewayError('SG_ERR_NOT_FOUND')
    if (!mayManage(principal)) throw new GatewayError('SG_ERR_PROFILES_NOT_MANAGEABLE')
    if (name !== undefined) assertVisible(name, principal)
    return this.#managed
  }

  /** Whether the caller may change or delete this one, whatever the body says. @throws as `authorize`, SG_ERR_PROFILE_DECLARED (403) */
  authorizeChange(principal: Principal, name: string): ManagedProfiles {
    const managed = this.authorize(principal, name)
    if (this.#declared.has(name)) throw new GatewayError('SG_ERR_PROFILE_DECLARED')
    return managed
  }

  /** The agent that runs a `cli` profile. */
  agentOf(profile: ProfileInfo): AgentRow | undefined {
    return profile.engine === 'cli' ? this.#agents.get(profile.agent ?? DEFAULT_AGENT) : undefined
  }

  /** How the models of a profile that a caller manages are reached; undefined for the operator's own, which reach anything. */
  fetchFor(profile: ProfileInfo): typeof fetch | undefined {
    return profile.managed && profile.engine === 'provider' ? this.#grants.fetchFor(profile) : undefined
  }

  /** Whether the key of a profile that a caller manages is one that the operator lists; undefined for the operator's own profiles. */
  mayReadKey({ managed, provider }: ProfileInfo): boolean | undefined {
    return managed && provider ? this.#grants.mayReadKey(provider) : undefined
  }

  /**
   * Pins a session to its profile's directory: on what `buildRunnerConfig` returned, as the last step before the engine.
   * @throws SG_ERR_ENGINE_START when a managed one cannot run, or its directory leads elsewhere by now
   */
  pin(config: SessionRunnerConfig, profile: ResolvedProfile): SessionRunnerConfig {
    const { info } = profile
    const agentRow = this.agentOf(info)
    if (!agentRow) return config
    const problem = problemOf(profile)
    if (problem !== undefined) throw cannotRun(info, problem)
    return pinConfigDir(config, info, { agentRow, env: this.#env, home: homedir() })
  }

  /** Shows the verdict of a credential probe on a profile, until the next one or until it runs as someone else. */
  reportCredentials(profile: ResolvedProfile, state: CredentialVerdict): void {
    this.#credentials.set(identityOf(profile), state)
  }

  #shown(profile: ResolvedProfile): ProfileInfo {
    const { info } = profile
    const credentials = this.#credentials.get(identityOf(profile))
    const trustsWorkspace = this.#cannotDistrust(info)
    if (!credentials && !trustsWorkspace) return info
    return { ...info, ...(trustsWorkspace && { trustsWorkspace }), ...(credentials && { credentials }) }
  }

  /** Its agent runs what files of the working directory say, whatever the profile says. */
  #cannotDistrust(info: ProfileInfo): boolean {
    const row = this.agentOf(info)
    return row !== undefined && cannotDistrust(row, info, this.#servesTools)
  }

  #warnOfTrust({ info }: ResolvedProfile): void {
    if (info.trustWorkspace === true || !this.#cannotDistrust(info)) return
    this.#notices.warn(
      { profile: info.name, agent: this.agentOf(info)?.name },
      'the agent runs what files of the working directory say (hooks, MCP servers, plugins) without asking, and cannot be kept from it here: use it only where you trust them; trustWorkspace: true says that you do',
    )
  }
}

/** A second one would change the first as it changes a built-in one, without a word about modes that nobody has named. */
function assertNamedOnce(agents: readonly AgentDeclaration[]): void {
  const again = agents.findIndex(({ name }, index) => agents.findIndex((other) => other.name === name) < index)
  if (again >= 0) throw optionError(`agents.${again}.name`, 'another agent has this name already.')
}

const identityOf = ({ info, generation }: ResolvedProfile) => `${info.name} ${generation}`

function assertVisible(name: string, principal: Principal): void {
  if (!visible(principal, name)) throw new GatewayError('SG_ERR_PROFILE_FORBIDDEN')
}

type MayBeBroken = ResolvedProfile & Partial<Pick<ManagedProfile, 'problem'>>

function usable(profile: MayBeBroken): ResolvedProfile {
  if (profile.problem === undefined) return profile
  throw cannotRun(profile.info, profile.problem)
}

const cannotRun = ({ name }: ProfileInfo, why: string) =>
  startError(`Profile ${JSON.stringify(name)} cannot run: ${why}`)

/** Why nothing of its directory is to be used: of a managed one whatever it leads to by now, too. */
const problemOf = ({ info, problem }: MayBeBroken): string | undefined =>
  problem ?? (leadsElsewhere(info) ? LEADS_ELSEWHERE : undefined)

/** A managed profile has the real path of its directory: where a link stands in it by now, whatever that leads to was never allowed. */
const leadsElsewhere = ({ managed, configDir }: ProfileInfo) =>
  managed === true && configDir !== undefined && comparablePath(configDir) !== configDir
