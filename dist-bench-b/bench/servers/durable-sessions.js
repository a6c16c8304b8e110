import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createGateway } from '../../src/gateway.js';
import { UNLIMITED } from '../../src/principal.js';
import { createSqliteStorage } from '../../src/storage/sqlite/storage.js';
import { ScriptedRunner } from '../../test/fixtures/scripted-engine.js';
import { answer } from '../lib/child.js';
/** A gateway whose sessions are kept as the first argument says, in the folder that the second one names. */
const [kind, folder] = process.argv.slice(2);
const IDLE_MS = 200;
const TEXT = 'x'.repeat(800);
const runners = new Map();
const gateway = createGateway({
    allowUnauthenticated: true,
    profiles: [{ name: 'bench', engine: 'provider', provider: { id: 'bench' } }],
    createEngineRunner: (context) => {
        const runner = new ScriptedRunner(context, { send: (self) => void setImmediate(() => self.complete()) });
        runners.set(context.sessionId, runner);
        return runner;
    },
    queue: {},
    eventLog: { maxEvents: 1_000 },
    ...(kind === 'sqlite' && { storage: createSqliteStorage({ path: join(folder, 'gateway.db') }) }),
    ...(process.argv[4] === 'release' && { idleReleaseMs: IDLE_MS }),
});
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
answer({
    /** @returns milliseconds until it takes work */
    async start() {
        const start = performance.now();
        await gateway.start();
        return performance.now() - start;
    },
    /** @returns ids of sessions that have had a turn */
    async create(count) {
        const ids = [];
        for (let at = 0; at < count; at += 100) {
            const made = Array.from({ length: Math.min(100, count - at) }, () => gateway.registry.create({ cwd: tmpdir(), prompt: 'Write me a report on the last quarter.' }));
            ids.push(...(await Promise.all(made)).map(({ id }) => id));
        }
        while ((await gateway.registry.list()).some(({ status }) => status !== 'idle'))
            await sleep(20);
        return ids;
    },
    /** Resolves when no session has an engine any more and none is in memory for its own sake. */
    async released() {
        while ([...runners.values()].some(({ closed }) => !closed))
            await sleep(50);
        runners.clear();
        await sleep(6_000);
    },
    /** Events of 1 KB at a rate, spread over the sessions. @returns how late the event loop was, in milliseconds */
    async emit({ ids, perSecond, seconds }) {
        const sessions = await Promise.all(ids.map((id) => gateway.registry.open(id, UNLIMITED)));
        const delay = monitorEventLoopDelay({ resolution: 1 });
        delay.enable();
        const start = performance.now();
        let emitted = 0;
        while (performance.now() - start < seconds * 1000) {
            while (emitted < ((performance.now() - start) * perSecond) / 1000)
                runners.get(ids[emitted++ % ids.length])?.say(TEXT, `m${emitted}`);
            await sleep(1);
        }
        delay.disable();
        await Promise.all(sessions.map((session) => session.durable()));
        return { p99: delay.percentile(99) / 1e6, max: delay.max / 1e6, emitted };
    },
    close: () => gateway.close(),
});
//# sourceMappingURL=durable-sessions.js.map