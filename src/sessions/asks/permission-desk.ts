import type { SessionEventBody } from '../../../schemas/events.js'
import type { PermissionAsk, PermissionDecision, SessionRunnerConfig } from '../../engines/runner.js'
import type { Clock } from '../../lib/clock.js'
import { newId } from '../../lib/new-id.js'
import { present } from '../../lib/present.js'
import type { CarriedDecision } from '../kept/journal.js'
import {
  changedInput,
  DEFAULT_APPROVAL_TIMEOUT_MS,
  PendingPermissions,
  policyAnswer,
  type Resolution,
} from './permissions.js'

/** What a session does about its permission requests. */
export interface PermissionDeskOwner {
  readonly config: SessionRunnerConfig
  /** Something is to be told, and the status may have changed with it. */
  onPermissionEvent(event: SessionEventBody): void
  whenDurable(then: () => void): void
  /** A request is waited for without a time limit. */
  onPatientRequest(): void
}

/** Where an engine asks and clients answer: policy first, then what was answered while the session was parked, then a person. */
export class PermissionDesk extends PendingPermissions {
  readonly #owner: PermissionDeskOwner
  /** Answers that were given while the session was parked, for the engine that asks again. */
  carried: CarriedDecision[] = []

  constructor(clock: Clock, owner: PermissionDeskOwner) {
    super(clock, {
      onResolved: (resolution) => owner.onPermissionEvent(resolvedEvent(resolution)),
      whenDurable: (then) =>
        owner.whenDurable(() => {
          then()
          // the others may have waited for this one with their parking
          if (this.size > 0) owner.onPatientRequest()
        }),
    })
    this.#owner = owner
  }

  ask(ask: PermissionAsk): Promise<PermissionDecision> {
    const { config } = this.#owner
    const answer = policyAnswer(ask, config.questionBehavior)
    if (answer) {
      const by = { channel: 'policy' } as const
      const resolution: Resolution = { requestId: newId(), decision: answer, resolvedBy: 'policy', by }
      this.#owner.onPermissionEvent(resolvedEvent({ ...resolution, changedInput: changedInput(ask, answer) }))
      return Promise.resolve(answer)
    }
    return this.#askedBefore(ask.toolUseId) ?? this.#askPerson(ask, config)
  }

  #askPerson(ask: PermissionAsk, config: SessionRunnerConfig): Promise<PermissionDecision> {
    const timeoutMs = config.approvalTimeoutMs ?? config.defaultApprovalTimeoutMs ?? DEFAULT_APPROVAL_TIMEOUT_MS
    const { request, decision } = this.add(ask, timeoutMs)
    this.#owner.onPermissionEvent({ type: 'permission_requested', request })
    if (timeoutMs === 0) this.#owner.onPatientRequest()
    return decision
  }

  #askedBefore(toolUseId: string): Promise<PermissionDecision> | undefined {
    const carried = this.carried.find((answer) => answer.toolUseId === toolUseId)
    if (carried) {
      this.#tell(carried)
      this.carried = this.carried.filter((answer) => answer !== carried)
      return Promise.resolve(carried.decision)
    }
    const open = this.askedAgain(toolUseId)
    if (open) this.#owner.onPatientRequest()
    return open
  }

  /** Tells the answers that were given while the session was parked, each once, whether the engine asks again or not. */
  tellCarried(): void {
    for (const carried of this.carried) this.#tell(carried)
  }

  #tell(carried: CarriedDecision): void {
    if (carried.told) return
    carried.told = true
    const { requestId, decision, by } = carried
    const ran = decision.behavior === 'allow' && carried.isChanged ? decision.updatedInput : undefined
    this.tellAnswered({ requestId, decision, by, changedInput: ran })
  }
}

function resolvedEvent({ requestId, decision, resolvedBy, by, changedInput: ran }: Resolution): SessionEventBody {
  const message = decision.behavior === 'deny' ? decision.message : undefined
  return {
    type: 'permission_resolved',
    requestId,
    behavior: decision.behavior,
    resolvedBy,
    ...present({ by, message, updatedInput: ran as Record<string, unknown> | undefined }),
  }
}
