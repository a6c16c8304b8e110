import { isDeepStrictEqual } from 'node:util'
import {
  type CreateProfileRequest,
  type ProfileInfo,
  type ProfileOptions,
  StoredProfile,
  type UpdateProfileRequest,
} from '../../schemas/profiles.js'
import { GatewayError, invalidField, optionError, toError } from '../errors.js'
import { keptWith, type TakenKey } from '../idempotency/making.js'
import type { KeptKey } from '../idempotency/store.js'
import type { Clock } from '../lib/clock.js'
import { type CopiedStore, type Freshness, freshnessOf } from '../lib/freshness.js'
import { KeyedLock } from '../lib/keyed-lock.js'
import { newId } from '../lib/new-id.js'
import { type PathRoots, resolveWithinRoots } from '../lib/paths-within-roots.js'
import { Patience, type Persistence, patiently, patientlyInTurn, persistently, unavailable } from '../lib/patience.js'
import { type Checker, compileSchema } from '../lib/validation.js'
import { within } from '../lib/within.js'
import { type Principal, visible } from '../principal.js'
import type { ResolvedProfile } from './catalog.js'
import { comparablePath, isWritableByOthers, LEADS_ELSEWHERE } from './config-dir.js'
import { generationOf } from './generation.js'
import type { ProviderGrants } from './provider-grants.js'
import type { ProfileStore } from './store.js'
import { assertBypassAllowed, type ProfileRules, validateProfile } from './validate.js'

export interface ManagedProfile extends ResolvedProfile {
  /** Random, one per creation. */
  readonly creation: string
  /** As it is stored. */
  readonly stored: StoredProfile
  /** Why it cannot run here, although it is stored: the world changed around it. */
  readonly problem?: string
}

export interface ManagedProfilesOptions
  extends ProfileRules,
    Persistence,
    Omit<CopiedStore<ProfileStore>, 'tellOthers'> {
  clock: Clock
  /** Where `configDir` may point; undefined: only provider profiles can be managed. */
  roots: PathRoots | undefined
  declared: ReadonlyMap<string, ResolvedProfile>
  disableBypassPermissions: boolean
  grants: ProviderGrants
  /** Keeps a key before a profile is saved by a store that cannot take it along. */
  keepKey?: ((key: KeptKey) => Promise<void>) | undefined
}

/** How long a caller waits for directories that are looked at again. */
const TRYING_MS = 1000
/** So many directories are looked at at once: each that does not answer holds one of the few threads that this process has for files. */
const MOST_LOOKS = 2
/** How often a change is made anew because somebody else was faster. */
const MOST_TRIES = 10

const storedShape: Checker<StoredProfile> = compileSchema(StoredProfile)

/** The profiles of the store. Changes run one after another, and are stored before anybody sees them. */
export class ManagedProfiles {
  readonly #options: ManagedProfilesOptions
  #profiles = new Map<string, ManagedProfile>()
  readonly #changes = new KeyedLock()
  readonly #freshness: Freshness | undefined
  #isLoaded = false
  /** Until what could not run has been looked at again. */
  #trying: Promise<void> | undefined
  /** Those that are looked at now. */
  readonly #lookedAt = new Set<ManagedProfile>()

  constructor(options: ManagedProfilesOptions) {
    this.#options = options
    this.#freshness = freshnessOf(options, () => this.#read())
  }

  get(name: string): ManagedProfile | undefined {
    return this.#profiles.get(name)
  }

  all(): ManagedProfile[] {
    return [...this.#profiles.values()]
  }

  async load(): Promise<void> {
    await (this.#freshness?.check() ?? this.#read())
  }

  /**
   * Resolves when what is known is what was stored before the call, and what could not run was tried again; undefined: nobody else
   * changes anything, and all can run.
   * @throws SG_ERR_STORE_UNAVAILABLE
   */
  refreshed(): Promise<void> | undefined {
    const { clock } = this.#options
    if (!this.#freshness) return this.#triedAgain()
    const checked = patiently(clock, () => this.#freshness!.check()).catch((error) => {
      throw error instanceof GatewayError && error.statusCode < 500 ? error : unavailable(error)
    })
    return checked.then(() => this.#triedAgain())
  }

  /** A directory that was not there at the start may be mounted by now. One that does not answer keeps nobody for long. */
  #triedAgain(): Promise<void> | undefined {
    const broken = this.all().filter(({ problem }) => problem !== undefined)
    if (broken.length === 0) return undefined
    this.#trying ??= within(TRYING_MS, this.#tryAll(broken), { clock: this.#options.clock }).finally(() => {
      this.#trying = undefined
    })
    return this.#trying
  }

  /** A directory that does not answer holds up itself, and not those that are back. */
  async #tryAll(broken: readonly ManagedProfile[]): Promise<void> {
    const left = broken.values()
    const looks = async () => {
      for (const before of left) if (!this.#lookedAt.has(before)) await this.#tryAgain(before)
    }
    await Promise.all(Array.from({ length: MOST_LOOKS - this.#lookedAt.size }, looks))
  }

  async #tryAgain(before: ManagedProfile): Promise<void> {
    const { name } = before.info
    this.#lookedAt.add(before)
    const profile = await this.#admitStored(before.stored).finally(() => this.#lookedAt.delete(before))
    // not one that was changed or deleted meanwhile
    if (profile.problem === before.problem || this.#profiles.get(name) !== before) return
    this.#profiles.set(name, profile)
    if (profile.problem === undefined)
      this.#options.logger.info({ profile: name }, 'a stored profile can be used again')
  }

  async #read(): Promise<void> {
    const { store, declared, logger } = this.#options
    const profiles = new Map<string, ManagedProfile>()
    for (const stored of await this.#readStore(store)) {
      const { name } = stored
      if (profiles.has(name)) throw optionError('profileStore', `it holds two profiles named ${name}.`)
      const known = this.#profiles.get(name)
      if (known && isDeepStrictEqual(known.stored, stored)) {
        profiles.set(name, known)
        continue
      }
      if (declared.has(name)) {
        if (!this.#isLoaded)
          logger.warn({ profile: name }, 'a stored profile is hidden by a declared one of the same name')
        continue
      }
      const profile = await this.#admitStored(stored)
      if (profile.problem) logger.error({ profile: name, problem: profile.problem }, 'a stored profile cannot be used')
      profiles.set(name, profile)
    }
    this.#profiles = profiles
    this.#isLoaded = true
  }

  async #readStore(store: ProfileStore): Promise<StoredProfile[]> {
    let list: unknown
    try {
      list = await store.list()
    } catch (cause) {
      // the store's own words, which a refusal has as its cause
      const { message } = toError(cause instanceof GatewayError && cause.cause ? cause.cause : cause)
      throw new GatewayError('SG_ERR_OPTION', { detail: `profileStore: ${message}`, cause })
    }
    if (!Array.isArray(list)) throw optionError('profileStore', 'list() returned no list.')
    return list.map((stored: unknown, index) => {
      const [wrong] = storedShape.errors(stored, `profile ${index + 1}`)
      if (wrong)
        throw optionError('profileStore', `it holds something else than profiles: ${wrong.path}: ${wrong.message}`)
      return stored as StoredProfile
    })
  }

  /** What is stored stays visible and can be repaired or deleted over HTTP, even when it cannot run. */
  async #admitStored(stored: StoredProfile): Promise<ManagedProfile> {
    const { managed: _managed, generation: creation = '', ...options } = stored
    const asStored: ProfileInfo = { ...options, engine: options.engine ?? 'cli', managed: true }
    const profile = { stored, creation, generation: generationOf(asStored, creation) }
    try {
      const valid = await this.#withinRoots(this.#validate(options))
      // It is a link now, or lies behind one: what was checked when it was created is no longer where it points.
      if (valid.configDir !== options.configDir) throw new Error(LEADS_ELSEWHERE)
      this.#warnOfOthers(valid)
      return { ...profile, info: Object.freeze({ ...valid, managed: true as const }) }
    } catch (thrown) {
      return { ...profile, info: Object.freeze(asStored), problem: toError(thrown).message }
    }
  }

  async create(request: CreateProfileRequest, principal: Principal, takenKey?: TakenKey): Promise<ManagedProfile> {
    const { name } = request
    const key = takenKey && keptWith(takenKey, 'profile', name)
    return this.#changing(async (isRefused) => {
      await this.refreshed()
      if (this.#options.declared.has(name) || this.#profiles.has(name)) throw new GatewayError('SG_ERR_PROFILE_EXISTS')
      const created = await this.#store(request, newId(), principal, isRefused, { key })
      if (!created) throw new GatewayError('SG_ERR_PROFILE_EXISTS')
      return created
    }, takenKey?.waitedMs)
  }

  async update(name: string, request: UpdateProfileRequest, principal: Principal): Promise<ManagedProfile> {
    return this.#changing(async (isRefused) => {
      for (let tries = 0; tries < MOST_TRIES; tries++) {
        await this.refreshed()
        const before = this.#existing(name)
        const { managed: _managed, ...options } = before.info
        const merged = Object.entries({ ...options, ...request }).filter(
          ([, value]) => value !== null && value !== undefined,
        )
        const changed = { ...(Object.fromEntries(merged) as ProfileOptions), name }
        const updated = await this.#store(changed, before.creation, principal, isRefused, { before })
        if (updated) return updated
      }
      throw unavailable()
    })
  }

  async remove(name: string): Promise<void> {
    return this.#changing(async (isRefused) => {
      await this.refreshed()
      this.#existing(name)
      await this.#options.store.delete(name)
      if (isRefused()) await this.#restore(name)
      else this.#profiles.delete(name)
    })
  }

  async close(): Promise<void> {
    await this.#changes.run('', async () => this.#options.store.close?.())
  }

  #existing(name: string): ManagedProfile {
    const found = this.#profiles.get(name)
    if (!found) throw new GatewayError('SG_ERR_PROFILE_NOT_FOUND')
    return found
  }

  /** @returns undefined: another process was faster */
  async #store(
    options: ProfileOptions,
    creation: string,
    principal: Principal,
    isRefused: () => boolean,
    { key, before }: { key?: KeptKey | undefined; before?: ManagedProfile },
  ): Promise<ManagedProfile | undefined> {
    const valid = this.#validate(options)
    assertBypassAllowed(valid, this.#options.disableBypassPermissions)
    const placed = await this.#withinRoots(valid)
    if (placed.configDir !== undefined) this.#assertNobodyElses(placed.name, placed.configDir, principal)
    this.#warnOfOthers(placed)
    const info: ProfileInfo = Object.freeze({ ...placed, managed: true as const })
    const stored: StoredProfile = { ...placed, generation: creation }
    const profile = { info, stored, creation, generation: generationOf(info, creation) }
    const { keepKey } = this.#options
    if (key && keepKey) await keepKey(key)
    if (!(await this.#save(stored, before?.stored, key))) return undefined
    if (isRefused()) await this.#restore(info.name)
    else this.#profiles.set(info.name, profile)
    return profile
  }

  /** @returns false: what is stored is not what was there before */
  async #save(profile: StoredProfile, before: StoredProfile | undefined, key: KeptKey | undefined): Promise<boolean> {
    const { store } = this.#options
    if (this.#freshness && before && store.replace) return store.replace(profile, before)
    if (this.#freshness && !before && store.create) return store.create(profile, key)
    await store.save(profile, key)
    return true
  }

  /** Takes back what was refused and came to be stored all the same. */
  async #restore(name: string): Promise<void> {
    const { store } = this.#options
    const before = this.#profiles.get(name)
    const undo = () => (before ? store.save(before.stored) : store.delete(name))
    await persistently(undo, this.#options)
  }

  #validate(options: ProfileOptions): ProfileInfo {
    const profile = validateProfile(options, this.#options)
    if (profile.provider) this.#options.grants.assert(profile.provider)
    return profile
  }

  /** With the directory as its real path, so that a link which is moved later moves nobody. */
  async #withinRoots(profile: ProfileInfo): Promise<ProfileInfo> {
    const { engine, configDir } = profile
    if (engine === 'provider') return profile
    const { roots } = this.#options
    if (!roots)
      throw new GatewayError('SG_ERR_CONFIG_DIR_FORBIDDEN', {
        detail: 'Only provider profiles can be managed here: allowedConfigDirRoots is not set.',
      })
    // Without one it would run as the operator.
    if (configDir === undefined)
      throw invalidField('configDir', 'a managed cli profile needs one.', 'SG_ERR_PROFILE_INVALID')
    const found = await resolveWithinRoots(configDir, roots)
    if (!found.ok) {
      if (found.reason === 'outside')
        throw new GatewayError('SG_ERR_CONFIG_DIR_FORBIDDEN', {
          errors: [{ path: 'configDir', message: 'lies outside the allowed roots.' }],
        })
      const why =
        found.reason === 'invalid' ? 'must be an absolute path of at most 4096 bytes.' : 'is no directory that exists.'
      throw invalidField('configDir', why, 'SG_ERR_PROFILE_INVALID')
    }
    return { ...profile, configDir: found.path }
  }

  /** Only of what can be used: what cannot is looked at again and again. */
  #warnOfOthers({ name, configDir }: ProfileInfo): void {
    if (configDir !== undefined && isWritableByOthers(configDir))
      this.#options.logger.warn(
        { profile: name, configDir },
        'other accounts can write into the config directory of a profile',
      )
  }

  /** A directory is an identity: who may not use a profile must not come to run in its directory under another name. */
  #assertNobodyElses(name: string, configDir: string, principal: Principal): void {
    for (const { info } of [...this.#options.declared.values(), ...this.#profiles.values()])
      if (
        info.name !== name &&
        info.configDir !== undefined &&
        !visible(principal, info.name) &&
        comparablePath(info.configDir) === configDir
      )
        throw new GatewayError('SG_ERR_CONFIG_DIR_FORBIDDEN', {
          detail: 'configDir belongs to a profile that this caller may not use.',
        })
  }

  /** Changes run one after the other; whoever asks for one does not wait for ever. */
  #changing<T>(change: (isRefused: () => boolean) => Promise<T>, waitedMs?: number): Promise<T> {
    const { clock } = this.#options
    return patientlyInTurn(clock, { lock: this.#changes }, change, { patience: new Patience(clock, waitedMs) })
  }
}
