import { createHash, ECDH } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import type { CreateSubscriptionRequest } from '../../../schemas/notifications.js'
import { GatewayError, invalidField } from '../../errors.js'
import { idOf } from '../../idempotency/scope.js'
import type { Clock } from '../../lib/clock.js'
import { type CopiedStore, type Freshness, freshnessOf } from '../../lib/freshness.js'
import { KeyedLock } from '../../lib/keyed-lock.js'
import { newId } from '../../lib/new-id.js'
import { type Persistence, patientlyInTurn, persistently } from '../../lib/patience.js'
import { present } from '../../lib/present.js'
import { tried } from '../../lib/tried.js'
import { type CallerNamed, nameOf, type Principal, visible, visibleProfiles } from '../../principal.js'
import type { EgressGuard } from '../../webhooks/egress.js'
import type { ChannelStore, KeptSubscription } from './store.js'

const MAX_PER_PRINCIPAL = 20
const MAX_SUBSCRIPTIONS = 10_000
/** A browser subscribes again whenever its page is opened; one that does not is told nothing after this. */
const KEPT_MS = 60 * 24 * 60 * 60_000
const CURVE = 'prime256v1'

export interface PushSubscriptionsOptions extends Persistence, CopiedStore<ChannelStore> {
  clock: Clock
  /** Which endpoints may be named. */
  guard: EgressGuard
  /** What a caller may see by now. Absent: what it could see when it subscribed. */
  callerNamed?: CallerNamed | undefined
}

/** The browsers that are told by web push, each of one principal; in the store, and all in memory. */
export class PushSubscriptions {
  readonly #options: PushSubscriptionsOptions
  readonly #byId = new Map<string, KeptSubscription>()
  readonly #lock = new KeyedLock()
  readonly #stop = new AbortController()

  readonly #freshness: Freshness | undefined

  constructor(options: PushSubscriptionsOptions) {
    this.#options = options
    setMaxListeners(0, this.#stop.signal)
    this.#freshness = freshnessOf(options, () => this.#read())
  }

  /** Reads what earlier processes left. @throws SG_ERR_STORE_UNAVAILABLE */
  async load(): Promise<void> {
    await (this.refreshed() ?? this.#read())
  }

  /**
   * Resolves when what is known is what was kept before the call; undefined: it is, as nobody else changes anything.
   * @throws SG_ERR_STORE_UNAVAILABLE
   */
  refreshed(): Promise<void> | undefined {
    return this.#freshness?.check()
  }

  async #read(): Promise<void> {
    const { logger, store } = this.#options
    const kept = await store.subscriptions((err) => logger.error({ err }, 'a browser is told nothing'))
    this.#byId.clear()
    for (const subscription of kept) this.#byId.set(subscription.id, subscription)
  }

  /** @param profile of which it would have to be told; absent: of any */
  get(id: string, profile?: string): KeptSubscription | undefined {
    const subscription = this.#byId.get(id)
    return subscription && this.#isLive(subscription, profile) ? subscription : undefined
  }

  /** Those that may be told of a profile. */
  ofProfile(profile: string): KeptSubscription[] {
    return [...this.#byId.values()].filter((one) => this.#isLive(one, profile))
  }

  #isLive(subscription: KeptSubscription, profile?: string): boolean {
    const caller = this.#callerOf(subscription)
    return caller !== undefined && (profile === undefined || visible(caller, profile))
  }

  /** Whose it is; undefined when it has expired, or its caller would not be let in now. */
  #callerOf(subscription: KeptSubscription): Pick<Principal, 'allowedProfiles'> | undefined {
    const { clock, callerNamed } = this.#options
    if (subscription.expiresAt <= clock.now()) return undefined
    return callerNamed ? callerNamed(subscription.principal) : subscription
  }

  /**
   * Subscribes a browser, or renews its subscription; durable when it resolves.
   * @param signIn in which its page is signed in to the console
   * @throws SG_ERR_UNAUTHENTICATED when that has ended meanwhile · SG_ERR_VALIDATION · SG_ERR_SUBSCRIPTION_EXISTS · SG_ERR_TOO_MANY · SG_ERR_STORE_UNAVAILABLE
   */
  subscribe(
    request: CreateSubscriptionRequest,
    principal: Principal,
    signIn?: { id: string; holds(): boolean },
  ): Promise<{ subscription: KeptSubscription; isNew: boolean }> {
    this.#assertUsable(request)
    return this.#changing(async (isRefused) => {
      await this.refreshed()
      // what was made in it may have been ended while this one waited for its turn
      if (signIn && !signIn.holds()) throw new GatewayError('SG_ERR_UNAUTHENTICATED')
      const known = this.#find(request.endpoint)
      const subscription = this.#subscriptionOf(request, principal, signIn?.id, known)
      const isOwn = known !== undefined && isOf(known, principal)
      if (known && !isOwn && !sameKeys(known, subscription)) throw new GatewayError('SG_ERR_SUBSCRIPTION_EXISTS')
      if (!isOwn) await this.#makeRoom(principal)
      const { store } = this.#options
      await store.saveSubscription(subscription)
      if (isRefused())
        await this.#takenBack(() => (known ? store.saveSubscription(known) : store.removeSubscription(subscription.id)))
      else this.#byId.set(subscription.id, subscription)
      await this.#options.tellOthers?.()
      return { subscription, isNew: !known }
    })
  }

  /** @throws SG_ERR_SUBSCRIPTION_NOT_FOUND, the same for one that is not there and another caller's · SG_ERR_STORE_UNAVAILABLE */
  unsubscribe(endpoint: string, principal: Principal): Promise<void> {
    return this.#changing(async (isRefused) => {
      await this.refreshed()
      const known = this.#find(endpoint)
      if (!known || !isOf(known, principal)) throw new GatewayError('SG_ERR_SUBSCRIPTION_NOT_FOUND')
      await this.#end(known, isRefused)
      await this.#options.tellOthers?.()
    })
  }

  /** Whether a browser is told that subscribed in a sign-in. */
  isAnyOf(signIn: string): boolean {
    for (const one of this.#byId.values()) if (one.signIn === signIn && this.#isLive(one)) return true
    return false
  }

  /** Those that were made in a sign-in, before that ends: its browser may be lost, and can end nothing itself. @throws SG_ERR_STORE_UNAVAILABLE */
  endSignIn(signIn: string): Promise<void> {
    return this.#changing(async (isRefused) => {
      await this.refreshed()
      const made = [...this.#byId.values()].filter((one) => one.signIn === signIn)
      for (const one of made) await this.#end(one, isRefused)
      if (made.length > 0) await this.#options.tellOthers?.()
    })
  }

  async #end(known: KeptSubscription, isRefused: () => boolean): Promise<void> {
    const { store } = this.#options
    await store.removeSubscription(known.id)
    if (isRefused()) await this.#takenBack(() => store.saveSubscription(known))
    else this.#byId.delete(known.id)
  }

  /**
   * Its push service says that there is no such browser any more, and says so once: what the store refuses is tried again. One that has
   * subscribed anew since stays.
   */
  forget({ id, createdAt }: Pick<KeptSubscription, 'id' | 'createdAt'>): Promise<void> {
    const forgotten = async () => {
      await this.refreshed()
      if (this.#byId.get(id)?.createdAt === createdAt) await this.#remove(id)
    }
    const { signal } = this.#stop
    return persistently(() => this.#lock.run('', forgotten), { ...this.#options, signal })
  }

  /** Nothing that the store refuses is tried again from now on: the push service tells the next process. */
  stop(): void {
    this.#stop.abort()
  }

  async #remove(id: string): Promise<void> {
    await this.#options.store.removeSubscription(id)
    this.#byId.delete(id)
  }

  /** What is told no more makes room. */
  async #makeRoom(principal: Principal): Promise<void> {
    for (const one of [...this.#byId.values()]) if (!this.#isLive(one)) await this.#remove(one.id)
    const own = [...this.#byId.values()].filter((one) => isOf(one, principal)).length
    if (own >= MAX_PER_PRINCIPAL)
      throw new GatewayError('SG_ERR_TOO_MANY', { detail: `A caller may subscribe ${MAX_PER_PRINCIPAL} browsers.` })
    if (this.#byId.size >= MAX_SUBSCRIPTIONS) throw new GatewayError('SG_ERR_TOO_MANY')
  }

  #find(endpoint: string): KeptSubscription | undefined {
    for (const one of this.#byId.values()) if (one.endpoint === endpoint) return one
    return undefined
  }

  #subscriptionOf(
    { endpoint, keys, expirationTime, events, profiles }: CreateSubscriptionRequest,
    principal: Principal,
    signIn: string | undefined,
    known: KeptSubscription | undefined,
  ): KeptSubscription {
    const now = this.#options.clock.now()
    const name = nameOf(principal)
    const allowedProfiles = visibleProfiles(principal)
    return {
      // several processes that are asked at once make one of it
      id: known?.id ?? (this.#freshness ? digestOf(endpoint) : newId()),
      ...{ endpoint, keys, createdAt: known?.createdAt ?? now },
      expiresAt: Math.min(now + KEPT_MS, expirationTime ?? Number.POSITIVE_INFINITY),
      ...present({ principal: name, signIn, owner: ownerOf(principal), allowedProfiles, events, profiles }),
    }
  }

  #assertUsable({ endpoint, keys, expirationTime }: CreateSubscriptionRequest): void {
    try {
      this.#options.guard.checkUrl(endpoint)
    } catch (error) {
      throw error instanceof GatewayError ? invalidField('endpoint', error.message) : error
    }
    if (!isPoint(keys.p256dh)) throw invalidField('keys.p256dh', 'is no public key of the curve P-256, as base64url.')
    if (!isBytes(keys.auth, 16)) throw invalidField('keys.auth', 'must be 16 bytes as base64url.')
    if (typeof expirationTime === 'number' && expirationTime <= this.#options.clock.now())
      throw invalidField('expirationTime', 'is over.')
  }

  /** Changes run one after the other; whoever asks for one does not wait for ever. */
  #changing<T>(change: (isRefused: () => boolean) => Promise<T>): Promise<T> {
    return patientlyInTurn(this.#options.clock, { lock: this.#lock }, change)
  }

  #takenBack(write: () => Promise<void>): Promise<void> {
    return persistently(write, this.#options)
  }
}

/** Names may be given twice, or not at all: where callers have an id, that says whose it is. */
function ownerOf({ claims }: Principal): string | undefined {
  const id = idOf(claims)
  return id === undefined ? undefined : digestOf(JSON.stringify(id))
}

/** An earlier release knew whose it is by the name alone. */
const isOf = ({ owner, principal: name }: KeptSubscription, principal: Principal): boolean =>
  owner === undefined ? name === nameOf(principal) : owner === ownerOf(principal)

const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64url')

const sameKeys = (one: KeptSubscription, other: KeptSubscription): boolean =>
  one.keys.p256dh === other.keys.p256dh && one.keys.auth === other.keys.auth

const isBytes = (text: string, length: number): boolean =>
  /^[A-Za-z0-9_-]+$/.test(text) && Buffer.from(text, 'base64url').length === length

function isPoint(text: string): boolean {
  const point = tried(() => ECDH.convertKey(text, CURVE, 'base64url', 'hex', 'uncompressed'))
  return isBytes(text, 65) && point !== undefined && Buffer.from(text, 'base64url')[0] === 4
}
