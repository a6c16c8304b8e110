import { ENGINE_EVENT_TYPES } from '../../engines/event-types.js';
import { GatewayError, toError } from '../../errors.js';
import { interruptedResult } from '../asks/deferred-executions.js';
import { asleep, midTurnAt } from '../kept/mid-turn.js';
import { applyRunnerEvent } from '../session-facts.js';
import { RunnerLink } from './runner-link.js';
import { snapshotFiles } from './snapshot-files.js';
const HISTORY_LOST = {
    type: 'engine_event',
    payload: { type: 'history_lost', message: 'The engine was started anew and does not know what was said before.' },
};
/** How a session comes by its engine, hears it, lets it go and gets another one. */
export class EngineDesk {
    #session;
    #turns;
    constructor(session, turns) {
        this.#session = session;
        this.#turns = turns;
    }
    // ── starting ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
    /** Takes the runner that was built for this session, hands it the opening prompt and starts it. Never throws. */
    begin(runner) {
        const session = this.#session;
        const link = new RunnerLink(runner, this);
        session.become({ is: 'starting', link });
        session.files = runner.files;
        const { prompt } = session.config;
        if (prompt !== undefined && !session.busy)
            this.#turns.say(prompt, undefined);
        const failed = (error) => {
            if (session.hears(link))
                this.#turns.fail(toError(error).message, 'SG_ERR_ENGINE_START');
        };
        try {
            this.#start(link).then(() => this.#onStarted(link), failed);
        }
        catch (error) {
            failed(error);
        }
    }
    #start(link) {
        const { standstill } = this.#session.world;
        if (!standstill?.stands)
            return link.runner.start(link);
        return standstill.passed(link.signal).then(() => link.runner.start(link));
    }
    #onStarted(link) {
        const session = this.#session;
        if (!session.hears(link))
            return;
        session.become({ is: 'live', link });
        session.showStatus();
        this.keepSnapshot();
        this.#turns.next();
        session.world.sleep.consider(session);
    }
    /**
     * Goes on with an engine that was built from the snapshot, in the same log: in the middle of its turn, or with the messages that wait.
     * @param givenUp rejects when the start is not waited for any longer
     * @throws what the engine's `start` throws; the session is as it was then, without an engine
     */
    async wake(runner, config, givenUp) {
        const session = this.#session;
        const { life: before, facts, world } = session;
        const { apiKeySource } = facts;
        const inTurn = session.frozen || session.parked;
        const link = new RunnerLink(runner, this);
        session.config = config;
        session.become({ is: 'waking', link, inTurn });
        if (inTurn)
            this.#showAwake();
        // it may use other credentials than the one before
        else if (world.requireApiKey)
            facts.apiKeySource = undefined;
        try {
            await Promise.race([this.#start(link), givenUp]);
        }
        catch (error) {
            if (session.hears(link))
                session.become(before.is === 'asleep' ? before : { is: 'asleep' });
            facts.apiKeySource ??= apiKeySource;
            void link.close(world, session.id);
            throw error;
        }
        if (!session.hears(link))
            return;
        session.become({ is: 'live', link });
        session.files = runner.files;
        if (inTurn)
            this.#goOnWithTurn();
        else
            this.#goOn(before.is === 'asleep' && before.snapshot !== undefined);
    }
    #showAwake() {
        const { facts, midTurn, permissions, clients, log } = this.#session;
        facts.statusDetail = undefined;
        if (midTurn)
            midTurn.due = true;
        permissions.carried = [...(midTurn?.decisions ?? [])];
        clients.hurry(log.lastSeq + 1);
        this.#session.showStatus();
    }
    /** Results and answers that were taken in are told and handed over. */
    #goOnWithTurn() {
        const { id, midTurn, permissions, world } = this.#session;
        permissions.tellCarried();
        for (const { told, executionId, result } of [...(midTurn?.results ?? [])])
            if (told)
                this.#handResult(executionId, result);
            else
                this.settle(executionId, result);
        if (!midTurn?.interrupted)
            return;
        this.#turns
            .interrupt()
            .catch((error) => world.logger.error({ sessionId: id, err: toError(error) }, 'the engine refused to be interrupted'));
    }
    #goOn(knowsHistory) {
        const session = this.#session;
        const { facts, world } = session;
        facts.statusDetail = undefined;
        if (!knowsHistory)
            facts.countFromHere();
        if (!knowsHistory && facts.numTurns > 0)
            session.append(HISTORY_LOST);
        this.#turns.next();
        world.sleep.consider(session);
    }
    // ── what it says ──────────────────────────────────────────────────────────────────────────────────────────────────────────
    onRunnerEvent(link, told) {
        const session = this.#session;
        const { world, facts } = session;
        if (!session.hears(link))
            return;
        const event = told?.type === 'turn_completed' ? facts.withTotals(told) : told;
        const row = ENGINE_EVENT_TYPES.get(event?.type);
        if (!row) {
            const { id: sessionId } = session;
            world.logger.warn({ sessionId, type: event?.type }, 'the engine emitted an event that is not its to tell');
            return;
        }
        try {
            applyRunnerEvent(facts, event);
            if (row.goesOn)
                session.goesOn();
            if (event.type === 'turn_completed')
                session.turns.complete();
            if (event.type !== 'session_error')
                session.append(event.type === 'turn_completed' ? this.#turns.endOf(event) : event);
        }
        catch (error) {
            const message = `The engine emitted an event that is not JSON: ${toError(error).message}`;
            this.#turns.fail(message, 'SG_ERR_ENGINE_FAILED');
            return;
        }
        if (event.type === 'session_error')
            this.#turns.fail(String(event.message), event.code);
        // before a turn can begin in it
        else if (world.disableBypassPermissions && facts.permissionMode === 'bypassPermissions')
            this.#turns.fail('The engine runs in bypassPermissions, which this gateway disables.', 'SG_ERR_BYPASS_DISABLED');
        else if (event.type === 'system_init')
            this.#onProvenance(event.apiKeySource);
        else if (event.type === 'turn_completed')
            setImmediate(() => this.#turns.next());
        if (!row.leavesState)
            session.showStatus();
        if (event.type === 'turn_completed')
            this.#onTurnCompleted();
    }
    #onTurnCompleted() {
        const session = this.#session;
        const { sleep } = session.world;
        this.keepSnapshot();
        if (session.midTurn)
            sleep.checkpoint(session);
        this.#turns.onOver?.();
        if (session.runner?.isSpent)
            sleep.onSpent(session);
        else
            sleep.consider(session);
    }
    #onProvenance(apiKeySource) {
        const { world } = this.#session;
        if (apiKeySource === 'oauth') {
            if (world.requireApiKey) {
                this.#turns.fail(new GatewayError('SG_ERR_API_KEY_REQUIRED').message, 'SG_ERR_API_KEY_REQUIRED');
                return;
            }
            world.observer.onOauth(this.#session);
        }
        this.#turns.next();
    }
    drainedFor(link) {
        return this.#session.hears(link) ? this.#session.drained : undefined;
    }
    relieve() {
        this.#session.relieve();
    }
    /** Asks the engine something whose answer is not to be slowed. */
    async ask(question) {
        const { link } = this.#session;
        await (link ? link.ask(question) : question());
    }
    onPermissionAsked(link, ask) {
        const session = this.#session;
        if (!session.hears(link))
            return Promise.resolve({ behavior: 'deny', message: 'The session has ended.', interrupt: true });
        return session.permissions.ask(ask);
    }
    async onExecutionDeferred(link, execution) {
        const session = this.#session;
        const { executions, world } = session;
        const { executionId, expiresAt } = execution;
        if (!session.hears(link))
            throw new GatewayError('SG_ERR_SESSION_ENDED');
        if (!world.executions.defer(session.id, executionId, expiresAt))
            return;
        session.append(executions.add(execution, world.clock.now()));
        const dispatch = world.dispatcher.plan(session.id, execution);
        session.keepAlong(dispatch);
        try {
            await session.durable();
            const first = await world.sessionOf(executionId);
            if (first !== undefined && first !== session.id)
                throw new GatewayError('SG_ERR_EXECUTION_EXISTS');
        }
        catch (error) {
            dispatch.withdraw();
            this.#takeBack(link, executionId, error);
            throw error;
        }
        // once the engine knows that it was taken, so that a result may come from inside the dispatch
        setImmediate(() => dispatch.send());
    }
    /** The engine is told that it was not taken, so that nobody waits for it. */
    #takeBack(link, executionId, error) {
        const session = this.#session;
        const { executions, world } = session;
        if (!session.hears(link) || !world.executions.claim(executionId))
            return;
        const isAnothers = error instanceof GatewayError && error.code === 'SG_ERR_EXECUTION_EXISTS';
        const why = interruptedResult(isAnothers ? error.message : 'It could not be written down.');
        const told = executions.settle(executionId, why, world.clock.now());
        if (isAnothers) {
            executions.disown(executionId);
            world.executions.disown(executionId);
        }
        session.append(told);
    }
    onWaitForExecutions(link) {
        const session = this.#session;
        if (!session.hears(link))
            return;
        link.waiting = true;
        session.world.sleep.consider(session);
    }
    /** Tells a result and hands it to the engine. */
    settle(executionId, result) {
        const session = this.#session;
        if (session.ended)
            return;
        session.goesOn();
        session.append(session.executions.settle(executionId, result, session.world.clock.now()));
        const carried = session.midTurn?.results.find((known) => known.executionId === executionId);
        if (carried)
            carried.told = true;
        else
            session.midTurn?.results.push({ executionId, result, told: true });
        this.#handResult(executionId, result);
    }
    #handResult(executionId, result) {
        this.#session.goesOn();
        try {
            this.#session.runner?.settleExecution?.(executionId, result);
        }
        catch (error) {
            this.#turns.fail(toError(error).message, 'SG_ERR_ENGINE_FAILED');
        }
    }
    // ── going ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────
    /**
     * Writes down what the engine could go on from, when there is a journal and it is between two turns. What was kept earlier is not gone
     * on from when it gives nothing: turns are missing in it.
     */
    keepSnapshot() {
        const { id, writer, runner, world, started, serving, turns } = this.#session;
        if (!writer || !runner || !started || !serving || turns.active)
            return;
        try {
            writer.keep(runner.snapshot?.());
        }
        catch (error) {
            writer.keep(undefined);
            world.logger.error({ sessionId: id, err: toError(error) }, 'the engine gave no snapshot');
        }
        this.#session.midTurn = undefined;
    }
    /** Whether nothing happens here until somebody outside says something, and the engine can be built again then. */
    get canPark() {
        const { link, started, writer, permissions, executions, bridge, accepting } = this.#session;
        if (!link?.runner.snapshot || link.runner.capabilities.parking !== 'native' || !started)
            return false;
        // what is written while the session is being removed would bring it back
        if (writer?.removed)
            return false;
        // a message or an answer that is on its way to the engine would not be in its snapshot
        if (link.handing || permissions.handing || accepting > 0)
            return false;
        if (bridge.pending.length > 0 || !permissions.patient || link.runner.canPark === false)
            return false;
        return (link.waiting && executions.size > 0) || permissions.size > 0;
    }
    /** Whether it may go, to be started again by the next command. */
    get canRelease() {
        const { turns, permissions, executions, clients, bridge, concerns, started, serving, runner } = this.#session;
        const isIdle = !turns.busy && permissions.size === 0 && executions.size === 0;
        const isAlone = clients.count === 0 && bridge.pending.length === 0 && concerns === 0;
        return started && serving && isIdle && isAlone && runner?.snapshot !== undefined;
    }
    /** Since when it waits, as far as the queue is concerned whose run it is; it has an engine. */
    get heldFrom() {
        const { link, world } = this.#session;
        link.hold ??= { since: world.clock.now(), told: false };
        return link.hold.since;
    }
    /**
     * Takes a snapshot to go on from should the engine, which stays, be lost while it waits.
     * @returns the session whole, for a journal that has nothing of it yet
     * @throws what the engine's `snapshot()` throws
     */
    hold(since) {
        const session = this.#session;
        const snapshot = session.runner.snapshot();
        const write = session.writer ? undefined : asleep(session, snapshot, since, true);
        session.midTurn = midTurnAt(session, since);
        session.writer?.keep(snapshot);
        return write;
    }
    /** Tells the queue, once, that it waits. */
    tellHeld() {
        const { link, world } = this.#session;
        if (!link?.hold || link.hold.told)
            return;
        link.hold.told = true;
        world.observer.onHeld(this.#session);
    }
    /**
     * Takes the engine out of service in the same turn as its snapshot: what it says from here on is not heard.
     * @param parks in the middle of a turn
     * @throws what the engine's `snapshot()` throws; the session stays live then
     */
    letGo(parks) {
        const session = this.#session;
        const link = session.link;
        const snapshot = link.runner.snapshot?.();
        if (!parks)
            session.writer?.keep(snapshot);
        session.become({ is: 'leaving', snapshot, parks });
        session.permissions.suspend();
        session.engineGone = link.close(session.world, session.id);
    }
    /** What the next engine goes on from, while there is none. */
    get snapshot() {
        const { life } = this.#session;
        return 'snapshot' in life ? life.snapshot : undefined;
    }
    /** The engine is gone, and all is kept. @param since it is parked, and says so */
    fallAsleep(since) {
        const session = this.#session;
        const { snapshot } = this;
        session.files = snapshot?.files && snapshotFiles(snapshot.files, since ?? session.facts.lastActivityAt);
        if (since === undefined) {
            session.become({ is: 'asleep', snapshot });
            return;
        }
        session.midTurn = midTurnAt(session, since);
        session.become({ is: 'asleep', parkedSince: since });
        session.writer?.keep(snapshot);
        session.showStatus(since);
    }
    /** Tells that it is parked again, and why it could not go on; what the engine asked for meanwhile it will ask for again. */
    showParkedAgain(detail) {
        const session = this.#session;
        const { facts, executions, permissions } = session;
        const waits = new Set(session.midTurn?.waits);
        executions.retain(waits);
        permissions.retain(waits);
        permissions.suspend();
        const isNew = facts.statusDetail !== detail;
        facts.statusDetail = detail;
        if (!session.showStatus() && isNew)
            session.append({ type: 'status_changed', status: session.status, detail });
    }
    /** Puts the session to sleep whatever it does, at the process' end; one that nothing is kept of is closed. Resolves when its engine is gone. */
    async sleepNow() {
        const session = this.#session;
        const { parked, ended, midTurn, writer } = session;
        if (!parked && !ended && !midTurn && !writer)
            return this.#turns.close('server');
        // the turn that is in the middle is left to an engine of the next process, which is built from the same snapshot, and nothing is told
        const isOver = parked || ended || midTurn !== undefined;
        if (!isOver && this.#turns.isAtWork && session.link)
            await this.#turns.endSoon();
        if (!isOver)
            this.keepSnapshot();
        const { link } = session;
        if (link) {
            session.become({ is: 'asleep' });
            session.touch();
        }
        if (!isOver)
            this.#turns.cutOff('The gateway was shut down.');
        await Promise.all([link?.close(session.world, session.id), session.durable().catch(() => { })]);
    }
}
//# sourceMappingURL=engine-desk.js.map