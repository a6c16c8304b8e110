import { stat } from 'node:fs/promises';
import { GatewayError, toError } from '../../errors.js';
import { openDirectoryWithinRoots } from '../../lib/paths-within-roots.js';
import { configDirOf } from './environment.js';
import { leash } from './leash.js';
import { markerEnv } from './markers.js';
import { AgentProcess } from './process.js';
/** Longer than any agent takes when the machine is busy. */
export const START_TIMEOUT_MS = 120_000;
/**
 * Waits for a slot and checks, at the last moment, that the directories are still there and still inside the roots.
 * @param signal gives up
 */
export async function beginLaunch(setup, signal) {
    const release = await setup.slots.take(signal);
    try {
        await assertConfigDir(setup);
        const markers = await markerEnv(setup.sessionId);
        await leash.hold();
        const held = await openDirectoryWithinRoots(setup.config.cwd, setup.roots);
        if (!held.ok)
            throw startError(`The working directory ${held.reason === 'outside' ? 'lies outside the allowed roots' : 'is gone'}.`);
        let closed;
        return {
            spawn: (command, args, env = setup.env) => {
                const request = { command, args, env: { ...env, ...markers, PWD: setup.config.cwd }, cwd: held.path };
                const agent = processOf(request);
                tellLife(agent, setup);
                return agent;
            },
            end: () => {
                release();
                closed ??= held.close();
                return closed;
            },
        };
    }
    catch (error) {
        release();
        throw error;
    }
}
/** Most of what keeps a process from being started is told by its exit; the system refuses some of it at once. */
function processOf(request) {
    try {
        return new AgentProcess(request);
    }
    catch (error) {
        throw startError(`The agent could not be started: ${toError(error).message}.`, error);
    }
}
/** An agent's start and end, for whoever operates the gateway. */
function tellLife({ pid, exited }, { sessionId, row, logger }) {
    const fields = { sessionId, agent: row.name, ...(pid !== undefined && { pid }) };
    if (pid !== undefined)
        logger?.info(fields, 'agent started');
    void exited.then(({ code, signal, error }) => {
        if (error)
            logger?.warn({ ...fields, err: error }, 'agent could not be started');
        else
            logger?.info({ ...fields, ...(signal ? { signal } : { exitCode: code }) }, 'agent ended');
    });
}
/** Some agents make the directory anew and then run as nobody. */
async function assertConfigDir({ row, env }) {
    if (!env[row.configDirEnv])
        return;
    const found = await stat(configDirOf(row, env)).catch(() => undefined);
    if (!found?.isDirectory())
        throw startError('The config directory is gone.');
}
export const startError = (detail, cause) => new GatewayError('SG_ERR_ENGINE_START', { detail, cause });
//# sourceMappingURL=launch.js.map