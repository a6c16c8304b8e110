import { GatewayError } from '../../errors.js';
import { unavailable } from '../../lib/patience.js';
import { answerOf } from './answer-form.js';
import { readGrant, signGrant } from './token.js';
/** Characters of an input that a page shows. */
const MAX_SHOWN = 200_000;
/** Links by which whoever holds one answers one request, once. */
export class AnswerLinks {
    #options;
    constructor(options) {
        this.#options = options;
    }
    /** The link for a request that a channel is told of; undefined when it is to have none. @throws what the store of keys throws */
    async urlFor(message, channel) {
        if (message.type !== 'permission_requested' || !message.request)
            return undefined;
        const { keys, clock, pageUrl, ttlMs, limits } = this.#options;
        const { request, sessionId, seq, ts } = message;
        if (limits.tools && !limits.tools.includes(request.toolName))
            return undefined;
        const expiresAt = Math.min(request.expiresAt ?? Number.POSITIVE_INFINITY, ts + ttlMs);
        if (expiresAt <= clock.now())
            return undefined;
        const grant = { sessionId, requestId: request.id, channel, seq, expiresAt };
        return `${pageUrl}?token=${signGrant(grant, await keys.current())}`;
    }
    /** The name of a link that was given out, whatever has become of it; undefined for a forged one, and while that cannot be said. */
    async nameOf(token) {
        const known = await this.#grantOf(token).catch(() => undefined);
        return known && JSON.stringify([known.grant.sessionId, known.grant.requestId, known.grant.channel]);
    }
    /** What is behind a link; changes nothing. @throws SG_ERR_ANSWER_LINK · SG_ERR_ANSWER_LINK_EXPIRED · SG_ERR_STORE_UNAVAILABLE */
    async look(token) {
        const { grant, recipient } = await this.#grantOf(token);
        const waiting = await this.#waiting(grant);
        if (!waiting)
            return this.#settled(grant);
        this.#assertLive(grant);
        const { request, session } = waiting;
        const { limits } = this.#options;
        if (limits.tools && !limits.tools.includes(request.toolName))
            throw new GatewayError('SG_ERR_ANSWER_LINK');
        const input = JSON.stringify(request.input, null, 2);
        const isWhole = input.length <= MAX_SHOWN;
        return {
            ...{ state: 'open', request, session, recipient, expiresAt: grant.expiresAt, isWhole },
            input: input.slice(0, MAX_SHOWN),
            canAllow: limits.only !== 'deny' && isWhole,
        };
    }
    /**
     * Answers by the form of the page.
     * @returns whether it was this answer that settled the request
     * @throws SG_ERR_ANSWER_LINK · SG_ERR_ANSWER_LINK_EXPIRED · SG_ERR_VALIDATION · SG_ERR_UNSUPPORTED · SG_ERR_STORE_UNAVAILABLE
     */
    async answer(token, form) {
        const { grant } = await this.#grantOf(token);
        const view = await this.look(token);
        if (view.state === 'settled')
            return view;
        const { request, session, canAllow } = view;
        const answer = answerOf(request, form);
        if (answer.behavior === 'allow' && !canAllow)
            throw new GatewayError('SG_ERR_VALIDATION', { detail: 'This link can only deny.' });
        try {
            await this.#options.sessions.resolve(session.id, request.id, answer);
            return { taken: answer };
        }
        catch (error) {
            const isLate = error instanceof GatewayError && LATE.has(error.code);
            if (!isLate)
                throw error;
            return this.#settled(grant);
        }
    }
    async #grantOf(token) {
        const { keys, recipient } = this.#options;
        const key = await keys.current().catch((cause) => {
            throw unavailable(cause);
        });
        const grant = readGrant(token, key);
        const sentTo = grant && recipient(grant.channel);
        if (!grant || sentTo === undefined)
            throw new GatewayError('SG_ERR_ANSWER_LINK');
        return { grant, recipient: sentTo };
    }
    #assertLive({ expiresAt }) {
        if (expiresAt <= this.#options.clock.now())
            throw new GatewayError('SG_ERR_ANSWER_LINK_EXPIRED');
    }
    async #waiting({ sessionId, requestId }) {
        try {
            return await this.#options.sessions.waiting(sessionId, requestId);
        }
        catch (error) {
            const isGone = error instanceof GatewayError && error.code === 'SG_ERR_SESSION_NOT_FOUND';
            throw isGone
                ? new GatewayError('SG_ERR_ANSWER_LINK_EXPIRED', { detail: 'The session is not there any more.' })
                : error;
        }
    }
    async #settled({ sessionId, requestId, seq }) {
        return { state: 'settled', resolved: await this.#options.sessions.resolution(sessionId, requestId, seq) };
    }
}
const LATE = new Set([
    'SG_ERR_PERMISSION_NOT_FOUND',
    'SG_ERR_SESSION_NOT_FOUND',
    'SG_ERR_SESSION_ENDED',
]);
//# sourceMappingURL=answer-links.js.map