import type { SessionEvent, SessionEventBody } from '../../schemas/events.js'
import type { SessionInfo, SessionStatus } from '../../schemas/sessions.js'
import type { Runner, SessionFiles, SessionRunnerConfig } from '../engines/runner.js'
import type { ResolvedProfile } from '../profiles/catalog.js'
import type { LogSource } from './attachment.js'
import { SessionBridge } from './bridge.js'
import { Clients } from './clients.js'
import { DeferredExecutions } from './deferred-executions.js'
import { EventLog } from './event-log.js'
import { PermissionDesk, type PermissionDeskOwner } from './permission-desk.js'
import type { RunnerLink } from './runner-link.js'
import { SessionFacts } from './session-facts.js'
import type { SessionInit, SessionWorld } from './session-world.js'
import { snapshotFiles } from './snapshot-files.js'
import type { ParkedSessionRecord } from './store.js'
import { Turns } from './turns.js'

/** What a session is at a moment, and how a change of it is told; `Session` is what happens to it. */
export abstract class SessionState implements PermissionDeskOwner, LogSource {
  readonly id: string
  readonly profile: ResolvedProfile
  readonly request: SessionRunnerConfig
  readonly createdAt: number
  readonly jobId: string | undefined
  readonly log: EventLog
  readonly bridge: SessionBridge
  readonly clients: Clients
  readonly facts: SessionFacts
  config: SessionRunnerConfig
  /** Whether a store holds a record of this session that is to go at the next checkpoint. */
  recorded = false
  protected readonly world: SessionWorld
  protected readonly permissions: PermissionDesk
  readonly executions = new DeferredExecutions()
  protected parkedSince: number | undefined
  protected isFrozen = false
  /** The turn cannot go on until an execution settles. */
  protected waiting = false
  protected link: RunnerLink | undefined
  protected scratchFiles: SessionFiles | undefined
  protected started = false
  protected readonly turns = new Turns()
  protected endedAs: 'failed' | 'closed' | undefined
  #shownStatus: SessionStatus = 'starting'
  protected runnerClosed: Promise<void> | undefined

  /** @param restored the record of a parked session, which this one goes on from */
  constructor(world: SessionWorld, init: SessionInit, restored?: ParkedSessionRecord) {
    this.world = world
    this.id = init.id
    this.profile = init.profile
    this.request = init.request
    this.config = init.config
    this.jobId = init.jobId
    this.createdAt = restored?.info.createdAt ?? world.clock.now()
    this.log = restored
      ? EventLog.fromText(restored.log, world.eventLog, restored.info.lastSeq)
      : new EventLog(undefined, world.eventLog)
    this.facts = new SessionFacts(init.config, this.createdAt)
    this.clients = new Clients(this, world.maxSocketsPerSession, () => this.#snapshot())
    this.permissions = new PermissionDesk(world.clock, this)
    this.bridge = new SessionBridge(world.clock, (frame, except) => this.clients.broadcast(frame, except))
    if (restored) this.#restore(restored)
  }

  #restore(record: ParkedSessionRecord): void {
    this.facts.restore(record.info, record.firstPrompt)
    this.permissions.restore(record.permissions)
    for (const execution of record.executions) this.executions.add(execution, record.parkedAt)
    this.executions.remember(record.settled)
    this.turns.restore(record.queued)
    this.scratchFiles = record.snapshot.files && snapshotFiles(record.snapshot.files, record.parkedAt)
    this.parkedSince = record.parkedAt
    this.started = true
    this.#shownStatus = 'parked'
    this.recorded = true
  }

  get status(): SessionStatus {
    if (this.endedAs) return this.endedAs
    if (this.parkedSince !== undefined) return 'parked'
    if (!this.started) return 'starting'
    if (this.permissions.size > 0) return 'awaiting_approval'
    return this.turns.busy ? 'running' : 'idle'
  }

  /** True when no event will follow. */
  get ended(): boolean {
    return this.endedAs !== undefined
  }

  /** True while a turn is in progress or one is about to begin. */
  get busy(): boolean {
    return this.turns.busy
  }

  /** The scratch filesystem; it can still be read when the session has ended. */
  get files(): SessionFiles | undefined {
    return this.scratchFiles
  }

  get runner(): Runner | undefined {
    return this.link?.runner
  }

  /** Whether an engine serves it. */
  get live(): boolean {
    return this.link !== undefined
  }

  get parked(): boolean {
    return this.parkedSince !== undefined
  }

  /** Whether its record is being saved: nothing may be done to it until it is parked or live again. */
  get frozen(): boolean {
    return this.isFrozen
  }

  info(): SessionInfo {
    return this.facts.info({
      id: this.id,
      status: this.status,
      profile: this.profile.info,
      createdAt: this.createdAt,
      lastSeq: this.log.lastSeq,
      pendingPermissions: this.permissions.size,
      attachedClients: this.clients.count,
      jobId: this.jobId,
      parked: this.parkedSince === undefined ? undefined : this.parkedInfo(this.parkedSince),
    })
  }

  /** What is waited for, since when. */
  parkedInfo(since: number): NonNullable<SessionInfo['parked']> {
    const permissions = this.permissions.list()
    return { since, executions: this.executions.list(), ...(permissions.length > 0 && { permissions }) }
  }

  #snapshot() {
    return {
      session: this.info(),
      pendingPermissions: this.permissions.list(),
      pendingExecutions: this.executions.list(),
    }
  }

  onPermissionEvent(event: SessionEventBody): void {
    this.append(event)
    this.showStatus()
  }

  abstract onPatientRequest(): void

  protected abstract tellObservers(event: SessionEvent): void

  protected append(body: SessionEventBody, ts = this.world.clock.now()): void {
    const event = this.log.append(body, ts)
    this.facts.lastActivityAt = ts
    this.clients.onAppended(body)
    this.tellObservers(event)
  }

  protected showStatus(ts?: number): void {
    const { status } = this
    if (status === this.#shownStatus) return
    this.#shownStatus = status
    const detail = this.endedAs || this.parkedSince !== undefined ? this.facts.statusDetail : undefined
    this.append({ type: 'status_changed', status, ...(detail !== undefined && { detail }) }, ts)
  }
}
