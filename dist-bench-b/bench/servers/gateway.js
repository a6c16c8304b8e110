import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createWorkerServer } from '../../src/server.js';
import { createSqliteStorage } from '../../src/storage/sqlite/storage.js';
import { ScriptedRunner } from '../../test/fixtures/scripted-engine.js';
import { answer } from '../lib/child.js';
import { assistantMessage, Producer } from '../lib/producer.js';
/**
 * The gateway as it is shipped, on an engine that does nothing by itself. Its options are the first argument, as JSON; the second names
 * the folder that it keeps its sessions in.
 */
const [given = '{}', folder] = process.argv.slice(2);
const runners = new Map();
const producers = new Map();
const createEngineRunner = (context) => {
    const runner = new ScriptedRunner(context, {});
    // Only the sessions that this process makes itself are driven; the others must not be kept alive by the benchmark.
    if (context.config.title === 'driven')
        runners.set(context.sessionId, runner);
    return runner;
};
const worker = createWorkerServer({
    allowUnauthenticated: true,
    profiles: [{ name: 'bench', engine: 'provider', provider: { id: 'bench' } }],
    createEngineRunner,
    ...JSON.parse(given),
    ...(folder !== undefined && { storage: createSqliteStorage({ path: join(folder, 'gateway.db') }) }),
});
const { url } = await worker.listen(0);
const socketUrl = (id) => `${url}/v1/sessions/${id}/ws`;
async function createSession() {
    const { id } = await worker.registry.create({ cwd: tmpdir(), title: 'driven' });
    const runner = runners.get(id);
    producers.set(id, new Producer((event) => runner.host.emit(event)));
    return id;
}
/** A session whose engine asks for permission again as soon as it has an answer. */
async function createAskingSession() {
    const id = await createSession();
    const { host } = runners.get(id);
    const ask = async (n) => {
        const decision = await host.requestPermission({
            toolName: 'fs_write',
            toolUseId: `tool-${n}`,
            input: { path: 'notes.md', content: 'One line of text.\n'.repeat(20) },
        });
        if (decision.behavior === 'allow')
            void ask(n + 1);
    };
    void ask(1);
    return id;
}
/** Says so much as fast as it can, or as fast as it is asked to. */
async function burst({ id, events, heeds }) {
    const { host } = runners.get(id);
    for (let n = 1; n <= events; n++) {
        host.emit(assistantMessage(n));
        if (heeds)
            await host.drained;
        if (n % 10 === 0)
            await new Promise(setImmediate);
    }
}
answer({
    burst,
    peakRss: () => process.resourceUsage().maxRSS * 1024,
    url: () => url,
    socketUrl,
    replayUrl: socketUrl,
    createSession,
    createAskingSession,
    fill: ({ id, events }) => producers.get(id).produce({ events, perTurn: 100, window: Infinity }),
    produce: ({ id, ...work }) => producers.get(id).produce(work),
    taken: ({ id, events }) => producers.get(id).taken(events),
    pace: ({ id, ...rate }) => producers.get(id).pace(rate),
});
//# sourceMappingURL=gateway.js.map