import type { PermissionOption, ToolCall, ToolCallUpdate } from '@agentclientprotocol/sdk'
import { isRecord } from '../../../lib/json-value.js'

export type Told = ToolCall | ToolCallUpdate

/**
 * Where an agent says which tool is called, when no field has it: alone in the first title, before `__` in the call's id, or nowhere
 * when it asks, so that the kind and the input have to do.
 */
export type ToolNaming = 'title' | 'id' | ((told: Told, options: readonly PermissionOption[]) => string | undefined)

const ID_WITH_NAME = /^(.+)(?:__.*|-\d{10,}-\d+)$/

/**
 * The name that the call has from its first word on, in requests and results alike.
 * @param options what may be answered, where it is told by a request for permission
 */
export function toolNameOf(
  told: Told,
  naming: ToolNaming | undefined,
  options: readonly PermissionOption[] | undefined,
): string {
  const { title, toolCallId, kind } = told
  const said = saidName(told)
  if (said) return said
  if (typeof naming === 'function') return naming(told, options ?? []) ?? kind ?? 'other'
  // In a request the title may be the model's own words.
  if (naming === 'title' && title && /^[\w-]+$/.test(title) && (!options || kind === 'other')) return title
  return (naming === 'id' && ID_WITH_NAME.exec(toolCallId)?.[1]) || (kind ?? 'other')
}

/** The name in a field of its own. */
export function saidName({ name, rawInput, _meta }: Told): string | undefined {
  if (name) return name
  if (typeof _meta?.toolName === 'string') return _meta.toolName
  const { toolName } = (_meta?.claudeCode ?? {}) as { toolName?: unknown }
  if (typeof toolName === 'string') return toolName
  const { server, tool } = (rawInput ?? {}) as { server?: unknown; tool?: unknown }
  return _meta?.is_mcp_tool_call && typeof server === 'string' && typeof tool === 'string'
    ? `mcp__${server}__${tool}`
    : undefined
}

/** The call that a helper's call or word is part of, where the agent tells. */
export function parentOf(meta: Record<string, unknown> | null | undefined): string | undefined {
  const { parentToolUseId: claudes } = (meta?.claudeCode ?? {}) as { parentToolUseId?: unknown }
  const parent = meta?.parentToolCallId ?? meta?.parentToolUseId ?? claudes
  return typeof parent === 'string' ? parent : undefined
}

/** What gemini calls a tool of a server. */
export function geminiServerTool(server: string, tool: string): string {
  const name = `mcp_${server}_${tool}`
  return name.length > 63 ? `${name.slice(0, 30)}...${name.slice(-30)}` : name
}

/** How qwen offers to allow a tool of a server always: the one place in which the tool's own name stands, without the server's. */
const QWENS_SERVER_TOOL = /^Always Allow in project: (.+)$/s

/** What qwen calls a tool that it asks for without its name; `?` stands for a server that it does not tell, and is no server's name. */
export function qwenToolName({ kind, rawInput }: Told, options: readonly PermissionOption[]): string | undefined {
  const input = isRecord(rawInput) ? rawInput : {}
  switch (kind) {
    case 'execute':
      return 'command' in input ? 'run_shell_command' : undefined
    case 'fetch':
      return 'url' in input ? 'web_fetch' : undefined
    case 'edit':
      return 'old_string' in input ? 'edit' : 'content' in input ? 'write_file' : undefined
    case 'switch_mode':
      return 'exit_plan_mode'
    default: {
      const tool = options.flatMap(({ name }) => QWENS_SERVER_TOOL.exec(name)?.[1] ?? [])[0]
      if (tool !== undefined) return `mcp__?__${tool}`
      return 'questions' in input ? 'ask_user_question' : undefined
    }
  }
}
