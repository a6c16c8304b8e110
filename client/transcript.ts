import type { AttachItem } from './attachment.js'
import { ItemList } from './item-list.js'
import { TranscriptEditor } from './transcript-editor.js'
import type {
  ExecutionOutput,
  PendingExecution,
  PermissionRequest,
  PlanEntry,
  SessionEvent,
  SessionStatus,
  TokenUsage,
  TurnSubtype,
} from './types.js'

export { ItemList }

type EventOf<T extends SessionEvent['type']> = Extract<SessionEvent, { type: T }>

/** How an approval or a question stands. */
export interface ToolPermission {
  request: PermissionRequest
  /** Absent while it is waited for. */
  behavior?: 'allow' | 'deny'
  resolvedBy?: EventOf<'permission_resolved'>['resolvedBy']
  /** Who answered, as far as it is known. */
  by?: EventOf<'permission_resolved'>['by']
  message?: string
  /** What ran, when it is not what was shown. */
  updatedInput?: Record<string, unknown>
}

/**
 * `running`: has no result yet · `awaiting_approval`: is being asked about · `succeeded`, `failed`: has a result · `denied`: somebody, or a
 * rule, said no · `abandoned`: its turn, or the session, ended without a result.
 */
export type ToolStatus = 'running' | 'awaiting_approval' | 'succeeded' | 'failed' | 'denied' | 'abandoned'

export interface TextPart {
  type: 'text'
  text: string
}
export interface ThinkingPart {
  type: 'thinking'
  text: string
}
export interface ToolPart {
  type: 'tool'
  id: string
  name: string
  input: unknown
  status: ToolStatus
  /** What the tool said: text, or the blocks of the result. */
  result?: unknown
  /** When its result came, epoch milliseconds. Its message says when it was called. */
  endedAt?: number
  permission?: ToolPermission
}
/** A block that this version has no shape for, as it came. */
export interface OtherPart {
  type: 'other'
  block: { type: string }
}
export type MessagePart = TextPart | ThinkingPart | ToolPart | OtherPart

interface Item {
  /** Of the event that it began with; unique and rising. */
  seq: number
  ts: number
}
export interface MessageItem extends Item {
  kind: 'message'
  role: 'user' | 'assistant'
  uuid: string
  parts: readonly MessagePart[]
  model?: string
  /** The tool call within which a helper said it. */
  parentToolUseId?: string
  /** From an earlier session that this one resumes. */
  isReplay?: boolean
  /** Said by the engine in the user's place. */
  isSynthetic?: boolean
  /** The id of the `send` that it was. */
  commandId?: string
}
/** The end of a turn. */
export interface TurnItem extends Item {
  kind: 'turn'
  subtype: TurnSubtype
  isError: boolean
  durationMs: number
  usage: TokenUsage
  result?: string
  errors?: readonly string[]
}
export interface FileItem extends Item {
  kind: 'file'
  path: string
  bytes: number
  description?: string
}
/** Work that was handed out of the engine, and what became of it. */
export interface ExecutionItem extends Item {
  kind: 'execution'
  executionId: string
  toolName: string
  /** `abandoned`: the session ended without a result. */
  status: 'running' | 'succeeded' | 'failed' | 'abandoned'
  output?: ExecutionOutput
  error?: string
}
export interface ErrorItem extends Item {
  kind: 'error'
  message: string
  code?: string
}
export type TranscriptItem = MessageItem | TurnItem | FileItem | ExecutionItem | ErrorItem

/** `json`: the beginning of a tool call's input. `blockIndex`: its place in the message, of which an earlier part may be missing. */
export type StreamingPart = { blockIndex: number } & (TextPart | ThinkingPart | { type: 'tool_input'; json: string })
/** A message that is being written; it becomes an item once it is whole. */
export interface StreamingMessage {
  uuid: string
  parts: readonly StreamingPart[]
  parentToolUseId?: string
}

/** What a user interface shows of a session. Immutable: what did not change is the same object as before. */
export interface Transcript {
  /** Of the last event that is in it; it takes none twice. */
  lastSeq: number
  status: SessionStatus | undefined
  statusDetail: string | undefined
  items: ItemList<TranscriptItem>
  /** To be shown after `items`. Empty once what is being written is written, or its turn ended. */
  streaming: readonly StreamingMessage[]
  /** What the session waits for; somebody has to answer, or to deliver. */
  waitingFor: { permissions: readonly PermissionRequest[]; executions: readonly PendingExecution[] }
  /** Calls that have no result yet. */
  openToolCalls: readonly string[]
  deliverables: readonly FileItem[]
  /** The agent's own list of what it is about to do, when it tells one. */
  plan: readonly PlanEntry[]
  /** Of all turns so far. */
  usage: TokenUsage
  numTurns: number
  totalCostUsd: number
  context: EventOf<'context_usage'>['usage'] | undefined
  model: string | undefined
  permissionMode: string | undefined
  /** What the engine said about itself last. */
  init: EventOf<'system_init'> | undefined
  capabilities: Pick<EventOf<'capabilities'>, 'models' | 'commands'> | undefined
  rateLimit: EventOf<'rate_limit'>['info'] | undefined
  closedReason: EventOf<'session_closed'>['reason'] | undefined
  /** The log no longer reaches back to the session's beginning. */
  isTruncated: boolean
}

export const emptyTranscript: Transcript = Object.freeze({
  lastSeq: 0,
  status: undefined,
  statusDetail: undefined,
  items: new ItemList<TranscriptItem>(),
  streaming: [],
  waitingFor: { permissions: [], executions: [] },
  openToolCalls: [],
  deliverables: [],
  plan: [],
  usage: { inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 },
  numTurns: 0,
  totalCostUsd: 0,
  context: undefined,
  model: undefined,
  permissionMode: undefined,
  init: undefined,
  capabilities: undefined,
  rateLimit: undefined,
  closedReason: undefined,
  isTruncated: false,
})

/**
 * Takes events into a transcript: the one way from what happened to what is shown. Pure; folding events one by one, in batches, over
 * reconnects or from a replay gives the same transcript. A gap starts it anew. Events that it has seen before change nothing: the same object
 * comes back.
 * @param events of one session, in order, as `attach` yields them
 * @param transcript what the events before have given
 */
export function foldTranscript(events: Iterable<AttachItem>, transcript: Transcript = emptyTranscript): Transcript {
  let editor = new TranscriptEditor(transcript)
  for (const event of events) {
    if (event.type === 'gap') editor = TranscriptEditor.afterGap(emptyTranscript, event)
    else editor.take(event)
  }
  return editor.done()
}
