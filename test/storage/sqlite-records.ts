import type { JobRecord } from '../../src/jobs/adapter.js'
import { newJob } from '../../src/jobs/job.js'
import type { JournaledEvent, JournalWrite, SessionJournal } from '../../src/sessions/kept/journal.js'

/** What a session is journaled with first, made to measure. */
export const firstWrite = (id: string, changes: { lastSeq?: number; title?: string } = {}): JournalWrite => ({
  id,
  origin: { profile: 'one', generation: 'g1', config: { cwd: '/srv/work' }, epoch: 'e1' },
  state: stateOf(id, changes),
})

export const stateOf = (id: string, { lastSeq = 0, title = id }: { lastSeq?: number; title?: string } = {}) => ({
  info: {
    ...{ id, title, lastSeq, status: 'idle' as const, profile: 'one', engine: 'provider' as const, cwd: '/srv/work' },
    ...{ createdAt: 1, lastActivityAt: 1, pendingPermissions: 0, attachedClients: 0, numTurns: 0, cost: 0 },
    usage: { inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 },
  },
})

/** All events of a session, as they were written. */
export const readTexts = async (journal: SessionJournal, id: string): Promise<JournaledEvent[]> =>
  (await journal.read(id, 0, Number.MAX_SAFE_INTEGER, 1e9)).map(({ seq, json }) => ({ seq, json: String(json) }))

export const eventOf = (seq: number, text = 'x'): JournaledEvent => ({ seq, json: JSON.stringify({ seq, text }) })

export function jobOf(id: string, priority = 0): JobRecord {
  const request = { session: { cwd: '/srv/work', prompt: 'go' }, priority }
  return { request, info: newJob(request, { id, now: Date.now(), profile: 'one', generation: 'g1', cwd: '/srv/work' }) }
}
