import { GatewayError } from '../errors.js';
import { newId } from '../lib/new-id.js';
import { AttemptMeter } from './attempt-meter.js';
import { patched } from './patch.js';
import { progressOf } from './progress.js';
import { isFinalRefusal } from './refusals.js';
const SUBTYPE_ERRORS = {
    success: 'The run failed.',
    error_during_execution: 'The run failed.',
    error_max_turns: 'The run reached maxTurns.',
    error_max_budget_usd: 'The run reached maxBudgetUsd.',
    interrupted: 'The run was interrupted.',
};
/** Refusals of a session whose engine was given nothing. */
const UNBEGUN = new Set(['SG_ERR_STORE_UNAVAILABLE', 'SG_ERR_SHUTTING_DOWN']);
/** In one of these no session goes on. */
const AT_REST = new Set(['parked', 'failed', 'closed']);
/**
 * One attempt of a job: follows its session from outside, by its events, and says once how it ended.
 *
 *   claimed ── begin ──▶ running ◀── status parked / live again ──▶ parked
 *      └─────────────────────┴──── first turn completed, session ended, limit, cancel ──┴──▶ ended
 */
export class JobRun {
    sessionId;
    limits;
    /** As last written; see `live`. */
    record;
    /** Resolves when the engine of an ended run is gone or was given up on. */
    closed = Promise.resolve();
    #owner;
    /** Cancels that came while the end of the attempt was being written. */
    #cancels = [];
    #meter;
    #state = 'claimed';
    #legSince;
    #activeMs;
    #parkedMs;
    #lastSeq;
    #sdkSessionId;
    #watchdog;
    #place;
    /** It is parked, and its session has its engine. */
    #isHeld = false;
    #killing;
    /** @param from the place of the session that it begins, or the session that it goes on with */
    constructor(owner, record, limits, from) {
        const attempt = record.info.notes?.attempt;
        this.#owner = owner;
        this.record = record;
        this.limits = limits;
        this.sessionId = from.sessionId ?? newId();
        this.#place = from.place;
        this.#meter = new AttemptMeter(attempt);
        this.#activeMs = attempt?.activeMs ?? 0;
        this.#parkedMs = attempt?.parkedMs ?? 0;
        this.#lastSeq = attempt?.lastSeq ?? 0;
        this.#legSince = owner.clock.now();
    }
    get ended() {
        return this.#state === 'ended';
    }
    /** Whether no further attempt is wanted. */
    get cancelRequested() {
        return this.#cancels.some((isRefused) => !isRefused());
    }
    /** A parked run takes no slot. */
    get parked() {
        return this.#state === 'parked';
    }
    /** The job as it is at this moment, what is not written yet included. */
    get live() {
        const { usage, sdkSessionId } = this;
        return patched(this.record.info, sdkSessionId === undefined ? { usage } : { usage, sdkSessionId });
    }
    /** Of the job, this attempt included. */
    get usage() {
        return this.#meter.addedTo(this.record.info.usage);
    }
    get sdkSessionId() {
        return this.#sdkSessionId;
    }
    get tokens() {
        return this.#meter.tokens;
    }
    get notes() {
        const { usage } = this.#meter;
        return { usage, activeMs: this.#activeMs, parkedMs: this.#parkedMs, lastSeq: this.#lastSeq };
    }
    /** Calls the creation of its session off. @throws once the run has ended */
    throwIfAborted() {
        if (this.ended)
            throw new GatewayError('SG_ERR_SESSION_ENDED');
    }
    /** Starts the session. @param told with its first write */
    begin(profile, told) {
        if (this.#state !== 'claimed')
            return;
        this.#state = 'running';
        this.#legSince = this.#owner.clock.now();
        this.#armWatchdog();
        const { request, info } = this.record;
        const createdBy = info.notes?.submittedBy;
        const options = { id: this.sessionId, jobId: info.id, signal: this, place: this.#place, createdBy, told };
        const create = (resolved) => this.#owner.sessions.create({ ...request.session, profile: resolved.info.name }, { ...options, profile: resolved });
        try {
            const resolved = profile();
            const created = resolved instanceof Promise ? resolved.then(create) : create(resolved);
            created.catch((error) => this.#failed(error));
        }
        catch (error) {
            this.#failed(error);
        }
    }
    /**
     * Goes on with the run of an earlier process.
     * @param session as it is now
     * @param graceMs at least that long nothing is held against it
     */
    adopt(session, graceMs) {
        const { status, parkedAt } = this.record.info;
        this.#state = status === 'parked' ? 'parked' : 'running';
        this.#legSince = (status === 'parked' ? parkedAt : undefined) ?? this.#owner.clock.now();
        this.#sdkSessionId = session.sdkSessionId;
        this.#meter.readTotals(session);
        this.#armWatchdog(graceMs);
        if (session.status === 'parked')
            this.#park(session.parked?.executions[0]?.executionId);
        else
            this.#resume();
    }
    /** Counts the run of an earlier process as failed. @param session what is left of it, whose usage counts */
    abandon(session, outcome) {
        if (session) {
            this.#sdkSessionId = session.sdkSessionId;
            this.#meter.readSession(session);
        }
        this.#end(outcome);
    }
    /** @param isRefused whether whoever asked for it was refused meanwhile */
    cancel(isRefused = () => false) {
        if (this.ended)
            this.#cancels.push(isRefused);
        else
            this.#end({ status: 'canceled' });
    }
    onEvent({ event, session, held }) {
        if (this.ended || event.seq <= this.#lastSeq)
            return;
        this.#lastSeq = event.seq;
        this.#sdkSessionId = session.sdkSessionId;
        this.#meter.onEvent(event, session);
        if (!held && !AT_REST.has(session.status))
            this.#resume();
        switch (event.type) {
            case 'status_changed':
                if (event.status === 'parked')
                    this.#park(session.parked?.executions[0]?.executionId, held);
                return;
            case 'turn_completed':
                this.#resume();
                this.#end(this.#outcomeOf(event));
                return;
            case 'session_error':
                this.#end(this.#killing ? this.#killed() : refused(event.message, event.code));
                return;
            case 'session_closed':
                this.#onClosed(event);
                return;
            default:
                this.#progress(event);
        }
    }
    /**
     * Ends with its turn before that is durable, when nothing is to be told about the job before its end.
     * @param untold what `onEvent` would be told once it is
     * @returns whether it has
     */
    endAhead(untold) {
        if (this.#state !== 'running' || this.#killing || untold.some(isTold))
            return false;
        for (const told of untold)
            this.onEvent(told);
        return this.ended;
    }
    /** Its session waits, and keeps its engine while somebody looks at it. */
    onHeld(executionId) {
        if (!this.ended)
            this.#park(executionId, true);
    }
    #progress(event) {
        const progress = progressOf(event);
        if (progress)
            this.#owner.onProgress(this, progress);
        if (this.#overTokens)
            this.#kill(`The run used more than ${this.limits.tokens} tokens.`);
    }
    get #overTokens() {
        return this.limits.tokens !== undefined && this.#meter.tokens > this.limits.tokens;
    }
    /** @param executionId what it waits for; a session that waits for an approval alone waits for no execution */
    #park(executionId, isHeld = false) {
        this.#isHeld = isHeld;
        if (this.#state !== 'running')
            return;
        if (this.#killing) {
            this.#end(this.#killed());
            return;
        }
        this.#account();
        this.#state = 'parked';
        this.#armWatchdog();
        this.#owner.onParked(this, executionId);
    }
    #resume() {
        if (this.#state !== 'parked')
            return;
        this.#account();
        this.#state = 'running';
        this.#armWatchdog();
        this.#owner.onResumed(this);
    }
    /** Books the time since the last change of state. */
    #account() {
        const now = this.#owner.clock.now();
        const passed = Math.max(0, now - this.#legSince);
        if (this.#state === 'parked')
            this.#parkedMs += passed;
        else if (this.#state === 'running')
            this.#activeMs += passed;
        this.#legSince = now;
    }
    /** One watchdog: for the time spent running while it runs, for the time parked while it is parked. */
    #armWatchdog(graceMs = 0) {
        this.#watchdog?.cancel();
        this.#watchdog = undefined;
        const { clock } = this.#owner;
        const { durationMs, parkedMs } = this.limits;
        const since = Math.max(0, clock.now() - this.#legSince);
        if (this.#state === 'parked' && parkedMs !== undefined)
            this.#watchdog = clock.after(Math.max(parkedMs - this.#parkedMs - since, graceMs), () => this.#end({ status: 'failed', error: `The run was parked for more than ${parkedMs} ms.`, final: true }));
        else if (this.#state === 'running' && durationMs !== undefined)
            this.#watchdog = clock.after(Math.max(durationMs - this.#activeMs - since, graceMs), () => this.#kill(`The run took longer than ${durationMs} ms.`));
    }
    /** Interrupts the turn; a run that does not end by itself then is ended. */
    #kill(error) {
        if (this.#killing || this.ended)
            return;
        const grace = this.#owner.clock.after(this.limits.killGraceMs, () => this.#end(this.#killed()));
        this.#killing = { error, grace };
        this.#owner.sessions.send(this.sessionId, { type: 'interrupt' }).catch((refusal) => {
            // nothing to interrupt: the session is not even there
            if (refusal instanceof GatewayError && refusal.code === 'SG_ERR_SESSION_NOT_FOUND')
                this.#end(this.#killed());
        });
    }
    #killed() {
        return { status: 'failed', error: this.#killing.error };
    }
    #outcomeOf(event) {
        const { subtype, isError, durationMs, result: text, errors } = event;
        const result = {
            subtype,
            isError,
            durationMs,
            ...(text !== undefined && { text }),
            ...(errors && { errors }),
        };
        const failed = (error) => ({ status: 'failed', error, result });
        if (this.#killing)
            return failed(this.#killing.error);
        if (isError || subtype !== 'success')
            return failed(errors?.join(' · ') || SUBTYPE_ERRORS[subtype]);
        if (this.#overTokens)
            return failed(`The run used more than ${this.limits.tokens} tokens.`);
        return { status: 'succeeded', result };
    }
    #onClosed({ reason }) {
        if (this.#killing)
            this.#end(this.#killed());
        else if (reason === 'error')
            this.#end({ status: 'failed', error: 'The session failed.' });
        else if (!this.#owner.draining || reason === 'client')
            this.#end({ status: 'canceled' });
        else if (!this.parked)
            this.#end({ status: 'failed', error: 'The gateway shut down during the run.' });
    }
    #failed(error) {
        if (this.ended)
            return;
        // told before its engine was given anything
        if (error instanceof GatewayError && UNBEGUN.has(error.code)) {
            this.#end({ status: 'failed', error: error.message, unbegun: true });
            return;
        }
        const told = error instanceof GatewayError;
        if (!told || error.cause !== undefined)
            this.#owner.onFault(this, error);
        this.#end(told ? refused(error.message, error.code) : refused('The session could not be started.'));
    }
    #end(outcome) {
        if (this.ended)
            return;
        const { sessions } = this.#owner;
        const wasParked = this.parked && !this.#isHeld;
        this.#place?.release();
        this.#account();
        this.#state = 'ended';
        this.#watchdog?.cancel();
        this.#killing?.grace.cancel();
        // closing also discards what a parked session could be woken from; ending leaves the session to be looked at
        const ending = wasParked ? sessions.close(this.sessionId) : sessions.end(this.sessionId);
        this.closed = ending.then(() => { }, () => { });
        this.#owner.onEnded(this, outcome);
    }
}
const isTold = ({ event }) => progressOf(event) !== undefined || (event.type === 'status_changed' && event.status === 'parked');
const refused = (error, code) => ({
    status: 'failed',
    error,
    ...(isFinalRefusal(code) && { final: true }),
});
//# sourceMappingURL=run.js.map