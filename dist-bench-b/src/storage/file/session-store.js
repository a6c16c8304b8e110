import { createHash } from 'node:crypto';
import { mkdir, open, readdir, realpath, rename, rm, stat, unlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Type } from '@sinclair/typebox';
import { toError } from '../../errors.js';
import { isOpenToAll, openToAllMessage } from '../../lib/open-to-all.js';
import { compileSchema } from '../../lib/validation.js';
import { acquireProcessLock } from './process-lock.js';
const VERSION = 1;
const FILE_NAME = /^[0-9a-f]{64}\.json$/;
/** What a write leaves behind whose process was killed. */
const DRAFT_NAME = /^[0-9a-f]{64}\.json\.\d+$/;
const READS_AT_ONCE = 32;
const READ_BYTES = 64 * 1024;
/** What has to hold before a file is believed; the snapshot inside is the engine's own to check. */
const Contents = Type.Object({
    version: Type.Literal(VERSION),
    record: Type.Object({
        id: Type.String({ minLength: 1 }),
        info: Type.Object({ id: Type.String(), lastSeq: Type.Integer(), createdAt: Type.Number() }),
        profile: Type.String(),
        generation: Type.String(),
        config: Type.Object({ cwd: Type.String() }),
        snapshot: Type.Object({ engine: Type.String() }),
        executions: Type.Array(Type.Object({ executionId: Type.String(), toolName: Type.String() })),
        results: Type.Array(Type.Object({ executionId: Type.String() })),
        permissions: Type.Array(Type.Object({ id: Type.String(), toolUseId: Type.String() })),
        decisions: Type.Array(Type.Object({ toolUseId: Type.String(), requestId: Type.String() })),
        hasNews: Type.Boolean(),
        settled: Type.Array(Type.String()),
        log: Type.Object({ epoch: Type.String(), oldestSeq: Type.Integer(), events: Type.String() }),
        parkedAt: Type.Number(),
    }),
});
const contents = compileSchema(Contents);
/**
 * Keeps each parked session in a JSON file of its own, named by a hash of its id, readable by this account alone and replaced whole.
 * From first use until `close` the process holds the directory; a second one is refused and told who has it. `list` opens it again.
 * @param dir made when it is missing
 */
export const createFileSessionStore = ({ dir }) => new FileSessionStore(resolve(dir));
class FileSessionStore {
    #dir;
    #held;
    #closed = false;
    constructor(dir) {
        this.#dir = dir;
    }
    async save(record) {
        await this.#hold();
        await replaceFile(this.#fileOf(record.id), JSON.stringify({ version: VERSION, record }));
    }
    async get(id) {
        await this.#hold();
        return readRecord(this.#fileOf(id));
    }
    async list(onUnreadable = () => { }) {
        this.#closed = false;
        await this.#hold();
        const files = (await readdir(this.#dir)).filter((name) => FILE_NAME.test(name)).map((name) => join(this.#dir, name));
        const records = [];
        for (let at = 0; at < files.length; at += READS_AT_ONCE) {
            const batch = files.slice(at, at + READS_AT_ONCE).map(async (file) => {
                try {
                    const record = await readRecord(file);
                    if (record)
                        records.push(record);
                }
                catch (error) {
                    onUnreadable(toError(error));
                }
            });
            await Promise.all(batch);
        }
        return records;
    }
    async delete(id) {
        await this.#hold();
        await unlink(this.#fileOf(id)).catch((error) => {
            if (error.code !== 'ENOENT')
                throw error;
        });
    }
    async close() {
        this.#closed = true;
        const held = this.#held;
        this.#held = undefined;
        const release = await held?.catch(() => undefined);
        await release?.();
    }
    #fileOf(id) {
        return join(this.#dir, `${createHash('sha256').update(id).digest('hex')}.json`);
    }
    /** Makes the directory and takes its lock, once. */
    #hold() {
        if (this.#closed)
            return Promise.reject(new Error(`The session store in ${this.#dir} is closed.`));
        if (!this.#held) {
            const held = take(this.#dir);
            this.#held = held;
            // what went wrong may be gone at the next try
            held.catch(() => {
                if (this.#held === held)
                    this.#held = undefined;
            });
        }
        return this.#held;
    }
}
/** Makes the directory, takes its lock and clears up after a process that was killed. @returns releases the lock */
async function take(dir) {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const { mode } = await stat(dir);
    if (isOpenToAll(mode))
        throw new Error(openToAllMessage(dir));
    const release = await acquireProcessLock(join(await realpath(dir), '.lock'));
    const startedAt = Date.now() - process.uptime() * 1000;
    for (const name of (await readdir(dir)).filter((name) => DRAFT_NAME.test(name))) {
        const draft = join(dir, name);
        const { mtimeMs } = await stat(draft);
        if (mtimeMs < startedAt)
            await rm(draft, { force: true });
    }
    return release;
}
/**
 * Puts a file in its place whole or not at all, on the disk before it resolves. A session's way back to life waits for this, so nothing
 * is awaited that need not be.
 */
async function replaceFile(file, text) {
    const draft = `${file}.${process.pid}${++drafts}`;
    try {
        const handle = await open(draft, 'wx', 0o600);
        let closed;
        try {
            await handle.writeFile(text);
            await handle.datasync();
        }
        finally {
            closed = handle.close();
        }
        await Promise.all([closed, rename(draft, file)]);
    }
    catch (error) {
        await rm(draft, { force: true }).catch(() => { });
        throw error;
    }
}
let drafts = 0;
async function textOf(file) {
    const handle = await open(file, 'r');
    try {
        const parts = [];
        for (;;) {
            const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(READ_BYTES), 0, READ_BYTES);
            parts.push(buffer.subarray(0, bytesRead));
            // a file that is replaced whole ends where a read comes up short
            if (bytesRead < READ_BYTES)
                return Buffer.concat(parts).toString();
        }
    }
    finally {
        void handle.close();
    }
}
/** @throws Error that names the file, when it holds no record of this version */
async function readRecord(file) {
    let text;
    try {
        text = await textOf(file);
    }
    catch (error) {
        if (error.code === 'ENOENT')
            return undefined;
        throw error;
    }
    let parsed;
    try {
        parsed = JSON.parse(text);
    }
    catch (cause) {
        throw new Error(`${file} is no JSON, so the session in it was not adopted. It was left in place.`, { cause });
    }
    const [problem] = contents.errors(parsed);
    if (problem)
        throw new Error(`${file} is no parked session of this version (${problem.path}: ${problem.message}). It was left in place.`);
    return parsed.record;
}
//# sourceMappingURL=session-store.js.map