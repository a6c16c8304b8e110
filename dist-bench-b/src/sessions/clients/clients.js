import { PROTOCOL_VERSION } from '../../../schemas/frames.js';
import { GatewayError } from '../../errors.js';
import { Attachment } from './attachment.js';
import { ReaderPressure } from './reader-pressure.js';
/** The clients of one session: each a cursor over its log. */
export class Clients {
    #source;
    #max;
    #attachments;
    #scheduled = false;
    /** Seq of an event that is sent as soon as it may be shown. */
    #urgentSeq;
    /** Such an event was sent in this turn: others go with the rest of it. */
    #hurried = false;
    #pressure;
    /** Epoch milliseconds of the last time that the last client left. */
    leftAt;
    constructor(source, max) {
        this.#source = source;
        this.#max = max;
    }
    get count() {
        return this.#attachments?.size ?? 0;
    }
    /** Whether one of them, or one that is going, may still read from a slice of the log. */
    get hold() {
        for (const attachment of this.#attachments ?? [])
            if (attachment.holds)
                return true;
        return false;
    }
    /** Present while all of them are so far behind that an engine which goes on would run away from them. */
    get drained() {
        return this.#pressure?.drained;
    }
    /** They are not waited for any longer. */
    relieve() {
        this.#pressure?.takeOff();
    }
    /** @throws SG_ERR_TOO_MANY at `maxSocketsPerSession` */
    assertRoom() {
        if (this.count >= this.#max)
            throw new GatewayError('SG_ERR_TOO_MANY', {
                detail: 'This session has as many clients as it may.',
                retryAfterS: 5,
            });
    }
    /** Lets a client in: `attached` first, then the log from its place, then live. `pending` frames follow the replay. */
    attach(sink, position, pending) {
        this.assertRoom();
        const frame = this.attachedFrame(position);
        frame.session.attachedClients++;
        const attachment = new Attachment(this.#source, sink, frame);
        this.#attachments ??= new Set();
        this.#attachments.add(attachment);
        this.#pressure?.join(attachment);
        for (const later of pending)
            attachment.send(later);
        return attachment;
    }
    detach(attachment, now) {
        attachment.detach();
        this.#pressure?.leave(attachment);
        if (this.#attachments?.delete(attachment) && this.#attachments.size === 0)
            this.leftAt = now;
    }
    /** The log has grown, or more of it may be shown. */
    onShown() {
        if (this.count === 0)
            return;
        this.#schedule();
        if (this.#urgentSeq === undefined || this.#urgentSeq > this.#source.log.visibleSeq)
            return;
        this.#urgentSeq = undefined;
        if (this.#hurried)
            return;
        this.#hurried = true;
        this.#pump();
    }
    /** An event that is not to wait for the end of the turn in which it may be shown, nor for what observers do about it. */
    hurry(seq) {
        if (this.count > 0)
            this.#urgentSeq = seq;
    }
    /** Once a message is whole and can be seen, how it was typed leaves the log, but not before who is here was sent it. */
    dropTyping(uuid) {
        const { log } = this.#source;
        if (!log.hasDeltas(uuid))
            return;
        const drop = () => log.dropDeltas(uuid);
        if (this.count > 0)
            setImmediate(() => setImmediate(drop));
        else
            drop();
    }
    /** One look at the end of this turn for all of them, however many events it brings: they are many. */
    #schedule() {
        if (this.#scheduled)
            return;
        this.#scheduled = true;
        setImmediate(pumpAll, this);
    }
    pumpAll() {
        this.#scheduled = false;
        this.#hurried = false;
        this.#pump();
    }
    #pump() {
        for (const attachment of this.#attachments ?? [])
            attachment.pump();
        if (this.#attachments && this.#source.log.mayOutrun)
            this.#look(this.#attachments);
    }
    #look(attachments) {
        const { log, world } = this.#source;
        this.#pressure ??= new ReaderPressure(world.clock, log);
        this.#pressure.look(attachments);
    }
    broadcast(frame, except) {
        for (const attachment of this.#attachments ?? [])
            if (attachment !== except)
                attachment.send(frame);
    }
    /** Ends every client's stream, whatever it still had to read. */
    disconnectAll(close) {
        for (const attachment of this.#attachments ?? [])
            attachment.close(close);
    }
    /** The snapshot of this moment and where the replay begins. */
    attachedFrame(position) {
        const { log } = this.#source;
        const snapshot = this.#source.snapshot();
        const { replayingFrom, truncated } = this.resolve(position);
        return {
            type: 'attached',
            protocolVersion: PROTOCOL_VERSION,
            session: snapshot.session,
            epoch: log.epoch,
            replayingFrom,
            oldestSeq: log.oldestSeq,
            truncated,
            pendingPermissions: snapshot.pendingPermissions,
            pendingExecutions: snapshot.pendingExecutions,
        };
    }
    /** Answers honestly whether the log can go on from a client's place. */
    resolve({ afterSeq = 0, epoch }) {
        const { oldestSeq, visibleSeq, epoch: own } = this.#source.log;
        const truncated = (epoch !== undefined && epoch !== own) || afterSeq < oldestSeq - 1 || afterSeq > visibleSeq;
        return { replayingFrom: truncated ? oldestSeq - 1 : afterSeq, truncated };
    }
}
const pumpAll = (clients) => clients.pumpAll();
//# sourceMappingURL=clients.js.map