import { readFile, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { claudeExecutable } from './claude/executable.js';
import { configDirOf, findExecutable } from './environment.js';
import { markerEnv } from './markers.js';
import { AgentProcess } from './process.js';
const DEFAULT_TIMEOUT_MS = 10_000;
/** Probes all profiles at once and warns once about each that is logged out. Never rejects; a probe that cannot run is silent. */
export async function checkCredentials(check) {
    const { subjects, logger, timeoutMs = DEFAULT_TIMEOUT_MS } = check;
    await Promise.all(subjects.map(async (subject) => {
        const { profile, row } = subject;
        const isLoggedIn = await within(timeoutMs, async (signal) => {
            if (!(await hasConfigDir(subject)))
                return undefined;
            return check.probe ? check.probe(profile, subject.env) : probe(subject, check.claudeSdk, signal);
        }).catch(() => undefined);
        const verdict = isLoggedIn === undefined ? 'unknown' : isLoggedIn ? 'logged_in' : 'logged_out';
        check.onVerdict?.(profile, verdict);
        if (verdict === 'logged_out')
            logger.warn({ profile: profile.name, agent: row.name }, 'the profile is logged out: its sessions will fail until it is logged in');
    }));
}
/** Asking makes some agents create the directory. */
async function hasConfigDir({ row, env }) {
    const directory = configDirOf(row, env);
    if (directory === undefined)
        return true;
    const found = await stat(directory).catch(() => undefined);
    return found?.isDirectory() ?? false;
}
async function probe({ row, env }, claudeSdk, signal) {
    const asked = row.credentials.probe;
    if (asked === undefined)
        return undefined;
    // Its command knows nothing of the key that a session logs in with.
    if (row.acp?.apiKeyLogin && row.credentials.apiKeyEnv.some((name) => env[name]))
        return true;
    if (asked === 'presence')
        return (await apiKeySourceOf(row, env)) !== 'none';
    const named = asked.command ?? row.command;
    const command = named === undefined ? claudeExecutable(claudeSdk) : findExecutable(named, env);
    if (command === undefined)
        return undefined;
    const child = new AgentProcess({
        ...{ command, args: asked.args, cwd: tmpdir() },
        env: { ...env, ...(await markerEnv('')) },
    });
    child.child.stdin.end();
    child.child.stdout.resume();
    signal.addEventListener('abort', () => void child.stop(0), { once: true });
    const { code } = await child.exited;
    await child.stop(0);
    return code === 0 ? true : code === 1 ? false : undefined;
}
async function within(ms, work) {
    const signal = AbortSignal.timeout(ms);
    return Promise.race([
        work(signal),
        new Promise((_, late) => signal.addEventListener('abort', () => late(signal.reason), { once: true })),
    ]);
}
/**
 * Where the credential of a session comes from, for an agent that does not say.
 * @returns the name of the variable that holds its key, `oauth` for a subscription's login, `login` for another one, `none`
 */
export async function apiKeySourceOf(row, env) {
    const { apiKeyEnv, login } = row.credentials;
    const variable = apiKeyEnv.find((name) => env[name]);
    if (variable)
        return variable;
    const directory = configDirOf(row, env);
    if (!login || !directory)
        return 'none';
    const found = await readJson(join(directory, login.path));
    if (found === undefined)
        return 'none';
    return login.oauth && valueAt(found, login.oauth) ? 'oauth' : 'login';
}
async function readJson(path) {
    try {
        return JSON.parse(await readFile(path, 'utf8'));
    }
    catch {
        return undefined;
    }
}
const valueAt = (value, path) => path.split('.').reduce((at, name) => at?.[name], value);
//# sourceMappingURL=credentials.js.map