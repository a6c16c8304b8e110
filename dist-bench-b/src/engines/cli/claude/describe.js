import { apiKeySourceOf } from './api-key-source.js';
export const systemInit = (init, { account }, { config, row }) => ({
    type: 'system_init',
    sdkSessionId: init.session_id,
    model: init.model,
    cwd: config.cwd,
    apiKeySource: apiKeySourceOf(account, init.apiKeySource),
    permissionMode: init.permissionMode,
    tools: init.tools ?? [],
    skills: init.skills ?? [],
    slashCommands: init.slash_commands ?? [],
    mcpServers: (init.mcp_servers ?? []).map(({ name, status }) => ({ name, status })),
    agent: row.name,
    ...(init.claude_code_version && { engineVersion: init.claude_code_version }),
});
/** What is taken for true of an agent that has not reported. */
export const assumedInit = ({ commands = [], current_permission_mode }, { config }, { sdkSessionId, model, mode }) => ({
    type: 'system',
    subtype: 'init',
    session_id: sdkSessionId,
    cwd: config.cwd,
    model: model ?? 'default',
    permissionMode: current_permission_mode ?? mode,
    slash_commands: commands.map(({ name }) => name),
});
export const capabilities = ({ models = [], commands = [] }) => ({
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
});
//# sourceMappingURL=describe.js.map