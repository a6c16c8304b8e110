import { randomBytes } from 'node:crypto';
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { KeyedLock } from '../../lib/keyed-lock.js';
/** Another process holds the lock; `message` says which, and what to do when it does not. */
export class LockHeldError extends Error {
    name = 'LockHeldError';
}
const MAX_TRIES = 20;
/** Locks of this process, by path: whoever asks again shares, and the last one to release gives it up. */
const held = new Map();
const turns = new KeyedLock();
/**
 * Takes a lock for this process. A lock whose process is gone is taken over; one of another host never is, for nobody here can tell.
 * @param path of the lock file, absolute and without links, in a directory that exists
 * @returns releases it
 * @throws LockHeldError
 */
export async function acquireProcessLock(path) {
    const lock = await turns.run(path, async () => {
        const lock = held.get(path) ?? { users: 0, content: await take(path) };
        lock.users += 1;
        held.set(path, lock);
        return lock;
    });
    let released;
    return () => {
        released ??= turns.run(path, async () => {
            lock.users -= 1;
            if (lock.users > 0)
                return;
            held.delete(path);
            // Somebody may have removed ours by hand, and another process taken its place.
            if ((await textOf(path)) === lock.content)
                await rm(path, { force: true });
        });
        return released;
    };
}
async function take(path) {
    const mine = {
        pid: process.pid,
        host: hostname(),
        startedAt: Math.round(Date.now() - process.uptime() * 1000),
        ...(await birthOf(process.pid).then((birth) => birth !== undefined && { birth })),
    };
    const draft = `${path}.${process.pid}-${randomBytes(6).toString('hex')}`;
    const content = JSON.stringify(mine);
    await writeFile(draft, content, { mode: 0o600, flag: 'wx' });
    try {
        for (let tries = 0; tries < MAX_TRIES; tries += 1) {
            // Linked into place, so that nobody ever reads a lock that does not say yet whose it is.
            if (await linked(draft, path))
                return content;
            await assertAbandoned(path);
            await discard(path, draft);
        }
        throw new LockHeldError(`${path} changes hands too quickly; another process is starting on the same files.`);
    }
    finally {
        await rm(draft, { force: true });
    }
}
async function linked(from, to) {
    try {
        await link(from, to);
        return true;
    }
    catch (error) {
        if (error.code === 'EEXIST')
            return false;
        throw error;
    }
}
async function assertAbandoned(path) {
    const text = await textOf(path);
    if (text === undefined)
        return;
    const holder = parseHolder(text);
    if (!holder)
        throw new LockHeldError(`${path} is no lock file. Remove it once you are sure that no other process uses these files.`);
    if (holder.host === hostname() && !(await isRunning(holder)))
        return;
    const since = new Date(holder.startedAt).toISOString();
    throw new LockHeldError(`In use by process ${holder.pid} on host ${holder.host}, started at ${since}. Stop it first; if it is gone for good, remove ${path}.`);
}
/** Removes an abandoned lock, unless another process was quicker and the lock at this path is a new one by now. */
async function discard(path, draft) {
    const aside = `${draft}.stale`;
    try {
        await rename(path, aside);
    }
    catch (error) {
        if (error.code === 'ENOENT')
            return;
        throw error;
    }
    // Put back, it is looked at again.
    await assertAbandoned(aside).catch(() => linked(aside, path));
    await rm(aside, { force: true });
}
async function textOf(path) {
    try {
        return await readFile(path, 'utf8');
    }
    catch (error) {
        if (error.code === 'ENOENT')
            return undefined;
        throw error;
    }
}
function parseHolder(text) {
    try {
        const { pid, host, startedAt, birth } = JSON.parse(text);
        if (!Number.isSafeInteger(pid) || pid <= 0 || typeof host !== 'string')
            return undefined;
        if (!Number.isFinite(startedAt) || Math.abs(startedAt) > 8.64e15)
            return undefined;
        return { pid: pid, host, startedAt: startedAt, ...(typeof birth === 'string' && { birth }) };
    }
    catch {
        return undefined;
    }
}
async function isRunning({ pid, birth }) {
    try {
        process.kill(pid, 0);
    }
    catch (error) {
        if (error.code === 'ESRCH')
            return false;
    }
    const now = await birthOf(pid);
    if (now === DEAD)
        return false;
    return birth === undefined || now === undefined || birth === now;
}
/** Killed, and not yet taken off the list by its parent: it does nothing any more. */
const DEAD = 'dead';
async function birthOf(pid) {
    try {
        const [boot, stat] = await Promise.all([
            readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
            readFile(`/proc/${pid}/stat`, 'utf8'),
        ]);
        // Counted from behind the command's name, which may hold anything: the 22nd field of the line.
        const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        const tick = fields[19];
        if (fields[0] === 'Z' || fields[0] === 'X')
            return DEAD;
        return tick === undefined ? undefined : `${boot.trim()}/${tick}`;
    }
    catch {
        return undefined;
    }
}
//# sourceMappingURL=process-lock.js.map