import { lastNotes, retryDelay } from './job.js';
/** What the end of an attempt changes when another one follows. */
export function retryPatch(run, { error }, now) {
    const { info, request } = run.record;
    const { attempt: _over, sessions = [], ...kept } = info.notes ?? {};
    return {
        status: 'queued',
        attempt: info.attempt + 1,
        nextRunAt: now + retryDelay(request, info.attempt),
        usage: run.usage,
        sdkSessionId: run.sdkSessionId,
        parkedAt: undefined,
        parkedExecutionId: undefined,
        notes: { ...kept, sessions: [...sessions, run.sessionId] },
        error,
    };
}
/** What an attempt that did not begin leaves of what its start changed. @param claimed the job before that */
export function unbegunPatch({ info }) {
    const { startedAt, sessionId, sdkSessionId, result, error, notes } = info;
    return { status: 'queued', startedAt, sessionId, sdkSessionId, result, error, notes };
}
/** What the end of the last attempt changes. */
export function endPatch(run, outcome, now) {
    const canceled = run.cancelRequested && outcome.status === 'failed';
    return {
        status: canceled ? 'canceled' : outcome.status,
        finishedAt: now,
        nextRunAt: undefined,
        usage: run.usage,
        sdkSessionId: run.sdkSessionId,
        parkedAt: undefined,
        parkedExecutionId: undefined,
        notes: lastNotes(run.record.info),
        result: outcome.result,
        error: outcome.status === 'failed' ? outcome.error : undefined,
    };
}
//# sourceMappingURL=attempt-patches.js.map