import type { AvailableCommand } from '@agentclientprotocol/sdk'
import type { PermissionMode } from '../../../../schemas/permissions.js'
import type { RunnerEvent } from '../../runner.js'
import { apiKeySourceOf } from '../credentials.js'
import type { AgentSetup } from '../launch.js'
import type { OpenedSession } from './session.js'
import type { ModelChoice } from './session-config.js'

/** The protocol has no word for tools and skills, nor for how the connections to MCP servers fare. */
export const systemInit = async (
  { config, row, env }: AgentSetup,
  { sessionId, agentVersion }: OpenedSession,
  model: string,
  permissionMode: PermissionMode,
): Promise<RunnerEvent> => ({
  type: 'system_init',
  sdkSessionId: sessionId,
  model,
  cwd: config.cwd,
  apiKeySource: await apiKeySourceOf(row, env),
  permissionMode,
  tools: [],
  skills: [],
  slashCommands: [],
  mcpServers: Object.keys(config.mcpServers ?? {}).map((name) => ({ name, status: 'unknown' })),
  agent: row.name,
  ...(agentVersion && { engineVersion: agentVersion }),
})

export const capabilities = (models: ModelChoice[], commands: AvailableCommand[]): RunnerEvent => ({
  type: 'capabilities',
  models,
  commands: commands.map(({ name, description, input }) => ({
    name,
    ...(description && { description }),
    ...(input?.hint && { argumentHint: input.hint }),
  })),
})
