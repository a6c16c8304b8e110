import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { CallQueue } from '../sql/call-queue.js';
import { StorageError } from '../storage.js';
/** Run from its source by a loader, the threads are TypeScript as well. */
const EXTENSION = import.meta.url.endsWith('.ts') ? '.ts' : '.js';
export const threadFile = (name) => new URL(`./${name}${EXTENSION}`, import.meta.url);
export function startThread(file, workerData) {
    // Loaders that the host has for its own code are needed for ours only when it is TypeScript, and take a second to start.
    const execArgv = file.pathname.endsWith('.ts') ? process.execArgv : [];
    return new Worker(file, { workerData, execArgv, name: 'sqlite' });
}
/** The main thread's end of a database. */
export class DatabaseThread {
    #worker;
    #path;
    #queue;
    #ended;
    constructor(worker, path, onBatch) {
        this.#worker = worker;
        this.#path = path;
        const send = (batch) => {
            // A process ends when nothing is left to do, but not before it knows what became of its writes.
            worker.ref();
            const calls = batch.map(({ call }) => call);
            onBatch?.(calls.map(([name]) => name));
            worker.postMessage(calls);
        };
        this.#queue = new CallQueue(send, () => this.#ended);
        worker.on('message', (outcome) => this.#settle(outcome));
        worker.on('error', (error) => this.#end(error.message));
        worker.on('exit', () => this.#end('it exited'));
        worker.unref();
    }
    /** @throws StorageError when the database cannot be opened */
    static async start(options, file = threadFile('worker'), onBatch) {
        const worker = startThread(file, options);
        const [{ failure }] = (await once(worker, 'message'));
        if (!failure)
            return new DatabaseThread(worker, options.path, onBatch);
        await worker.terminate();
        throw new StorageError(failure.code, failure.message);
    }
    get call() {
        return this.#queue.call;
    }
    get atTurnsEnd() {
        return this.#queue.atTurnsEnd;
    }
    /** Resolves when all that was asked for is done and the database is closed. */
    async close() {
        await this.#queue.idle();
        if (this.#ended)
            return;
        const exit = new Promise((resolve) => this.#worker.once('exit', resolve));
        this.#worker.ref();
        this.#worker.postMessage(null);
        await exit;
    }
    #settle({ results, failures }) {
        const settled = this.#queue.underWay;
        for (const { index, failure } of failures)
            settled[index].reject(new StorageError(failure.code, failure.message));
        for (const [index, { resolve }] of settled.entries())
            resolve(results[index]);
        this.#queue.next();
        if (this.#queue.underWay.length === 0)
            this.#worker.unref();
    }
    #end(why) {
        if (this.#ended)
            return;
        this.#ended = new StorageError('STORAGE_ENDED', `The thread of ${this.#path} has ended: ${why}.`);
        for (const { reject } of this.#queue.underWay)
            reject(this.#ended);
        this.#queue.refuse(this.#ended);
        this.#queue.next();
    }
}
//# sourceMappingURL=thread.js.map