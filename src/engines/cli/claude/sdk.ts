import type { ChildProcess } from 'node:child_process'
import { startError, toError } from '../../../errors.js'

/**
 * The part of `@anthropic-ai/claude-agent-sdk` that the driver uses. Written down here because the package is proprietary and optional:
 * its types are not there to compile against. Of its messages only the fields that are read are named.
 */
export interface ClaudeSdk {
  query(request: { prompt: AsyncIterable<SdkUserMessage>; options: SdkOptions }): SdkQuery
}

export interface SdkQuery extends AsyncIterable<SdkMessage> {
  initializationResult(): Promise<SdkInitialization>
  getContextUsage(options: {
    detail: 'summary'
  }): Promise<{ totalTokens: number; maxTokens: number; percentage: number }>
  interrupt(): Promise<unknown>
  setPermissionMode(mode: string): Promise<void>
  setModel(model?: string): Promise<void>
  close(): void
}

export interface SdkOptions {
  cwd: string
  env: Record<string, string>
  permissionMode: string
  allowDangerouslySkipPermissions?: boolean
  settingSources: string[]
  /** Flags of the executable, without their dashes. */
  extraArgs: Record<string, string>
  systemPrompt: { type: 'preset'; preset: 'claude_code' }
  includePartialMessages: true
  sessionId?: string
  resume?: string
  forkSession?: boolean
  model?: string
  allowedTools?: string[]
  disallowedTools?: string[]
  maxTurns?: number
  maxBudgetUsd?: number
  mcpServers?: Record<string, unknown>
  mcpServersDelivery?: 'initialize' | 'argv'
  pathToClaudeCodeExecutable?: string
  canUseTool: SdkCanUseTool
  hooks: { PreToolUse: { hooks: SdkHook[]; timeout: number }[] }
  spawnClaudeCodeProcess: (request: SdkSpawnRequest) => ChildProcess
}

export type SdkCanUseTool = (
  toolName: string,
  input: Record<string, unknown>,
  options: {
    signal: AbortSignal
    toolUseID: string
    title?: string
    description?: string
    decisionReason?: string
    agentID?: string
  },
) => Promise<SdkPermissionResult>

export type SdkPermissionResult =
  | { behavior: 'allow'; updatedInput: Record<string, unknown> }
  | { behavior: 'deny'; message: string; interrupt?: boolean }

export interface SdkHookInput {
  tool_name: string
  tool_input: Record<string, unknown>
  tool_use_id: string
  /** Of the helper whose call it is. */
  agent_id?: string
}
export type SdkHook = (
  input: SdkHookInput,
  toolUseID: string | undefined,
  options: { signal: AbortSignal },
) => Promise<SdkHookOutput>
export type SdkHookOutput = {
  hookSpecificOutput?: {
    hookEventName: 'PreToolUse'
    permissionDecision: 'allow' | 'deny' | 'ask' | 'defer'
    permissionDecisionReason: string
    updatedInput?: Record<string, unknown>
  }
}

interface SdkSpawnRequest {
  command: string
  args: string[]
  env: Record<string, string | undefined>
}

export interface SdkUserMessage {
  type: 'user'
  uuid?: string
  message: { role: 'user'; content: string | unknown[] }
  parent_tool_use_id: null
  /** False: nothing is asked of the model. */
  shouldQuery?: boolean
}

export interface SdkInitialization {
  commands?: { name: string; description?: string; argumentHint?: string }[]
  models?: { value: string; displayName?: string; description?: string }[]
  account?: SdkAccount
  claude_code_version?: string
  current_permission_mode?: string
}

export interface SdkAccount {
  apiKeySource?: string
  tokenSource?: string
  subscriptionType?: string
  apiProvider?: string
}

export interface SdkInit {
  type: 'system'
  subtype: 'init'
  session_id: string
  apiKeySource?: string
  claude_code_version?: string
  cwd: string
  tools?: string[]
  mcp_servers?: { name: string; status: string }[]
  model: string
  permissionMode: string
  slash_commands?: string[]
  skills?: string[]
}

export interface SdkUsage {
  input_tokens?: number
  output_tokens?: number
  cache_creation_input_tokens?: number
  cache_read_input_tokens?: number
}

export interface SdkAssistant {
  type: 'assistant'
  uuid?: string
  parent_tool_use_id: string | null
  message: { content: unknown; model?: string; stop_reason?: string | null }
}

export interface SdkUser {
  type: 'user'
  uuid?: string
  parent_tool_use_id: string | null
  isReplay?: boolean
  message: { content: unknown }
}

export interface SdkStreamEvent {
  type: 'stream_event'
  parent_tool_use_id: string | null
  event: {
    type: string
    delta?: { type?: string; text?: string; thinking?: string; partial_json?: string; stop_reason?: string | null }
    usage?: SdkUsage
    message?: { usage?: SdkUsage }
  }
}

export interface SdkResult {
  type: 'result'
  subtype: string
  is_error: boolean
  duration_ms?: number
  num_turns?: number
  total_cost_usd?: number
  result?: string
  errors?: string[]
  terminal_reason?: string
  usage?: SdkUsage
  modelUsage?: Record<string, SdkModelUsage>
  user_message_uuids?: string[]
  /** Of a turn that nobody's message began. */
  origin?: { kind: string }
}

interface SdkModelUsage {
  inputTokens?: number
  outputTokens?: number
  cacheCreationInputTokens?: number
  cacheReadInputTokens?: number
}

export interface SdkStatus {
  type: 'system'
  subtype: 'status'
  status?: string | null
  permissionMode?: string
  /** `success` or `failed`: what became of a compaction. */
  compact_result?: string
  compact_error?: string
}

/** What goes on beside the turn, whenever it changes. */
interface SdkBackgroundTasks {
  type: 'system'
  subtype: 'background_tasks_changed'
  tasks: { ambient?: boolean }[]
}

interface SdkRateLimit {
  type: 'rate_limit_event'
  rate_limit_info: Record<string, unknown>
}

export type SdkMessage =
  | SdkInit
  | SdkStatus
  | SdkBackgroundTasks
  | SdkAssistant
  | SdkUser
  | SdkStreamEvent
  | SdkResult
  | SdkRateLimit
  | { type: 'other'; subtype?: string }

export const CLAUDE_SDK = '@anthropic-ai/claude-agent-sdk'

/**
 * Loads the SDK, which is an optional peer: it is proprietary and brings a binary of 377 MB.
 * @param specifier the package, or the URL of its entry where it is installed elsewhere
 * @throws GatewayError that says how to install it
 */
export async function loadClaudeSdk(specifier: string): Promise<ClaudeSdk> {
  try {
    return (await import(specifier)) as ClaudeSdk
  } catch (error) {
    // Loaders that hosts put in between leave the code out.
    const missing = /^Cannot find (package|module)/.test(toError(error).message)
    const detail = missing
      ? `The claude agent needs its SDK, which is not installed: npm i ${CLAUDE_SDK}`
      : `The Claude Agent SDK could not be loaded: ${toError(error).message}`
    throw startError(detail, error)
  }
}
