import { toError } from '../../errors.js';
/** The engines of all sessions at once, and the sessions with them, of a node that may not go on. */
export class Engines {
    #parts;
    constructor(parts) {
        this.#parts = parts;
    }
    /** Holds them up, as far as they can be. */
    pause() {
        this.#each((runner) => runner.pause?.());
    }
    resume() {
        this.#each((runner) => runner.resume?.());
    }
    /** Lets go of every session without a word and without a write: they are other nodes'. Their engines are ended. */
    async abandon() {
        const { table, sleep, executions } = this.#parts;
        const gone = table.all().map((session) => session.abandon());
        for (const id of table.ids()) {
            sleep.forget(id);
            executions.forget(id);
            table.remove(id);
        }
        await Promise.all(gone);
    }
    /** One that fails keeps no other from it. */
    #each(what) {
        const { table, logger } = this.#parts;
        for (const { id, runner } of table.all())
            try {
                if (runner)
                    what(runner);
            }
            catch (error) {
                logger.error({ sessionId: id, err: toError(error) }, 'an engine could not be held up, or let go on');
            }
    }
}
//# sourceMappingURL=engines.js.map