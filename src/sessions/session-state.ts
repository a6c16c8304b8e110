import type { SessionClosedReason, SessionEventBody, SessionEventOf } from '../../schemas/events.js'
import type { PermissionRequest } from '../../schemas/permissions.js'
import type { SessionInfo, SessionStatus } from '../../schemas/sessions.js'
import { EVENT_TYPES } from '../engines/event-types.js'
import type { Runner, SessionFiles, SessionRunnerConfig } from '../engines/runner.js'
import type { ErrorCode } from '../errors.js'
import type { KeptKey } from '../idempotency/store.js'
import type { Timer } from '../lib/clock.js'
import type { Patience } from '../lib/patience.js'
import { tried } from '../lib/tried.js'
import type { PlannedNotification } from '../notifications/planned.js'
import type { ResolvedProfile } from '../profiles/catalog.js'
import { DeferredExecutions } from './asks/deferred-executions.js'
import { PermissionDesk, type PermissionDeskOwner } from './asks/permission-desk.js'
import type { LogSource } from './clients/attachment.js'
import { Clients, SessionBridge } from './clients/clients.js'
import { stillOpen } from './kept/asleep.js'
import type { JournaledState, MidTurn, QueuedMessage } from './kept/journal.js'
import type { JournalOwner } from './kept/journal-owner.js'
import { JournalWriter } from './kept/journal-writer.js'
import { type Choice, withCommand } from './kept/news.js'
import { takeUp } from './kept/record.js'
import { filesWith } from './kept/snapshot-files.js'
import { type Life, NEXT } from './life/life.js'
import type { RunnerLink } from './life/runner-link.js'
import { EventLog } from './log/event-log.js'
import { SessionFacts } from './session-facts.js'
import type { LeftSession, SessionInit, SessionWorld } from './session-world.js'

/** What a session is at a moment, and how a change of it is told; its desks are what happens to it. */
export class SessionState implements PermissionDeskOwner, LogSource, JournalOwner {
  readonly id: string
  readonly profile: ResolvedProfile
  readonly request: SessionRunnerConfig
  readonly createdAt: number
  /** Its place in the lists, once it has one. */
  order: number | undefined
  readonly jobId: string | undefined
  readonly createdBy: string | undefined
  /** Name of the only node on which its engine can start; absent: any. */
  readonly home: string | undefined
  /** Who asked for the turn in progress, or for the last one. */
  askedBy: string | undefined
  readonly key: KeptKey | undefined
  readonly log: EventLog
  readonly bridge: SessionBridge
  readonly clients: Clients
  readonly facts: SessionFacts
  config: SessionRunnerConfig
  /** What was chosen since the request; a later start takes it up. */
  chosen: JournaledState['chosen']
  /** Ids of the last accepted messages and other commands; one with such an id was accepted already. */
  messageIds: string[] | undefined
  /** Writes the session down, when there is a journal. */
  readonly writer: JournalWriter | undefined
  /** Commands that are being carried out: meanwhile its engine stays, and so does it. */
  concerns = 0
  /** Present from the park until the turn is over. */
  midTurn: MidTurn | undefined
  readonly world: SessionWorld
  readonly permissions: PermissionDesk
  readonly executions = new DeferredExecutions()
  /** How much of what it was asked to do is being kept, and is done then. */
  accepting = 0
  /** How many messages are among that: each begins a turn, or waits for one. */
  messagesComing = 0
  #files: SessionFiles | undefined
  /** Files that were handed over and that no snapshot has. */
  delivered: JournaledState['delivered']
  /** Whether a turn is in progress. One at a time: what comes meanwhile waits, in order. */
  inTurn = false
  /** How many messages were given a turn. */
  turnsBegun = 0
  /** Messages that wait, at least one; replaced as a whole. */
  queued: readonly QueuedMessage[] | undefined
  /** Looks again whether its engine may go. */
  goingLook: Timer | undefined
  /** When something was last told, as `Clock.steady` counts. */
  activeAt: number
  /** That the session could not be written down where it waits, which is not to be tried again before `at`, as `Clock.steady` counts. */
  parkRefused: { at: number; readonly tries: number } | undefined
  #shownStatus: SessionStatus = 'starting'
  /** Where the log tells that it is parked. */
  #parkedSeq = 0
  #life: Life = { is: 'building' }
  /** Called when its first engine is built, or it has ended without one. */
  onBuilt: (() => void) | undefined
  /** Resolves when the engine is gone that it had last, or was given up on. */
  engineGone: Promise<void> | undefined
  /** The number of its last event, when that was told ahead of it. */
  closingSeq: number | undefined
  /** What was told of that ahead. */
  ending: PlannedNotification | undefined

  constructor(world: SessionWorld, init: SessionInit, left?: LeftSession) {
    this.world = world
    this.id = init.id
    this.profile = init.profile
    this.request = init.request
    this.config = init.config
    this.jobId = init.jobId
    this.createdBy = left?.whole.createdBy ?? init.createdBy
    this.home = world.sharing?.homes ? (left ? left.whole.state.home : init.home) : undefined
    this.askedBy = left?.whole.state.askedBy ?? this.createdBy
    this.key = init.key
    this.createdAt = left?.whole.state.info.createdAt ?? world.clock.now()
    const { keeping, clock, eventLog: limits } = world
    this.activeAt = clock.steady()
    const { whole, lastSeq = 0 } = left ?? {}
    const { sleeps = false, oldestSeq, state: { isStale = false } = {} } = whole ?? {}
    const written = left && { reservedSeq: lastSeq, sleeps, isStale, oldestSeq }
    if (keeping.hasAll) this.writer = new JournalWriter(keeping, clock, this, written)
    // before the log, which asks it
    this.clients = new Clients(this, world.maxSocketsPerSession)
    this.log = whole?.log
      ? EventLog.fromText(whole.log, limits, lastSeq, this.clients)
      : new EventLog(whole?.epoch, limits, lastSeq, this.writer, this.clients, whole?.lastSeq)
    this.facts = new SessionFacts(init.config, this.createdAt)
    this.permissions = new PermissionDesk(clock, this)
    this.bridge = new SessionBridge(clock, this.clients)
    if (left) {
      this.#life = takeUp(this, left.whole)
      this.#shownStatus = left.whole.state.info.status
    }
  }

  get life(): Life {
    return this.#life
  }

  /** The only way from one state of its life to the next. @throws Error when it cannot come to be that */
  become(next: Life): void {
    if (!NEXT[this.#life.is].includes(next.is))
      throw new Error(`A session that is ${this.#life.is} cannot be ${next.is}.`)
    this.#life = next
    this.onBuilt?.()
  }

  /** The tie to the engine that serves it. */
  get link(): RunnerLink | undefined {
    return 'link' in this.#life ? this.#life.link : undefined
  }

  /** Whether what an engine says is for this session: an engine that was let go, or given up on, is not heard any more. */
  hears(link: RunnerLink): boolean {
    return this.link === link
  }

  /** Whether the session has ever had an engine that took input. */
  get started(): boolean {
    return this.#life.is !== 'building' && this.#life.is !== 'starting'
  }

  get parkedSince(): number | undefined {
    return this.#life.is === 'asleep' ? this.#life.parkedSince : undefined
  }

  get status(): SessionStatus {
    return this.#statusWhen(this.parked)
  }

  /** As far as clients may be shown: whoever sees that it is parked finds it parked after a crash, too. */
  get visibleStatus(): SessionStatus {
    return this.#statusWhen(this.#parkedSinceAt(this.log.visibleSeq) !== undefined)
  }

  #statusWhen(isParked: boolean): SessionStatus {
    if (this.#life.is === 'ended') return this.#life.as
    if (isParked) return 'parked'
    if (!this.started || (this.busy && !this.serving && this.facts.isNew)) return 'starting'
    if (this.pendingPermissions.length > 0) return 'awaiting_approval'
    return this.busy ? 'running' : 'idle'
  }

  /** True when no event will follow. */
  get ended(): boolean {
    return this.#life.is === 'ended'
  }

  /** True while a turn is in progress or one is about to begin. */
  get busy(): boolean {
    return this.inTurn || this.queued !== undefined
  }

  get runner(): Runner | undefined {
    return this.link?.runner
  }

  /** Whether an engine serves it. */
  get live(): boolean {
    return this.link !== undefined
  }

  /** Whether an engine takes commands. */
  get serving(): boolean {
    return this.link !== undefined && (this.#life.is !== 'waking' || this.#life.inTurn)
  }

  /** Whether an engine takes what comes in for the turn that it goes on with. */
  get isServed(): boolean {
    return this.link !== undefined && this.#life.is !== 'waking'
  }

  /** The scratch filesystem; it can still be read when the session has ended. */
  get files(): SessionFiles | undefined {
    return filesWith(this.#files, this.delivered)
  }

  set files(files: SessionFiles | undefined) {
    this.#files = files
  }

  /** Whether no engine serves it, and the next command starts one. */
  get asleepIdle(): boolean {
    return this.#life.is === 'asleep' && !this.parked
  }

  get parked(): boolean {
    return this.parkedSince !== undefined
  }

  /** Whether the session is about to be parked: nothing may be done to it until it is, or is live again. */
  get frozen(): boolean {
    return this.#life.is === 'leaving' && this.#life.parks
  }

  #parkedSinceAt(seq: number): number | undefined {
    return seq >= this.#parkedSeq ? this.parkedSince : undefined
  }

  /** @param lastSeq default: as far as clients may be shown */
  info(lastSeq = this.log.visibleSeq): SessionInfo {
    const parkedSince = this.#parkedSinceAt(lastSeq)
    const status = this.#statusWhen(parkedSince !== undefined)
    const parked = parkedSince === undefined ? undefined : this.parkedInfo(parkedSince)
    return this.facts.info(this, status, lastSeq, parked)
  }

  /** What is waited for, since when. */
  parkedInfo(since: number): NonNullable<SessionInfo['parked']> {
    const permissions = this.pendingPermissions
    return { since, executions: this.executions.list(), ...(permissions.length > 0 && { permissions }) }
  }

  /** What a client that attaches now is told beside its place in the log. */
  snapshot() {
    const { pendingPermissions, executions } = this
    const session = this.info()
    // a crash may have kept that from being told; whoever sees it is to be told when it goes on
    if (session.status === 'parked') this.#shownStatus = session.status
    return { session, pendingPermissions, pendingExecutions: executions.list() }
  }

  /** A command was accepted under this id. */
  rememberCommand(id: string | undefined): void {
    if (id !== undefined) this.messageIds = withCommand(this.messageIds, id)
  }

  /** The command was refused after all, and may be tried again. */
  forgetCommand(id: string | undefined): void {
    this.messageIds = this.messageIds?.filter((known) => known !== id)
  }

  /** What its engine waited for is over. */
  goesOn(): void {
    const { link } = this
    if (!link) return
    link.waiting = false
    link.hold = undefined
    if (this.midTurn) this.midTurn.due = true
  }

  onPermissionEvent(event: SessionEventBody): void {
    // what executions it waits for stays so
    if (event.type === 'permission_resolved' && this.link) this.link.hold = undefined
    this.append(event)
    this.showStatus()
  }

  /** `Session` sees to it. */
  onBacklog(_bytes: number): void {}

  /** Its engine has told to have that. `Session` sees to it. */
  onHas(_choice: Choice): void {}

  onPatientRequest(): void {
    this.world.sleep.consider(this)
  }

  /** Resolves when all that happened so far is durable; at once without a journal. @throws SG_ERR_STORE_UNAVAILABLE */
  durable(patience?: Patience): Promise<void> {
    return this.writer?.durable(patience) ?? Promise.resolve()
  }

  /** Runs `then` once all that happened so far is durable; at once without a journal. */
  whenDurable(then: () => void): void {
    if (this.writer) this.writer.after(then)
    else then()
  }

  /** Something changed that no event tells. */
  touch(): void {
    this.writer?.touch()
  }

  /** Has what is to be told of what was just appended kept in the same write. */
  keepAlong(planned: PlannedNotification): void {
    if (this.writer) this.writer.keepAlong(planned)
    else planned.keep()
  }

  /** What can still be answered. */
  get pendingPermissions(): PermissionRequest[] {
    return stillOpen(this.permissions.list(), this.midTurn)
  }

  /** Present while its engine would better say no more: nobody keeps up, neither the storage nor, without one, who reads. */
  get drained(): Promise<void> | undefined {
    return this.writer ? this.writer.backlog.drained : this.clients.drained
  }

  /** Nobody is waited for any longer. */
  relieve(): void {
    this.writer?.backlog.relieve()
    this.clients.relieve()
  }

  append(body: SessionEventBody, ts = this.world.clock.now()): void {
    const seq = this.log.append(body, ts)
    this.facts.lastActivityAt = ts
    this.activeAt = this.world.clock.steady()
    const { leavesState, isUrgent } = EVENT_TYPES[body.type]
    if (this.writer && !leavesState) this.writer.touch()
    if (isUrgent) this.clients.hurry(seq)
    this.clients.onShown()
    if (body.type === 'assistant_message') this.whenDurable(() => this.clients.dropTyping(body.uuid))
    this.world.observer.onEvent(this, body, seq, ts)
  }

  /** Tells the status, when it is another one. @returns whether it was */
  showStatus(ts?: number): boolean {
    const { status } = this
    const before = this.#shownStatus
    if (status === before) return false
    this.#shownStatus = status
    const detail = this.ended || this.parked ? this.facts.statusDetail : undefined
    this.append({ type: 'status_changed', status, ...(detail !== undefined && { detail }) }, ts)
    if (status === 'parked') this.#parkedSeq = this.log.headSeq
    this.world.operatorLog.onStatus(this, before, status, detail)
    return true
  }

  /** Ends the session as failed. */
  fail(message: string, code?: ErrorCode): void {
    if (this.ended) return
    this.facts.statusDetail = message
    this.#finish('failed', 'error', { type: 'session_error', message, ...(code && { code }) })
  }

  /** Closes the session unless it has ended; resolves when its runner is gone or was given up on. */
  close(reason: SessionClosedReason): Promise<void> {
    this.#finish(reason === 'error' ? 'failed' : 'closed', reason)
    return this.engineGone ?? Promise.resolve()
  }

  /** @param told what is said before everything else that follows from the end */
  #finish(as: 'failed' | 'closed', reason: SessionClosedReason, told?: SessionEventOf<'session_error'>): void {
    if (this.ended) return
    const { link, world, log, midTurn } = this
    this.#keepFiles()
    this.become({ is: 'ended', as, inTurn: this.inTurn })
    this.goingLook?.cancel()
    if (this.writer) this.midTurn = undefined
    this.inTurn = false
    this.queued = undefined
    this.facts.endTurn()
    if (told) this.append(told)
    // what was confirmed to whoever brought it, although no engine goes on with it
    if (midTurn) this.permissions.carried = [...midTurn.decisions]
    this.permissions.tellCarried()
    for (const event of this.executions.end(midTurn?.results ?? [], world.clock.now())) this.append(event)
    this.permissions.denyAll('The session ended.')
    this.bridge.close()
    const ts = world.clock.now()
    this.showStatus(ts)
    if (this.closingSeq !== undefined) log.skipTo(this.closingSeq - 1)
    this.append({ type: 'session_closed', reason }, ts)
    if (link) this.engineGone = link.close(world, this.id)
    world.onEnded(this)
  }

  /** What its engine has written in the turn that is cut off; nothing else is read of an engine that has ended. */
  #keepFiles(): void {
    const { inTurn, writer, link } = this
    const snapshot = inTurn && writer && link?.files ? tried(() => link.snapshot()) : undefined
    if (snapshot?.files) writer?.keep(snapshot)
  }
}
