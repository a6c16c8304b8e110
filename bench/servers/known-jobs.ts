import type { CreateJobRequest } from '../../schemas/jobs.js'
import type { QueueAdapter } from '../../src/jobs/adapter.js'
import { newJob } from '../../src/jobs/job.js'
import { patched } from '../../src/jobs/patch.js'

/** Fills a queue with jobs that have ended. */
export async function addKnownJobs(adapter: QueueAdapter, count: number, cwd: string): Promise<void> {
  const request: CreateJobRequest = { session: { cwd, prompt: 'Nothing.' } }
  for (let index = 0; index < count; index++) {
    const given = { id: `known-${index}`, now: index, profile: 'bench', generation: '', cwd }
    const ended = { status: 'succeeded', finishedAt: index, notes: undefined } as const
    await adapter.add({ request, info: patched(newJob(request, given), ended) })
  }
}
