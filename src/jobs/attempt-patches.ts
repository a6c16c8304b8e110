import type { JobPatch, JobRecord } from './adapter.js'
import { type AttemptOutcome, type JobNotes, lastNotes, retryDelay } from './job.js'
import type { JobRun } from './run.js'

const sessionPatch = (run: JobRun): JobPatch =>
  run.isUnborn ? { sessionId: undefined, sdkSessionId: undefined } : { sdkSessionId: run.sdkSessionId }

/** What was written of a session that was refused may be left by a crash: it goes with the job. */
const withSession = (notes: JobNotes | undefined, sessionId: string): JobNotes => ({
  sessions: [...(notes?.sessions ?? []), sessionId],
})

/** What the end of an attempt changes when another one follows. */
export function retryPatch(run: JobRun, { error }: AttemptOutcome, now: number): JobPatch {
  const { info, request } = run.record
  const { attempt: _over, sessions = [], ...kept } = info.notes ?? {}
  return {
    status: 'queued',
    attempt: info.attempt + 1,
    nextRunAt: now + retryDelay(request, info.attempt),
    usage: run.usage,
    ...sessionPatch(run),
    parkedAt: undefined,
    parkedExecutionId: undefined,
    notes: { ...kept, sessions: [...sessions, run.sessionId] },
    error,
  }
}

/** What an attempt that did not begin leaves of what its start changed. @param claimed the job before that */
export function unbegunPatch({ info }: JobRecord): JobPatch {
  const { startedAt, sessionId, sdkSessionId, result, error, notes } = info
  return { status: 'queued', startedAt, sessionId, sdkSessionId, result, error, notes }
}

/** What the end of the last attempt changes. */
export function endPatch(run: JobRun, outcome: AttemptOutcome, now: number): JobPatch {
  const notes = lastNotes(run.record.info)
  const canceled = run.cancelRequested && outcome.status === 'failed'
  return {
    status: canceled ? 'canceled' : outcome.status,
    finishedAt: now,
    nextRunAt: undefined,
    usage: run.usage,
    ...sessionPatch(run),
    parkedAt: undefined,
    parkedExecutionId: undefined,
    notes: run.isUnborn ? withSession(notes, run.sessionId) : notes,
    result: outcome.result,
    error: outcome.status === 'failed' ? outcome.error : undefined,
  }
}
