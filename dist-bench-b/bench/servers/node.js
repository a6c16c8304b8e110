import { tmpdir } from 'node:os';
import { createWorkerServer } from '../../src/server.js';
import { createPostgresStorage } from '../../src/storage/postgres/storage.js';
import { freePort } from '../../test/fixtures/free-port.js';
import { ScriptedRunner } from '../../test/fixtures/scripted-engine.js';
import { answer } from '../lib/child.js';
/**
 * One of several gateways on a PostgreSQL, on an engine that does nothing, or ends the turn of a message `short` at once. Arguments: its
 * name, the URL of the database, the schema.
 */
const [name, database, schema = 'nodes'] = process.argv.slice(2);
/** How often an engine was given the message `long`. */
let begun = 0;
const script = {
    send(runner, text) {
        if (text === 'long')
            begun++;
        if (text === 'short')
            setImmediate(() => runner.complete());
    },
};
const AT_ONCE = 500;
const port = await freePort();
const worker = createWorkerServer({
    allowUnauthenticated: true,
    profiles: [{ name: 'bench', engine: 'provider', provider: { id: 'bench' } }],
    createEngineRunner: (context) => new ScriptedRunner(context, script),
    storage: createPostgresStorage({ url: database, schema }),
    maxSessions: 5_000,
    queue: { maxConcurrency: 20 },
    cluster: {
        node: name,
        url: `http://127.0.0.1:${port}`,
        listen: { host: '127.0.0.1', port },
        secret: 'of the nodes of a benchmark, 32 characters',
    },
});
const { url } = await worker.listen(0);
answer({
    url: () => url,
    createSession: async () => (await worker.registry.create({ cwd: tmpdir() })).id,
    /** So many, each in a turn. */
    createBusy: (count) => Promise.all(Array.from({ length: count }, async () => (await worker.registry.create({ cwd: tmpdir(), prompt: 'go' })).id)),
    async submit({ count, prompt, priority }) {
        const request = { session: { cwd: tmpdir(), prompt }, attempts: 3, retryDelayMs: 0, priority };
        for (let left = count; left > 0; left -= AT_ONCE)
            await Promise.all(Array.from({ length: Math.min(left, AT_ONCE) }, () => worker.queue.submit(request)));
    },
    begun: () => begun,
});
//# sourceMappingURL=node.js.map