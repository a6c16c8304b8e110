import { tmpdir } from 'node:os';
import { createWorkerServer } from '../../src/server.js';
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js';
import { ScriptedRunner } from '../../test/fixtures/scripted-engine.js';
import { answer } from '../lib/child.js';
import { addKnownJobs } from './known-jobs.js';
/** The queue over HTTP, knowing as many finished jobs as the first argument says; its engine says a word and is done. */
const adapter = createMemoryQueueAdapter();
await addKnownJobs(adapter, Number(process.argv[2]), tmpdir());
const worker = createWorkerServer({
    allowUnauthenticated: true,
    profiles: [{ name: 'bench', engine: 'provider', provider: { id: 'bench' } }],
    createEngineRunner: (context) => new ScriptedRunner(context, {
        send(runner) {
            runner.say('Begun.');
            runner.complete();
        },
    }),
    sessionRetentionMs: 0,
    queue: { adapter },
});
const { url } = await worker.listen(0);
answer({ url: () => url });
//# sourceMappingURL=job-api.js.map