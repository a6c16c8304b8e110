import type { PermissionMode } from '../../../schemas/permissions.js'
import type { TokenUsage } from '../../../schemas/sessions.js'
import { startError } from '../../errors.js'
import type { RunnerSnapshot } from '../runner.js'
import { forAnotherModel } from './kept-answer.js'
import type { ModelMessage, ModelToolCall } from './model-call.js'
import { failure, type ToolResult } from './tool.js'

/**
 * `open`: nobody has decided about it · `started`: it runs · `deferred`: its result comes from elsewhere · `done`: it has a result.
 */
type CallPhase = 'open' | 'started' | 'deferred' | 'done'

export interface CallState extends ModelToolCall {
  phase: CallPhase
  /** A person was asked about it: whatever mode is chosen since, it is theirs to decide. */
  isAsked?: true
  /** Of a deferred call. */
  executionId?: string
  /** Epoch milliseconds; of a deferred call. */
  expiresAt?: number
  result?: ToolResult
  /** Whether clients have seen the result. */
  told?: boolean
}

export interface TurnState {
  /** Time the turn took up to the last snapshot, in milliseconds; time in a snapshot does not count. */
  elapsedMs: number
  /** Calls of the model so far. */
  steps: number
  usage: TokenUsage
  /** The answer whose calls are being worked on. It joins the transcript together with their results, so that none dangles there. */
  work: { answer: ModelMessage; calls: CallState[] } | null
}

/** Everything a session is, between any two steps, as plain JSON. */
export interface SessionState {
  version: 1
  sdkSessionId: string
  model: string
  /** The one that the session began with; absent in what earlier versions wrote. */
  defaultModel?: string
  permissionMode: PermissionMode
  messages: ModelMessage[]
  /** Calls of the model and US dollars, over the whole session. */
  totals: { numTurns: number; costUsd: number }
  /** The turn in progress. */
  turn: TurnState | null
}

/** From the next call on `model` is asked, which is shown what it can be shown of what came before. */
export function changeModel(state: SessionState, model: string): void {
  const { messages, turn } = state
  if (model === state.model) return
  state.model = model
  for (const [index, message] of messages.entries()) messages[index] = forAnotherModel(message, model)
  if (turn?.work) turn.work.answer = forAnotherModel(turn.work.answer, model)
}

const ENGINE = 'provider'

/** The result of a call that was running when its process ended: it must not run again. */
export const MAY_HAVE_RUN = failure('The session stopped while this was running. It may or may not have taken effect.')

interface SavedState extends SessionState {
  filesModifiedAt: Record<string, number>
}

export const toSnapshot = (
  state: SessionState,
  saved: { files: Record<string, string>; modifiedAt: Record<string, number> },
): RunnerSnapshot => ({
  engine: ENGINE,
  state: JSON.parse(JSON.stringify({ ...state, filesModifiedAt: saved.modifiedAt })) as SavedState,
  files: saved.files,
})

/** @throws {GatewayError} `SG_ERR_ENGINE_START` when the snapshot is not one of this engine and version */
export function fromSnapshot(snapshot: RunnerSnapshot): {
  state: SessionState
  files: Record<string, string>
  modifiedAt: Record<string, number>
} {
  const saved = structuredClone(snapshot.state) as SavedState
  if (snapshot.engine !== ENGINE || saved?.version !== 1)
    throw startError('The snapshot was not made by this version of the provider engine.')
  const { filesModifiedAt, ...state } = saved
  for (const call of state.turn?.work?.calls ?? []) {
    if (call.phase !== 'started') continue
    // It may have had its effect, so it must not run again.
    call.phase = 'done'
    call.result = MAY_HAVE_RUN
  }
  // with what was delivered after it was made
  return { state, files: snapshot.files ?? {}, modifiedAt: { ...filesModifiedAt, ...snapshot.filesModifiedAt } }
}
