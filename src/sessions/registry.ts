import { CLOSE, type Close } from '../../schemas/close-codes.js'
import type { SessionCommand } from '../../schemas/commands.js'
import type { SessionClosedReason } from '../../schemas/events.js'
import type { AnswerChannel, ResolvePermissionRequest } from '../../schemas/permissions.js'
import type { CreateSessionRequest, ListSessionsQuery, SessionInfo } from '../../schemas/sessions.js'
import { GatewayError, toError } from '../errors.js'
import { keptWith } from '../idempotency/making.js'
import type { KeptKey } from '../idempotency/store.js'
import { newId } from '../lib/clock.js'
import { Listeners } from '../lib/listeners.js'
import type { Page } from '../lib/paging.js'
import { answeredBy, nameOf, type Principal, UNLIMITED, visible } from '../principal.js'
import { parseCommand } from './clients/parse-command.js'
import { Archive, isTerminal, orderOf } from './kept/archive.js'
import type { JournaledSession } from './kept/journal.js'
import { Keeping } from './kept/keeping.js'
import { Dormancy } from './life/dormancy.js'
import { EngineStarter } from './life/engine-start.js'
import { type ParkingHost, ParkingLot } from './life/parking.js'
import { OperatorLog } from './operator-log.js'
import { type Place, Places } from './places.js'
import type { CreateOptions, RegistryEvents, RegistryOptions } from './registry-options.js'
import { Session } from './session.js'
import type { LeftSession } from './session-state.js'
import { infoOf, type SessionEntry, SessionTable } from './session-table.js'
import type { SessionInit, SessionWorld } from './session-world.js'
import { Telling } from './telling.js'

const DISOWN_RETRY_MS = 30_000

/** Every session of a gateway, by id. */
export class SessionRegistry {
  readonly #options: RegistryOptions
  readonly #world: SessionWorld
  readonly #table: SessionTable
  readonly #listeners: Listeners<RegistryEvents>
  /** Parks sessions and wakes them. */
  readonly parking: ParkingLot
  readonly #dormancy: Dormancy
  readonly #archive: Archive
  readonly #keeping: Keeping
  readonly #operatorLog: OperatorLog
  readonly #places: Places
  readonly #telling: Telling
  #draining = false

  constructor(options: RegistryOptions) {
    this.#options = options
    this.#operatorLog = new OperatorLog(options)
    const { logger, clock, journal, executions, admission } = options
    this.#keeping = new Keeping(journal, { ...options, onError: options.parking.onError })
    this.#table = new SessionTable(clock, (id) => this.parking.isBusy(id) || this.#dormancy.isBusy(id))
    this.#listeners = new Listeners<RegistryEvents>((error, event) =>
      logger.error({ err: toError(error), event }, 'an observer of the registry failed'),
    )
    this.#places = new Places(options.maxSessions, () => this.#listeners.emit('room', {}))
    this.#telling = new Telling({
      ...{ clock, notify: options.notify, count: options.count, waiting: options.waiting },
      listeners: this.#listeners,
    })
    const starter = new EngineStarter({ admission, clock })
    this.parking = new ParkingLot(options.parking, {
      ...{ clock, executions, starter, retryAfter: options.retryAfter, keeping: this.#keeping },
      host: this.#parkingHost(),
    })
    this.#dormancy = new Dormancy({
      ...{ clock, logger, starter },
      idleReleaseMs: options.idleReleaseMs,
      onEngine: (session, has) => this.#onEngine(session, has),
    })
    this.#archive = new Archive({
      ...{ keeping: this.#keeping, logger, executions, parking: this.parking },
      host: this.#archiveHost(),
    })
    this.#world = {
      ...options,
      keeping: this.#keeping,
      parking: this.parking,
      dormancy: this.#dormancy,
      operatorLog: this.#operatorLog,
      onEvent: (session: Session, body, seq, ts) => {
        this.#operatorLog.onEvent(session, body, seq)
        this.#telling.onEvent(session, body, seq, ts)
      },
      onHeld: (session: Session) => this.#telling.onHeld(session),
      onEnded: (session: Session) => this.#onEnded(session),
      onOauth: (session: Session) => this.#operatorLog.onOauth(session),
    }
  }

  /**
   * Creates a session and starts its engine.
   * @returns its SessionInfo; a failure of the engine to start is told by events
   * @throws GatewayError; nothing is registered then
   */
  async create(request: CreateSessionRequest, options: CreateOptions = {}): Promise<SessionInfo> {
    if (this.#draining) throw new GatewayError('SG_ERR_SHUTTING_DOWN', { retryAfterS: 5 })
    this.#places.take(options.place)
    let session: Session | undefined
    let registered = false
    try {
      const { admission } = this.#options
      const admitted = await admission.admit(request, options.principal, options.profile)
      options.signal?.throwIfAborted()
      const { profile, request: asked, config } = admitted
      const { id = newId(), jobId, takenKey } = options
      const key = takenKey && keptWith(takenKey, 'session', id)
      const { keepKey } = this.#options
      if (key && keepKey) await keepKey(key)
      const createdBy = options.createdBy ?? nameOf(options.principal)
      session = new Session(this.#world, { id, profile, request: asked, config, jobId, createdBy, key })
      // nobody waits for the answer to a job's session: it can be seen and ended while its engine is being built
      if (jobId !== undefined) registered = this.#register(session, options.principal)
      const runner = await admission.buildRunner(admitted, session.id, session.bridge)
      await this.#mayBegin(session).catch(async (error) => {
        await runner.close().catch(() => {})
        throw error
      })
      registered ||= this.#register(session, options.principal)
      session.begin(runner)
      // an engine that starts at once has started then, and the answer says so
      if (jobId === undefined) await session.durable()
      return session.info()
    } catch (error) {
      if (!registered) this.#places.leave()
      else if (session && !session.ended) {
        const { message, code } = error instanceof GatewayError ? error : new GatewayError('SG_ERR_ENGINE_START')
        // of one that nothing was done in and that comes again there is no failure to tell
        if (session.jobId !== undefined && code === 'SG_ERR_STORE_UNAVAILABLE') void session.end('server')
        else session.fail(message, code)
        this.#remove(session.id)
        this.#disown(session)
      }
      throw error
    }
  }

  /** A job that was refused comes again: its engine must not have begun by then. */
  async #mayBegin(session: Session): Promise<void> {
    if (session.jobId !== undefined) await session.durable()
    if (this.#draining) throw new GatewayError('SG_ERR_SHUTTING_DOWN', { retryAfterS: 5 })
    if (session.ended) throw new GatewayError('SG_ERR_SESSION_ENDED', { retryAfterS: 5 })
  }

  /** What was written of a session that was refused goes again, as soon as the journal lets it. */
  #disown(session: Session): void {
    this.#keeping.erase(session.id, session).catch(() => {
      if (!this.#draining) this.#options.retryAfter(DISOWN_RETRY_MS, () => this.#disown(session))
    })
  }

  #register(session: Session, principal: Principal | undefined): true {
    this.#table.add(session)
    this.#operatorLog.onCreated(session, principal)
    // so that nobody is told of it before it is durable
    session.touch()
    if (!this.#listeners.has('session_created')) return true
    this.#telling.tell(session, 'session_created', { session: session.info() })
    return true
  }

  /** Keeps a place for a session to be created in; undefined while there is none: `room` tells when there is one. */
  reserve(): Place | undefined {
    return this.#draining ? undefined : this.#places.reserve()
  }

  /** Every session, newest first. */
  list = async (): Promise<SessionInfo[]> => this.#table.list()

  /** One page of the sessions that a caller may see, newest first. */
  async page(query: ListSessionsQuery, principal: Principal): Promise<Page<SessionInfo>> {
    return this.#table.page(query, principal)
  }

  async get(id: string): Promise<SessionInfo | undefined> {
    return this.here(id)
  }

  /** The same, at once, of a session that this process has. */
  here(id: string): SessionInfo | undefined {
    const entry = this.#table.get(id)
    return entry && infoOf(entry)
  }

  /** A request that waits, and its session; at once, of a session that this process has. */
  waitingRequest = (id: string, requestId: string) => this.#table.waitingRequest(id, requestId)

  /** @throws SG_ERR_SESSION_NOT_FOUND, the same for one that is not there and one that is not the caller's */
  async visibleInfo(id: string, principal: Principal): Promise<SessionInfo> {
    return infoOf(this.#table.visible(id, principal))
  }

  /**
   * The session itself, if this caller may see it; a parked one is read into memory for it.
   * @throws SG_ERR_SESSION_NOT_FOUND · SG_ERR_STORE_UNAVAILABLE
   */
  async open(id: string, principal: Principal): Promise<Session> {
    const entry = this.#table.visible(id, principal)
    this.#table.onLook(entry)
    return this.#found(entry)
  }

  async #load({ id, session, storedStatus }: SessionEntry): Promise<Session | undefined> {
    if (session) return session
    const load = () => this.#archive.load(id)
    return storedStatus === 'parked' ? this.parking.inTurn(id, load) : load()
  }

  /** Gives a session a title, or with null the derived one back. */
  async rename(id: string, title: string | null, principal: Principal): Promise<SessionInfo> {
    const session = await this.open(id, principal)
    await this.parking.settled(session)
    await session.accept({ type: 'title', title })
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
    { key, channel = 'rest' }: { key?: KeptKey | undefined; channel?: AnswerChannel } = {},
  ): Promise<void> {
    const session = await this.open(id, principal)
    await session.answerPermission(requestId, answer, { key, by: answeredBy(principal, channel) })
  }

  /**
   * Closes a session and removes it.
   * @param reason default `server`: the host's own decision
   * @param principal default: one that may see every session
   * @returns its final SessionInfo
   * @throws SG_ERR_SESSION_NOT_FOUND · SG_ERR_STORE_UNAVAILABLE
   */
  async close(
    id: string,
    reason: SessionClosedReason = 'server',
    principal: Principal = UNLIMITED,
  ): Promise<SessionInfo> {
    const entry = this.#table.visible(id, principal)
    if (this.#table.isParked(id) || this.parking.isBusy(id)) return this.parking.remove(id, reason)
    return await this.#endAndRemove(entry.session ?? (await this.#found(entry)), reason)
  }

  async #found(entry: SessionEntry): Promise<Session> {
    const session = await this.#load(entry)
    if (!session) throw new GatewayError('SG_ERR_SESSION_NOT_FOUND')
    return session
  }

  async #endAndRemove(session: Session, reason: SessionClosedReason): Promise<SessionInfo> {
    const { id } = session
    if (this.#keeping.hasAll || session.midTurn)
      await this.#erase(id, reason).catch((error) => {
        // it stays, and what it would have done meanwhile it does now
        this.parking.consider(session)
        throw error
      })
    if (!this.#table.get(id)) throw new GatewayError('SG_ERR_SESSION_NOT_FOUND')
    if (session.ended) session.clients.disconnectAll(CLOSE.sessionRemoved)
    // ended before it is taken out, so that its last events find it; taken out before anything is waited for
    const ending = session.end(reason)
    this.#remove(id)
    await ending
    return session.info()
  }

  /** Durable before it is said. @throws SG_ERR_STORE_UNAVAILABLE; the session stays as it is then */
  async #erase(id: string, reason?: SessionClosedReason): Promise<void> {
    const session = this.#table.get(id)?.session
    if (reason === undefined) await this.#keeping.erase(id, session)
    else await this.#keeping.remove(id, session, { reason, ending: session && this.#telling.endingOf(session, reason) })
    const readMeanwhile = this.#table.get(id)?.session
    if (readMeanwhile !== session) await this.#keeping.erase(id, readMeanwhile)
  }

  /**
   * Ends a session, which stays listed unless it is parked; one that is not there has ended.
   * @param reason default `server`: the host's own decision
   */
  async end(id: string, reason: SessionClosedReason = 'server'): Promise<void> {
    const entry = this.#table.get(id)
    if (!entry) return
    if (this.#table.isParked(id) || entry.session?.frozen) await this.close(id, reason)
    else await (entry.session ?? (await this.#load(entry)))?.end(reason)
  }

  /** Carries out a command on a session, as a client's would be. */
  async send(id: string, command: SessionCommand): Promise<void> {
    await (await this.open(id, UNLIMITED)).handle(parseCommand(command))
  }

  /** @returns a function that ends the observation; a listener that throws is logged and breaks nothing */
  on<E extends keyof RegistryEvents & string>(event: E, listener: (payload: RegistryEvents[E]) => void): () => void {
    return this.#listeners.on(event, listener)
  }

  /** Whether a session that has not ended goes on from an agent's own session, or is about to. */
  isContinued(sdkSessionId: string): boolean {
    return this.#table.isContinued(sdkSessionId)
  }

  /** Whether an engine is at work in a session. */
  serves(id: string): boolean {
    return this.#table.get(id)?.session?.live ?? false
  }

  /** How many sessions there are, by what they are; for metrics. */
  count(): { live: number; parked: number; ended: number } {
    return this.#table.count()
  }

  /** Takes up what an earlier process left, in the order in which it was created. @throws what the journal throws */
  adopt(): Promise<void> {
    return this.#archive.adoptAll()
  }

  /** Whether a caller may see a session. */
  async isVisible(id: string, principal: Principal): Promise<boolean> {
    const entry = this.#table.get(id)
    return entry !== undefined && visible(principal, entry.profile)
  }

  /** No more creates; every stream is told to come back elsewhere or later. */
  drain(close: Close = CLOSE.goingAway): void {
    this.#draining = true
    for (const session of this.#table.resident()) session.clients.disconnectAll(close)
  }

  /** Parks what waits and ends what nothing is kept of to go on from; resolves when the engines are gone. */
  async endAll(): Promise<void> {
    this.#draining = true
    this.#dormancy.close()
    await this.parking.parkAll(this.#table.resident())
    await Promise.all(this.#table.resident().map((session) => session.leave()))
    this.#table.cancelRetentions()
  }

  /** Resolves when all that happened to a session so far is durable. @throws SG_ERR_STORE_UNAVAILABLE */
  async durable(id: string): Promise<void> {
    await this.#table.get(id)?.session?.durable()
  }

  /** Whether what happens to sessions can be written down. */
  get isWritable(): boolean {
    return this.#keeping.isWritable
  }

  /** Lets go of what the journal holds, at the gateway's end. */
  closeJournal(): Promise<void> {
    return this.#keeping.close()
  }

  #parkingHost(): ParkingHost {
    return {
      resident: (id) => this.#table.get(id)?.session,
      isParked: (id) => this.#table.isParked(id),
      load: (id, whole) => this.#archive.load(id, whole),
      onNews: (id, news) => this.#telling.onNews(id, news),
      onParked: (session) => {
        this.#setLives(session, false)
        this.#table.release(session.id)
      },
      onWaking: (session) => this.#setLives(session, true),
      onStillParked: (session) => {
        this.#setLives(session, false)
        this.#table.release(session.id)
      },
      remove: (session, reason) => this.#endAndRemove(session, reason),
    }
  }

  #setLives(session: Session, lives: boolean): void {
    const entry = this.#table.get(session.id)
    if (!entry || entry.lives === lives) return
    entry.lives = lives
    if (lives) this.#places.retake()
    else this.#places.leave()
  }

  #archiveHost() {
    return {
      resident: (id: string) => this.#table.get(id)?.session,
      placeOf: (id: string) => this.#table.get(id),
      enter: (journaled: JournaledSession, info: SessionInfo) => {
        const { id, profile, reservedSeq } = journaled
        this.#telling.onAdopted(journaled)
        this.#table.adopt(id, orderOf(journaled), profile, info, reservedSeq)
        if (isTerminal(info)) this.#retainUntil(id, info.lastActivityAt)
      },
      hold: (init: SessionInit, left: LeftSession) => {
        const session = new Session(this.#world, init, left)
        this.#table.hold(session)
        const waits = session.pendingPermissions.map((request) => request.id)
        if (waits.length > 0) this.#options.onRestored?.(session.id, waits)
        return session
      },
      profileInfo: (name: string) => this.#options.profileInfo(name),
      remove: (id: string, reason: SessionClosedReason) => this.close(id, reason),
      goOn: (session: Session) => void this.#dormancy.goOn(session),
    }
  }

  #onEngine(session: Session, has: boolean): void {
    this.#setLives(session, has)
    if (!has && this.#keeping.hasAll) this.#table.releaseLater(session.id)
  }

  #remove(id: string): void {
    const session = this.#table.get(id)?.session
    if (!this.#table.remove(id)) return
    this.#dormancy.forget(id)
    this.#options.executions.forget(id)
    this.#options.waiting?.onRemoved(id)
    if (!this.#listeners.has('session_removed')) return
    const tell = () => this.#listeners.emit('session_removed', { sessionId: id })
    if (session) session.whenDurable(tell)
    else tell()
  }

  #onEnded(session: Session): void {
    this.#setLives(session, false)
    this.#dormancy.forget(session.id)
    this.parking.discard(session)
    if (!this.#table.get(session.id)) return
    this.#retainUntil(session.id, session.facts.lastActivityAt)
    if (this.#keeping.hasAll) this.#table.releaseLater(session.id)
  }

  /** A terminal session goes when its time is over. */
  #retainUntil(id: string, endedAt: number): void {
    const { sessionRetentionMs, clock } = this.#options
    const entry = this.#table.get(id)
    if (!entry || sessionRetentionMs === undefined) return
    entry.retention = clock.after(endedAt + sessionRetentionMs - clock.now(), () => {
      entry.session?.clients.disconnectAll(CLOSE.sessionRemoved)
      if (!this.#keeping.hasAll) this.#remove(id)
      else
        this.#erase(id).then(
          () => this.#remove(id),
          // reported; tried again after another while
          () => this.#retainUntil(id, clock.now()),
        )
    })
  }
}
