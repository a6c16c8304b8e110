import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { mkdir, open, realpath } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import writeFileAtomic from 'write-file-atomic';
import { filesOf } from './session-files.js';
/** Bytes; a longer addition is several pieces. */
const PIECE = 1024 * 1024;
/** How long an agent may take to write down what it has said. */
const WRITTEN_MS = 2_000;
const LOOK_AGAIN_MS = 20;
const NEWLINE = 0x0a;
const digestOf = (bytes) => createHash('sha256').update(bytes).digest('base64url');
/** Takes what an agent has written down of one session to the storage, and brings it where the session goes on. One thing at a time. */
export class Carrier {
    #options;
    /** What the storage has, by path. */
    #kept;
    constructor(options) {
        this.#options = options;
    }
    /**
     * Makes the agent's files what the storage has, unless they are that already or have grown since.
     * @throws what the storage throws
     */
    async bring() {
        for (const [path, pieces] of await this.#known())
            if (!(await this.#isThere(path, pieces)))
                await this.#write(path);
    }
    /**
     * Keeps what has been added to the session's files.
     * @param agentSessionId the agent's own name of the session
     * @param last text that the agent is about to write down; it is waited for, for a while
     * @returns whether there are any
     * @throws what the storage throws; what was kept so far stays
     */
    async carry(agentSessionId, last) {
        const { configDir, patterns } = this.#options;
        const kept = await this.#known();
        const until = performance.now() + WRITTEN_MS;
        for (let hasLast = last === undefined;; await sleep(LOOK_AGAIN_MS)) {
            const paths = await filesOf(configDir, patterns, agentSessionId);
            for (const path of paths) {
                const added = await this.#added(path, kept.get(path) ?? []);
                if (!added)
                    continue;
                hasLast ||= added.bytes.includes(last);
                await this.#keep(path, added);
            }
            if (hasLast || performance.now() > until)
                return paths.length > 0;
        }
    }
    async #known() {
        if (this.#kept)
            return this.#kept;
        const { store, sessionId } = this.#options;
        const kept = new Map();
        for (const piece of await store.pieces(sessionId)) {
            const pieces = kept.get(piece.path) ?? [];
            pieces.push(piece);
            kept.set(piece.path, pieces);
        }
        this.#kept = kept;
        return kept;
    }
    async #isThere(path, pieces) {
        const file = await this.#open(path);
        try {
            for (const piece of pieces)
                if (!file || !(await hasPiece(file, piece)))
                    return false;
            return true;
        }
        finally {
            await file?.close();
        }
    }
    async #write(path) {
        const { store, sessionId, configDir } = this.#options;
        const pieces = [];
        for (const { offset } of this.#kept.get(path)) {
            const bytes = await store.read(sessionId, path, offset);
            if (!bytes)
                throw new Error(`${path} is not kept any more from byte ${offset} on.`);
            pieces.push(bytes);
        }
        await mkdir(configDir, { recursive: true, mode: 0o700 });
        const to = join(await realpath(configDir), path);
        await mkdir(dirname(to), { recursive: true, mode: 0o700 });
        // the agent may have put a link there
        if (join(await realpath(dirname(to)), sep) !== join(dirname(to), sep))
            throw new Error(`${path} leads elsewhere.`);
        await writeFileAtomic(to, Buffer.concat(pieces), { mode: 0o600 });
    }
    /** What a file has from the first piece on that is not kept. */
    async #added(path, kept) {
        const file = await this.#open(path);
        if (!file)
            return undefined;
        try {
            let same = kept.length;
            while (same > 0 && !(await hasPiece(file, kept[same - 1])))
                same--;
            const from = endOf(kept[same - 1]);
            const bytes = await whole(file, path, from);
            if (bytes.length > 0)
                return { from, bytes };
            if (same === kept.length)
                return undefined;
            // it was cut: the last piece that is still the same is kept once more, which drops those after it
            const { offset } = kept[same - 1] ?? { offset: 0 };
            return { from: offset, bytes: await whole(file, path, offset) };
        }
        finally {
            await file.close();
        }
    }
    async #keep(path, { from, bytes }) {
        const { store, sessionId } = this.#options;
        const kept = (this.#kept.get(path) ?? []).filter(({ offset }) => offset < from);
        for (let at = 0; at === 0 || at < bytes.length; at += PIECE) {
            const some = bytes.subarray(at, at + PIECE);
            const piece = { path, offset: from + at, length: some.length, digest: digestOf(some) };
            await store.write(sessionId, piece, some);
            kept.push(piece);
            this.#kept.set(path, [...kept]);
        }
    }
    /** One of its own; undefined: it is not there, or not a file. */
    async #open(path) {
        const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
        const file = await open(join(this.#options.configDir, path), flags).catch(() => undefined);
        if (!file || (await file.stat()).isFile())
            return file;
        await file.close();
        return undefined;
    }
}
const endOf = (piece) => (piece ? piece.offset + piece.length : 0);
/** What a file has from there on, up to the last whole line of one that has lines. */
async function whole(file, path, from) {
    const { size } = await file.stat();
    const bytes = await read(file, from, Math.max(0, size - from));
    return path.endsWith('.jsonl') ? bytes.subarray(0, bytes.lastIndexOf(NEWLINE) + 1) : bytes;
}
async function read(file, from, length) {
    const bytes = Buffer.alloc(length);
    const { bytesRead } = await file.read(bytes, 0, length, from);
    return bytes.subarray(0, bytesRead);
}
const hasPiece = async (file, { offset, length, digest }) => digestOf(await read(file, offset, length)) === digest;
//# sourceMappingURL=carrier.js.map