import type { Gap } from './attachment.js'
import { ItemListEditor } from './item-list.js'
import type {
  ExecutionItem,
  FileItem,
  MessageItem,
  MessagePart,
  StreamingMessage,
  ToolPart,
  ToolPermission,
  Transcript,
  TranscriptItem,
} from './transcript.js'
import type { Message, SessionEvent, TokenUsage } from './types.js'

type EventOf<T extends SessionEvent['type']> = Extract<SessionEvent, { type: T }>
type Block = { type: string; [field: string]: unknown }

/**
 * Where the tool calls and executions of a transcript are. Shared by all versions of it: an entry is a hint that is checked when it is
 * used, so versions that went different ways do no harm to each other.
 */
type Places = Map<string, number>
const PLACES = new WeakMap<object, Places>()
/** Permissions that were told of before the call that they are about. */
const EARLY = new WeakMap<object, ReadonlyMap<string, ToolPermission>>()

/** One fold: changes a copy, and copies only what it changes. */
export class TranscriptEditor {
  readonly #before: Transcript
  #now: Transcript
  readonly #items: ItemListEditor<TranscriptItem>
  readonly #places: Places
  #early: ReadonlyMap<string, ToolPermission>

  constructor(transcript: Transcript) {
    this.#before = this.#now = transcript
    this.#items = new ItemListEditor(transcript.items)
    this.#places = PLACES.get(transcript) ?? placesIn(transcript)
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
    PLACES.set(transcript, this.#places)
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
        this.#set({ capabilities: { models: event.models, commands: event.commands } })
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
        this.#onDelta(event)
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
        this.#onSettled(event.executionId, { status: 'failed', error: event.error })
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
        this.#items.push({ kind: 'error', seq, ts, message, ...(code !== undefined && { code }) })
        return
      }
      case 'session_closed':
        this.#set({ closedReason: event.reason, streaming: [], waitingFor: { permissions: [], executions: [] } })
        return
      case 'plan_updated':
        this.#set({ plan: event.entries })
    }
  }

  #set(changes: Partial<Transcript>): void {
    this.#now = this.#now === this.#before ? { ...this.#now, ...changes } : Object.assign(this.#now, changes)
  }

  #onMessage(event: EventOf<'user_message' | 'assistant_message'>): void {
    const { seq, ts, uuid, message, parentToolUseId, replay } = event
    this.#set({ streaming: without(this.#now.streaming, (streaming) => streaming.uuid === uuid) })
    const blocks = blocksOf(message)
    for (const block of blocks) if (block.type === 'tool_result') this.#onToolResult(block)
    const parts = blocks.flatMap((block) => (block.type === 'tool_result' ? [] : [this.#partOf(block)]))
    // tool results are shown with their calls
    if (parts.length === 0) return
    const item: MessageItem = {
      kind: 'message',
      seq,
      ts,
      role: event.type === 'user_message' ? 'user' : 'assistant',
      uuid,
      parts,
      ...(message.model !== undefined && { model: message.model }),
      ...(parentToolUseId !== null && { parentToolUseId }),
      ...(replay && { isReplay: true }),
      ...('synthetic' in event && event.synthetic && { isSynthetic: true }),
      ...('commandId' in event && event.commandId !== undefined && { commandId: event.commandId }),
    }
    const open: string[] = []
    for (const part of parts) {
      if (part.type !== 'tool') continue
      this.#places.set(part.id, this.#items.length)
      open.push(part.id)
    }
    if (open.length > 0) this.#set({ openToolCalls: [...this.#now.openToolCalls, ...open] })
    this.#items.push(item)
  }

  #partOf(block: Block): MessagePart {
    if (block.type === 'text') return { type: 'text', text: String(block.text) }
    if (block.type === 'thinking') return { type: 'thinking', text: String(block.thinking) }
    if (block.type !== 'tool_use') return { type: 'other', block }
    const id = String(block.id)
    const part: ToolPart = { type: 'tool', id, name: String(block.name), input: block.input, status: 'running' }
    const permission = this.#early.get(id)
    if (!permission) return part
    const early = new Map(this.#early)
    early.delete(id)
    this.#early = early
    return withPermission(part, permission)
  }

  #onToolResult(block: Block): void {
    const id = String(block.tool_use_id)
    this.#changeTool(id, (tool) => ({
      ...tool,
      status: tool.permission?.behavior === 'deny' ? 'denied' : block.is_error === true ? 'failed' : 'succeeded',
      result: block.content,
    }))
    this.#set({ openToolCalls: without(this.#now.openToolCalls, (open) => open === id) })
  }

  #onDelta({ uuid, blockIndex, delta, parentToolUseId }: EventOf<'stream_delta'>): void {
    const { streaming } = this.#now
    const index = streaming.findIndex((message) => message.uuid === uuid)
    const message: StreamingMessage = streaming[index] ?? {
      uuid,
      parts: [],
      ...(parentToolUseId !== null && { parentToolUseId }),
    }
    const place = message.parts.findIndex((part) => part.blockIndex === blockIndex)
    const part = message.parts[place]
    const grown =
      delta.type === 'tool_input'
        ? { type: delta.type, blockIndex, json: (part?.type === delta.type ? part.json : '') + delta.json }
        : { type: delta.type, blockIndex, text: (part?.type === delta.type ? part.text : '') + delta.text }
    const parts = place < 0 ? [...message.parts, grown] : message.parts.with(place, grown)
    const next = { ...message, parts }
    this.#set({ streaming: index < 0 ? [...streaming, next] : streaming.with(index, next) })
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
    for (const id of this.#now.openToolCalls)
      this.#changeTool(id, (tool) => ({
        ...tool,
        status: tool.permission?.behavior === 'deny' ? 'denied' : 'abandoned',
      }))
    this.#items.push({
      kind: 'turn',
      seq,
      ts,
      subtype,
      isError,
      durationMs,
      usage,
      ...(result !== undefined && { result }),
      ...(errors && { errors }),
    })
    this.#set({ streaming: [], openToolCalls: [], usage: sum(this.#now.usage, usage), numTurns, totalCostUsd })
  }

  #onAsked({ request }: EventOf<'permission_requested'>): void {
    const { permissions, executions } = this.#now.waitingFor
    const others = without(permissions, ({ id }) => id === request.id)
    this.#set({ waitingFor: { permissions: [...others, request], executions } })
    this.#changePermission(request.toolUseId, { request })
  }

  #onAnswered({ requestId, behavior, resolvedBy, message }: EventOf<'permission_resolved'>): void {
    const { permissions, executions } = this.#now.waitingFor
    const request = permissions.find(({ id }) => id === requestId)
    if (!request) return
    this.#set({ waitingFor: { permissions: without(permissions, (other) => other === request), executions } })
    const permission = { request, behavior, resolvedBy, ...(message !== undefined && { message }) }
    this.#changePermission(request.toolUseId, permission)
  }

  #changePermission(toolUseId: string, permission: ToolPermission): void {
    if (this.#changeTool(toolUseId, (tool) => withPermission(tool, permission))) return
    this.#early = new Map(this.#early).set(toolUseId, permission)
  }

  #onDispatched({ seq, ts, executionId, toolName, deferred, expiresAt }: EventOf<'execution_dispatched'>): void {
    this.#places.set(executionId, this.#items.length)
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
    const isIt = (item: TranscriptItem) => item.kind === 'execution' && item.executionId === executionId
    const index = this.#find(executionId, isIt)
    if (index !== undefined) this.#items.set(index, { ...(this.#items.at(index) as ExecutionItem), ...outcome })
  }

  #onFile({ seq, ts, path, bytes, description }: EventOf<'file_delivered'>): void {
    const file: FileItem = { kind: 'file', seq, ts, path, bytes, ...(description !== undefined && { description }) }
    this.#items.push(file)
    this.#set({ deliverables: [...this.#now.deliverables.filter((other) => other.path !== path), file] })
  }

  /** @returns whether there is such a call */
  #changeTool(id: string, change: (tool: ToolPart) => ToolPart): boolean {
    const isIt = (part: MessagePart) => part.type === 'tool' && part.id === id
    const index = this.#find(id, (item) => item.kind === 'message' && item.parts.some(isIt))
    if (index === undefined) return false
    const item = this.#items.at(index) as MessageItem
    const parts = item.parts.map((part) => (part.type === 'tool' && part.id === id ? change(part) : part))
    this.#items.set(index, { ...item, parts })
    return true
  }

  #find(id: string, isIt: (item: TranscriptItem) => boolean): number | undefined {
    const hint = this.#places.get(id)
    if (hint === undefined) return undefined
    const hinted = this.#items.at(hint)
    if (hinted && isIt(hinted)) return hint
    // another version of this transcript has it elsewhere
    for (let index = this.#items.length - 1; index >= 0; index--) {
      if (!isIt(this.#items.at(index)!)) continue
      this.#places.set(id, index)
      return index
    }
    return undefined
  }
}

/** Of a transcript that came from elsewhere: a copy, or one that was stored. */
function placesIn({ items }: Transcript): Places {
  const places: Places = new Map()
  let index = 0
  for (const item of items) {
    if (item.kind === 'execution') places.set(item.executionId, index)
    else if (item.kind === 'message')
      for (const part of item.parts) if (part.type === 'tool') places.set(part.id, index)
    index++
  }
  return places
}

const blocksOf = ({ content }: Message): Block[] =>
  typeof content === 'string' ? (content ? [{ type: 'text', text: content }] : []) : (content as Block[])

/** The same array when nothing was in it. */
function without<T>(items: readonly T[], isOut: (item: T) => boolean): readonly T[] {
  return items.some(isOut) ? items.filter((item) => !isOut(item)) : items
}

const withPermission = (tool: ToolPart, permission: ToolPermission): ToolPart => ({
  ...tool,
  permission,
  status: isSettled(tool)
    ? tool.status
    : permission.behavior === undefined
      ? 'awaiting_approval'
      : permission.behavior === 'deny'
        ? 'denied'
        : 'running',
})

const isSettled = ({ status }: ToolPart): boolean =>
  status === 'succeeded' || status === 'failed' || status === 'abandoned'

const sum = (a: TokenUsage, b: TokenUsage): TokenUsage => ({
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens,
  cacheCreationTokens: a.cacheCreationTokens + b.cacheCreationTokens,
  cacheReadTokens: a.cacheReadTokens + b.cacheReadTokens,
})
