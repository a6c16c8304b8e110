import { createHash } from 'node:crypto'
import type { SignInInfo } from '../../schemas/console.js'
import { GatewayError, toError } from '../errors.js'
import { whoOf } from '../idempotency/scope.js'
import type { Clock } from '../lib/clock.js'
import { type CopiedStore, type Freshness, freshnessOf } from '../lib/freshness.js'
import { Listeners } from '../lib/listeners.js'
import { newId } from '../lib/new-id.js'
import { type Persistence, patiently, persistently, readInTime } from '../lib/patience.js'
import type { Principal } from '../principal.js'
import { hashOfSecret, newSecret, openToken, sealToken } from './secrets.js'
import type { KeptSignIn, SignInStore } from './store.js'

/** That it was used is written down this often. */
const SAVE_MS = 60_000
/** Of one caller; the one that was not used for longest makes room. */
const MAX_OF_ONE = 50
const MAX_USER_AGENT = 300
/** The name of the key whose digest tells this gateway's cookies from those of others on the same host. */
const SIGN_IN_KEY = 'sign-ins'

export interface SignInOptions {
  /** A sign-in that is not used for so long ends. */
  sessionTtlMs: number
  /** It ends then, however much it is used. */
  sessionMaxAgeMs: number
}

export interface SignInParts extends SignInOptions, Persistence, CopiedStore<SignInStore> {
  clock: Clock
  /** What is kept under a name, `value` when there was nothing. */
  keyOnce(name: string, value: string): Promise<string>
  /** Ends what a browser has for as long as nobody signs it out, durably: a crash then leaves the sign-in, which can be ended again. */
  endWhatWasMadeIn?: ((id: string) => Promise<void>) | undefined
  /** Whether there is any: then one that is over stays listed, as it could not be ended otherwise. */
  hasMade?: ((id: string) => boolean) | undefined
}

/** A sign-in that holds, with what it was made with. */
export interface FoundSignIn {
  id: string
  token: string
}

/**
 * Browsers that are signed in: each holds a secret, for which the gateway finds the token that it was exchanged for and asks
 * `authenticate` again. A token that is not let in any more ends its sign-ins.
 */
export class SignIns {
  readonly #parts: SignInParts
  readonly #bySecret = new Map<string, KeptSignIn>()
  readonly #byId = new Map<string, KeptSignIn>()
  readonly #saved = new Map<string, number>()
  /** Somebody ends them, and it is not done. */
  readonly #ending = new Set<string>()
  readonly #listeners: Listeners<{ ended: string }>
  /** Of the cookie; another one for each gateway, since browsers keep the cookies of all ports of a host together. */
  cookieName = 'sgw_console'

  readonly #freshness: Freshness | undefined

  constructor(parts: SignInParts) {
    this.#parts = parts
    this.#freshness = freshnessOf(parts, () => this.#read())
    this.#listeners = new Listeners((error) => parts.logger.error({ err: error }, 'the end of a sign-in was not told'))
  }

  /** Reads what an earlier process kept. */
  async open(): Promise<void> {
    const { keyOnce } = this.#parts
    const key = await keyOnce(SIGN_IN_KEY, newSecret())
    this.cookieName = `sgw_console_${hashOfSecret(key).slice(0, 8)}`
    await (this.#freshness?.check() ?? this.#read())
    this.#dropOver()
  }

  /**
   * Resolves when what is known is what was kept before the call; undefined: it is, as nobody else changes anything.
   * @throws SG_ERR_STORE_UNAVAILABLE
   */
  refreshed(): Promise<void> | undefined {
    return this.#freshness && readInTime(this.#parts.clock, () => this.#freshness!.check())
  }

  async #read(): Promise<void> {
    const gone = new Set(this.#byId.keys())
    const onUnreadable = (err: Error) => this.#parts.logger.error({ err }, 'a browser is signed out')
    for (const kept of await this.#parts.store.list(onUnreadable)) {
      gone.delete(kept.id)
      // it may have been used here and there
      const lastSeenAt = Math.max(kept.lastSeenAt, this.#byId.get(kept.id)?.lastSeenAt ?? 0)
      this.#know({ ...kept, lastSeenAt })
      this.#saved.set(kept.id, kept.lastSeenAt)
    }
    for (const id of gone) this.#forget(this.#byId.get(id)!)
  }

  /**
   * @param principal whom the token stands for
   * @returns the secret, which is given away once
   * @throws SG_ERR_STORE_UNAVAILABLE
   */
  async create(
    token: string,
    principal: Principal,
    userAgent: string | undefined,
  ): Promise<{ secret: string; signIn: SignInInfo; maxAgeMs: number }> {
    const { clock, sessionMaxAgeMs } = this.#parts
    const id = newId()
    const secret = newSecret()
    const now = clock.now()
    const owner = ownerOf(principal)
    this.#dropOver()
    const kept: KeptSignIn = {
      id,
      secretHash: hashOfSecret(secret),
      sealedToken: sealToken(token, secret, id),
      owner,
      createdAt: now,
      lastSeenAt: now,
      endsAt: now + sessionMaxAgeMs,
      ...(userAgent && { userAgent: userAgent.slice(0, MAX_USER_AGENT) }),
    }
    await patiently(clock, async (isRefused) => {
      await this.#save(kept)
      if (isRefused()) await this.#takenBack(() => this.#parts.store.remove(id))
      else this.#know(kept)
    })
    const others = this.#of(owner)
    for (const oldest of others.slice(0, Math.max(0, others.length - MAX_OF_ONE))) this.lapse(oldest.id)
    return { secret, signIn: this.#infoOf(kept), maxAgeMs: sessionMaxAgeMs }
  }

  /** @returns undefined for a secret that nobody was given, or whose sign-in is over */
  find(secret: string): FoundSignIn | undefined {
    const kept = this.#bySecret.get(hashOfSecret(secret))
    if (!kept) return undefined
    const isOver = this.#isOver(kept)
    const token = isOver ? undefined : openToken(kept.sealedToken, secret, kept.id)
    if (token !== undefined) return { id: kept.id, token }
    if (!isOver || !this.#hasMade(kept)) this.#drop(kept)
    return undefined
  }

  /** Somebody has used it just now. */
  use(id: string): void {
    const { clock } = this.#parts
    const kept = this.#byId.get(id)
    if (!kept) return
    kept.lastSeenAt = clock.now()
    // written down while it is being removed, it would be there again where a store cannot renew
    if (this.#ending.has(id)) return
    if (kept.lastSeenAt - (this.#saved.get(id) ?? 0) < SAVE_MS) return
    this.#save(kept, true).catch((error) => this.#onFailed(error))
  }

  /** The caller's own, the newest first, with those that are over and can be ended still. @param current which of them asks */
  list(principal: Principal, current: string | undefined): SignInInfo[] {
    const owner = ownerOf(principal)
    const own = [...this.#byId.values()].filter((kept) => kept.owner === owner || kept.id === current)
    const held = own
      .filter((kept) => !this.#isOver(kept) || this.#hasMade(kept))
      .sort((a, b) => b.createdAt - a.createdAt)
    return held.map((kept) => ({ ...this.#infoOf(kept), ...(kept.id === current && { current: true as const }) }))
  }

  /**
   * @param current which of the caller's asks
   * @throws SG_ERR_NOT_FOUND for one that is not the caller's, SG_ERR_STORE_UNAVAILABLE, and then it holds still
   */
  async end(id: string, principal: Principal, current: string | undefined): Promise<void> {
    const refreshed = this.refreshed()
    if (refreshed) await refreshed
    const kept = this.#byId.get(id)
    if (!kept || (id !== current && kept.owner !== ownerOf(principal)))
      throw new GatewayError('SG_ERR_NOT_FOUND', { detail: 'There is no such sign-in of this caller.' })
    const { store, clock, endWhatWasMadeIn } = this.#parts
    this.#ending.add(id)
    await endWhatWasMadeIn?.(id).catch((error) => {
      this.#ending.delete(id)
      throw error
    })
    await patiently(clock, async (isRefused) => {
      try {
        await store.remove(id)
        if (isRefused() && this.#byId.has(id)) await this.#takenBack(() => store.save(kept))
        else this.#forget(kept)
      } finally {
        this.#ending.delete(id)
      }
    })
    // its streams end there, too
    await this.#parts.tellOthers?.()
  }

  /** Whether it holds, and nobody is ending it: what is made in it then would outlast it. */
  holds(id: string): boolean {
    const kept = this.#byId.get(id)
    return kept !== undefined && !this.#isOver(kept) && !this.#ending.has(id)
  }

  #takenBack(write: () => Promise<void>): Promise<void> {
    return persistently(write, this.#parts)
  }

  /** Its browser has another one from now on. */
  replaced(id: string): void {
    const kept = this.#byId.get(id)
    if (kept) this.#drop(kept)
  }

  /** Nobody is let in with it any more, nor is its browser told anything: a crash before that leaves it, until it lapses again. */
  lapse(id: string): void {
    const kept = this.#byId.get(id)
    if (!kept) return
    this.#forget(kept)
    const { endWhatWasMadeIn = async () => {} } = this.#parts
    persistently(() => endWhatWasMadeIn(id), this.#parts).then(
      () => this.#remove(kept),
      (error) => this.#onFailed(error),
    )
  }

  /** @param listener told the id of each sign-in that ended · @returns a function that ends it */
  onEnded(listener: (id: string) => void): () => void {
    return this.#listeners.on('ended', listener)
  }

  #know(kept: KeptSignIn): void {
    this.#bySecret.set(kept.secretHash, kept)
    this.#byId.set(kept.id, kept)
  }

  /** The one that was used last comes last. */
  #of(owner: string): KeptSignIn[] {
    const own = [...this.#byId.values()].filter((kept) => kept.owner === owner && !this.#isOver(kept))
    return own.sort((a, b) => a.lastSeenAt - b.lastSeenAt)
  }

  #isOver(kept: KeptSignIn): boolean {
    return this.#parts.clock.now() >= this.#endOf(kept)
  }

  #endOf({ lastSeenAt, endsAt }: KeptSignIn): number {
    return Math.min(endsAt, lastSeenAt + this.#parts.sessionTtlMs)
  }

  #infoOf(kept: KeptSignIn): SignInInfo {
    const { id, createdAt, lastSeenAt, userAgent } = kept
    return {
      ...{ id, createdAt, lastSeenAt, expiresAt: this.#endOf(kept) },
      ...(userAgent !== undefined && { userAgent }),
      ...(this.#isOver(kept) && { isOver: true as const }),
    }
  }

  /** @throws SG_ERR_STORE_UNAVAILABLE */
  async #save(kept: KeptSignIn, isUse = false): Promise<void> {
    this.#saved.set(kept.id, kept.lastSeenAt)
    const { store } = this.#parts
    try {
      // another process may have ended it meanwhile
      if (isUse && store.renew) await store.renew(kept)
      else await store.save(kept)
    } catch (error) {
      this.#saved.delete(kept.id)
      throw error
    }
  }

  #dropOver(): void {
    for (const kept of [...this.#byId.values()]) if (this.#isOver(kept) && !this.#hasMade(kept)) this.#drop(kept)
  }

  #hasMade({ id }: KeptSignIn): boolean {
    return this.#parts.hasMade?.(id) === true
  }

  /** It is over for good here, whatever becomes of what is kept. */
  #drop(kept: KeptSignIn): void {
    this.#forget(kept)
    this.#remove(kept)
  }

  #remove({ id }: KeptSignIn): void {
    this.#parts.store.remove(id).catch((error) => this.#onFailed(error))
  }

  #forget(kept: KeptSignIn): void {
    this.#bySecret.delete(kept.secretHash)
    this.#byId.delete(kept.id)
    this.#saved.delete(kept.id)
    this.#listeners.emit('ended', kept.id)
  }

  #onFailed(error: unknown): void {
    this.#parts.logger.warn({ err: toError(error) }, 'what became of a sign-in could not be written down')
  }
}

/** Callers that `authenticate` does not tell apart are one. */
const ownerOf = ({ claims }: Principal): string =>
  createHash('sha256')
    .update(JSON.stringify(whoOf(claims)) ?? '')
    .digest('base64url')
