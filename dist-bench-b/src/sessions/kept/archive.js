import { toError } from '../../errors.js';
import { asleepOf, isCutOff, isMidTurn } from './asleep.js';
import { isTerminal, orderOf } from './journal.js';
import { isForEngine } from './news.js';
const RESTARTED = 'The gateway was restarted while this was in progress.';
/** The sessions that are in the journal and not in memory. */
export class Archive {
    #parts;
    constructor(parts) {
        this.#parts = parts;
    }
    /** Takes up what an earlier process left, in the order in which it was created. @throws what the journal throws */
    async adoptAll() {
        const left = await this.#parts.keeping.list();
        await Promise.all(left.sort((a, b) => orderOf(a) - orderOf(b)).map((session) => this.#adopt(session)));
    }
    /** Takes up one that is this process's by now; never rejects. */
    async takeUp(left) {
        if (!this.#parts.table.get(left.id))
            await this.#adopt(left);
    }
    /** Lists one that has ended and that somebody asks for. */
    enterEnded(left) {
        const { table, onTerminal } = this.#parts;
        const { id, profile, reservedSeq, lastSeq, state } = left;
        table.onLook(table.adopt(id, orderOf(left), profile, { ...state.info, lastSeq }, reservedSeq));
        onTerminal(id, state.info.lastActivityAt);
    }
    /** Never rejects. */
    async #adopt(left) {
        const { executions, logger, sleep, keeping, remove } = this.#parts;
        const { id, state, lastSeq, news = [] } = left;
        const removal = news.find((one) => one.type === 'removal');
        if (removal) {
            this.#enter(left, { ...(isMidTurn(left) ? parkedInfo(left) : state.info), lastSeq });
            await remove(id, removal.reason).catch((error) => keeping.report(error, { sessionId: id, phase: 'adopt' }));
            return;
        }
        if (isMidTurn(left)) {
            this.#enter(left, { ...parkedInfo(left), lastSeq });
            try {
                sleep.adopt(left);
            }
            catch (error) {
                keeping.report(error, { sessionId: id, phase: 'adopt' });
            }
            return;
        }
        this.#enter(left, { ...state.info, lastSeq });
        // what nobody settled is settled below, as cut off
        const waitedFor = state.executions?.map(({ executionId }) => executionId) ?? [];
        for (const executionId of [...(state.settled ?? []), ...waitedFor])
            executions.remember(id, executionId);
        if (isTerminal(state.info) || !isCutOff(left))
            return;
        try {
            const session = await this.load(id);
            await session?.durable();
        }
        catch (error) {
            logger.error({ sessionId: id, err: toError(error) }, 'a session could not be taken up as it was left');
        }
    }
    /** Lists a session that stays in the journal until it is needed. */
    #enter(left, info) {
        const { table, telling, onTerminal } = this.#parts;
        const { id, profile, reservedSeq } = left;
        telling.onAdopted(left);
        const order = left.sleeps ? orderOf(left) : table.orderAgain(orderOf(left));
        const entry = table.adopt(id, order, profile, info, reservedSeq);
        entry.away = this.#awayOf(left);
        entry.stays = entry.away === undefined && !left.sleeps;
        entry.isDue = left.news !== undefined;
        if (!entry.stays)
            table.unloadLater(id);
        else if (isTerminal(info))
            onTerminal(id, info.lastActivityAt);
        else
            this.#letRest(left, entry);
    }
    /** Has one found by the journal from now on that nobody has to work with: its process died while an engine served it. */
    #letRest({ id, state, news }, entry) {
        const { keeping, table } = this.#parts;
        const known = { ...state, order: entry.order };
        const asleep = news || !keeping.atRest ? undefined : asleepOf(known);
        if (!asleep)
            return;
        keeping.journal.write({ id, state: known, asleep }).then(() => {
            entry.stays = false;
            table.unloadLater(id);
        }, (error) => keeping.report(error, { sessionId: id, phase: 'adopt' }));
    }
    #awayOf({ state: { home } }) {
        const { sharing } = this.#parts;
        return sharing?.homes && home !== sharing.node ? home : undefined;
    }
    /** Reads a session into memory. @param known what the journal has of it @throws SG_ERR_STORE_UNAVAILABLE */
    load = async (id, known, patience) => {
        const { keeping, table, telling, sleep, profileInfo, build } = this.#parts;
        if (table.resident(id))
            return table.resident(id);
        const whole = known ?? (await keeping.get(id, patience));
        const place = table.get(id);
        const resident = table.resident(id);
        // somebody else was faster, or has removed it
        if (resident || !whole || !place)
            return resident;
        const { lastSeq = whole.reservedSeq } = place;
        const { hostTitle, info } = whole.state;
        const { title: _asked, ...asked } = whole.config;
        const config = hostTitle === undefined ? asked : { ...asked, title: hostTitle };
        const shown = profileInfo(whole.profile) ?? { name: whole.profile, engine: info.engine };
        const profile = { info: shown, generation: whole.generation };
        if (!isMidTurn(whole))
            delete whole.state.midTurn;
        const session = build({ id, request: config, config, jobId: info.jobId, profile }, { whole, lastSeq });
        table.hold(session);
        telling.onRestored(session);
        const { news = [] } = whole;
        if (isMidTurn(whole))
            session.takeUp(news.filter((one) => !isForEngine(one)));
        else if (!isTerminal(info) && isCutOff(whole)) {
            session.takeUp(news);
            session.turnDesk.cutOff(RESTARTED);
            if (session.busy && place.away === undefined && !news.some(({ type }) => type === 'removal'))
                void sleep.goOn(session);
        }
        return session;
    };
}
function parkedInfo({ state: { info, midTurn, executions = [], permissions = [] } }) {
    const isKnown = (id) => midTurn.waits.includes(id);
    const waits = executions.filter(({ executionId }) => isKnown(executionId));
    const asks = permissions.filter(({ id }) => isKnown(id));
    const parked = { since: midTurn.since, executions: waits, ...(asks.length > 0 && { permissions: asks }) };
    return { ...info, status: 'parked', pendingPermissions: asks.length, parked };
}
//# sourceMappingURL=archive.js.map