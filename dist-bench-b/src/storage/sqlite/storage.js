import { databaseStorage, notOpen } from '../sql/storage.js';
import { holdFile } from './files.js';
import { backupSqlite, doctorSqlite } from './maintenance.js';
import { DatabaseThread } from './thread.js';
/**
 * Keeps everything in one SQLite database, in a thread of its own. From `open` until `close` the process holds `<path>.lock`; a second
 * one is refused and told who has it. A database that is damaged, of something else or of a newer version is refused and left as it is.
 *
 * Every method of the parts rejects with a `StorageError` when nothing of what it was to do was done: when the disk is full or fails,
 * the same call may succeed later.
 */
export function createSqliteStorage({ path, synchronous = 'full', now }, { pragmas = [], worker, onBatch } = {}) {
    let file;
    const openDatabase = async () => {
        const held = await holdFile(path);
        try {
            const thread = await DatabaseThread.start({ path: held.path, synchronous, pragmas }, worker, onBatch);
            file = held;
            const close = async () => {
                file = undefined;
                await thread.close();
                await held.release();
            };
            return { call: thread.call, atTurnsEnd: thread.atTurnsEnd, close };
        }
        catch (error) {
            await held.release();
            throw error;
        }
    };
    const openPath = () => {
        if (!file)
            throw notOpen(path);
        return file.path;
    };
    return {
        ...databaseStorage(path, openDatabase, now),
        backup: async (copy) => backupSqlite(openPath(), copy),
        check: async () => doctorSqlite(openPath()),
    };
}
//# sourceMappingURL=storage.js.map