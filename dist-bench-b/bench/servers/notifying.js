import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { createGateway } from '../../src/gateway.js';
import { createSqliteStorage } from '../../src/storage/sqlite/storage.js';
import { ScriptedRunner } from '../../test/fixtures/scripted-engine.js';
import { answer } from '../lib/child.js';
/** A gateway with a channel, kept as the first argument says; what it is asked for carries the moment of the event. */
const [kind, folder, url] = process.argv.slice(2);
const runners = [];
const gateway = createGateway({
    allowUnauthenticated: true,
    profiles: [{ name: 'bench', engine: 'provider', provider: { id: 'bench' } }],
    createEngineRunner: (context) => {
        const runner = new ScriptedRunner(context, {});
        runners.push(runner);
        return runner;
    },
    notifications: {
        channels: [{ format: 'webhook', url: `${url}/told`, secret: 'a secret of the benchmark' }],
        publicUrl: 'https://gateway.example',
        answerLinks: true,
    },
    ...(kind === 'sqlite' && { storage: createSqliteStorage({ path: join(folder, 'gateway.db') }) }),
});
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
/** The same clock in every process of the machine, to microseconds. */
const now = () => performance.timeOrigin + performance.now();
/** As many connections as a gateway opens to one receiver. */
const bareDispatcher = new Agent({ connections: 8 });
const BARE_BODY = { title: '', filler: 'x'.repeat(1_400) };
/** Spreads work evenly over the time that it is to take. */
async function pace(count, perSecond, work) {
    const start = performance.now();
    for (let done = 0; done < count; await sleep(1))
        while (done < Math.min(count, ((performance.now() - start) * perSecond) / 1000))
            work(done++);
}
answer({
    async start(sessions) {
        await gateway.start();
        for (let at = 0; at < sessions; at += 100)
            await Promise.all(Array.from({ length: 100 }, () => gateway.registry.create({ cwd: tmpdir(), prompt: 'Work.' })));
    },
    /** Every session asks in its turn, and goes on when it has an answer. */
    asks: ({ count, perSecond }) => pace(count, perSecond, (n) => {
        const { host } = runners[(n * 7) % runners.length];
        const ask = { toolName: 'Bash', toolUseId: `tool-${n}`, input: { command: 'npm test' }, title: `at ${now()}` };
        void host.requestPermission(ask);
    }),
    /** As many POSTs of a body of that size, from this process, by nobody in particular. */
    bare: ({ count, perSecond }) => pace(count, perSecond, () => {
        const body = JSON.stringify({ ...BARE_BODY, title: `at ${now()}` });
        const headers = { 'content-type': 'application/json' };
        void request(`${url}/bare`, { method: 'POST', headers, body, dispatcher: bareDispatcher }).then((response) => response.body.dump());
    }),
    close: () => gateway.close(),
});
//# sourceMappingURL=notifying.js.map