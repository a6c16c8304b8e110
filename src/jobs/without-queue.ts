import type { SessionInfo } from '../../schemas/sessions.js'
import { expectedOf, getJob, type QueueAdapter } from './adapter.js'
import { isTerminal } from './job.js'

/**
 * For a process that runs no jobs and has the session of one: somebody removes it. The job is over by that once there is a queue, which
 * finds nothing of the session any more.
 * @throws what the adapter throws; the session is not to be removed then
 */
export async function noteRemoval(adapter: QueueAdapter, { id: sessionId, jobId }: SessionInfo): Promise<void> {
  if (jobId === undefined) return
  for (;;) {
    const record = await getJob(adapter, jobId)
    if (!record || record.info.sessionId !== sessionId || isTerminal(record.info.status)) return
    const { notes: before } = record.info
    // that of an attempt which is over, and the next one has none yet
    if (before?.sessions?.includes(sessionId)) return
    const notes = { ...before, removed: sessionId }
    if (await adapter.update(jobId, { notes }, expectedOf(record))) return
  }
}
