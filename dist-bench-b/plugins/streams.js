import { CLOSE } from '../schemas/close-codes.js';
const BEAT_MS = 25_000;
const CLOSE_GRACE_MS = 2_000;
/** One client of a stream, whatever carries it: known to all streams while it is there, and let in anew at every beat. */
export class StreamClient {
    wire;
    request;
    parts;
    /** What it is told once the node may speak again. */
    #untold = [];
    constructor(open, request, parts) {
        this.request = request;
        this.parts = parts;
        this.wire = open({
            onGone: () => {
                parts.streams.delete(this);
                this.onGone();
            },
            onDrain: () => {
                if (this.#untold.length === 0)
                    this.onDrain();
            },
            onMessage: (data, isBinary) => this.onMessage(data, isBinary),
        });
        parts.streams.add(this);
    }
    onDrain() { }
    onMessage(_data, _isBinary) { }
    /** As `Wire.write`; nothing is told while the node may not speak. */
    tell(parts, epoch) {
        if (!this.parts.streams.silent && this.#untold.length === 0)
            return this.wire.write(parts, epoch);
        this.#untold.push({ parts, epoch });
        return false;
    }
    /** Tells what was not told. */
    speakAgain() {
        const untold = this.#untold.splice(0);
        if (untold.length === 0)
            return;
        let taken = true;
        for (const { parts, epoch } of untold)
            taken = this.wire.write(parts, epoch);
        if (taken)
            this.onDrain();
    }
    /** Whether it has not written all of the bytes that it was given; they must not change until then. */
    get holds() {
        return this.#untold.length > 0 || this.wire.holds;
    }
    close(close) {
        this.wire.close(close);
    }
    /** Ends what it is told, and tells why. */
    cutOff(close) {
        this.close(close);
    }
    /** What it is told goes on at another node. */
    moveOn() {
        this.cutOff(CLOSE.sessionMoved);
    }
    /** Ends the connection without ceremony. */
    terminate() {
        this.wire.terminate();
    }
    /** Called every 25 s: shows that the server is there, and finds out whether the client is. */
    beat() {
        if (this.wire.alive())
            void this.stillWelcome();
        else
            this.terminate();
    }
    /** Authenticates the client again, as every request is. @returns false when it was told to go */
    async stillWelcome() {
        try {
            if (this.admits(await this.parts.identify(this.request)))
                return true;
        }
        catch {
            // told by the close code
        }
        this.cutOff(CLOSE.unauthenticated);
        return false;
    }
}
/** Every open stream of one gateway: their heartbeat, and their end at shutdown. */
export class Streams {
    #open = new Set();
    #gateway;
    #timer;
    #onEmpty;
    constructor(gateway) {
        this.#gateway = gateway;
        const { standing } = gateway;
        standing?.listeners.on('thawed', () => this.#speakAgain());
        for (const event of ['moved', 'lost'])
            standing?.listeners.on(event, () => {
                for (const stream of this.#open)
                    stream.moveOn();
            });
    }
    /** Whether nobody is told anything now. */
    get silent() {
        return this.#gateway.standing?.stands ?? false;
    }
    /** Present while nobody is listened to; resolves when that is over. */
    get listensAgain() {
        return this.silent ? this.#gateway.standing?.goesOn : undefined;
    }
    #speakAgain() {
        // it may have been for a moment only
        if (!this.silent)
            for (const stream of this.#open)
                stream.speakAgain();
    }
    get size() {
        return this.#open.size;
    }
    add(stream) {
        this.#open.add(stream);
        if (this.#gateway.standing?.isLost)
            stream.moveOn();
        this.#timer ??= this.#gateway.clock.after(BEAT_MS, () => this.#beat());
    }
    delete(stream) {
        this.#open.delete(stream);
        if (this.#open.size === 0)
            this.#onEmpty?.();
    }
    /** Somebody is at the other end of a stream, and not only a page. */
    onUsed({ signInId }) {
        if (signInId !== undefined)
            this.#gateway.signIns?.use(signInId);
    }
    /** Lets in anew, or not, those whose requests are meant. */
    judge(isMeant) {
        for (const stream of this.#open)
            if (isMeant(stream.request))
                void stream.stillWelcome();
    }
    #beat() {
        for (const stream of this.#open)
            stream.beat();
        this.#timer = this.#open.size > 0 ? this.#gateway.clock.after(BEAT_MS, () => this.#beat()) : undefined;
    }
    /** Tells all to come back later; a client that does not react is cut off. */
    async closeAll() {
        this.#timer?.cancel();
        for (const stream of this.#open)
            stream.close(CLOSE.goingAway);
        if (this.#open.size > 0) {
            await new Promise((resolve) => {
                const timer = this.#gateway.clock.after(CLOSE_GRACE_MS, resolve);
                this.#onEmpty = () => {
                    timer.cancel();
                    resolve();
                };
            });
        }
        for (const stream of this.#open)
            stream.terminate();
    }
}
//# sourceMappingURL=streams.js.map