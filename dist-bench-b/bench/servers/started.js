import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createWorkerServer } from '../../src/server.js';
import { createPostgresStorage } from '../../src/storage/postgres/storage.js';
import { createSqliteStorage } from '../../src/storage/sqlite/storage.js';
import { ScriptedRunner } from '../../test/fixtures/scripted-engine.js';
import { answer } from '../lib/child.js';
/**
 * A gateway that is started when it is told so, on the database in the folder `argv[2]` or on a PostgreSQL of that URL, there with a name in
 * `argv[3]` as a node of that name; turns park, or end when they are asked to.
 */
const [, , place = '', node] = process.argv;
const createStorage = () => place.startsWith('postgres:')
    ? createPostgresStorage({ url: place, schema: 'started' })
    : createSqliteStorage({ path: join(place, 'gateway.db') });
const cluster = node !== undefined && {
    ...{ node, url: 'http://127.0.0.1:0', listen: { host: '127.0.0.1', port: 0 } },
    secret: 'a secret of these nodes, 32 characters and more',
};
const script = {
    capabilities: { parking: 'native' },
    send: (runner, text) => {
        if (text === 'park')
            runner.defer(`${runner.context.sessionId}-e`);
        else if (text === 'ask')
            void runner.host.requestPermission({ toolName: 'Bash', toolUseId: 'use', input: { command: 'make deploy' } });
        else
            runner.complete();
    },
};
const build = () => createWorkerServer({
    allowUnauthenticated: true,
    profiles: [{ name: 'bench', engine: 'provider', provider: { id: 'bench' } }],
    createEngineRunner: (context) => new ScriptedRunner(context, script),
    storage: createStorage(),
    ...(cluster && { cluster }),
    queue: { retention: { maxAgeMs: 30 * 86_400_000 } },
});
let worker;
let url = '';
answer({
    /** @returns milliseconds until it takes requests */
    async start() {
        worker = build();
        const from = performance.now();
        url = (await worker.listen(0)).url;
        return performance.now() - from;
    },
    url: () => url,
    /** Opens the database and closes it again, with nothing around it. @returns milliseconds */
    async open() {
        const storage = createStorage();
        const from = performance.now();
        await storage.open();
        const took = performance.now() - from;
        await storage.close();
        return took;
    },
    /** One session that is parked, one that waits for a person, one that has ended, one job that has and one that waits for its time, to be multiplied. */
    async seed() {
        const { registry } = worker;
        const { id } = await registry.create({ cwd: tmpdir(), prompt: 'park' });
        const asking = await registry.create({ cwd: tmpdir(), prompt: 'ask', approvalTimeoutMs: 0 });
        for (const one of [id, asking.id])
            while (registry.here(one)?.status !== 'parked')
                await new Promise((resolve) => setTimeout(resolve, 5));
        const ended = await registry.create({ cwd: tmpdir(), prompt: 'Write me a report on the last quarter.' });
        await registry.end(ended.id);
        const queue = worker.queue;
        const job = await queue.submit({ session: { cwd: tmpdir(), prompt: 'Write me a report on the last quarter.' } });
        await queue.submit({ session: { cwd: tmpdir(), prompt: 'Later.' }, runAt: Date.now() + 30 * 86_400_000 });
        while ((await queue.get(job.id))?.status !== 'succeeded')
            await new Promise((resolve) => setTimeout(resolve, 5));
    },
    stop: () => worker.close(),
});
//# sourceMappingURL=started.js.map