import { once } from 'node:events';
import { open, realpath, rm, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { StorageError } from '../storage.js';
import { startThread, threadFile } from './thread.js';
/**
 * Looks through a database for damage, also while another process has it open.
 * @throws StorageError when there is no such file
 */
export async function doctorSqlite(file) {
    return inThread({ task: 'doctor', path: await existing(file) });
}
/**
 * Copies a database into a new file for this account alone, also while another process has it open: a whole one, as it was at one moment.
 * @throws StorageError when there is no such database, or the target exists
 */
export async function backupSqlite(file, target) {
    const path = await existing(file);
    await intoNewFile(target, 'backups', (copy) => inThread({ task: 'backup', path, target: copy }));
}
/**
 * Replaces a key of the gateway's own, also while another process has the database open.
 * @throws StorageError when there is no such database, or one that a gateway of this version has not opened yet
 */
export async function saveKeySqlite(file, name, value) {
    await inThread({ task: 'saveKey', path: await existing(file), name, value });
}
/**
 * Writes every row of a damaged database that can be read into a new one, for this account alone; the damaged one is only read. Tables
 * are read around the pages that cannot be, and held against their indexes to tell what is missing.
 * @throws StorageError when there is no such database, the target exists, or nothing can be read
 */
export async function salvageSqlite(file, target) {
    const path = await existing(file);
    return intoNewFile(target, 'salvages', (copy) => inThread({ task: 'salvage', path, target: copy }));
}
/** Nothing is left of the file when the work fails. */
async function intoNewFile(target, what, work) {
    const copy = resolve(target);
    try {
        await (await open(copy, 'wx', 0o600)).close();
    }
    catch (error) {
        const { code = 'STORAGE', message } = error;
        const why = code === 'EEXIST' ? `it exists already, and ${what} overwrite nothing` : message;
        throw new StorageError(code, `${copy} cannot be written: ${why}.`);
    }
    try {
        const result = await work(copy);
        await sync(copy);
        await sync(dirname(copy));
        return result;
    }
    catch (error) {
        await rm(copy, { force: true });
        throw error;
    }
}
async function existing(file) {
    try {
        const path = await realpath(file);
        if ((await stat(path)).isFile())
            return path;
    }
    catch {
        // Told below.
    }
    throw new StorageError('ENOENT', `There is no database ${resolve(file)}.`);
}
async function sync(path) {
    const handle = await open(path, 'r');
    try {
        await handle.sync();
    }
    finally {
        await handle.close();
    }
}
async function inThread(task) {
    const worker = startThread(threadFile('maintenance-worker'), task);
    const [{ result, failure }] = (await once(worker, 'message'));
    await worker.terminate();
    if (failure)
        throw new StorageError(failure.code, failure.message);
    return result;
}
//# sourceMappingURL=maintenance.js.map