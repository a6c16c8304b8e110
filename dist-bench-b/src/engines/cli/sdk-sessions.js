import { GatewayError, toError } from '../../errors.js';
import { present } from '../../lib/present.js';
import { askForSessions, askToDelete } from './acp/kept-sessions.js';
import { filesWithSdk } from './claude/sdk-worker.js';
import { control } from './control.js';
/**
 * Lists the sessions that the agents themselves keep, newest first. Among several profiles only agents whose files can be read without
 * starting them take part: that is claude. Of a single one the agent is asked. Profiles that share a directory are listed once.
 * @throws GatewayError when the agent's SDK is not installed
 */
export async function listSdkSessions(sources, { dir, limit, offset }, claudeSdk) {
    const readable = distinct(sources.filter(({ row }) => row.driver === 'claude'));
    const asked = sources.length === 1 ? sources.filter(({ row }) => row.acp?.lists) : [];
    const lists = await Promise.all([...readable, ...asked].map(async (source) => {
        const { profile, row, env } = source;
        const page = { ...(dir && { dir }), limit: offset + limit };
        const found = row.acp
            ? await askForSessions(source, dir, offset + limit)
            : await filesWithSdk(claudeSdk, env, 'listSessions', [page]);
        return found.map((session) => ({
            ...named(session),
            ...(profile.name && { profile: profile.name }),
            agent: row.name,
        }));
    }));
    return lists
        .flat()
        .sort((first, second) => second.lastModified - first.lastModified)
        .slice(offset, offset + limit);
}
/**
 * Deletes a session that an agent itself keeps, for an agent that can: with it goes all that was said in it.
 * @throws SG_ERR_SDK_SESSION_NOT_FOUND · SG_ERR_UNSUPPORTED · SG_ERR_ENGINE_REFUSED · SG_ERR_ENGINE_START
 */
export async function deleteSdkSession(source, deletion, claudeSdk) {
    if (source.row.driver !== 'claude')
        return askToDelete(source, { dir: undefined, ...deletion });
    const { sessionId, dir, assertUnused } = deletion;
    const place = dir === undefined ? {} : { dir };
    if (!(await filesWithSdk(claudeSdk, source.env, 'getSessionInfo', [sessionId, place])))
        throw new GatewayError('SG_ERR_SDK_SESSION_NOT_FOUND');
    await assertUnused();
    await control(() => filesWithSdk(claudeSdk, source.env, 'deleteSession', [sessionId, place]), (error) => toError(error).message);
}
function distinct(sources) {
    const byPlace = new Map();
    for (const source of sources) {
        const place = JSON.stringify([source.env[source.row.configDirEnv], source.env.HOME]);
        if (!byPlace.has(place))
            byPlace.set(place, source);
    }
    return [...byPlace.values()];
}
const named = ({ sessionId, summary, lastModified, createdAt, firstPrompt, gitBranch, cwd, }) => ({
    ...{ sessionId, summary, lastModified },
    ...present({ createdAt, firstPrompt, gitBranch, cwd }),
});
//# sourceMappingURL=sdk-sessions.js.map