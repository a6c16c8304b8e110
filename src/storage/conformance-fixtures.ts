import type { JobRecord } from '../jobs/adapter.js'
import { newJob } from '../jobs/job.js'
import type { JournaledState, JournalWrite } from '../sessions/kept/journal.js'

/** The first write of a session that is idle. */
export const sessionOf = (id: string): JournalWrite & { state: JournaledState } => ({
  id,
  origin: { profile: 'one', generation: 'g1', config: { cwd: '/srv/work' }, epoch: 'e1' },
  state: {
    info: {
      ...{ id, title: id, lastSeq: 0, status: 'idle', profile: 'one', engine: 'provider', cwd: '/srv/work' },
      ...{ createdAt: 1, lastActivityAt: 1, pendingPermissions: 0, attachedClients: 0, numTurns: 0, cost: 0 },
      usage: { inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 },
    },
  },
})

/** A job that waits for its turn. */
export function jobOf(id: string): JobRecord {
  const request = { session: { cwd: '/srv/work', prompt: 'go' } }
  return { request, info: newJob(request, { id, now: Date.now(), profile: 'one', generation: 'g1', cwd: '/srv/work' }) }
}
