import { CLOSE, type Close } from '../../schemas/close-codes.js'
import type { SessionCommand } from '../../schemas/commands.js'
import type { SessionClosedReason, SessionEvent } from '../../schemas/events.js'
import type { AnswerChannel, ResolvePermissionRequest } from '../../schemas/permissions.js'
import type { CreateSessionRequest, ListSessionsQuery, SessionInfo } from '../../schemas/sessions.js'
import { GatewayError } from '../errors.js'
import { keptWith, type TakenKey } from '../idempotency/making.js'
import { assertEvent } from '../lib/argument.js'
import { copyOf } from '../lib/json-value.js'
import { KeyedLock } from '../lib/keyed-lock.js'
import { Listeners } from '../lib/listeners.js'
import type { Page } from '../lib/paging.js'
import { Patience } from '../lib/patience.js'
import { within } from '../lib/within.js'
import type { PlannedNotification } from '../notifications/planned.js'
import { answeredBy, type Principal, UNLIMITED, visible } from '../principal.js'
import { parseCommand } from './clients/parse-command.js'
import { Creation } from './creation.js'
import { Archive } from './kept/archive.js'
import { Keeping } from './kept/keeping.js'
import { removalIn } from './kept/news.js'
import { Engines } from './life/engines.js'
import { Sleep } from './life/sleep.js'
import { allEvents } from './log/events-page.js'
import { OperatorLog } from './operator-log.js'
import { type Place, Places } from './places.js'
import {
  type CreateOptions,
  type Observed,
  type RegistryEvents,
  type RegistryOptions,
  SESSION_EVENTS,
  type SessionObservers,
} from './registry-options.js'
import { assertReason, Removals } from './removals.js'
import { Session } from './session.js'
import { infoOf, keptInfoOf, type SessionEntry, visibleEntry } from './session-entry.js'
import { SessionPages } from './session-pages.js'
import { SessionTable } from './session-table.js'
import type { SessionWorld } from './session-world.js'
import { SharedSessions } from './shared-sessions.js'
import { Telling } from './telling.js'

/** Every session of a gateway, by id. */
export class SessionRegistry {
  /** Whether every session that got an engine is known to the next process, too. */
  readonly outlast: boolean
  readonly engines: Engines
  readonly #options: RegistryOptions
  readonly #world: SessionWorld
  readonly #table: SessionTable
  readonly #listeners: Listeners<RegistryEvents>
  readonly #sleep: Sleep
  readonly #archive: Archive
  readonly #keeping: Keeping
  readonly #operatorLog: OperatorLog
  readonly #places: Places
  readonly #telling: Telling
  readonly #pages: SessionPages
  /** Absent: one process has all sessions. */
  readonly shared: SharedSessions | undefined
  readonly #creation: Creation
  readonly #removals: Removals
  #draining = false

  constructor(options: RegistryOptions) {
    this.#options = options
    this.#operatorLog = new OperatorLog(options)
    const { logger, clock, journal, executions } = options
    this.#keeping = new Keeping(journal, { ...options, onError: options.parking.onError })
    this.outlast = this.#keeping.hasAll
    this.#listeners = new Listeners<RegistryEvents>((error, event) =>
      logger.error({ err: error, event }, 'an observer of the registry failed'),
    )
    this.#places = new Places(options.maxSessions, () => this.#listeners.emit('room', {}))
    const mailbox = new KeyedLock()
    this.#table = new SessionTable(clock, this.#places, mailbox, options.sharing)
    this.#telling = new Telling({ clock, operatorLog: this.#operatorLog, listeners: this.#listeners })
    const shared = { ...options, keeping: this.#keeping, table: this.#table, telling: this.#telling }
    this.#sleep = new Sleep({
      ...{ ...shared, ...options.parking, mailbox },
      load: (id, whole, patience) => this.#archive.load(id, whole, patience),
      remove: (session, reason) => this.#removals.closeAndRemove(session, reason),
    })
    this.#archive = new Archive({
      ...{ ...shared, sleep: this.#sleep },
      build: (init, left) => new Session(this.#world, init, left),
      remove: (id, reason) => this.close(id, reason),
      onTerminal: (id, endedAt) => this.#removals.retainUntil(id, endedAt),
      forget: (id) => this.#removals.forget(id),
      onMissed: async (left) => this.shared?.onMissed(left),
      isElsewhere: options.sharing && ((id) => this.shared!.isElsewhere(id)),
    })
    const withArchive = { ...shared, archive: this.#archive, sleep: this.#sleep }
    this.#removals = new Removals({ ...withArchive, listeners: this.#listeners })
    const { sharing } = options
    this.shared = sharing && new SharedSessions({ ...withArchive, sharing })
    this.#pages = new SessionPages(this.#table, this.#archive, options)
    executions.serve(this.#sleep, this.#keeping.atRest && ((executionId) => this.#sessionOf(executionId)))
    this.engines = new Engines({ ...shared, sleep: this.#sleep })
    this.#world = {
      ...options,
      keeping: this.#keeping,
      sleep: this.#sleep,
      operatorLog: this.#operatorLog,
      observer: this.#telling,
      sessionOf: async (executionId) =>
        this.shared ? this.shared.hasExecution(executionId) : this.#archive.sessionOf(executionId),
      onEnded: (session: Session) => this.#onEnded(session),
    }
    this.#creation = new Creation({
      ...{ options, world: this.#world, places: this.#places, keeping: this.#keeping, archive: this.#archive },
      isDraining: () => this.#draining,
      register: (session, principal, told) => this.#register(session, principal, told),
      remove: (id) => this.#removals.remove(id),
    })
  }

  /**
   * Creates a session and starts its engine.
   * @returns its SessionInfo; a failure of the engine to start is told by events
   * @throws GatewayError; nothing is registered then
   */
  create(request: CreateSessionRequest, options: CreateOptions = {}): Promise<SessionInfo> {
    return this.#creation.create(request, options)
  }

  #register(session: Session, principal: Principal | undefined, told?: PlannedNotification): void {
    this.#table.add(session)
    this.#operatorLog.onCreated(session, principal)
    // so that nobody is told of it before it is durable
    session.touch()
    if (told) session.tell(told)
    if (!this.#listeners.has('session_created')) return
    this.#telling.tell(session, 'session_created', { session: session.info() })
  }

  /** Keeps a place for a session to be created in; undefined while there is none: `room` tells when there is one. */
  reserve(): Place | undefined {
    return this.#draining ? undefined : this.#places.reserve()
  }

  /** Every session, newest first. */
  list = (): Promise<SessionInfo[]> => this.#pages.all()

  /** Those that have not ended, newest first. */
  unended(): SessionInfo[] {
    return this.#table.unended()
  }

  /**
   * One page of the sessions that a caller may see, newest first.
   * @throws SG_ERR_PROFILE_UNKNOWN of a profile that is not there and has no session left
   */
  page(query: ListSessionsQuery, principal: Principal): Promise<Page<SessionInfo>> {
    return this.#pages.page(query, principal)
  }

  /** A session as it is now; one that another process has, as it was last written. */
  async get(id: string): Promise<SessionInfo | undefined> {
    const entry = this.#table.get(id) ?? (await this.#archive.find(id))
    if (entry || !this.shared || this.#archive.isHidden(id)) return entry && infoOf(entry)
    const left = await this.#keeping.get(id)
    // who has it is about to carry that out
    return left && !removalIn(left.news) ? { ...left.state.info, lastSeq: left.lastSeq } : undefined
  }

  /** Whether a session is in memory, or parked: nothing has to be asked about it. */
  has(id: string): boolean {
    return this.#table.get(id) !== undefined
  }

  /** As `get`, at once, of a session that is in memory, or parked. */
  here(id: string): SessionInfo | undefined {
    const entry = this.#table.get(id)
    return entry && infoOf(entry)
  }

  /** A request that waits, and its session; at once, of a session that this process has. */
  waitingRequest = (id: string, requestId: string) => this.#table.waitingRequest(id, requestId)

  /**
   * A session for somebody who asks from outside, told once what it shows is kept.
   * @throws SG_ERR_SESSION_NOT_FOUND, the same for one that is not there and one that is not the caller's
   */
  async visibleInfo(id: string, principal: Principal): Promise<SessionInfo> {
    const entry = visibleEntry(this.#table.get(id) ?? (await this.#archive.find(id)), principal)
    const info = await keptInfoOf(entry)
    if (!info) throw new GatewayError('SG_ERR_SESSION_NOT_FOUND')
    return info
  }

  /**
   * The session itself, if this caller may see it; a parked one is read into memory for it.
   * @throws SG_ERR_SESSION_NOT_FOUND · SG_ERR_STORE_UNAVAILABLE
   */
  async open(id: string, principal: Principal, patience?: Patience): Promise<Session> {
    const entry = visibleEntry(this.#table.get(id) ?? (await this.#archive.find(id, patience)), principal)
    this.#table.onLook(entry)
    return this.#found(entry, patience)
  }

  async #load({ id, session, storedStatus }: SessionEntry, patience?: Patience): Promise<Session | undefined> {
    if (session) return session
    const load = () => this.#archive.load(id, undefined, patience)
    return storedStatus === 'parked' ? this.#sleep.inTurn(id, load) : load()
  }

  /** Gives a session a title, or with null the derived one back. */
  async rename(id: string, title: string | null, principal: Principal): Promise<SessionInfo> {
    const patience = new Patience(this.#options.clock)
    const session = await this.open(id, principal, patience)
    await this.#sleep.unfrozen(session)
    const rename = () => session.accept({ type: 'title', title }, undefined, patience)
    // whose parks alone are kept is written whole when its engine does not start: not while this is on its way
    await (session.midTurn && !session.writer ? this.#sleep.inTurn(id, rename) : rename())
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
    { takenKey, channel = 'rest' }: { takenKey?: TakenKey | undefined; channel?: AnswerChannel } = {},
  ): Promise<void> {
    const patience = new Patience(this.#options.clock, takenKey?.waitedMs)
    const session = await this.open(id, principal, patience)
    const key = takenKey && keptWith(takenKey, 'answer', requestId)
    await session.answerPermission(requestId, answer, { key, by: answeredBy(principal, channel), patience })
  }

  /**
   * Closes a session and removes it.
   * @param reason default `server`: the host's own decision
   * @param principal default: one that may see every session
   * @returns its final SessionInfo
   * @throws SG_ERR_SESSION_NOT_FOUND · SG_ERR_STORE_UNAVAILABLE · SG_ERR_VALIDATION of a reason that there is not
   */
  async close(
    id: string,
    reason: SessionClosedReason = 'server',
    principal: Principal = UNLIMITED,
  ): Promise<SessionInfo> {
    assertReason(reason)
    const entry = visibleEntry(this.#table.get(id) ?? (await this.#archive.find(id)), principal)
    if (this.#table.isParked(id) || this.#sleep.isBusy(id)) return this.#sleep.remove(id, reason)
    return this.#table.holding(async () =>
      this.#removals.closeAndRemove(entry.session ?? (await this.#found(entry)), reason),
    )
  }

  async #found(entry: SessionEntry, patience?: Patience): Promise<Session> {
    const session = await this.#table.holding(() => this.#load(entry, patience))
    if (!session) throw new GatewayError('SG_ERR_SESSION_NOT_FOUND')
    return session
  }

  /**
   * Ends a session, which stays listed unless it is parked; one that is not there has ended.
   * @param reason default `server`: the host's own decision
   */
  async end(id: string, reason: SessionClosedReason = 'server'): Promise<void> {
    assertReason(reason)
    const entry = this.#table.get(id) ?? (await this.#archive.find(id))
    if (!entry) return
    if (this.#table.isParked(id) || entry.session?.frozen) await this.close(id, reason)
    else await (entry.session ?? (await this.#load(entry)))?.close(reason)
  }

  /** What has happened to a session after a place in its log, as far as that is kept. @throws as `open` */
  async eventsAfter(id: string, seq: number): Promise<SessionEvent[]> {
    return allEvents(await this.open(id, UNLIMITED), seq)
  }

  /** Carries out a command on a session, as a client's would be. */
  async send(id: string, command: SessionCommand): Promise<void> {
    await (await this.open(id, UNLIMITED)).handle(parseCommand(command))
  }

  /** Ends the turn in progress as an interrupt does. @param why it ends, which its end tells */
  async endTurn(id: string, why: string): Promise<void> {
    const session = await this.open(id, UNLIMITED)
    session.turnDesk.because = why
    await session.handle({ type: 'interrupt' })
  }

  /** Says who has what is told of sessions kept with it; before `adopt`. */
  observe(observers: SessionObservers): void {
    this.#telling.observe(observers)
  }

  /**
   * For a host, which may write into what it is told.
   * @returns a function that ends the observation; a listener that throws is logged and breaks nothing
   * @throws SG_ERR_OPTION for an event that there is none of
   */
  on<E extends keyof RegistryEvents & string>(event: E, listener: (payload: RegistryEvents[E]) => void): () => void {
    assertEvent('registry.on(event, listener)', event, SESSION_EVENTS)
    return this.follow(event, (payload) => listener(copyOf(payload)))
  }

  /**
   * `on`, for the gateway itself: all who follow are told by the same object.
   * @param isFor which sessions' events it wants; default: all of them
   */
  follow<E extends keyof RegistryEvents & string>(
    event: E,
    listener: (payload: RegistryEvents[E]) => void,
    isFor?: (session: Observed) => boolean,
  ): () => void {
    return this.#listeners.on(event, listener, isFor)
  }

  /** Whether a session that has not ended goes on from an agent's own session, or is about to. */
  async isContinued(sdkSessionId: string): Promise<boolean> {
    // the table last: what is taken up meanwhile is there
    const isStored = await this.#archive.continues(sdkSessionId)
    return isStored || this.#creation.isResuming(sdkSessionId) || this.#table.isContinued(sdkSessionId)
  }

  /** Whether an engine is at work in a session. */
  serves(id: string): boolean {
    return this.#table.resident(id)?.live ?? false
  }

  /** How many sessions there are, by what they are; for metrics. */
  count(): { live: number; parked: number; ended: number } {
    const { live, parked, ended } = this.#table.count()
    const { counts } = this.#archive
    return { live: live + counts.idle, parked: parked + counts.parked, ended: ended + counts.closed + counts.failed }
  }

  /** Takes up what an earlier process left, in the order in which it was created. @throws what the journal throws */
  adopt(): Promise<void> {
    return this.#archive.adoptAll()
  }

  async #sessionOf(executionId: string): Promise<string | undefined> {
    const id = await (this.shared ?? this.#archive).sessionOf(executionId)
    return id !== undefined && (this.#table.get(id) ?? (await this.#archive.find(id))) ? id : undefined
  }

  /** Whether a caller may see a session. */
  async isVisible(id: string, principal: Principal): Promise<boolean> {
    const entry = this.#table.get(id) ?? (await this.#archive.find(id))
    return entry !== undefined && visible(principal, entry.profile)
  }

  /** No more creates; every stream is told to come back elsewhere or later. */
  drain(close: Close = CLOSE.goingAway): void {
    this.#draining = true
    this.#creation.drain()
    for (const session of this.#table.all()) session.clients.disconnectAll(close)
  }

  /** Parks what waits and ends what nothing is kept of to go on from; resolves when the engines are gone, or that time is over. */
  async endAll(limitMs: number): Promise<void> {
    const { clock } = this.#options
    this.#draining = true
    this.#sleep.close()
    const endsAt = clock.steady() + limitMs
    const atRest = new Map(this.#table.all().map((session) => [session.id, this.#sleep.sleepNow(session, endsAt)]))
    this.shared?.leaveAll(atRest)
    await within(limitMs, Promise.all(atRest.values()), { clock })
    this.#table.stop()
    this.#archive.stop()
  }

  /** Resolves when all that happened to a session so far is durable. @throws SG_ERR_STORE_UNAVAILABLE */
  async durable(id: string): Promise<void> {
    await this.#table.resident(id)?.durable()
  }

  /** Resolves when all that happened to a session so far is durable and told, however long that takes, or when it is gone. */
  told(id: string): Promise<void> {
    const session = this.#table.resident(id)
    return new Promise((resolve) => (session ? session.whenDurable(resolve) : resolve()))
  }

  /** Whether what happens to sessions can be written down. */
  get isWritable(): boolean {
    return this.#keeping.isWritable && !this.#sleep.isRefused
  }

  /** Lets go of what the journal holds, at the gateway's end. */
  closeJournal(): Promise<void> {
    return this.#keeping.close()
  }

  #onEnded(session: Session): void {
    this.#sleep.onEnded(session)
    this.#table.onEngine(session, false)
    this.#removals.retainUntil(session.id, session.facts.lastActivityAt)
  }
}
