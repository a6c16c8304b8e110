import type { Message } from '../../schemas/events.js'
import type { SubmitExecutionResultRequest } from '../../schemas/executions.js'
import type { PermissionMode } from '../../schemas/permissions.js'
import type { ProfileInfo } from '../../schemas/profiles.js'
import type { CreateSessionRequest, SessionFileInfo } from '../../schemas/sessions.js'
import type { RunnerEvent } from './event-types.js'

export type { RunnerEvent }

/**
 * The contract between the gateway and what runs an agent.
 *
 * A *session* is what clients see; a *runner* is one engine instance that serves it. The gateway calls `start`, then `send` once per
 * turn and never while a turn is in progress; the runner tells what happens through `host.emit` and ends each turn with
 * `turn_completed`.
 */
export interface Runner {
  readonly capabilities: RunnerCapabilities
  /** The scratch filesystem, when the engine has one. */
  readonly files?: SessionFiles
  /** False while something runs that a park would cut off; `waitForExecutions()` tells when that is over. Default true. */
  readonly canPark?: boolean
  /** False while something goes on beside its turns that its end would cut off: it is not let go for being idle then. Default true. */
  readonly canRelease?: boolean
  /** True when its engine is gone although the session goes on: between turns, a successor takes over from the snapshot. Default false. */
  readonly isSpent?: boolean
  /**
   * Resolves when input is accepted, not when the run ends. A rejection fails a session that is new; one that had an engine before stays
   * as it was and is tried again, unless the rejection is a `GatewayError` with `SG_ERR_AGENT_STATE_GONE`: nothing can go on with it.
   */
  start(host: RunnerHost): Promise<void>
  /** Begins a turn. */
  send(text: string, options?: { commandId?: string }): void
  /**
   * Ends the turn in progress; it is then told by `turn_completed` with `subtype: interrupted`. Asked between turns, too, while `canRelease`
   * is false: for a turn that it took by itself.
   */
  interrupt(): Promise<void>
  setPermissionMode?(mode: PermissionMode): Promise<void>
  setModel?(model: string | undefined): Promise<void>
  settleExecution?(executionId: string, result: ExecutionResult): void
  /**
   * Does nothing more to the world until `resume`, as far as that is in its hands: an agent in a process of its own is stopped, no tool and
   * no model call begins, nothing is read. May come before `start`, which then begins with `resume`, and before `close`, which then is not
   * to let it act again. Absent: it is left alone.
   */
  pause?(): void
  /** Goes on as if nothing had been. */
  resume?(): void
  /** Between turns, before the next message is told: tells what it has said and not told yet. */
  tellRest?(): void
  /**
   * Valid between turns and after `waitForExecutions()`; survives JSON. Absent when no successor could go on; a runner that only learns
   * from its engine whether one could has it from `start` on.
   */
  readonly snapshot?: (() => RunnerSnapshot) | undefined
  close(): Promise<void>
}

export interface RunnerCapabilities {
  permissionModes: PermissionMode[]
  /** `native`: the session can be parked mid-turn; `none`: it keeps its process while it waits. */
  parking: 'native' | 'none'
  setModel: boolean
  resume: boolean
  fork: boolean
  files: boolean
  /** Whether an allow may change the input. Default true; without it a changed input is refused and the request stays. */
  updatedInput?: boolean
}

export interface RunnerHost {
  emit(event: RunnerEvent): void
  /**
   * Present while what the engine says is not kept, or not read, as fast as it says it; it resolves when it is, or after some seconds. An
   * engine that awaits it before it reads on from its model is slowed; one that does not may run away from its clients, which are cut off then.
   */
  readonly drained?: Promise<void> | undefined
  /**
   * Asks a person; settles exactly once. An allow always carries the input to run.
   * @param takenBack aborts when the engine does not ask any more: it settles as denied then, and nobody can answer it
   */
  requestPermission(request: PermissionAsk, takenBack?: AbortSignal): Promise<PermissionDecision>
  /**
   * Resolves when the id is stored durably.
   * @param takenBack aborts when the engine does not wait for the result any more: the execution fails then, and a later result is not applied
   */
  deferExecution(execution: DeferredExecution, takenBack?: AbortSignal): Promise<void>
  /** The turn cannot go on until a deferred execution settles. */
  waitForExecutions(): void
  /** Aborted when the session ends. */
  readonly signal: AbortSignal
}

export interface PermissionAsk {
  toolName: string
  toolUseId: string
  input: object
  title?: string
  description?: string
  decisionReason?: string
  agentId?: string
}

export type PermissionDecision =
  | { behavior: 'allow'; updatedInput?: object }
  | { behavior: 'deny'; message?: string; interrupt?: boolean }

/** What an agent is told by a deny that has no words of its own. */
export const NOT_ALLOWED = 'The user does not allow this.'

export interface DeferredExecution {
  executionId: string
  toolName: string
  input?: unknown
  /** Epoch milliseconds. */
  expiresAt?: number
}

export type ExecutionResult = SubmitExecutionResultRequest

export interface RunnerSnapshot {
  engine: string
  state: unknown
  /** File contents in base64, by path. */
  files?: Record<string, string>
  /** When each of them changed last, by path. Added by the gateway, as the runner's `files` list it. */
  filesModifiedAt?: Record<string, number>
}

/** What the log has of a turn that ended with its process. */
export interface CutOffTurn {
  /** What it began with; absent: that is not in the log any more. */
  prompt?: string
  /** What was said in it by the model, and in the user's place: results of tools. Of a long turn the end. */
  messages: readonly Message[]
  /** Calls, by `toolUseId`, that a person was asked about and that were not allowed, its end included; absent: none. These did not run. */
  denied?: readonly string[]
}

export interface SessionFiles {
  list(): SessionFileInfo[]
  read(path: string): Uint8Array | undefined
}

/** A call that the gateway hands to an attached client. */
export interface BridgedCall {
  executionId: string
  toolName: string
  input: unknown
  limits?: { timeoutMs?: number; memoryLimitBytes?: number }
  /** Epoch milliseconds. */
  expiresAt?: number
}

/** Asks an attached client to execute a call. */
export interface ClientBridge {
  execute(call: BridgedCall): Promise<ExecutionResult>
}

/**
 * The validated request after profile defaults, plus what only the host sets: `env`, `defaultApprovalTimeoutMs` and `agentOptions`
 * come from `buildRunnerConfig`, never from the wire, and are never written to a store.
 */
export interface SessionRunnerConfig extends CreateSessionRequest {
  env?: Record<string, string | undefined>
  defaultApprovalTimeoutMs?: number
  /** Opaque, passed to the agent's driver. */
  agentOptions?: Record<string, unknown>
}

/** A tool whose work happens elsewhere: a call is handed to the gateway, and its result is delivered by `settleExecution`. */
export interface DeferredTool {
  name: string
  description: string
  /** JSON Schema of an object. */
  inputSchema: Record<string, unknown>
  /** After that long the gateway gives it up: `expiresAt` of the execution. Default: no limit. */
  timeoutMs?: number | undefined
}

export interface EngineRunnerContext {
  sessionId: string
  config: SessionRunnerConfig
  profile: ProfileInfo
  bridge: ClientBridge
  /** What the operator declared in `executions`; absent: none. */
  deferredTools?: readonly DeferredTool[]
  /** Present when a parked or released session starts again. */
  restore?: RunnerSnapshot
  /**
   * Of a provider profile: turns since `restore`, or since the session began, that ended with their process, in order; absent: none. They
   * were told, and counted, and their model is to know of them.
   */
  cutOff?: readonly CutOffTurn[]
  /**
   * Present for a managed provider profile: what its models are to be reached with. It connects only where the operator lets callers
   * connect, and follows no redirect.
   */
  fetch?: typeof fetch
  /**
   * Present for a managed provider profile: whether the operator lists, in `managedProfiles`, the key that it names or that its vendor
   * has. The bundled engine reads no other.
   */
  mayReadKey?: boolean
}

export type CreateEngineRunner = (context: EngineRunnerContext) => Runner | Promise<Runner>
