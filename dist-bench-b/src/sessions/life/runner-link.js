import { toError } from '../../errors.js';
/** How long a runner may take to close before it is left behind. */
const CLOSE_GRACE_MS = 10_000;
/**
 * The tie between a session and one runner. A session may outlive its runner, so whatever a runner says arrives with its link, and the
 * session hears only the link it holds.
 */
export class RunnerLink {
    runner;
    #owner;
    /** It cannot go on with its turn until an execution settles. */
    waiting = false;
    /** Since when the run of a job could be parked, and whether the job was told that it waits, with its engine. */
    hold;
    /** A message whose turn has begun and that the engine is not given before that is durable. */
    handing;
    /** How many answers of the engine are waited for. */
    #answersDue = 0;
    /** Its turn, or it, is to end. */
    #isEnding = false;
    #abort;
    #aborted = false;
    constructor(runner, owner) {
        this.runner = runner;
        this.#owner = owner;
    }
    emit(event) {
        this.#owner.onRunnerEvent(this, event);
    }
    /** What is waited for comes the same way as what the engine says, so that it is not slowed meanwhile. */
    get drained() {
        return this.#isEnding || this.#answersDue > 0 ? undefined : this.#owner.drainedFor(this);
    }
    /** The turn that begins now may be slowed. */
    begin() {
        this.#isEnding = false;
    }
    /** What it says until the end is told as fast as it comes. */
    end() {
        this.#isEnding = true;
        this.#owner.relieve(this);
    }
    /** Asks the engine something, and lets its answer through. */
    async ask(question) {
        this.#answersDue++;
        this.#owner.relieve(this);
        try {
            await question();
        }
        finally {
            this.#answersDue--;
        }
    }
    /** Async, so that an ask which cannot be shown is a rejection to its asker and no exception. */
    async requestPermission(ask) {
        const decision = await this.#owner.onPermissionAsked(this, ask);
        // the engine interrupts itself then
        if (decision.behavior === 'deny' && decision.interrupt)
            this.end();
        return decision;
    }
    deferExecution(execution) {
        return this.#owner.onExecutionDeferred(this, execution);
    }
    waitForExecutions() {
        this.#owner.onWaitForExecutions(this);
    }
    /** Made when first asked for: most runners of idle sessions never do. */
    get signal() {
        if (!this.#abort) {
            this.#abort = new AbortController();
            if (this.#aborted)
                this.#abort.abort();
        }
        return this.#abort.signal;
    }
    /** Aborts and closes the runner; resolves when it is gone, or was given up on. Never rejects. */
    close({ clock, logger }, sessionId) {
        this.end();
        this.#aborted = true;
        this.#abort?.abort();
        return new Promise((resolve) => {
            const giveUp = clock.after(CLOSE_GRACE_MS, () => {
                logger.error({ sessionId }, 'the engine did not close in time and was left behind');
                resolve();
            }, 'always');
            const closed = () => {
                giveUp.cancel();
                resolve();
            };
            const failed = (error) => {
                logger.error({ sessionId, err: toError(error) }, 'the engine failed to close');
                closed();
            };
            try {
                this.runner.close().then(closed, failed);
            }
            catch (error) {
                failed(error);
            }
        });
    }
}
//# sourceMappingURL=runner-link.js.map