import type { SessionCommand } from '../../schemas/commands.js'
import type { SessionClosedReason, SessionEvent } from '../../schemas/events.js'
import type { ResolvePermissionRequest } from '../../schemas/permissions.js'
import type { ProfileInfo } from '../../schemas/profiles.js'
import type { CreateSessionRequest, ListSessionsQuery, SessionInfo } from '../../schemas/sessions.js'
import { GatewayError, toError } from '../errors.js'
import type { Executions } from '../executions/executions.js'
import { newId } from '../lib/clock.js'
import { Listeners } from '../lib/listeners.js'
import type { Page } from '../lib/paging.js'
import { type Principal, UNLIMITED, visible } from '../principal.js'
import type { ResolvedProfile } from '../profiles/catalog.js'
import type { Admission } from './admission.js'
import { CLOSE, type Close } from './attachment.js'
import { type ParkingHost, ParkingLot, type ParkingOptions } from './parking.js'
import { parseCommand } from './parse-command.js'
import { Session } from './session.js'
import { infoOf, SessionTable } from './session-table.js'
import type { SessionWorld } from './session-world.js'
import type { ParkedSessionRecord } from './store.js'

/** What observers of the registry hear, after it took effect. */
export interface RegistryEvents extends Record<string, unknown> {
  session_created: { session: SessionInfo }
  /** `session` is the SessionInfo as the event left it. */
  session_event: { sessionId: string; event: SessionEvent; session: SessionInfo }
  session_removed: { sessionId: string }
}

export interface RegistryOptions extends Omit<SessionWorld, 'onEvent' | 'onEnded' | 'onOauth' | 'parking'> {
  admission: Admission
  executions: Executions
  parking: ParkingOptions
  /** What a profile says now, to show with a parked session. */
  profileInfo(name: string): ProfileInfo | undefined
  /** Sessions that are not terminal, those being built included. */
  maxSessions: number
  /** How long a terminal session stays listed; `undefined`: until DELETE. */
  sessionRetentionMs: number | undefined
}

export interface CreateOptions {
  /** Whose request it is. Default: nobody's in particular, without limits. */
  principal?: Principal
  /** The job whose run it is: the session is then registered before its engine is built. */
  jobId?: string
  /** Default: a new one. */
  id?: string
  /** Calls the creation off while nothing is registered yet; a registered session is ended instead. */
  signal?: AbortSignal
  /** The profile, when it was decided about earlier; the one that the request names is then not looked up. */
  profile?: ResolvedProfile
}

/** Every session of a gateway, by id. */
export class SessionRegistry {
  readonly #options: RegistryOptions
  readonly #world: SessionWorld
  readonly #table: SessionTable
  readonly #listeners: Listeners<RegistryEvents>
  /** Parks sessions and wakes them. */
  readonly parking: ParkingLot
  #live = 0
  #draining = false
  #oauthNoticed = false

  constructor(options: RegistryOptions) {
    this.#options = options
    const { logger, clock } = options
    this.#table = new SessionTable(clock, (id) => this.parking.isBusy(id))
    this.#listeners = new Listeners<RegistryEvents>((error, event) =>
      logger.error({ err: toError(error), event }, 'an observer of the registry failed'),
    )
    this.parking = new ParkingLot(options.parking, { ...options, host: this.#parkingHost() })
    this.#world = {
      ...options,
      parking: this.parking,
      onEvent: (session, event) => this.#onEvent(session, event),
      onEnded: (session) => this.#onEnded(session),
      onOauth: (session) => this.#onOauth(session),
    }
  }

  /**
   * Creates a session and starts its engine.
   * @returns its SessionInfo; a failure of the engine to start is told by events
   * @throws GatewayError; nothing is registered then
   */
  async create(request: CreateSessionRequest, options: CreateOptions = {}): Promise<SessionInfo> {
    this.#assertRoom()
    this.#live++
    let session: Session | undefined
    let registered = false
    try {
      const { admission } = this.#options
      const admitted = await admission.admit(request, options.principal, options.profile)
      options.signal?.throwIfAborted()
      session = new Session(this.#world, { id: options.id ?? newId(), ...admitted, jobId: options.jobId })
      // nobody waits for the answer to a job's session: it can be seen and ended while its engine is being built
      if (options.jobId !== undefined) registered = this.#register(session)
      const runner = await admission.buildRunner(admitted, session.id, session.bridge)
      if (this.#draining || session.ended) {
        await runner.close().catch(() => {})
        throw new GatewayError(this.#draining ? 'SG_ERR_SHUTTING_DOWN' : 'SG_ERR_SESSION_ENDED', { retryAfterS: 5 })
      }
      registered ||= this.#register(session)
      session.begin(runner)
      return session.info()
    } catch (error) {
      if (!registered) this.#live--
      else if (session && !session.ended) {
        const { message, code } = error instanceof GatewayError ? error : new GatewayError('SG_ERR_ENGINE_START')
        session.fail(message, code)
        this.#remove(session.id)
      }
      throw error
    }
  }

  #register(session: Session): true {
    this.#table.add(session)
    if (this.#listeners.has('session_created')) this.#listeners.emit('session_created', { session: session.info() })
    return true
  }

  #assertRoom(): void {
    if (this.#draining) throw new GatewayError('SG_ERR_SHUTTING_DOWN', { retryAfterS: 5 })
    if (this.#live >= this.#options.maxSessions)
      throw new GatewayError('SG_ERR_TOO_MANY', {
        detail: 'The gateway runs as many sessions as it may.',
        retryAfterS: 5,
      })
  }

  /** Every session, newest first. */
  list(): SessionInfo[] {
    return this.#table.list()
  }

  /** One page of the sessions that a caller may see, newest first. */
  page(query: ListSessionsQuery, principal: Principal): Page<SessionInfo> {
    return this.#table.page(query, principal)
  }

  get(id: string): SessionInfo | undefined {
    const entry = this.#table.get(id)
    return entry && infoOf(entry)
  }

  /** @throws SG_ERR_SESSION_NOT_FOUND, the same for one that is not there and one that is not the caller's */
  visibleInfo(id: string, principal: Principal): SessionInfo {
    return infoOf(this.#table.visible(id, principal))
  }

  /**
   * The session itself, if this caller may see it; a parked one is read into memory for it.
   * @throws SG_ERR_SESSION_NOT_FOUND · SG_ERR_STORE_UNAVAILABLE
   */
  async open(id: string, principal: Principal): Promise<Session> {
    const entry = this.#table.visible(id, principal)
    this.#table.onLook(entry)
    const session = entry.session ?? (await this.parking.load(id))
    if (!session) throw new GatewayError('SG_ERR_SESSION_NOT_FOUND')
    return session
  }

  /**
   * A session that is in memory, as all are that are not parked.
   * @throws SG_ERR_SESSION_NOT_FOUND
   */
  visibleSession(id: string, principal: Principal): Session {
    const { session } = this.#table.visible(id, principal)
    if (!session) throw new GatewayError('SG_ERR_SESSION_NOT_FOUND')
    return session
  }

  /** Gives a session a title, or with null the derived one back. */
  async rename(id: string, title: string | null, principal: Principal): Promise<SessionInfo> {
    const session = await this.open(id, principal)
    await this.parking.settled(session)
    const { facts } = session
    if (session.recorded)
      await this.parking.amend(id, (record) => {
        const { title: _before, ...config } = record.config
        record.config = title === null ? config : { ...config, title }
        record.info = { ...record.info, title: title ?? facts.derivedTitle }
      })
    facts.hostTitle = title ?? undefined
    return session.info()
  }

  /**
   * Answers a permission request, of a parked session too; first answer wins.
   * @throws SG_ERR_SESSION_NOT_FOUND · SG_ERR_PERMISSION_NOT_FOUND
   */
  async resolvePermission(
    id: string,
    requestId: string,
    answer: ResolvePermissionRequest,
    principal: Principal,
  ): Promise<void> {
    const session = await this.open(id, principal)
    if (session.frozen || session.parked) await this.parking.answer(session, requestId, answer)
    else session.resolvePermission(requestId, answer)
  }

  /**
   * Closes a session and removes it.
   * @param reason default `server`: the host's own decision
   * @returns its final SessionInfo
   */
  async close(id: string, reason: SessionClosedReason = 'server'): Promise<SessionInfo> {
    const entry = this.#table.get(id)
    if (!entry) throw new GatewayError('SG_ERR_SESSION_NOT_FOUND')
    const { session } = entry
    return !session || session.frozen || session.recorded
      ? this.parking.remove(id, reason)
      : this.#endAndRemove(session, reason)
  }

  async #endAndRemove(session: Session, reason: SessionClosedReason): Promise<SessionInfo> {
    if (session.ended) session.clients.disconnectAll(CLOSE.sessionRemoved)
    // ended before it is taken out, so that its last events find it; taken out before anything is waited for
    const ending = session.end(reason)
    this.#remove(session.id)
    await ending
    return session.info()
  }

  /**
   * Ends a session, which stays listed unless it is parked; one that is not there has ended.
   * @param reason default `server`: the host's own decision
   */
  async end(id: string, reason: SessionClosedReason = 'server'): Promise<void> {
    const entry = this.#table.get(id)
    if (!entry) return
    const { session } = entry
    if (!session || session.frozen || session.parked) await this.close(id, reason)
    else await session.end(reason)
  }

  /** Carries out a command on a session, as a client's would be. */
  async send(id: string, command: SessionCommand): Promise<void> {
    await (await this.open(id, UNLIMITED)).handle(parseCommand(command))
  }

  /** @returns a function that ends the observation; a listener that throws is logged and breaks nothing */
  on<E extends keyof RegistryEvents & string>(event: E, listener: (payload: RegistryEvents[E]) => void): () => void {
    return this.#listeners.on(event, listener)
  }

  /** How many sessions there are, by what they are; for metrics. */
  count(): { live: number; parked: number; ended: number } {
    return this.#table.count()
  }

  /** Takes up what an earlier process left parked. */
  async adopt(): Promise<void> {
    await this.parking.adoptAll()
  }

  /** Whether a caller may see a session. */
  isVisible(id: string, principal: Principal): boolean {
    const entry = this.#table.get(id)
    return entry !== undefined && visible(principal, entry.profile)
  }

  /** No more creates; every stream is told to come back elsewhere or later. */
  drain(close: Close = CLOSE.goingAway): void {
    this.#draining = true
    for (const session of this.#table.resident()) session.clients.disconnectAll(close)
  }

  /** Parks what waits and ends what has no record to go on from; resolves when the engines are gone. */
  async endAll(): Promise<void> {
    this.#draining = true
    await this.parking.parkAll(this.#table.resident())
    const ending = this.#table.resident().filter(({ parked }) => !parked)
    await Promise.all(ending.map((session) => (session.recorded ? session.leaveToRecord() : session.end('server'))))
    this.#table.cancelRetentions()
  }

  #parkingHost(): ParkingHost {
    return {
      resident: (id) => this.#table.get(id)?.session,
      isParked: (id) => this.#table.isParked(id),
      restore: (record) => this.#restore(record),
      onParked: (session) => {
        this.#setLives(session, false)
        this.#table.release(session.id)
      },
      onRecordChanged: (record) => {
        const entry = this.#table.get(record.id)
        if (entry && !entry.session) entry.parkedInfo = JSON.stringify(record.info)
      },
      onWaking: (session) => this.#setLives(session, true),
      onStillParked: (session) => {
        this.#setLives(session, false)
        this.#table.release(session.id)
      },
      adopt: (record) => this.#table.adopt(record),
      remove: (session, reason) => this.#endAndRemove(session, reason),
    }
  }

  #setLives(session: Session, lives: boolean): void {
    const entry = this.#table.get(session.id)
    if (!entry || entry.lives === lives) return
    entry.lives = lives
    this.#live += lives ? 1 : -1
  }

  #restore(record: ParkedSessionRecord): Session {
    const { id, config, profile, generation, info } = record
    const known = this.#options.profileInfo(profile) ?? { name: profile, engine: info.engine }
    const init = { id, request: config, config, jobId: info.jobId, profile: { info: known, generation } }
    const session = new Session(this.#world, init, record)
    this.#table.hold(session)
    return session
  }

  #remove(id: string): void {
    if (!this.#table.remove(id)) return
    this.#options.executions.forget(id)
    if (this.#listeners.has('session_removed')) this.#listeners.emit('session_removed', { sessionId: id })
  }

  #onEvent(session: Session, event: SessionEvent): void {
    if (this.#listeners.has('session_event'))
      this.#listeners.emit('session_event', { sessionId: session.id, event, session: session.info() })
  }

  #onEnded(session: Session): void {
    this.#setLives(session, false)
    this.parking.discard(session)
    const { sessionRetentionMs, clock } = this.#options
    const entry = this.#table.get(session.id)
    if (entry && sessionRetentionMs !== undefined)
      entry.retention = clock.after(sessionRetentionMs, () => {
        session.clients.disconnectAll(CLOSE.sessionRemoved)
        this.#remove(session.id)
      })
  }

  #onOauth(session: Session): void {
    if (this.#oauthNoticed) return
    this.#oauthNoticed = true
    this.#options.logger.warn(
      { sessionId: session.id, profile: session.profile.info.name },
      'sessions run on oauth credentials of a personal login; set requireApiKey to refuse them',
    )
  }
}
