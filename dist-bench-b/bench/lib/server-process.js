import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
/** A server in a process of its own, so that the CPU it reports is the server's and not the load's. */
export class ServerProcess {
    #child;
    #waiting = new Map();
    #lastId = 0;
    constructor(child) {
        this.#child = child;
        child.on('message', ({ id, value, error }) => {
            const call = id === undefined ? undefined : this.#waiting.get(id);
            if (!call)
                return;
            this.#waiting.delete(id);
            if (error === undefined)
                call.resolve(value);
            else
                call.reject(new Error(`the server process failed: ${error}`));
        });
        child.on('exit', (code) => {
            for (const { reject } of this.#waiting.values())
                reject(new Error(`the server process ended with ${code}`));
        });
    }
    /** @param module file name beside this folder, as `servers/gateway.js` */
    static async start(module, options = {}) {
        const execArgv = [...profilerFlags(module), ...(options.exposeGc ? ['--expose-gc'] : [])];
        const path = fileURLToPath(new URL(`../${module}`, import.meta.url));
        const child = fork(path, options.argv ?? [], {
            execArgv,
            env: { ...process.env, NODE_ENV: 'production', ...options.env },
        });
        const server = new ServerProcess(child);
        await Promise.race([
            once(child, 'message'),
            once(child, 'exit').then(() => Promise.reject(new Error(`${module} did not start`))),
        ]);
        return server;
    }
    call(call, argument) {
        const id = ++this.#lastId;
        return new Promise((resolve, reject) => {
            this.#waiting.set(id, { resolve, reject });
            this.#child.send({ id, call, argument });
        });
    }
    /** Without waiting for an answer. */
    tell(call, argument) {
        this.#child.send({ id: 0, call, argument });
    }
    /** The CPU, in microseconds, that the server spent while `work` was done. */
    async cpuOf(work) {
        const before = await this.call('cpu');
        await work();
        return (await this.call('cpu')) - before;
    }
    memory() {
        return this.call('memory');
    }
    /** After a garbage collection. */
    memoryInUse() {
        return this.call('collect');
    }
    /** With SIGKILL, as a machine that is switched off; resolves when it is gone. */
    async kill() {
        const gone = once(this.#child, 'exit');
        this.#child.kill('SIGKILL');
        await gone;
    }
    async stop() {
        if (this.#child.exitCode !== null || this.#child.signalCode !== null)
            return;
        const gone = once(this.#child, 'exit');
        this.#child.disconnect();
        await gone;
    }
}
/** `BENCH_PROFILE=<folder>` leaves a CPU profile of every server process there. */
function profilerFlags(module) {
    const folder = process.env.BENCH_PROFILE;
    const name = module.replaceAll(/\W+/g, '-');
    return folder ? ['--cpu-prof', `--cpu-prof-dir=${folder}`, `--cpu-prof-name=${name}-${Date.now()}.cpuprofile`] : [];
}
//# sourceMappingURL=server-process.js.map