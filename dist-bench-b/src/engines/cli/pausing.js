import { Hold } from '../../lib/hold.js';
/** The pauses of a runner and of its agent's process, whichever is there first. */
export class Pausing {
    #hold = new Hold();
    #process;
    /** Present while it is paused; resolves when it goes on. */
    get over() {
        return this.#hold.over;
    }
    /** Resolves when an agent may begin, or nobody waits for it. */
    passed(signal) {
        return this.#hold.passed(signal);
    }
    /** Whose process it is. */
    of(process) {
        this.#process = process;
        if (this.over)
            process.pause();
        return process;
    }
    pause() {
        this.#hold.put();
        this.#process?.pause();
    }
    resume() {
        this.#hold.lift();
        this.#process?.resume();
    }
}
//# sourceMappingURL=pausing.js.map