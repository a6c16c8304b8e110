import { oneLine } from '../lib/one-line.js';
import { nameOf } from '../principal.js';
/** Of a failure's reason: an agent's last words may be long. */
const REASON_LENGTH = 500;
/**
 * What sessions tell the operator's log: at `info` and above the moments of a session's life, at `debug` each event by its type, at `trace`
 * whole. What is said in a session, and what its tools are given and give back, is in no line below `trace`.
 */
export class OperatorLog {
    #logger;
    #notices;
    #oauthNoticed = false;
    /** @param notices where the few lines go that every operator is to see */
    constructor({ logger, notices }) {
        this.#logger = logger;
        this.#notices = notices;
    }
    onCreated(session, principal) {
        const { id: sessionId, profile, jobId, config } = session;
        const { name, engine, agent } = profile.info;
        this.#logger.info({
            ...{ sessionId, profile: name, engine, cwd: config.cwd },
            ...(agent !== undefined && { agent }),
            ...(jobId !== undefined && { jobId }),
            ...by(principal),
        }, 'session created');
    }
    /** The status changed; an event tells it. */
    onStatus(session, before, now, detail) {
        const { id: sessionId } = session;
        if (now === 'parked') {
            const executions = session.executions.list().map(({ executionId }) => executionId);
            const fields = { sessionId, executions, approvals: session.pendingPermissions.length };
            if (detail === undefined)
                this.#logger.info(fields, 'session parked');
            else
                this.#logger.warn({ ...fields, reason: reasonOf(detail) }, 'session parked');
        }
        else if (before === 'parked' && !session.ended)
            this.#logger.info({ sessionId }, 'session woken');
    }
    onEvent(session, body, seq) {
        const { id: sessionId } = session;
        if (this.#logger.debug && this.#logger.isLevelEnabled?.('debug') !== false)
            this.#inDetail(sessionId, body, seq);
        const moment = momentOf(session, body);
        if (moment)
            this.#logger[moment.level](moment.fields, moment.message);
    }
    #inDetail(sessionId, body, seq) {
        if (body.type !== 'stream_delta')
            this.#logger.debug?.({ sessionId, seq, type: body.type }, 'event');
        if (this.#logger.isLevelEnabled?.('trace') !== false)
            this.#logger.trace?.({ sessionId, seq, event: JSON.stringify(body) }, 'event in full');
    }
    /** A session turned out to run on `oauth` credentials; said once. */
    onOauth({ id: sessionId, profile }) {
        if (this.#oauthNoticed)
            return;
        this.#oauthNoticed = true;
        this.#notices.warn({ sessionId, profile: profile.info.name }, 'sessions run on oauth credentials of a personal login; set requireApiKey to refuse them');
    }
    /** An answer to an approval was taken. @param by absent: the host's own */
    onAnswered(session, requestId, behavior, by) {
        const { principal = by ? 'a client' : 'the host', channel } = by ?? {};
        this.#logger.info({ sessionId: session.id, requestId, behavior, by: principal, ...(channel && { channel }) }, 'approval answered');
    }
}
/** What of an event an operator wants to know. */
function momentOf({ id: sessionId, facts }, body) {
    switch (body.type) {
        case 'permission_requested': {
            const { id: requestId, toolName, expiresAt } = body.request;
            const fields = { sessionId, requestId, toolName, ...(expiresAt !== undefined && { expiresAt }) };
            return { level: 'info', fields, message: 'approval asked' };
        }
        case 'permission_resolved': {
            const { requestId, behavior, resolvedBy } = body;
            // a client's answer is told with the client's name, once it is taken
            if (resolvedBy === 'client')
                return undefined;
            const message = resolvedBy === 'timeout' ? 'approval timed out' : 'approval answered';
            return { level: 'info', fields: { sessionId, requestId, behavior, by: resolvedBy }, message };
        }
        case 'turn_completed': {
            const { isError, subtype, numTurns, errors } = body;
            if (!isError)
                return undefined;
            const fields = { sessionId, subtype, numTurns, reason: reasonOf(errors?.join(' ') ?? subtype) };
            return subtype === 'interrupted'
                ? { level: 'info', fields, message: 'turn interrupted' }
                : { level: 'warn', fields, message: 'turn failed' };
        }
        case 'session_error': {
            const code = body.code !== undefined && { code: body.code };
            return {
                level: 'warn',
                fields: { sessionId, ...code, reason: reasonOf(body.message) },
                message: 'session failed',
            };
        }
        case 'session_closed': {
            const { numTurns, cost } = facts;
            return { level: 'info', fields: { sessionId, reason: body.reason, numTurns, cost }, message: 'session ended' };
        }
        default:
            return undefined;
    }
}
/** Who did it, as far as anybody said. */
const by = (principal) => ({ by: nameOf(principal) ?? 'a client' });
const reasonOf = (text) => oneLine(text, REASON_LENGTH);
//# sourceMappingURL=operator-log.js.map