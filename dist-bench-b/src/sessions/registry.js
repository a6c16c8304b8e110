import { CLOSE } from '../../schemas/close-codes.js';
import { GatewayError, toError } from '../errors.js';
import { keptWith } from '../idempotency/making.js';
import { KeyedLock } from '../lib/keyed-lock.js';
import { Listeners } from '../lib/listeners.js';
import { Patience } from '../lib/patience.js';
import { answeredBy, UNLIMITED, visible } from '../principal.js';
import { parseCommand } from './clients/parse-command.js';
import { Creation } from './creation.js';
import { Archive } from './kept/archive.js';
import { AtRest } from './kept/at-rest.js';
import { Keeping } from './kept/keeping.js';
import { Engines } from './life/engines.js';
import { Sleep } from './life/sleep.js';
import { OperatorLog } from './operator-log.js';
import { Places } from './places.js';
import { Session } from './session.js';
import { SessionPages } from './session-pages.js';
import { infoOf, SessionTable, visibleEntry } from './session-table.js';
import { SharedSessions } from './shared-sessions.js';
import { Telling } from './telling.js';
/** Every session of a gateway, by id. */
export class SessionRegistry {
    /** Whether every session that got an engine is known to the next process, too. */
    outlast;
    engines;
    #options;
    #world;
    #table;
    #listeners;
    #sleep;
    #archive;
    #keeping;
    #operatorLog;
    #places;
    #telling;
    #pages;
    /** Absent: all sessions are in the table. */
    #atRest;
    /** Absent: one process has all sessions. */
    shared;
    #creation;
    #draining = false;
    constructor(options) {
        this.#options = options;
        this.#operatorLog = new OperatorLog(options);
        const { logger, clock, journal, executions } = options;
        this.#keeping = new Keeping(journal, { ...options, onError: options.parking.onError });
        this.outlast = this.#keeping.hasAll;
        this.#listeners = new Listeners((error, event) => logger.error({ err: toError(error), event }, 'an observer of the registry failed'));
        this.#places = new Places(options.maxSessions, () => this.#listeners.emit('room', {}));
        const mailbox = new KeyedLock();
        this.#table = new SessionTable(clock, this.#places, mailbox, options.sharing);
        this.#telling = new Telling({ clock, operatorLog: this.#operatorLog, listeners: this.#listeners });
        const shared = { ...options, keeping: this.#keeping, table: this.#table, telling: this.#telling };
        this.#sleep = new Sleep({
            ...{ ...shared, ...options.parking, mailbox },
            load: (id, whole) => this.#archive.load(id, whole),
            remove: (session, reason) => this.#closeAndRemove(session, reason),
        });
        this.#archive = new Archive({
            ...{ ...shared, sleep: this.#sleep },
            build: (init, left) => new Session(this.#world, init, left),
            remove: (id, reason) => this.close(id, reason),
            onTerminal: (id, endedAt) => this.#retainUntil(id, endedAt),
        });
        const { sharing } = options;
        this.#atRest =
            this.#keeping.atRest &&
                new AtRest(this.#keeping.atRest, {
                    ...shared,
                    enter: (left) => this.#archive.enterEnded(left),
                    takeUp: (left) => this.#archive.takeUp(left),
                    forget: (id) => this.#forget(id),
                    onLeft: (id) => this.#sleep.forget(id),
                    onMissed: async (left) => this.shared?.onMissed(left),
                    isElsewhere: sharing && ((id) => this.shared.isElsewhere(id)),
                });
        const enterEnded = (left) => this.#atRest?.enter(left);
        const lookForDue = () => this.#atRest?.lookForDue();
        const took = { archive: this.#archive, sleep: this.#sleep, enterEnded, lookForDue };
        this.shared = sharing && new SharedSessions({ ...shared, ...took, sharing });
        this.#pages = new SessionPages(this.#table, this.#atRest, sharing !== undefined);
        executions.serve(this.#sleep, this.#atRest && ((executionId) => this.#sessionOf(executionId)));
        this.engines = new Engines({ ...shared, sleep: this.#sleep });
        this.#world = {
            ...options,
            keeping: this.#keeping,
            sleep: this.#sleep,
            operatorLog: this.#operatorLog,
            observer: this.#telling,
            sessionOf: async (executionId) => this.shared ? this.shared.hasExecution(executionId) : this.#atRest?.sessionOf(executionId),
            onEnded: (session) => this.#onEnded(session),
        };
        this.#creation = new Creation({
            ...{ options, world: this.#world, places: this.#places, keeping: this.#keeping, atRest: this.#atRest },
            isDraining: () => this.#draining,
            register: (session, principal, told) => this.#register(session, principal, told),
            remove: (id) => this.#remove(id),
        });
    }
    /**
     * Creates a session and starts its engine.
     * @returns its SessionInfo; a failure of the engine to start is told by events
     * @throws GatewayError; nothing is registered then
     */
    create(request, options = {}) {
        return this.#creation.create(request, options);
    }
    #register(session, principal, told) {
        this.#table.add(session);
        this.#operatorLog.onCreated(session, principal);
        // so that nobody is told of it before it is durable
        session.touch();
        if (told)
            session.tell(told);
        if (!this.#listeners.has('session_created'))
            return;
        this.#telling.tell(session, 'session_created', { session: session.info() });
    }
    /** Keeps a place for a session to be created in; undefined while there is none: `room` tells when there is one. */
    reserve() {
        return this.#draining ? undefined : this.#places.reserve();
    }
    /** Every session, newest first. */
    list = () => this.#pages.all();
    /** Those that have not ended, newest first. */
    unended() {
        return this.#table.unended();
    }
    /** One page of the sessions that a caller may see, newest first. */
    page(query, principal) {
        return this.#pages.page(query, principal);
    }
    /** A session as it is now; one that another process has, as it was last written. */
    async get(id) {
        const entry = this.#table.get(id) ?? (await this.#atRest?.find(id));
        if (entry || !this.shared)
            return entry && infoOf(entry);
        const left = await this.#keeping.get(id);
        return left && { ...left.state.info, lastSeq: left.lastSeq };
    }
    /** Whether it is in memory, or parked: nothing has to be asked about it. */
    has(id) {
        return this.#table.get(id) !== undefined;
    }
    /** The same, at once, of a session that is in memory, or parked. */
    here(id) {
        const entry = this.#table.get(id);
        return entry && infoOf(entry);
    }
    /** A request that waits, and its session; at once, of a session that this process has. */
    waitingRequest = (id, requestId) => this.#table.waitingRequest(id, requestId);
    /** @throws SG_ERR_SESSION_NOT_FOUND, the same for one that is not there and one that is not the caller's */
    async visibleInfo(id, principal) {
        return infoOf(visibleEntry(this.#table.get(id) ?? (await this.#atRest?.find(id)), principal));
    }
    /**
     * The session itself, if this caller may see it; a parked one is read into memory for it.
     * @throws SG_ERR_SESSION_NOT_FOUND · SG_ERR_STORE_UNAVAILABLE
     */
    async open(id, principal, patience) {
        const entry = visibleEntry(this.#table.get(id) ?? (await this.#atRest?.find(id, patience)), principal);
        this.#table.onLook(entry);
        return this.#found(entry, patience);
    }
    async #load({ id, session, storedStatus }, patience) {
        if (session)
            return session;
        const load = () => this.#archive.load(id, undefined, patience);
        return storedStatus === 'parked' ? this.#sleep.inTurn(id, load) : load();
    }
    /** Gives a session a title, or with null the derived one back. */
    async rename(id, title, principal) {
        const patience = new Patience(this.#options.clock);
        const session = await this.open(id, principal, patience);
        await this.#sleep.unfrozen(session);
        await session.accept({ type: 'title', title }, undefined, patience);
        return session.info();
    }
    /**
     * Answers a permission request, of a parked session too; first answer wins.
     * @throws SG_ERR_SESSION_NOT_FOUND · SG_ERR_PERMISSION_NOT_FOUND
     */
    async resolvePermission(id, requestId, answer, principal, { takenKey, channel = 'rest' } = {}) {
        const patience = new Patience(this.#options.clock, takenKey?.waitedMs);
        const session = await this.open(id, principal, patience);
        const key = takenKey && keptWith(takenKey, 'answer', requestId);
        await session.answerPermission(requestId, answer, { key, by: answeredBy(principal, channel), patience });
    }
    /**
     * Closes a session and removes it.
     * @param reason default `server`: the host's own decision
     * @param principal default: one that may see every session
     * @returns its final SessionInfo
     * @throws SG_ERR_SESSION_NOT_FOUND · SG_ERR_STORE_UNAVAILABLE
     */
    async close(id, reason = 'server', principal = UNLIMITED) {
        const entry = visibleEntry(this.#table.get(id) ?? (await this.#atRest?.find(id)), principal);
        if (this.#table.isParked(id) || this.#sleep.isBusy(id))
            return this.#sleep.remove(id, reason);
        return this.#table.holding(async () => this.#closeAndRemove(entry.session ?? (await this.#found(entry)), reason));
    }
    async #found(entry, patience) {
        const session = await this.#table.holding(() => this.#load(entry, patience));
        if (!session)
            throw new GatewayError('SG_ERR_SESSION_NOT_FOUND');
        return session;
    }
    async #closeAndRemove(session, reason) {
        const { id } = session;
        if (this.#keeping.hasAll || session.midTurn)
            await this.#removeKept(id, reason).catch((error) => {
                // it stays, and what it would have done meanwhile it does now
                this.#sleep.consider(session);
                throw error;
            });
        if (!this.#table.get(id))
            throw new GatewayError('SG_ERR_SESSION_NOT_FOUND');
        if (session.ended)
            session.clients.disconnectAll(CLOSE.sessionRemoved);
        // ended before it is taken out, so that its last events find it; taken out before anything is waited for
        const ending = session.close(reason);
        this.#remove(id);
        await ending;
        // no client is shown more of it
        return session.info(session.log.headSeq);
    }
    /** Durable before it is said. @throws SG_ERR_STORE_UNAVAILABLE; the session stays as it is then */
    async #removeKept(id, reason) {
        const session = this.#table.resident(id);
        if (reason === undefined)
            await this.#keeping.erase(id, session);
        else
            await this.#keeping.remove(id, session, { reason, ending: session && this.#telling.endingOf(session, reason) });
        const readMeanwhile = this.#table.resident(id);
        if (readMeanwhile !== session)
            await this.#keeping.erase(id, readMeanwhile);
    }
    /**
     * Ends a session, which stays listed unless it is parked; one that is not there has ended.
     * @param reason default `server`: the host's own decision
     */
    async end(id, reason = 'server') {
        const entry = this.#table.get(id) ?? (await this.#atRest?.find(id));
        if (!entry)
            return;
        if (this.#table.isParked(id) || entry.session?.frozen)
            await this.close(id, reason);
        else
            await (entry.session ?? (await this.#load(entry)))?.close(reason);
    }
    /** Carries out a command on a session, as a client's would be. */
    async send(id, command) {
        await (await this.open(id, UNLIMITED)).handle(parseCommand(command));
    }
    /** Says who has what is told of sessions kept with it; before `adopt`. */
    observe(observers) {
        this.#telling.observe(observers);
    }
    /**
     * @param isFor which sessions' events it wants; default: all of them
     * @returns a function that ends the observation; a listener that throws is logged and breaks nothing
     */
    on(event, listener, isFor) {
        return this.#listeners.on(event, listener, isFor);
    }
    /** Whether a session that has not ended goes on from an agent's own session, or is about to. */
    async isContinued(sdkSessionId) {
        // the table last: what is taken up meanwhile is there
        return ((await this.#atRest?.continues(sdkSessionId)) ?? false) || this.#table.isContinued(sdkSessionId);
    }
    /** Whether an engine is at work in a session. */
    serves(id) {
        return this.#table.resident(id)?.live ?? false;
    }
    /** How many sessions there are, by what they are; for metrics. */
    count() {
        const { live, parked, ended } = this.#table.count();
        const { counts } = this.#atRest ?? {};
        if (!counts)
            return { live, parked, ended };
        return { live: live + counts.idle, parked: parked + counts.parked, ended: ended + counts.closed + counts.failed };
    }
    /** Takes up what an earlier process left, in the order in which it was created. @throws what the journal throws */
    async adopt() {
        const goOn = await this.#atRest?.open();
        await this.#archive.adoptAll();
        goOn?.();
    }
    async #sessionOf(executionId) {
        const id = await (this.shared ?? this.#atRest)?.sessionOf(executionId);
        return id !== undefined && (this.#table.get(id) ?? (await this.#atRest?.find(id))) ? id : undefined;
    }
    /** Whether a caller may see a session. */
    async isVisible(id, principal) {
        const entry = this.#table.get(id) ?? (await this.#atRest?.find(id));
        return entry !== undefined && visible(principal, entry.profile);
    }
    /** No more creates; every stream is told to come back elsewhere or later. */
    drain(close = CLOSE.goingAway) {
        this.#draining = true;
        for (const session of this.#table.all())
            session.clients.disconnectAll(close);
    }
    /** Parks what waits and ends what nothing is kept of to go on from; resolves when the engines are gone. */
    async endAll() {
        this.#draining = true;
        await this.#sleep.parkAll(this.#table.all());
        await Promise.all(this.#table.all().map((session) => session.engine.sleepNow()));
        this.#table.cancelRetentions();
        this.#atRest?.stop();
    }
    /** Resolves when all that happened to a session so far is durable. @throws SG_ERR_STORE_UNAVAILABLE */
    async durable(id) {
        await this.#table.resident(id)?.durable();
    }
    /** Resolves when all that happened to a session so far is durable and told, however long that takes, or when it is gone. */
    told(id) {
        const session = this.#table.resident(id);
        return new Promise((resolve) => (session ? session.whenDurable(resolve) : resolve()));
    }
    /** Whether what happens to sessions can be written down. */
    get isWritable() {
        return this.#keeping.isWritable;
    }
    /** Lets go of what the journal holds, at the gateway's end. */
    closeJournal() {
        return this.#keeping.close();
    }
    #remove(id) {
        const session = this.#table.resident(id);
        if (!this.#table.remove(id))
            return;
        this.#sleep.forget(id);
        this.#options.executions.forget(id);
        this.#telling.onRemoved(id);
        if (!this.#listeners.has('session_removed'))
            return;
        const tell = () => this.#listeners.emit('session_removed', { sessionId: id });
        if (session)
            session.whenDurable(tell);
        else
            tell();
    }
    #onEnded(session) {
        this.#sleep.onEnded(session);
        this.#table.onEngine(session, false);
        this.#retainUntil(session.id, session.facts.lastActivityAt);
    }
    /** A terminal session goes when its time is over. */
    #retainUntil(id, endedAt) {
        const { sessionRetentionMs, clock } = this.#options;
        const entry = this.#table.get(id);
        if (!entry || sessionRetentionMs === undefined)
            return;
        entry.retention = clock.after(endedAt + sessionRetentionMs - clock.now(), () => {
            entry.session?.clients.disconnectAll(CLOSE.sessionRemoved);
            // reported; tried again after another while
            this.#forget(id).catch(() => this.#retainUntil(id, clock.now()));
        });
    }
    /** @throws SG_ERR_STORE_UNAVAILABLE; it stays then */
    async #forget(id) {
        await this.#table.holding(async () => {
            if (this.#keeping.hasAll)
                await this.#removeKept(id);
            this.#remove(id);
        });
    }
}
//# sourceMappingURL=registry.js.map