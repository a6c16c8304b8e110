/** A batch takes whole turns until it has about so many calls. */
const CALLS_PER_BATCH = 500;
/**
 * Calls on their way to a database. Those of one turn of the event loop travel together; while a batch is under way, the next one
 * gathers. So the disk is asked to sync once for all who wait, at once when it is idle.
 */
export class CallQueue {
    #send;
    /** Why nothing is taken, when nothing is. */
    #refusal;
    #turn = [];
    /** To be done at the end of the turn. */
    #lastWork = [];
    #turns = [];
    #underWay = [];
    #onIdle = () => { };
    /** @param send is to call `next` once each call of the batch has its answer */
    constructor(send, refusal) {
        this.#send = send;
        this.#refusal = refusal;
    }
    /** Resolves after the commit. Rejects with a StorageError when nothing of it was done. */
    call = (name, ...args) => new Promise((resolve, reject) => {
        const refusal = this.#refusal();
        if (refusal)
            return reject(refusal);
        this.#beginTurn();
        this.#turn.push({ call: [name, ...args], resolve, reject });
    });
    /** Runs `work` when this turn of the event loop is over: what it calls goes with the turn's calls. */
    atTurnsEnd = (work) => {
        this.#beginTurn();
        this.#lastWork.push(work);
    };
    get underWay() {
        return this.#underWay;
    }
    /** The batch that was under way is answered. */
    next() {
        this.#underWay = [];
        this.#sendNext();
        if (!this.#isBusy)
            this.#onIdle();
    }
    /** What was not sent yet is not going to be. */
    refuse(error) {
        for (const { reject } of [...this.#turns.flat(), ...this.#turn])
            reject(error);
        this.#turn = [];
        this.#turns = [];
        if (!this.#isBusy)
            this.#onIdle();
    }
    /** Resolves when everything that was asked for is answered. */
    async idle() {
        if (this.#isBusy)
            await new Promise((resolve) => (this.#onIdle = resolve));
    }
    get #isBusy() {
        return this.#lastWork.length + this.#turn.length + this.#turns.length + this.#underWay.length > 0;
    }
    #beginTurn() {
        if (this.#turn.length + this.#lastWork.length === 0)
            setImmediate(() => this.#endTurn());
    }
    #endTurn() {
        // while it is in the list no other turn begins
        for (const work of this.#lastWork)
            work();
        this.#lastWork = [];
        if (this.#turn.length > 0)
            this.#turns.push(this.#turn);
        this.#turn = [];
        this.#sendNext();
        if (!this.#isBusy)
            this.#onIdle();
    }
    #sendNext() {
        if (this.#underWay.length > 0 || this.#turns.length === 0)
            return;
        let taken = 0;
        for (let calls = 0; taken < this.#turns.length && calls < CALLS_PER_BATCH; taken++)
            calls += this.#turns[taken].length;
        this.#underWay = this.#turns.splice(0, taken).flat();
        this.#send(this.#underWay);
    }
}
//# sourceMappingURL=call-queue.js.map