import { delayAfter } from '../lib/backoff.js';
/**
 * The states of a job and the only ways between them.
 *
 *   (new) ─▶ queued ── claim ──▶ running ◀── parks / result ──▶ parked
 *              ▲ │                  │                             │
 *              │ │                  ├─ first turn completed ──────┼─▶ succeeded
 *              │ └─ DELETE ─────────┼─ DELETE, session ended ─────┼─▶ canceled
 *              └─ attempts left ────┴─ failed attempt ────────────┴─▶ failed
 *
 * The last three are terminal: nothing follows them.
 */
export const LEGAL_TRANSITIONS = {
    queued: ['running', 'canceled'],
    running: ['parked', 'queued', 'succeeded', 'failed', 'canceled'],
    parked: ['running', 'queued', 'failed', 'canceled'],
    succeeded: [],
    failed: [],
    canceled: [],
};
export const ACTIVE_STATUSES = ['queued', 'running', 'parked'];
export const BEGUN_STATUSES = ['running', 'parked'];
export const TERMINAL_STATUSES = ['succeeded', 'failed', 'canceled'];
export const isTerminal = (status) => LEGAL_TRANSITIONS[status].length === 0;
/**
 * One row per field of a job. `given`: stays as it was submitted · `patched`: set and cleared as the job goes on · `shown`: not stored,
 * made for who is shown the job.
 */
export const JOB_FIELDS = {
    id: 'given',
    status: 'patched',
    profile: 'given',
    cwd: 'given',
    prompt: 'given',
    createdAt: 'given',
    attempt: 'patched',
    maxAttempts: 'given',
    usage: 'patched',
    notes: 'patched',
    webhook: 'given',
    meta: 'given',
    nextRunAt: 'patched',
    startedAt: 'patched',
    sessionId: 'patched',
    sdkSessionId: 'patched',
    parkedAt: 'patched',
    parkedExecutionId: 'patched',
    finishedAt: 'patched',
    result: 'patched',
    error: 'patched',
    promptTruncated: 'shown',
};
/** What is still noted about a job that is over. */
export const lastNotes = ({ notes }) => notes?.sessions && { sessions: notes.sessions };
export const NO_JOB_USAGE = {
    tokens: 0,
    inputTokens: 0,
    outputTokens: 0,
    cacheCreationTokens: 0,
    cacheReadTokens: 0,
    cost: 0,
    numTurns: 0,
};
/** A job that was just submitted. */
export function newJob(request, given) {
    const { session, webhook, runAt, meta } = request;
    const notes = { generation: given.generation };
    if (given.submittedBy !== undefined)
        notes.submittedBy = given.submittedBy;
    if (given.home !== undefined)
        notes.home = given.home;
    const job = {
        id: given.id,
        status: 'queued',
        profile: given.profile,
        cwd: given.cwd,
        prompt: session.prompt,
        createdAt: given.now,
        attempt: 1,
        maxAttempts: request.attempts ?? 1,
        usage: NO_JOB_USAGE,
        notes,
    };
    if (webhook)
        job.webhook = { url: webhook.url, progress: webhook.progress ?? 'messages' };
    if (meta)
        job.meta = meta;
    if (runAt !== undefined && runAt > given.now)
        job.nextRunAt = runAt;
    return job;
}
const DEFAULT_RETRY_DELAY_MS = 5_000;
/** Retries that are further away than that are as good as never; it keeps a doubled delay a date. */
const MAX_RETRY_DELAY_MS = 365 * 24 * 60 * 60 * 1000;
/** Milliseconds from the end of the given attempt (from 1) to the next one: doubled every time, a year at most. */
export const retryDelay = ({ retryDelayMs = DEFAULT_RETRY_DELAY_MS }, attempt) => delayAfter(attempt, { firstMs: retryDelayMs, longestMs: Math.max(retryDelayMs, MAX_RETRY_DELAY_MS) });
//# sourceMappingURL=job.js.map