import { DEFAULT_AGENT } from '../engines/cli/agent-table.js';
import { EVENT_TYPES } from '../engines/event-types.js';
/** Numbers that a session may still use while it is being removed. */
const ENDING_AHEAD = 1_000;
/** Tells of what happens to sessions, once it is durable: observers in this process, and whoever is notified outside. */
export class Telling {
    #parts;
    #observers = {};
    /** What the runs of jobs told that is not durable yet, by session. */
    #untold = new Map();
    constructor(parts) {
        this.#parts = parts;
    }
    observe(observers) {
        this.#observers = observers;
    }
    onEvent(session, body, seq, ts) {
        const { listeners, operatorLog } = this.#parts;
        operatorLog.onEvent(session, body, seq);
        let info;
        // all who are told of an event are told of the session as it is then
        const infoThen = () => {
            info ??= session.info(seq);
            return info;
        };
        if (EVENT_TYPES[body.type].isMoment)
            this.#onMoment(session, body, { seq, ts }, infoThen);
        if (!listeners.has('session_event', session))
            return;
        const event = { seq, ts, ...body };
        event.seq = seq;
        event.ts = ts;
        const told = { sessionId: session.id, event, session: infoThen() };
        if (session.held)
            told.held = true;
        // what is not written down is told at once
        if (session.jobId === undefined || !session.writer)
            this.tell(session, 'session_event', told);
        else
            this.#tellOfRun(session, told);
    }
    #onMoment(session, body, place, info) {
        const { seq, ts } = place;
        const { notifier, inbox, usage } = this.#observers;
        if (body.type === 'permission_requested')
            this.#onAsked(session, body.request, seq, ts);
        else if (body.type === 'permission_resolved')
            inbox?.onResolved(session.id, body.requestId);
        const { ending } = session;
        // told ahead, and kept with the removal; what waited for an answer is told with it
        const isToldAhead = ending !== undefined && (ending.isKept || session.writer?.removed);
        if (isToldAhead && body.type === 'session_closed')
            session.whenDurable(ending.send);
        else if (!isToldAhead || body.type !== 'permission_resolved') {
            const notification = notifier?.notify(body, place, info);
            if (notification)
                session.tell(notification);
        }
        const counted = usage?.count(body, ts, new Counted(session));
        if (counted)
            session.tell(counted);
    }
    /** The queue may have the end of a job written with the end of its turn, before that is told to anybody. */
    #tellOfRun(session, told) {
        const { listeners } = this.#parts;
        const { id: sessionId } = session;
        const untold = this.#untold.get(sessionId) ?? [];
        untold.push(told);
        this.#untold.set(sessionId, untold);
        session.whenDurable(() => {
            untold.shift();
            if (untold.length === 0)
                this.#untold.delete(sessionId);
            listeners.emit('session_event', told, session);
        });
        const { onTurnOver } = this.#observers;
        if (!onTurnOver || told.event.type !== 'turn_completed' || untold.length === 0)
            return;
        const all = [...untold];
        // not inside the change that it is told of
        queueMicrotask(() => onTurnOver(sessionId, all));
    }
    #onAsked(session, request, seq, since) {
        const { inbox } = this.#observers;
        if (!inbox)
            return;
        const place = { seq, since, order: inbox.nextOrder(since) };
        const { id: sessionId, profile, permissions } = session;
        permissions.place(request.id, place);
        session.whenDurable(() => {
            if (permissions.get(request.id))
                inbox.onWaiting({ sessionId, profile: profile.info.name, request, place });
        });
    }
    /** What an earlier process left parked waits on, but for what was answered meanwhile. */
    onAdopted({ id: sessionId, profile, state, news = [] }) {
        const { inbox } = this.#observers;
        const { info, midTurn, permissions = [], asked = {} } = state;
        if (!inbox || !midTurn)
            return;
        const answered = new Set([...news, ...midTurn.decisions].flatMap((one) => ('requestId' in one ? one.requestId : [])));
        for (const request of permissions) {
            if (answered.has(request.id) || !midTurn.waits.includes(request.id))
                continue;
            const { since } = midTurn;
            const place = asked[request.id] ?? { seq: info.lastSeq, since, order: inbox.nextOrder(since) };
            inbox.onWaiting({ sessionId, profile, request, place });
        }
    }
    /** A parked session was told something; its log tells that when it has an engine again. */
    onNews(sessionId, news) {
        for (const one of news)
            if (one.type === 'answer')
                this.#observers.inbox?.onResolved(sessionId, one.requestId);
    }
    onOauth(session) {
        this.#parts.operatorLog.onOauth(session);
    }
    onHeld(session) {
        // a session that waits for an approval alone waits for no execution
        const executionId = session.executions.list()[0]?.executionId;
        this.tell(session, 'session_held', { sessionId: session.id, executionId });
    }
    onRestored({ id, pendingPermissions }) {
        if (pendingPermissions.length === 0)
            return;
        this.#observers.notifier?.onRestored(id, pendingPermissions.map((request) => request.id));
    }
    onRemoved(sessionId) {
        this.#untold.delete(sessionId);
        this.#observers.inbox?.onRemoved(sessionId);
    }
    /** Nobody hears of what a crash could take back. */
    tell(session, event, payload) {
        session.whenDurable(() => this.#parts.listeners.emit(event, payload, session));
    }
    /** What is to be told of a session's end, for the removal to keep: in case the process dies before the session has ended. */
    endingOf(session, reason) {
        const { notifier } = this.#observers;
        if (!notifier || session.ended)
            return undefined;
        const { closingSeq = 0, log } = session;
        const place = {
            seq: closingSeq > log.lastSeq ? closingSeq : log.lastSeq + ENDING_AHEAD,
            ts: this.#parts.clock.now(),
        };
        const info = () => ({ ...session.info(place.seq), status: 'closed', pendingPermissions: 0 });
        const planned = notifier.notify({ type: 'session_closed', reason }, place, info);
        // told once, by whichever process
        session.ending = planned;
        session.closingSeq = place.seq;
        return planned;
    }
}
/** What usage is counted of a session; what it does not ask for is not looked up. */
class Counted {
    #session;
    constructor(session) {
        this.#session = session;
    }
    get profile() {
        return this.#session.profile.info.name;
    }
    get agent() {
        return agentOf(this.#session.profile.info);
    }
    get person() {
        return this.#session.askedBy ?? '';
    }
    get jobId() {
        return this.#session.jobId;
    }
    takeCost() {
        return this.#session.facts.takeCost();
    }
    waitedSince(requestId) {
        return this.#session.permissions.waitedSince(requestId);
    }
}
const agentOf = ({ engine, agent }) => (engine === 'cli' ? (agent ?? DEFAULT_AGENT) : engine);
//# sourceMappingURL=telling.js.map