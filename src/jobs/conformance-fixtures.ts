import type { CreateJobRequest } from '../../schemas/jobs.js'
import type { JobFilter, JobPatch, JobRecord, QueueAdapter } from './adapter.js'
import { type JobNotes, newJob } from './job.js'

export const HOUR_MS = 3_600_000

/** Cases name their jobs; the ids that a gateway gives are UUIDs. */
export function record(id: string, options: { priority?: number; runAt?: number; profile?: string; at?: number } = {}) {
  const { priority, runAt, profile = 'one', at = Date.now() } = options
  const request: CreateJobRequest = {
    session: { cwd: '/srv/work', prompt: 'Zwölf "Boxkämpfer"\n\u2028 🥊', meta: { deep: [{ x: null }] } },
    webhook: { url: 'https://hooks.example/jobs?k=1', headers: { authorization: 'Bearer x' }, progress: 'completion' },
    attempts: 3,
    meta: { ticket: 7, nothing: null },
    ...(priority !== undefined && { priority }),
    ...(runAt !== undefined && { runAt }),
  }
  const info = newJob(request, { id, now: at, profile, generation: 'g1', cwd: '/srv/work' })
  return { request, info } satisfies JobRecord
}

const USAGE = { inputTokens: 1, outputTokens: 2, cacheCreationTokens: 3, cacheReadTokens: 4 }

/** All that changes about a job; a field that is not here does not compile. */
export const FULL_PATCH: { [Field in keyof JobPatch]-?: NonNullable<JobPatch[Field]> } = {
  status: 'failed',
  attempt: 3,
  usage: { ...USAGE, tokens: 10, cost: 0.125, numTurns: 5 },
  notes: {
    generation: 'g2',
    submittedBy: 'ann',
    home: 'node-1',
    attempt: { usage: USAGE, activeMs: 1, parkedMs: 2, lastSeq: 3 },
    sessions: ['s1', 's2'],
    unborn: 1,
    removed: 'another session',
  } satisfies Required<JobNotes>,
  nextRunAt: 1_760_000_000_000,
  startedAt: 1_760_000_000_001,
  sessionId: 's3',
  sdkSessionId: '__proto__',
  parkedAt: 1_760_000_000_002,
  parkedExecutionId: 'e1',
  finishedAt: 1_760_000_000_003,
  result: { subtype: 'error_max_turns', isError: true, text: '🥊\n', errors: ['', 'x'], durationMs: 12.5 },
  error: 'why\u2028it failed',
}

/** Without what only some adapters count. */
export const unnumbered = (found: JobRecord | null) => found && { request: found.request, info: found.info }

export const ids = (records: readonly JobRecord[]) => records.map(({ info }) => info.id)

export const listed = async (adapter: QueueAdapter, filter?: JobFilter) => ids(await adapter.list(filter))
