import type { Gap } from './attachment.js'
import type { ExecutionItem, FileItem, ToolPermission, Transcript } from './transcript.js'
import { TranscriptItemsEditor } from './transcript-items.js'
import {
  abandoned,
  type Block,
  blocksOf,
  grown,
  messageOf,
  partOf,
  withPermission,
  withResult,
} from './transcript-messages.js'
import type { SessionEvent, TokenUsage } from './types.js'

type EventOf<T extends SessionEvent['type']> = Extract<SessionEvent, { type: T }>

/** Permissions that were told of before the call that they are about. */
const EARLY = new WeakMap<object, ReadonlyMap<string, ToolPermission>>()

/** One fold: changes a copy, and copies only what it changes. */
export class TranscriptEditor {
  readonly #before: Transcript
  #now: Transcript
  readonly #items: TranscriptItemsEditor
  #early: ReadonlyMap<string, ToolPermission>

  constructor(transcript: Transcript) {
    this.#before = this.#now = transcript
    this.#items = new TranscriptItemsEditor(transcript.items)
    this.#early = EARLY.get(transcript) ?? new Map()
  }

  /** What is left when events are missing: the snapshot, and then what the log still has. */
  static afterGap(empty: Transcript, { snapshot }: Gap): TranscriptEditor {
    const { session, pendingPermissions, pendingExecutions, replayingFrom } = snapshot
    const editor = new TranscriptEditor(empty)
    editor.#now = {
      ...empty,
      lastSeq: replayingFrom,
      status: session.status,
      statusDetail: session.statusDetail,
      waitingFor: { permissions: pendingPermissions, executions: pendingExecutions },
      model: session.model,
      permissionMode: session.permissionMode,
      isTruncated: true,
    }
    return editor
  }

  done(): Transcript {
    const items = this.#items.done()
    if (this.#now === this.#before && items === this.#before.items) return this.#before
    const transcript = { ...this.#now, items }
    if (this.#early.size > 0) EARLY.set(transcript, this.#early)
    return transcript
  }

  take(event: SessionEvent): void {
    if (event.seq <= this.#now.lastSeq) return
    this.#set({ lastSeq: event.seq })
    switch (event.type) {
      case 'system_init':
        this.#set({ init: event, model: event.model, permissionMode: event.permissionMode })
        return
      case 'status_changed':
        this.#set({ status: event.status, statusDetail: event.detail })
        return
      case 'capabilities':
        this.#set({ capabilities: { models: objects(event.models), commands: objects(event.commands) } })
        return
      case 'model_changed':
        this.#set({ model: event.model })
        return
      case 'permission_mode_changed':
        this.#set({ permissionMode: event.mode })
        return
      case 'user_message':
      case 'assistant_message':
        this.#onMessage(event)
        return
      case 'stream_delta':
        this.#set({ streaming: grown(this.#now.streaming, event) })
        return
      case 'turn_completed':
        this.#onTurn(event)
        return
      case 'permission_requested':
        this.#onAsked(event)
        return
      case 'permission_resolved':
        this.#onAnswered(event)
        return
      case 'execution_dispatched':
        this.#onDispatched(event)
        return
      case 'execution_result':
        this.#onSettled(event.executionId, { status: 'succeeded', output: event.output })
        return
      case 'execution_failed':
        this.#onSettled(event.executionId, { status: 'failed', error: words(event.error) })
        return
      case 'file_delivered':
        this.#onFile(event)
        return
      case 'context_usage':
        this.#set({ context: event.usage })
        return
      case 'rate_limit':
        this.#set({ rateLimit: event.info })
        return
      case 'session_error': {
        const { seq, ts, message, code } = event
        this.#items.push({ kind: 'error', seq, ts, message: words(message), ...(code !== undefined && { code }) })
        return
      }
      case 'session_closed':
        this.#abandonCalls()
        this.#items.abandonExecutions()
        this.#set({ closedReason: event.reason, streaming: [], waitingFor: { permissions: [], executions: [] } })
        return
      case 'plan_updated':
        this.#set({ plan: objects(event.entries) })
    }
  }

  #set(changes: Partial<Transcript>): void {
    this.#now = this.#now === this.#before ? { ...this.#now, ...changes } : Object.assign(this.#now, changes)
  }

  #onMessage(event: EventOf<'user_message' | 'assistant_message'>): void {
    this.#set({ streaming: without(this.#now.streaming, ({ uuid }) => uuid === event.uuid) })
    const blocks = blocksOf(event.message)
    for (const block of blocks) if (block.type === 'tool_result') this.#onToolResult(block, event.ts)
    const parts = blocks.flatMap((block) => (block.type === 'tool_result' ? [] : [partOf(block)]))
    // tool results are shown with their calls
    if (parts.length === 0) return
    this.#items.push(messageOf(event, parts))
    for (const part of parts) if (part.type === 'tool') this.#onToolCall(part.id)
  }

  #onToolCall(id: string): void {
    this.#set({ openToolCalls: [...this.#now.openToolCalls, id] })
    const permission = this.#early.get(id)
    if (!permission) return
    const early = new Map(this.#early)
    early.delete(id)
    this.#early = early
    this.#items.changeTool(id, (tool) => withPermission(tool, permission))
  }

  #onToolResult(block: Block, ts: number): void {
    const id = String(block.tool_use_id)
    this.#items.changeTool(id, (tool) => withResult(tool, block, ts))
    this.#set({ openToolCalls: without(this.#now.openToolCalls, (open) => open === id) })
  }

  #onTurn({
    seq,
    ts,
    subtype,
    isError,
    durationMs,
    usage,
    result,
    errors,
    numTurns,
    totalCostUsd,
  }: EventOf<'turn_completed'>): void {
    this.#abandonCalls()
    this.#items.push({
      kind: 'turn',
      seq,
      ts,
      subtype,
      isError,
      durationMs: amount(durationMs),
      usage: sum({}, usage),
      ...(result !== undefined && { result }),
      ...(Array.isArray(errors) && { errors: errors.map(words) }),
    })
    this.#set({
      streaming: [],
      usage: sum(this.#now.usage, usage),
      numTurns: amount(numTurns),
      totalCostUsd: amount(totalCostUsd),
    })
  }

  /** What has no result once its turn, or the session, is over gets none. */
  #abandonCalls(): void {
    if (this.#now.openToolCalls.length === 0) return
    for (const id of this.#now.openToolCalls) this.#items.changeTool(id, abandoned)
    this.#set({ openToolCalls: [] })
  }

  #onAsked({ request }: EventOf<'permission_requested'>): void {
    const { permissions, executions } = this.#now.waitingFor
    const others = without(permissions, ({ id }) => id === request.id)
    this.#set({ waitingFor: { permissions: [...others, request], executions } })
    this.#changePermission(request.toolUseId, { request })
  }

  #onAnswered({ requestId, behavior, resolvedBy, by, message, updatedInput }: EventOf<'permission_resolved'>): void {
    const { permissions, executions } = this.#now.waitingFor
    const request = permissions.find(({ id }) => id === requestId)
    if (!request) return
    this.#set({ waitingFor: { permissions: without(permissions, (other) => other === request), executions } })
    const permission = {
      ...{ request, behavior, resolvedBy },
      ...(by && { by }),
      ...(message !== undefined && { message }),
      ...(updatedInput && { updatedInput }),
    }
    this.#changePermission(request.toolUseId, permission)
  }

  #changePermission(toolUseId: string, permission: ToolPermission): void {
    if (this.#items.changeTool(toolUseId, (tool) => withPermission(tool, permission))) return
    this.#early = new Map(this.#early).set(toolUseId, permission)
  }

  #onDispatched({ seq, ts, executionId, deferred, expiresAt, ...event }: EventOf<'execution_dispatched'>): void {
    const toolName = words(event.toolName)
    this.#items.push({ kind: 'execution', seq, ts, executionId, toolName, status: 'running' })
    if (!deferred) return
    const { permissions, executions } = this.#now.waitingFor
    const others = without(executions, (other) => other.executionId === executionId)
    const waiting = { executionId, toolName, ...(expiresAt !== undefined && { expiresAt }) }
    this.#set({ waitingFor: { permissions, executions: [...others, waiting] } })
  }

  #onSettled(executionId: string, outcome: Partial<ExecutionItem>): void {
    const { permissions, executions } = this.#now.waitingFor
    const others = without(executions, (other) => other.executionId === executionId)
    if (others !== executions) this.#set({ waitingFor: { permissions, executions: others } })
    this.#items.settleExecution(executionId, outcome)
  }

  #onFile({ seq, ts, bytes, description, ...event }: EventOf<'file_delivered'>): void {
    const path = words(event.path)
    const about = words(description)
    const file: FileItem = { kind: 'file', seq, ts, path, bytes: amount(bytes), ...(about && { description: about }) }
    this.#items.push(file)
    this.#set({ deliverables: [...this.#now.deliverables.filter((other) => other.path !== path), file] })
  }
}

/** The same array when nothing was in it. */
function without<T>(items: readonly T[], isOut: (item: T) => boolean): readonly T[] {
  return items.some(isOut) ? items.filter((item) => !isOut(item)) : items
}

const sum = (a: Partial<TokenUsage>, b: Partial<TokenUsage> | undefined): TokenUsage => ({
  inputTokens: amount(a.inputTokens) + amount(b?.inputTokens),
  outputTokens: amount(a.outputTokens) + amount(b?.outputTokens),
  cacheCreationTokens: amount(a.cacheCreationTokens) + amount(b?.cacheCreationTokens),
  cacheReadTokens: amount(a.cacheReadTokens) + amount(b?.cacheReadTokens),
})

/** Earlier gateways kept whatever an engine said. */
const amount = (number: unknown): number => (typeof number === 'number' ? number : 0)
const objects = <T>(list: T[]): T[] => (Array.isArray(list) ? list.filter((one) => one instanceof Object) : [])
const words = (text: unknown): string => (typeof text === 'string' ? text : '')
