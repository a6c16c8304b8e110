import { newJob } from '../../src/jobs/job.js';
import { patched } from '../../src/jobs/patch.js';
/** Fills a queue with jobs that have ended. */
export async function addKnownJobs(adapter, count, cwd) {
    const request = { session: { cwd, prompt: 'Nothing.' } };
    for (let index = 0; index < count; index++) {
        const given = { id: `known-${index}`, now: index, profile: 'bench', generation: '', cwd };
        const ended = { status: 'succeeded', finishedAt: index, notes: undefined };
        await adapter.add({ request, info: patched(newJob(request, given), ended) });
    }
}
//# sourceMappingURL=known-jobs.js.map