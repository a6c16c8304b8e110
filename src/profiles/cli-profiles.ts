import { Type } from '@sinclair/typebox'
import { type DeleteSdkSessionQuery, type ListSdkSessionsQuery, SdkSession } from '../../schemas/sdk-sessions.js'
import {
  type AgentDeclaration,
  assertInstalled,
  CLAUDE_SDK,
  type CredentialProbe,
  checkCredentials,
  cliSubject,
  DEFAULT_AGENT,
  deleteSdkSession,
  listSdkSessions,
  type ProfileAsRun,
} from '../engines/cli/index.js'
import type { SessionRunnerConfig } from '../engines/runner.js'
import { GatewayError, invalidField, toError } from '../errors.js'
import type { Logger } from '../lib/logger.js'
import { type PathRoots, resolveWithinRoots } from '../lib/paths-within-roots.js'
import { present } from '../lib/present.js'
import { byText } from '../lib/sorted-list.js'
import { compileSchema } from '../lib/validation.js'
import { within } from '../lib/within.js'
import { type Principal, UNLIMITED, visible, visibleProfiles } from '../principal.js'
import { type BuildRunnerConfig, pathOrRefusal } from '../sessions/admission.js'
import type { ProfileCatalog, ResolvedProfile } from './catalog.js'

/** Lists on-disk agent sessions in place of the built-in lister; for tests. */
export type ListSdkSessions = (query: ListSdkSessionsQuery) => SdkSession[] | Promise<SdkSession[]>

export interface CliProfilesOptions {
  profiles: ProfileCatalog
  agents: readonly AgentDeclaration[] | undefined
  roots: PathRoots | undefined
  env: NodeJS.ProcessEnv
  secretEnv: readonly string[]
  logger: Logger
  /** Where warnings about credentials go. */
  notices: Logger
  /** What the host makes of a request, its environment above all. */
  buildRunnerConfig: BuildRunnerConfig | undefined
  /** A directory that sessions may start in. */
  checkIn: string
  checkCredentials: boolean | { probe?: CredentialProbe; timeoutMs?: number } | undefined
  listSdkSessions: ListSdkSessions | undefined
  /** Whether a session of the gateway goes on from an agent's own. */
  isContinued(sdkSessionId: string): Promise<boolean>
}

const DEFAULT_LIMIT = 50
const listedShape = compileSchema(Type.Array(SdkSession))
const isSeen = (listed: Partial<SdkSession> | null, principal: Principal): boolean =>
  listed?.profile === undefined || visible(principal, listed.profile)
/** What a host does not know of a session may well be `null`. */
const withoutNull = (listed: unknown): unknown =>
  typeof listed === 'object' && listed !== null && Object.values(listed).includes(null)
    ? Object.fromEntries(Object.entries(listed).filter(([, value]) => value !== null))
    : listed
/** Of one probe. */
const DEFAULT_TIMEOUT_MS = 10_000

/** What the gateway does about the profiles of command-line agents beside running their sessions. */
export class CliProfiles {
  readonly #options: CliProfilesOptions
  readonly #closing = new AbortController()

  constructor(options: CliProfilesOptions) {
    this.#options = options
  }

  /** Probes every profile's login, when that is asked for, and warns about the logged-out ones. Never rejects. */
  async checkCredentials(): Promise<void> {
    const { checkCredentials: asked, profiles, notices } = this.#options
    if (!asked) return
    const { probe, timeoutMs = DEFAULT_TIMEOUT_MS } = asked === true ? {} : asked
    await Promise.all(
      this.#resolved(UNLIMITED).map(async (profile) => {
        const subject = await this.#asSessionsRun(profile, timeoutMs)
        if (!subject) return profiles.reportCredentials(profile, 'unknown')
        await checkCredentials({
          subjects: [subject],
          ...{ logger: notices, probe, timeoutMs, claudeSdk: CLAUDE_SDK, signal: this.#closing.signal },
          onVerdict: (_profile, verdict) => profiles.reportCredentials(profile, verdict),
        })
      }),
    )
  }

  /** No agent is asked any more. */
  close(): void {
    this.#closing.abort()
  }

  /** With the environment that the host gives to a session which asks for nothing; none when the host does not say. */
  async #asSessionsRun(profile: ResolvedProfile, timeoutMs: number): Promise<ProfileAsRun | undefined> {
    const { buildRunnerConfig, checkIn } = this.#options
    if (!buildRunnerConfig) return this.#subject(profile)
    const { name, defaults } = profile.info
    const request = { ...defaults, cwd: checkIn, profile: name }
    const asking = (async () => buildRunnerConfig(request))().catch(() => undefined)
    const built = await within(timeoutMs, asking)
    return built && this.#subject(profile, built)
  }

  /**
   * The sessions that the agents themselves keep on disk, newest first, of the profiles that the caller may see.
   * @throws SG_ERR_VALIDATION without `dir` when roots are set · SG_ERR_CWD_FORBIDDEN · SG_ERR_PROFILE_FORBIDDEN, SG_ERR_PROFILE_UNKNOWN ·
   * SG_ERR_STORE_UNAVAILABLE
   */
  async listSdkSessions(query: ListSdkSessionsQuery, principal: Principal): Promise<SdkSession[]> {
    const { profiles, listSdkSessions: injected } = this.#options
    const dir = await this.#dirOf(query)
    await profiles.refreshed()
    if (query.profile !== undefined) profiles.resolve(query.profile, principal)
    // a lister of the host's need not say whose one is
    if (visibleProfiles(principal)?.length === 0) return []
    const page = { limit: query.limit ?? DEFAULT_LIMIT, offset: query.offset ?? 0 }
    if (injected) {
      const listed: unknown = await injected({ ...page, ...present({ dir, profile: query.profile }) })
      const seen = Array.isArray(listed) ? listed.filter((one) => isSeen(one, principal)).map(withoutNull) : listed
      const [wrong] = listedShape.errors(seen, 'listSdkSessions')
      if (wrong) throw new Error(`The host's lister gave no list of sessions. ${wrong.path}: ${wrong.message}`)
      return seen as SdkSession[]
    }
    const wanted = this.#resolved(principal).filter(
      ({ info }) => query.profile === undefined || info.name === query.profile,
    )
    const subjects = wanted.flatMap((profile) => this.#subject(profile) ?? [])
    return subjects.length > 0 ? this.#readable(listSdkSessions(subjects, { dir, ...page }, CLAUDE_SDK)) : []
  }

  /**
   * Deletes a session that an agent itself keeps on disk, with all that was said in it.
   * @param query the profile may be left out where there is one; `dir` is required when roots are set
   * @throws SG_ERR_VALIDATION · SG_ERR_CWD_FORBIDDEN · SG_ERR_PROFILE_REQUIRED, SG_ERR_PROFILE_FORBIDDEN, SG_ERR_PROFILE_UNKNOWN ·
   * SG_ERR_UNSUPPORTED its agent deletes none · SG_ERR_SDK_SESSION_NOT_FOUND · SG_ERR_SDK_SESSION_IN_USE · SG_ERR_ENGINE_REFUSED ·
   * SG_ERR_ENGINE_START · SG_ERR_STORE_UNAVAILABLE
   */
  async deleteSdkSession(sessionId: string, query: DeleteSdkSessionQuery, principal: Principal): Promise<void> {
    const { profiles, logger } = this.#options
    const dir = await this.#dirOf(query)
    await profiles.refreshed()
    const profile = profiles.resolve(query.profile, principal)
    if (profile.info.engine !== 'cli')
      throw invalidField('profile', 'its engine keeps no sessions of its own.', 'SG_ERR_UNSUPPORTED')
    const assertUnused = async () => {
      if (await this.#options.isContinued(sessionId)) throw new GatewayError('SG_ERR_SDK_SESSION_IN_USE')
    }
    await deleteSdkSession(this.#subjectOf(profile), { sessionId, dir, assertUnused }, CLAUDE_SDK)
    logger.info({ sdkSessionId: sessionId, profile: profile.info.name }, "an agent's own session was deleted")
  }

  /** The directory that is asked about, when one is. */
  async #dirOf({ dir }: { dir?: string }): Promise<string | undefined> {
    const { roots } = this.#options
    if (roots && dir === undefined) throw invalidField('dir', 'is required, since allowedCwdRoots is set.')
    return dir === undefined ? undefined : pathOrRefusal(await resolveWithinRoots(dir, roots), 'dir')
  }

  /** An agent that is not installed has nothing to show; the operator is told what to install. */
  async #readable(listing: Promise<SdkSession[]>): Promise<SdkSession[]> {
    try {
      return await listing
    } catch (error) {
      this.#options.logger.warn({ err: toError(error) }, 'the sessions of an agent on disk cannot be listed')
      return []
    }
  }

  /** Whether the agents that profiles run on could be started, by their names. */
  async installed(): Promise<{ agent: string; found: boolean; problem?: string }[]> {
    const { agents, env, secretEnv } = this.#options
    const byAgent = new Map(this.#resolved(UNLIMITED).map(({ info }) => [info.agent ?? DEFAULT_AGENT, info]))
    const asked = [...byAgent].sort(([a], [b]) => byText(a, b))
    return Promise.all(
      asked.map(([agent, info]) =>
        assertInstalled({ ...(agents && { agents }), env, secretEnv }, info).then(
          () => ({ agent, found: true }),
          (error) => ({ agent, found: false, problem: toError(error).message }),
        ),
      ),
    )
  }

  #resolved(principal: Principal): ResolvedProfile[] {
    const { profiles } = this.#options
    const named = profiles.list(principal).profiles.filter(({ engine }) => engine === 'cli')
    return named.flatMap(({ name }) => profiles.get(name) ?? [])
  }

  /** With the environment that the profile's sessions run in; none when its agent is not known. */
  #subject(profile: ResolvedProfile, config?: SessionRunnerConfig): ProfileAsRun | undefined {
    try {
      return this.#subjectOf(profile, config)
    } catch (error) {
      if (error instanceof GatewayError) return undefined
      throw error
    }
  }

  #subjectOf(profile: ResolvedProfile, config: SessionRunnerConfig = { cwd: '/' }): ProfileAsRun {
    const { profiles, agents, env, secretEnv } = this.#options
    const { env: pinned } = profiles.pin(config, profile)
    return cliSubject({ ...(agents && { agents }), env, secretEnv }, profile.info, pinned)
  }
}
