import { tmpdir } from 'node:os';
/** Read once: each call of `tmpdir` asks the environment. */
const CWD = tmpdir();
/** What a gateway tells of a session on the scripted engine, from values that are already there. */
export const sessionInfo = (id, { title = 'tmp', meta } = {}) => {
    const now = Date.now();
    return {
        id,
        status: 'idle',
        profile: 'bench',
        engine: 'provider',
        title,
        cwd: CWD,
        createdAt: now,
        lastActivityAt: now,
        lastSeq: 2,
        pendingPermissions: 0,
        attachedClients: 0,
        numTurns: 0,
        cost: 0,
        usage: { inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 },
        sdkSessionId: `sdk-${id}`,
        model: 'scripted',
        permissionMode: 'default',
        apiKeySource: 'none',
        ...(meta && { meta }),
    };
};
//# sourceMappingURL=session-info.js.map