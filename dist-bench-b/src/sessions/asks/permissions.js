import { isDeepStrictEqual } from 'node:util';
import { ASK_USER_QUESTION, } from '../../../schemas/permissions.js';
import { LazyMap } from '../../lib/lazy-map.js';
import { newId } from '../../lib/new-id.js';
import { present } from '../../lib/present.js';
/** How long an approval is waited for when neither the request nor the host says. */
export const DEFAULT_APPROVAL_TIMEOUT_MS = 300_000;
/**
 * The permission requests of one session that wait for an answer. The first answer wins; timeout, interrupt and teardown count as
 * deny, so nothing ever runs without an allow.
 */
export class PendingPermissions {
    #pending = new LazyMap();
    /** Allowed, and not handed to their askers before that is durable. */
    #handing = new LazyMap();
    /** Since when requests wait that are not resolved, those that were taken off the list included. */
    #since = new LazyMap();
    #clock;
    #host;
    constructor(clock, host) {
        this.#clock = clock;
        this.#host = host;
    }
    get size() {
        return this.#pending.size;
    }
    /** Whether an answer is on its way to its asker. */
    get handing() {
        return this.#handing.size > 0;
    }
    list() {
        return [...this.#pending.values()].map((pending) => pending.request);
    }
    /**
     * @param timeoutMs 0 waits without limit
     * @throws TypeError when the ask is not JSON; nothing waits then
     */
    add(ask, timeoutMs) {
        // a copy as JSON, so that what runs is what was shown, whatever the engine does with its own
        const shown = JSON.parse(JSON.stringify(ask));
        const { toolName, toolUseId, title, description, decisionReason, agentId } = shown;
        const request = {
            ...{ id: newId(), toolName, toolUseId },
            input: (shown.input ?? {}),
            ...present({ title, description, decisionReason, agentId }),
            ...(timeoutMs > 0 && { expiresAt: this.#clock.now() + timeoutMs }),
        };
        const decision = new Promise((decide) => {
            const timer = timeoutMs > 0
                ? this.#clock.after(timeoutMs, () => this.#resolve(request.id, { behavior: 'deny', message: 'Nobody answered in time.' }, 'timeout', {
                    channel: 'timeout',
                }))
                : undefined;
            this.#pending.set(request.id, { request, decide, timer });
        });
        return { request, decision };
    }
    /** It was told of a request that it was made here. */
    place(requestId, place) {
        const pending = this.#pending.get(requestId);
        if (pending)
            pending.place = place;
        if (pending)
            this.#since.set(requestId, place.since);
    }
    /** Since when a request has waited, until its resolution was told. */
    waitedSince(requestId) {
        return this.#since.get(requestId);
    }
    /** Where they were made; undefined: none waits. */
    get places() {
        if (this.size === 0)
            return undefined;
        return Object.fromEntries([...this.#pending.values()].flatMap(({ request, place }) => (place ? [[request.id, place]] : [])));
    }
    /** True when none of them has a time limit, so that they may be waited for without a process. */
    get patient() {
        return [...this.#pending.values()].every(({ timer }) => timer === undefined);
    }
    /** Takes up the requests of a parked session; their engine is to ask again, with the same `toolUseId`. */
    restore(requests, places = {}) {
        for (const request of requests) {
            const place = places[request.id];
            this.#pending.set(request.id, { request, decide: undefined, timer: undefined, ...(place && { place }) });
            if (place)
                this.#since.set(request.id, place.since);
        }
    }
    /** The decision on a request that was restored, for the engine that asks it again; undefined when there is none. */
    askedAgain(toolUseId) {
        const pending = [...this.#pending.values()].find(({ request, decide }) => !decide && request.toolUseId === toolUseId);
        if (!pending)
            return undefined;
        return new Promise((decide) => {
            pending.decide = decide;
        });
    }
    /** Leaves only those that are listed, by their ids. */
    retain(ids) {
        for (const requestId of this.#pending.keys())
            if (!ids.has(requestId))
                this.#drop(requestId);
    }
    #drop(requestId) {
        this.#pending.delete(requestId);
        this.#since.delete(requestId);
    }
    /** Takes a request off the list whose answer is told later. */
    takeOff(requestId) {
        const pending = this.#pending.get(requestId);
        this.#pending.delete(requestId);
        return pending?.request;
    }
    /** The engine is gone and with it whoever asked; the requests stay. */
    suspend() {
        for (const pending of this.#pending.values())
            pending.decide = undefined;
    }
    get(requestId) {
        return this.#pending.get(requestId)?.request;
    }
    /** @returns false when the request is unknown, answered or expired */
    answer(requestId, answer, by) {
        return this.#resolve(requestId, answer, 'client', by);
    }
    /** Tells that a client answered a request while the session was parked. */
    tellAnswered(resolution) {
        this.#pending.delete(resolution.requestId);
        this.#resolved({ ...resolution, resolvedBy: 'client' });
    }
    /** Denies everything that waits; what was allowed and not handed over yet does not run either. */
    denyAll(message) {
        for (const requestId of [...this.#handing.keys()])
            this.#take(requestId)?.({ behavior: 'deny', message });
        for (const requestId of [...this.#pending.keys()])
            this.#resolve(requestId, { behavior: 'deny', message }, 'policy', { channel: 'policy' });
    }
    #resolve(requestId, answer, resolvedBy, by) {
        const pending = this.#pending.get(requestId);
        if (!pending)
            return false;
        this.#pending.delete(requestId);
        pending.timer?.cancel();
        const decision = decisionOf(pending.request, answer);
        const changed = changedInput(pending.request, decision);
        this.#resolved({ requestId, decision, resolvedBy, by, changedInput: changed });
        if (pending.decide && decision.behavior === 'allow')
            this.#hand(requestId, pending.decide, decision);
        else
            pending.decide?.(decision);
        return true;
    }
    #resolved(resolution) {
        this.#host.onResolved(resolution);
        this.#since.delete(resolution.requestId);
    }
    /** After a crash the log must not say of a tool that ran that nobody allowed it. */
    #hand(requestId, decide, decision) {
        this.#handing.set(requestId, decide);
        this.#host.whenDurable(() => this.#take(requestId)?.(decision));
    }
    #take(requestId) {
        const decide = this.#handing.get(requestId);
        this.#handing.delete(requestId);
        return decide;
    }
}
/**
 * An allow always carries the input to run: the changed one, else the one that was shown. An answer to a question is put beside the
 * question.
 */
export function decisionOf(request, answer) {
    if (answer.behavior === 'deny')
        return answer;
    const shown = structuredClone(request.input);
    const { updatedInput = shown } = answer;
    const isAnswer = request.toolName === ASK_USER_QUESTION;
    return { behavior: 'allow', updatedInput: isAnswer ? { ...shown, ...updatedInput } : updatedInput };
}
/** An answer, for an engine that asks again. */
export function carriedDecision(request, answer, by) {
    const decision = decisionOf(request, answer);
    const isChanged = changedInput(request, decision) !== undefined;
    const { id: requestId, toolUseId } = request;
    return { toolUseId, requestId, decision, ...(by && { by }), ...(isChanged && { isChanged }) };
}
/** The input of an allow, when it differs from the one that was shown. */
export function changedInput({ input }, decision) {
    if (decision.behavior === 'deny' || isDeepStrictEqual(decision.updatedInput, input))
        return undefined;
    return decision.updatedInput;
}
/**
 * What policy answers to a question for the user, without asking: `auto` takes each first option, `deny` sends the agent on alone.
 * `undefined`: ask.
 */
export function policyAnswer(ask, behavior) {
    if (ask.toolName !== ASK_USER_QUESTION || behavior === undefined || behavior === 'ask')
        return undefined;
    if (behavior === 'deny')
        return { behavior: 'deny', message: 'Nobody is there to answer. Decide alone and go on.' };
    return { behavior: 'allow', updatedInput: { ...ask.input, answers: firstOptions(ask.input) } };
}
function firstOptions(input) {
    const { questions } = input;
    if (!Array.isArray(questions))
        return {};
    // written by a model: nothing says that it looks as it should
    const asked = questions;
    return Object.fromEntries(asked.flatMap((item) => {
        const label = Array.isArray(item?.options) ? item.options[0]?.label : undefined;
        return typeof item?.question === 'string' && typeof label === 'string' ? [[item.question, label]] : [];
    }));
}
//# sourceMappingURL=permissions.js.map