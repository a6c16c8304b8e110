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
  { sessionId, agentVersion, servers }: OpenedSession,
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
  mcpServers: Object.keys(config.mcpServers ?? {}).map((name) => ({
    name,
    status: servers.includes(name) ? 'unknown' : 'failed',
  })),
  agent: row.name,
  ...(agentVersion && { engineVersion: agentVersion }),
})

/** Told when an agent has no way to the gateway's own tools. */
export const TOOLS_MISSING: RunnerEvent = {
  type: 'engine_event',
  payload: {
    type: 'tools_missing',
    message:
      'The agent has none of the tools of executions: it takes no MCP servers over http, by its mcpCapabilities.',
  },
}

export const capabilities = (models: ModelChoice[], commands: AvailableCommand[]): RunnerEvent => ({
  type: 'capabilities',
  models,
  commands: commands.map(({ name, description, input }) => ({
    name,
    ...(description && { description }),
    ...(input?.hint && { argumentHint: input.hint }),
  })),
})
