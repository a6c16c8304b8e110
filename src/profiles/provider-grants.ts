import { fetch as guardedFetch } from 'undici'
import type { ProfileInfo, ProviderRef } from '../../schemas/profiles.js'
import { PEERS } from '../engines/provider/peers.js'
import { GatewayError, invalidField, optionError } from '../errors.js'
import { EgressGuard, type EgressPolicy } from '../webhooks/egress.js'
import { baseUrlProblem } from './validate.js'

/** What the operator lets managed provider profiles use. Nothing is let in that is not listed. */
export interface ManagedProfileGrants {
  /** Names of variables that hold keys; each goes to the endpoint of the provider itself only. Default none. */
  apiKeyEnvs?: readonly string[]
  /** Where else models are, and the variable whose key goes there; an address of the operator's may be a private one. Default none. */
  endpoints?: readonly { baseUrl: string; apiKeyEnv?: string }[]
}

interface GrantsWorld {
  env?: NodeJS.ProcessEnv | undefined
  policy?: EgressPolicy | undefined
  /** Whether the runners are built by the host, who resolves credentials, and not by the bundled engine. */
  isHostsEngine?: boolean | undefined
}

const invalid = (field: 'apiKeyEnv' | 'baseUrl', message: string) =>
  invalidField(`provider.${field}`, message, 'SG_ERR_PROFILE_INVALID')

/**
 * Decides which credentials and addresses a managed provider profile may name. Whoever may manage profiles must learn nothing about the
 * gateway's environment by it: a variable that is not listed and one that is not set are refused in the same words.
 */
export class ProviderGrants {
  readonly #keys: ReadonlySet<string>
  readonly #endpoints: readonly { baseUrl: string; apiKeyEnv: string | undefined }[]
  readonly #env: NodeJS.ProcessEnv
  readonly #guard: EgressGuard
  readonly #operatorGuard = new EgressGuard({ allowPrivateNetworks: true })
  readonly #isHostsWord: boolean

  /**
   * @param given undefined: nothing is listed, and what an engine of the host's reads from the environment is that engine's word
   * @throws SG_ERR_OPTION for an endpoint that no profile could name
   */
  constructor(
    given: ManagedProfileGrants | undefined,
    { env = {}, policy = {}, isHostsEngine = false }: GrantsWorld = {},
  ) {
    const grants = given ?? {}
    this.#isHostsWord = isHostsEngine && given === undefined
    this.#keys = new Set(grants.apiKeyEnvs)
    this.#endpoints = (grants.endpoints ?? []).map(({ baseUrl, apiKeyEnv }, index) => {
      const problem = baseUrlProblem(baseUrl)
      if (problem !== undefined) throw optionError(`managedProfiles.endpoints[${index}].baseUrl`, problem)
      return { baseUrl: comparable(baseUrl), apiKeyEnv }
    })
    this.#env = env
    this.#guard = new EgressGuard(policy)
  }

  /** @throws SG_ERR_PROFILE_INVALID naming the field */
  assert(provider: ProviderRef): void {
    if (this.#isHostsWord && provider.baseUrl === undefined) return
    this.#assertListed(provider)
  }

  /** Whether an engine that reads keys by the profile alone may read that of this one. */
  mayReadKey(provider: ProviderRef): boolean {
    try {
      this.#assertListed(provider)
      return true
    } catch {
      return false
    }
  }

  #assertListed({ id, baseUrl, apiKeyEnv }: ProviderRef): void {
    const peer = PEERS.get(id)
    const key = apiKeyEnv ?? peer?.keyEnv
    // Some packages find a key by themselves, under whatever name.
    const isKeyKnown = key !== undefined || peer === undefined
    if (baseUrl !== undefined && isKeyKnown && this.#isListed(baseUrl, key)) {
      if (key !== undefined && !this.#env[key]) throw this.#keyRefusal()
      return
    }
    const takesKey = key !== undefined || peer !== undefined
    const isGranted = key !== undefined && this.#keys.has(key) && this.#env[key]
    // also the vendor's usual one, which goes unnamed
    if (takesKey && !isGranted && (apiKeyEnv !== undefined || baseUrl === undefined)) throw this.#keyRefusal()
    if (baseUrl === undefined) return
    if (takesKey) throw invalid('baseUrl', 'with a key only as a pair that managedProfiles.endpoints lists.')
    try {
      this.#guard.checkUrl(baseUrl)
    } catch (refused) {
      if (!(refused instanceof GatewayError)) throw refused
      throw invalid('baseUrl', refused.message)
    }
  }

  /** Reaches the models of a managed profile: connects only where the policy lets it, and follows no redirect with its key. */
  fetchFor({ provider }: ProfileInfo): typeof fetch {
    const baseUrl = provider?.baseUrl
    const isOperators =
      baseUrl !== undefined && this.#endpoints.some((listed) => listed.baseUrl === comparable(baseUrl))
    const { dispatcher } = isOperators ? this.#operatorGuard : this.#guard
    const reach = (input: string, init?: object) => guardedFetch(input, { redirect: 'error', ...init, dispatcher })
    return reach as unknown as typeof fetch
  }

  async close(): Promise<void> {
    await Promise.all([this.#guard.dispatcher.destroy(), this.#operatorGuard.dispatcher.destroy()])
  }

  #isListed(baseUrl: string, apiKeyEnv: string | undefined): boolean {
    return this.#endpoints.some((listed) => listed.baseUrl === comparable(baseUrl) && listed.apiKeyEnv === apiKeyEnv)
  }

  #keyRefusal(): GatewayError {
    return invalid(
      'apiKeyEnv',
      'is none that managed profiles may use here; the operator lists them in managedProfiles.',
    )
  }
}

const comparable = (url: string): string => new URL(url).href.replace(/\/+$/, '')
