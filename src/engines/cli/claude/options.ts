import { randomUUID } from 'node:crypto'
import type { McpServerConfig } from '../../../../schemas/sessions.js'
import { startError } from '../../../errors.js'
import { present } from '../../../lib/present.js'
import type { SessionRunnerConfig } from '../../runner.js'
import { CLAUDE_SDK, type SdkHook, type SdkOptions } from './sdk.js'

/** The project's only where it is trusted: its hooks run shell commands of whoever wrote the repository, unasked. */
export const settingSourcesOf = (
  { settingSources }: SessionRunnerConfig,
  trusted: boolean,
): NonNullable<SessionRunnerConfig['settingSources']> =>
  settingSources ?? (trusted ? ['user', 'project', 'local'] : ['user'])

/** Seconds. A call may wait for a person; for how long is the gateway's to decide. */
const HOOK_TIMEOUT_S = 10 * 365 * 24 * 3600

export const beforeEachCall = (hook: SdkHook): SdkOptions['hooks'] => ({
  PreToolUse: [{ hooks: [hook], timeout: HOOK_TIMEOUT_S }],
})

/** What the SDK is asked for, apart from the callbacks, which are the runner's. */
export type ClaudeSettings = Omit<SdkOptions, 'canUseTool' | 'hooks' | 'spawnClaudeCodeProcess' | 'env'>

export interface ClaudeSettingsOptions {
  config: SessionRunnerConfig
  /** What may be spent, if there is a limit. */
  maxBudgetUsd?: number | undefined
  /** Whether the project's own settings are honoured. */
  trusted: boolean
  /** The executable, when it is not the SDK's own. */
  command: string | undefined
  /** The session to go on with, when this runner takes over from another one. */
  resume: string | undefined
  /** The MCP server whose tools the model is to see from the first turn on. */
  ours?: string | undefined
}

/**
 * Everything that the agent would otherwise decide by itself is said: mode, settings, system prompt, session id. Nothing of the
 * request gets here but through the fields that are named.
 */
export function claudeSettings({
  config,
  maxBudgetUsd,
  trusted,
  command,
  resume,
  ours,
}: ClaudeSettingsOptions): ClaudeSettings {
  const { model, allowedTools, disallowedTools, maxTurns } = config
  const mode = config.permissionMode ?? 'default'
  const mayBypass = mode === 'bypassPermissions' || config.allowDangerouslySkipPermissions === true
  return {
    cwd: config.cwd,
    permissionMode: mode,
    ...(mayBypass && { allowDangerouslySkipPermissions: true }),
    settingSources: settingSourcesOf(config, trusted),
    // Else a classifier decides in plan mode what is asked for, and nobody is asked.
    extraArgs: { settings: JSON.stringify({ useAutoModeDuringPlan: false }) },
    systemPrompt: { type: 'preset', preset: 'claude_code' },
    // Asked for even when nobody wants deltas: only they count the tokens of each model call.
    includePartialMessages: true,
    ...identity(config, resume),
    ...present({ model, allowedTools, disallowedTools, maxTurns, maxBudgetUsd, pathToClaudeCodeExecutable: command }),
    ...mcpServers(config.mcpServers, command, ours),
  }
}

/** Which session it is. A new one's id is ours to choose, so that it is known before the agent says it. */
function identity({ resume, forkSession }: SessionRunnerConfig, takenOver: string | undefined) {
  if (takenOver !== undefined) return { resume: takenOver }
  if (resume === undefined) return { sessionId: randomUUID() }
  return forkSession ? { resume, forkSession, sessionId: randomUUID() } : { resume }
}

function mcpServers(
  servers: Record<string, McpServerConfig> | undefined,
  command: string | undefined,
  ours: string | undefined,
) {
  if (!servers || Object.keys(servers).length === 0) return {}
  const named = Object.entries(servers).map(([name, server]) => [
    name,
    name === ours ? { ...server, alwaysLoad: true } : server,
  ])
  // Off the command line, where every user of the machine reads their headers and variables. Only the SDK's own binary is known to
  // take them otherwise.
  return {
    mcpServers: Object.fromEntries(named),
    mcpServersDelivery: command === undefined ? ('initialize' as const) : ('argv' as const),
  }
}

/** @throws SG_ERR_ENGINE_START where an SDK that does not know the delivery would tell servers, and what they are given, on the command line */
export function assertUntold({ mcpServersDelivery }: ClaudeSettings, args: readonly string[]): void {
  if (mcpServersDelivery === 'initialize' && args.includes('--mcp-config'))
    throw startError(
      `The installed Claude Agent SDK is too old: every user of the machine could read the headers and variables of MCP servers. Run: npm i ${CLAUDE_SDK}@latest`,
    )
}
