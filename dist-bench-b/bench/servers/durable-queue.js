import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createWorkerServer } from '../../src/server.js';
import { createSqliteStorage } from '../../src/storage/sqlite/storage.js';
import { ScriptedRunner } from '../../test/fixtures/scripted-engine.js';
import { answer } from '../lib/child.js';
/** A queue with default options but for its slots, kept as the first argument says, on an engine whose turns end as they begin. */
const [kind, folder, slots] = process.argv.slice(2);
const request = { session: { cwd: tmpdir(), prompt: 'Nothing.' } };
/** Turns that wait for the backlog to be there. */
let held;
let calls = 0;
let commits = 0;
const worker = createWorkerServer({
    allowUnauthenticated: true,
    profiles: [{ name: 'bench', engine: 'provider', provider: { id: 'bench' } }],
    createEngineRunner: (context) => new ScriptedRunner(context, {
        send(runner) {
            if (held)
                held.push(runner);
            else
                runner.complete();
        },
    }),
    queue: { maxConcurrency: Number(slots) },
    ...(kind === 'sqlite' && {
        storage: createSqliteStorage({ path: join(folder, 'gateway.db') }, {
            onBatch(names) {
                calls += names.length;
                commits++;
            },
        }),
    }),
});
const { url } = await worker.listen(0);
const queue = worker.queue;
let left = 0;
let finished = () => { };
queue.on('job_event', ({ event }) => {
    if (event.type === 'job_completed' && --left === 0)
        finished();
});
/** Resolves when so many jobs have ended. */
const ended = (jobs) => {
    left = jobs;
    return new Promise((resolve) => {
        finished = resolve;
    });
};
/** Submits so many jobs, which wait for `drain`. */
async function submit(jobs) {
    held = [];
    await Promise.all(Array.from({ length: jobs }, () => queue.submit(request)));
    while (held.length < Math.min(jobs, Number(slots)))
        await new Promise((resolve) => setTimeout(resolve, 5));
}
/** Lets them run. @returns milliseconds until all have ended; database calls and commits for them */
async function drain(jobs) {
    const before = { calls, commits };
    const all = ended(jobs);
    const start = performance.now();
    for (const runner of held.splice(0))
        runner.complete();
    held = undefined;
    await all;
    return { ms: performance.now() - start, calls: calls - before.calls, commits: commits - before.commits };
}
let expected = Promise.resolve();
/** So many jobs will be submitted over HTTP. */
function expect(jobs) {
    expected = ended(jobs);
}
answer({ url: () => url, submit, drain, expect, ended: () => expected });
//# sourceMappingURL=durable-queue.js.map