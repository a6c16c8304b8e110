import { toError } from '../../errors.js';
import { newId } from '../../lib/new-id.js';
import { within } from '../../lib/within.js';
import { interruptedResult } from '../asks/deferred-executions.js';
import { interruptedTurn } from '../session-facts.js';
const REMEMBERED_MESSAGES = 100;
/** How long an engine may take to end its turn when the process ends. */
const TURN_END_GRACE_MS = 5_000;
const HELD_BACK = 'The storage takes nothing, and no more of what the agent says can be held back. Send the message again when /readyz says ready.';
/** How the turns of a session begin and end, and how it does. */
export class TurnDesk {
    #session;
    /** Called when the turn in progress is over. */
    onOver;
    /** How much was held back for the storage when the turn was ended for it. */
    #heldBack;
    /** The message that the session was created with, as long as no engine was given it. Its turn has begun with the session. */
    #opening;
    constructor(session) {
        this.#session = session;
    }
    /** Accepts a message for the agent and begins its turn when the earlier ones are over. */
    say(text, commandId, options = {}) {
        const session = this.#session;
        const { first = false, by } = options;
        const asked = { ...(commandId !== undefined && { commandId }), ...(by !== undefined && { askedBy: by }) };
        session.turns.add({ text, ...asked }, first);
        if (commandId !== undefined)
            session.messageIds = [...(session.messageIds ?? []), commandId].slice(-REMEMBERED_MESSAGES);
        session.facts.onPrompt(text);
        session.append({
            type: 'user_message',
            message: { role: 'user', content: text },
            uuid: newId(),
            parentToolUseId: null,
            ...(commandId !== undefined && { commandId }),
        });
        session.showStatus();
        this.next();
    }
    /** Begins a session with its first turn: the engine that is being built for it is given the message as soon as it takes any. */
    open(text) {
        this.say(text, undefined);
        const { turns, log } = this.#session;
        this.#opening = { message: turns.begin(), seq: log.lastSeq };
    }
    /** Begins the turn of the message that waits, when there is one and an engine to take it. */
    next() {
        const session = this.#session;
        const { link, turns, log } = session;
        const isReady = link && session.started && session.serving && this.#provenanceKnown;
        const opening = isReady ? this.#opening : undefined;
        const message = isReady ? (opening?.message ?? turns.begin()) : undefined;
        if (!message || !link)
            return;
        this.#opening = undefined;
        link.handing = message;
        session.askedBy = message.askedBy ?? session.createdBy;
        if (!opening)
            session.touch();
        session.showStatus();
        if (opening && opening.seq <= log.visibleSeq)
            this.#handOver(link, message);
        else
            session.whenDurable(() => {
                if (link.handing === message && session.hears(link))
                    this.#handOver(link, message);
            });
    }
    /** Whether the engine was given the message of a turn that is in progress. */
    get isAtWork() {
        return this.#session.turns.active && !this.#opening;
    }
    #handOver(link, { text, commandId }) {
        link.handing = undefined;
        link.begin();
        try {
            link.runner.send(text, commandId === undefined ? undefined : { commandId });
        }
        catch (error) {
            this.fail(toError(error).message, 'SG_ERR_ENGINE_FAILED');
        }
    }
    /** With `requireApiKey` no prompt reaches an engine before it said whose credentials it uses. */
    get #provenanceKnown() {
        const { world, facts } = this.#session;
        return !world.requireApiKey || facts.apiKeySource !== undefined;
    }
    /** Ends the turn in progress; what it waited for elsewhere stays as it is. */
    async interrupt() {
        const { permissions, bridge, link } = this.#session;
        permissions.denyAll('Interrupted by the user.');
        bridge.cancelAll('interrupted', 'The turn was interrupted.');
        if (link?.handing)
            this.#endUnbegun(link);
        else if (this.isAtWork) {
            link?.end();
            await link?.runner.interrupt();
        }
    }
    /** Ends the turn in progress, for the end of the process; its engine has a little time for it. */
    async endSoon() {
        const { turns, world } = this.#session;
        const over = new Promise((resolve) => {
            this.onOver = resolve;
        });
        const ending = this.interrupt().then(() => (turns.active ? over : undefined), () => { });
        await within(TURN_END_GRACE_MS, Promise.race([over, ending]), { clock: world.clock });
    }
    /** The engine was not given the message yet, so that there is nothing for it to tell. */
    #endUnbegun(link) {
        const session = this.#session;
        link.handing = undefined;
        session.turns.complete();
        session.append(interruptedTurn(session.facts, 'The turn was interrupted.'));
        session.showStatus();
        setImmediate(() => this.next());
    }
    /** The end of a turn as it is told: one that was ended for the storage's sake says so. */
    endOf(event) {
        if (this.#heldBack === undefined)
            return event;
        this.#heldBack = undefined;
        return { ...event, subtype: 'interrupted', isError: true, errors: [...(event.errors ?? []), HELD_BACK] };
    }
    /** What cannot be kept must not go on: the turn ends, and an engine that goes on all the same ends its session. */
    onBacklog(bytes) {
        const session = this.#session;
        if (session.ended)
            return;
        if (this.#heldBack === undefined) {
            this.#heldBack = bytes;
            session.world.logger.error({ sessionId: session.id, bytes }, 'a turn is ended: what is said in it cannot be kept');
            // not inside the event that was one too many
            if (this.isAtWork)
                setImmediate(() => this.interrupt().catch(() => { }));
            else
                session.whenDurable(() => {
                    this.#heldBack = undefined;
                });
        }
        else if (bytes > 2 * this.#heldBack)
            this.fail(HELD_BACK, 'SG_ERR_STORE_UNAVAILABLE');
    }
    /** Tells what a session without an engine cannot go on with: a turn, questions, executions. */
    cutOff(message) {
        const session = this.#session;
        const { executions, turns, world } = session;
        if (session.ended)
            return;
        session.permissions.denyAll(message);
        for (const { executionId } of executions.list())
            session.append(executions.settle(executionId, interruptedResult(message), world.clock.now()));
        if (turns.active) {
            this.#opening = undefined;
            turns.complete();
            session.append(interruptedTurn(session.facts, message));
        }
        session.showStatus();
    }
    /** Ends the session as failed. */
    fail(message, code) {
        const session = this.#session;
        if (session.ended)
            return;
        session.facts.statusDetail = message;
        this.#finish('failed', 'error', { type: 'session_error', message, ...(code && { code }) });
    }
    /** Closes the session unless it has ended; resolves when its runner is gone or was given up on. */
    close(reason) {
        this.#finish(reason === 'error' ? 'failed' : 'closed', reason);
        return this.#session.engineGone ?? Promise.resolve();
    }
    /** @param told what is said before everything else that follows from the end */
    #finish(as, reason, told) {
        const session = this.#session;
        if (session.ended)
            return;
        const { link, world, log } = session;
        session.become({ is: 'ended', as });
        if (session.writer)
            session.midTurn = undefined;
        session.turns.clear();
        if (told)
            session.append(told);
        session.permissions.denyAll('The session ended.');
        session.bridge.close();
        const ts = world.clock.now();
        session.showStatus(ts);
        if (session.closingSeq !== undefined)
            log.skipTo(session.closingSeq - 1);
        session.append({ type: 'session_closed', reason }, ts);
        if (link)
            session.engineGone = link.close(world, session.id);
        world.onEnded(session);
    }
}
//# sourceMappingURL=turn-desk.js.map