import type { PermissionMode } from '../../../../schemas/permissions.js'
import type { RunnerCapabilities, RunnerEvent } from '../../runner.js'
import type { AgentSetup } from '../launch.js'
import { apiKeySourceOf } from './api-key-source.js'
import type { SdkInit, SdkInitialization } from './sdk.js'
import type { ClaudeSetup } from './setup.js'

/** What a session of it can do. */
export const runnerCapabilities = ({ row, canBypass }: ClaudeSetup): RunnerCapabilities => ({
  permissionModes: row.permissionModes.filter((mode) => mode !== 'bypassPermissions' || canBypass),
  parking: 'native',
  setModel: true,
  resume: true,
  fork: true,
  files: false,
})

export const systemInit = (
  init: SdkInit,
  { account }: SdkInitialization,
  { config, row }: AgentSetup,
): RunnerEvent => ({
  type: 'system_init',
  sdkSessionId: init.session_id,
  model: init.model,
  cwd: config.cwd,
  apiKeySource: apiKeySourceOf(account, init.apiKeySource),
  permissionMode: init.permissionMode as PermissionMode,
  tools: init.tools ?? [],
  skills: init.skills ?? [],
  slashCommands: init.slash_commands ?? [],
  mcpServers: (init.mcp_servers ?? []).map(({ name, status }) => ({ name, status })),
  agent: row.name,
  ...(init.claude_code_version && { engineVersion: init.claude_code_version }),
})

/** What is taken for true of an agent that has not reported. */
export const assumedInit = (
  { commands = [], current_permission_mode }: SdkInitialization,
  { config }: AgentSetup,
  { sdkSessionId, model, mode }: { sdkSessionId: string; model: string | undefined; mode: PermissionMode },
): SdkInit => ({
  type: 'system',
  subtype: 'init',
  session_id: sdkSessionId,
  cwd: config.cwd,
  model: model ?? 'default',
  permissionMode: current_permission_mode ?? mode,
  slash_commands: commands.map(({ name }) => name),
})

export const capabilities = ({ models = [], commands = [] }: SdkInitialization): RunnerEvent => ({
  type: 'capabilities',
  models: models.map(({ value, displayName, description }) => ({
    value,
    displayName: displayName ?? value,
    ...(description && { description }),
  })),
  commands: commands.map(({ name, description, argumentHint }) => ({
    name,
    ...(description && { description }),
    ...(argumentHint && { argumentHint }),
  })),
})
