import { tmpdir } from 'node:os';
import { createGateway } from '../../src/gateway.js';
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js';
import { ScriptedRunner } from '../../test/fixtures/scripted-engine.js';
import { answer } from '../lib/child.js';
import { addKnownJobs } from './known-jobs.js';
/**
 * A queue that knows as many finished jobs as the first argument says, on an engine whose turns end as they begin. Its sessions go when they
 * have ended, or, with `kept` as second argument, stay as they do by default.
 */
const known = Number(process.argv[2]);
const isKept = process.argv[3] === 'kept';
const CONCURRENCY = 50;
const WARM_UP_BATCHES = 100;
const request = { session: { cwd: tmpdir(), prompt: 'Nothing.' } };
const adapter = createMemoryQueueAdapter();
await addKnownJobs(adapter, known, tmpdir());
const gateway = createGateway({
    allowUnauthenticated: true,
    profiles: [{ name: 'bench', engine: 'provider', provider: { id: 'bench' } }],
    createEngineRunner: (context) => new ScriptedRunner(context, { send: (runner) => runner.complete() }),
    ...(!isKept && { sessionRetentionMs: 0 }),
    queue: { maxConcurrency: CONCURRENCY, adapter },
});
await gateway.start();
const queue = gateway.queue;
/** Submits so many jobs, lets them run, and resolves with the milliseconds that both took. */
async function drain(jobs) {
    let left = jobs;
    let finished = () => { };
    const done = new Promise((resolve) => {
        finished = resolve;
    });
    const stop = queue.on('job_event', ({ event }) => {
        if (event.type === 'job_completed' && --left === 0)
            finished();
    });
    const start = performance.now();
    await Promise.all(Array.from({ length: jobs }, () => queue.submit(request)));
    const submitMs = performance.now() - start;
    await done;
    stop();
    return { submitMs, drainMs: performance.now() - start };
}
async function page(times) {
    for (let index = 0; index < times; index++)
        JSON.stringify((await queue.page({ limit: 100 })).items);
    const start = performance.now();
    for (let index = 0; index < times; index++)
        await queue.page({ limit: 100 });
    const pageMs = (performance.now() - start) / times;
    const { items } = await queue.page({ limit: 100 });
    const again = performance.now();
    for (let index = 0; index < times; index++)
        JSON.stringify(items);
    return { pageMs, stringifyMs: (performance.now() - again) / times };
}
// a queue that has worked for a while: V8 guesses how long objects live by what it sees first, and a start with thousands of jobs at
// once misleads it for as long as the process runs
for (let batch = 0; batch < WARM_UP_BATCHES; batch++)
    await drain(CONCURRENCY);
answer({ drain, page });
//# sourceMappingURL=job-queue.js.map