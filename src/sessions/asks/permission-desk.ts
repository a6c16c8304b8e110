import type { SessionEventBody } from '../../../schemas/events.js'
import {
  type AnsweredBy,
  PermissionRequest,
  type ResolvedBy,
  type ResolvePermissionRequest,
} from '../../../schemas/permissions.js'
import type { PermissionAsk, PermissionDecision, SessionRunnerConfig } from '../../engines/runner.js'
import { onceAborted } from '../../lib/aborted.js'
import type { Clock } from '../../lib/clock.js'
import { deferred } from '../../lib/deferred.js'
import { LazyMap } from '../../lib/lazy-map.js'
import { newId } from '../../lib/new-id.js'
import { present } from '../../lib/present.js'
import { compileSchema } from '../../lib/validation.js'
import { WallAlarm } from '../../lib/wall-alarm.js'
import type { CarriedDecision } from '../kept/journal.js'
import { carriedDecision, changedInput, decisionOf, policyAnswer } from './permissions.js'
import type { AskedPlace, AskedPlaces } from './waiting.js'

/** How long an approval is waited for when neither the request nor the host says. */
const DEFAULT_APPROVAL_TIMEOUT_MS = 300_000

const requestChecker = compileSchema(PermissionRequest)

const TAKEN_BACK = { behavior: 'deny', message: 'The agent does not ask any more.' } as const

interface Resolution {
  requestId: string
  decision: PermissionDecision
  resolvedBy: ResolvedBy
  by: AnsweredBy | undefined
  /** Of an allow that runs something else than was shown. */
  changedInput?: object | undefined
}

/** What an ask may leave out; an engine may well say `null` for that. */
const wordsOf = ({ title, description, decisionReason, agentId }: PermissionAsk) =>
  present({
    title: title ?? undefined,
    description: description ?? undefined,
    decisionReason: decisionReason ?? undefined,
    agentId: agentId ?? undefined,
  })

type Decide = (decision: PermissionDecision) => void

/** What a session does about its permission requests. */
export interface PermissionDeskOwner {
  readonly config: SessionRunnerConfig
  /** Something is to be told, and the status may have changed with it. */
  onPermissionEvent(event: SessionEventBody): void
  whenDurable(then: () => void): void
  /** A request is waited for without a time limit. */
  onPatientRequest(): void
}

interface Pending {
  request: PermissionRequest
  /** Absent while the session is parked and the engine has not asked again. */
  decide: Decide | undefined
  /** At its `expiresAt`; undefined: it has none. */
  expiry: WallAlarm | undefined
  /** Absent before its event was told, and for one of an earlier version. */
  place?: AskedPlace
}

/**
 * Where the engine of one session asks and clients answer: policy first, then what was answered while the session was parked, then a
 * person. The first answer wins; timeout, interrupt and teardown count as deny, so nothing ever runs without an allow.
 */
export class PermissionDesk {
  readonly #pending = new LazyMap<string, Pending>()
  /** Allowed, and not handed to their askers before that is durable. */
  readonly #handing = new LazyMap<string, Decide>()
  /** Since when requests wait that are not resolved, those that were taken off the list included. */
  readonly #since = new LazyMap<string, number>()
  /** Asked by an engine that is gone, whose turn goes on from before that; whoever was told of them is not told yet. */
  #lost: readonly PermissionRequest[] = []
  readonly #clock: Clock
  readonly #owner: PermissionDeskOwner
  /** Answers that were given while the session was parked, for the engine that asks again. */
  carried: CarriedDecision[] = []

  constructor(clock: Clock, owner: PermissionDeskOwner) {
    this.#clock = clock
    this.#owner = owner
  }

  get size(): number {
    return this.#pending.size
  }

  /** Whether an answer is on its way to its asker. */
  get handing(): boolean {
    return this.#handing.size > 0
  }

  list(): PermissionRequest[] {
    return [...this.#pending.values()].map((pending) => pending.request)
  }

  /**
   * @param takenBack aborts when its asker, as long as it waits, does not ask any more
   * @returns what is decided about it
   * @throws TypeError when the ask is not JSON, or of another shape; nothing waits then
   */
  ask(ask: PermissionAsk, takenBack?: AbortSignal): Promise<PermissionDecision> {
    const { config } = this.#owner
    const answer = policyAnswer(ask, config.questionBehavior)
    if (answer) {
      const resolution = { requestId: newId(), decision: answer, changedInput: changedInput(ask, answer) }
      this.#tellResolved({ ...resolution, resolvedBy: 'policy', by: { channel: 'policy' } })
      return Promise.resolve(answer)
    }
    return this.#askedBefore(ask.toolUseId, takenBack) ?? this.#askPerson(ask, config, takenBack)
  }

  #askPerson(
    ask: PermissionAsk,
    config: SessionRunnerConfig,
    takenBack: AbortSignal | undefined,
  ): Promise<PermissionDecision> {
    const timeoutMs = config.approvalTimeoutMs ?? config.defaultApprovalTimeoutMs ?? DEFAULT_APPROVAL_TIMEOUT_MS
    // a copy as JSON, so that what runs is what was shown, whatever the engine does with its own
    const shown: PermissionAsk = JSON.parse(JSON.stringify(ask))
    const { toolName, toolUseId } = shown
    const request: PermissionRequest = {
      ...{ id: newId(), toolName, toolUseId },
      input: (shown.input ?? {}) as Record<string, unknown>,
      ...wordsOf(shown),
      ...(timeoutMs > 0 && { expiresAt: this.#clock.now() + timeoutMs }),
    }
    // one that nobody can be shown would spoil every list that it is in
    const [wrong] = requestChecker.errors(request)
    if (wrong) throw new TypeError(`What the engine asks for has the wrong shape: ${wrong.path}: ${wrong.message}`)
    const expire = () => {
      const answer = { behavior: 'deny', message: 'Nobody answered in time.' } as const
      this.#resolve(request.id, answer, 'timeout', { channel: 'timeout' })
    }
    const { promise: decision, resolve: decide } = deferred<PermissionDecision>()
    const expiry = timeoutMs > 0 ? new WallAlarm(this.#clock, expire) : undefined
    expiry?.set(request.expiresAt)
    this.#pending.set(request.id, { request, decide, expiry })
    this.#owner.onPermissionEvent({ type: 'permission_requested', request })
    this.#watch(request.id, decide, takenBack)
    if (timeoutMs === 0) this.#owner.onPatientRequest()
    return decision
  }

  /** The decision on what was asked before the session was parked; its engine asks again, with the same `toolUseId`. */
  #askedBefore(toolUseId: string, takenBack: AbortSignal | undefined): Promise<PermissionDecision> | undefined {
    const carried = this.carried.find((answer) => answer.toolUseId === toolUseId)
    if (carried) {
      this.#tellCarried(carried)
      this.carried = this.carried.filter((answer) => answer !== carried)
      return Promise.resolve(carried.decision)
    }
    const open = [...this.#pending.values()].find(({ request, decide }) => !decide && request.toolUseId === toolUseId)
    if (!open) return undefined
    const { promise: decision, resolve: decide } = deferred<PermissionDecision>()
    open.decide = decide
    this.#watch(open.request.id, decide, takenBack)
    this.#owner.onPatientRequest()
    return decision
  }

  #watch(requestId: string, decide: Decide, takenBack: AbortSignal | undefined): void {
    const deny = () => {
      if (this.#pending.get(requestId)?.decide === decide)
        this.#resolve(requestId, TAKEN_BACK, 'policy', { channel: 'policy' })
    }
    if (takenBack) onceAborted(takenBack, deny)
  }

  /** Tells the answers that were given while the session was parked, each once, whether the engine asks again or not. */
  tellCarried(): void {
    for (const carried of this.carried) this.#tellCarried(carried)
  }

  #tellCarried(carried: CarriedDecision): void {
    if (carried.told) return
    carried.told = true
    const { requestId, decision, by } = carried
    const ran = decision.behavior === 'allow' && carried.isChanged ? decision.updatedInput : undefined
    this.#pending.delete(requestId)
    this.#tellResolved({ requestId, decision, resolvedBy: 'client', by, changedInput: ran })
  }

  /** Where in the log a request was told of. */
  place(requestId: string, place: AskedPlace): void {
    const pending = this.#pending.get(requestId)
    if (pending) pending.place = place
    if (pending) this.#since.set(requestId, place.since)
  }

  /** Since when a request has waited, until its resolution was told. */
  waitedSince(requestId: string): number | undefined {
    return this.#since.get(requestId)
  }

  /** Where they were made; undefined: none waits. */
  get places(): AskedPlaces | undefined {
    if (this.size === 0) return undefined
    return Object.fromEntries(
      [...this.#pending.values()].flatMap(({ request, place }) => (place ? [[request.id, place]] : [])),
    )
  }

  /** True when none of them has a time limit, so that they may be waited for without a process. */
  get patient(): boolean {
    return [...this.#pending.values()].every(({ expiry }) => expiry === undefined)
  }

  /**
   * Takes up the requests of a parked session; their engine is to ask again, with the same `toolUseId`.
   * @param lost those that it does not know of
   */
  restore(
    requests: readonly PermissionRequest[],
    places: AskedPlaces = {},
    lost: readonly PermissionRequest[] = [],
  ): void {
    this.#lost = lost
    for (const request of requests) {
      const place = places[request.id]
      this.#pending.set(request.id, { request, decide: undefined, expiry: undefined, ...(place && { place }) })
      if (place) this.#since.set(request.id, place.since)
    }
  }

  /** Denies all but those that are listed, by their ids. */
  retain(ids: ReadonlySet<string>, message: string): void {
    for (const requestId of [...this.#pending.keys()])
      if (!ids.has(requestId)) this.#resolve(requestId, { behavior: 'deny', message }, 'policy', { channel: 'policy' })
  }

  /** Takes a request off the list whose answer is told later. */
  takeOff(requestId: string): PermissionRequest | undefined {
    const pending = this.#pending.get(requestId)
    this.#pending.delete(requestId)
    return pending?.request
  }

  /** The engine is gone and with it whoever asked; the requests stay. */
  suspend(): void {
    for (const pending of this.#pending.values()) pending.decide = undefined
  }

  get(requestId: string): PermissionRequest | undefined {
    return this.#pending.get(requestId)?.request
  }

  /** Does nothing when the request is unknown, answered or expired. */
  answer(requestId: string, answer: ResolvePermissionRequest, by: AnsweredBy | undefined): void {
    const pending = this.#pending.get(requestId)
    // its engine was started again and has not asked again yet
    if (pending && !pending.decide) this.#carry(pending.request, answer, by)
    this.#resolve(requestId, answer, 'client', by)
  }

  get lost(): readonly PermissionRequest[] {
    return this.#lost
  }

  /** Tells of what an engine that is gone has asked that nobody asks it any more. */
  denyLost(message: string): void {
    const lost = this.#lost
    this.#lost = []
    const denied = { decision: { behavior: 'deny', message }, resolvedBy: 'policy', by: { channel: 'policy' } } as const
    for (const { id: requestId } of lost) this.#tellResolved({ requestId, ...denied })
  }

  /**
   * Denies everything that waits; what was allowed and not handed over yet does not run either.
   * @returns what is carried of it
   */
  denyAll(message: string): CarriedDecision[] {
    const before = this.carried.length
    for (const requestId of [...this.#handing.keys()]) this.#take(requestId)?.({ behavior: 'deny', message })
    for (const { request, decide } of [...this.#pending.values()]) {
      // its engine was started again and asks again after this, in a turn that is to end
      if (!decide) this.#carry(request, { behavior: 'deny', message, interrupt: true }, undefined)
      this.#resolve(request.id, { behavior: 'deny', message }, 'policy', { channel: 'policy' })
    }
    return this.carried.slice(before)
  }

  /** The turn is over in which they would have been asked for again. */
  forgetCarried(): void {
    this.carried = []
  }

  #carry(request: PermissionRequest, answer: PermissionDecision, by: AnsweredBy | undefined): void {
    this.carried = [...this.carried, { ...carriedDecision(request, answer, by), told: true }]
  }

  #resolve(requestId: string, answer: PermissionDecision, resolvedBy: ResolvedBy, by: AnsweredBy | undefined): void {
    const pending = this.#pending.get(requestId)
    if (!pending) return
    this.#pending.delete(requestId)
    pending.expiry?.set(undefined)
    const decision = decisionOf(pending.request, answer)
    const changed = changedInput(pending.request, decision)
    this.#tellResolved({ requestId, decision, resolvedBy, by, changedInput: changed })
    if (pending.decide && decision.behavior === 'allow') this.#hand(requestId, pending.decide, decision)
    else pending.decide?.(decision)
  }

  /** Called after a request left the list, before its asker goes on. */
  #tellResolved({ requestId, decision, resolvedBy, by, changedInput: ran }: Resolution): void {
    const message = decision.behavior === 'deny' ? decision.message : undefined
    this.#owner.onPermissionEvent({
      type: 'permission_resolved',
      requestId,
      behavior: decision.behavior,
      resolvedBy,
      ...present({ by, message, updatedInput: ran as Record<string, unknown> | undefined }),
    })
    this.#since.delete(requestId)
  }

  /** After a crash the log must not say of a tool that ran that nobody allowed it. */
  #hand(requestId: string, decide: Decide, decision: PermissionDecision): void {
    this.#handing.set(requestId, decide)
    this.#owner.whenDurable(() => {
      this.#take(requestId)?.(decision)
      // the others may have waited for this one with their parking
      if (this.size > 0) this.#owner.onPatientRequest()
    })
  }

  #take(requestId: string): Decide | undefined {
    const decide = this.#handing.get(requestId)
    this.#handing.delete(requestId)
    return decide
  }
}
