import { randomUUID } from 'node:crypto';
/** The project's only where it is trusted: its hooks run shell commands of whoever wrote the repository, unasked. */
export const settingSourcesOf = ({ settingSources }, trusted) => settingSources ?? (trusted ? ['user', 'project', 'local'] : ['user']);
/**
 * Everything that the agent would otherwise decide by itself is said: mode, settings, system prompt, session id. Nothing of the
 * request gets here but through the fields that are named.
 */
export function claudeSettings({ config, trusted, command, resume, present }) {
    const mode = config.permissionMode ?? 'default';
    const mayBypass = mode === 'bypassPermissions' || config.allowDangerouslySkipPermissions === true;
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
        ...(config.model !== undefined && { model: config.model }),
        ...(config.allowedTools && { allowedTools: config.allowedTools }),
        ...(config.disallowedTools && { disallowedTools: config.disallowedTools }),
        ...(config.maxTurns !== undefined && { maxTurns: config.maxTurns }),
        ...(config.maxBudgetUsd !== undefined && { maxBudgetUsd: config.maxBudgetUsd }),
        ...mcpServers(config.mcpServers, command, present),
        ...(command !== undefined && { pathToClaudeCodeExecutable: command }),
    };
}
/** Which session it is. A new one's id is ours to choose, so that it is known before the agent says it. */
function identity({ resume, forkSession }, takenOver) {
    if (takenOver !== undefined)
        return { resume: takenOver };
    if (resume === undefined)
        return { sessionId: randomUUID() };
    return forkSession ? { resume, forkSession, sessionId: randomUUID() } : { resume };
}
function mcpServers(servers, command, present) {
    if (!servers || Object.keys(servers).length === 0)
        return {};
    const named = Object.entries(servers).map(([name, server]) => [
        name,
        name === present ? { ...server, alwaysLoad: true } : server,
    ]);
    // Off the command line, where every user of the machine reads their headers and variables. Only the SDK's own binary is known to
    // take them otherwise.
    return {
        mcpServers: Object.fromEntries(named),
        mcpServersDelivery: command === undefined ? 'initialize' : 'argv',
    };
}
//# sourceMappingURL=options.js.map