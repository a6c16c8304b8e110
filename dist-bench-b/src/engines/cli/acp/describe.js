import { apiKeySourceOf } from '../credentials.js';
/** The protocol has no word for tools and skills, nor for how the connections to MCP servers fare. */
export const systemInit = async ({ config, row, env }, { sessionId, agentVersion }, model, permissionMode) => ({
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
});
export const capabilities = (models, commands) => ({
    type: 'capabilities',
    models,
    commands: commands.map(({ name, description, input }) => ({
        name,
        ...(description && { description }),
        ...(input?.hint && { argumentHint: input.hint }),
    })),
});
//# sourceMappingURL=describe.js.map