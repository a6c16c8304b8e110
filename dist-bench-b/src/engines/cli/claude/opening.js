import { within } from '../../../lib/within.js';
/** How long an agent that tells nothing of its credentials may take to report by itself. */
const REPORT_MS = 3_000;
/** What the agent says before the session is open. */
export class Opening {
    #init;
    #isAsked = false;
    #reported;
    #result;
    #onReport = () => { };
    #onResult = () => { };
    constructor() {
        this.#reported = new Promise((done) => {
            this.#onReport = done;
        });
        this.#result = new Promise((done) => {
            this.#onResult = done;
        });
    }
    receive(message) {
        if (message.type === 'system' && message.subtype === 'init') {
            this.#init = message;
            this.#onReport();
        }
        if (message.type === 'result' && !message.is_error)
            this.#onResult(message);
    }
    /**
     * Makes the agent report. It does so when it is first spoken to, so it gets a message that asks nothing of the model and leaves no
     * trace. One that does not tell its version may not know such messages; it may report by itself.
     */
    ask(prompts) {
        this.#isAsked = true;
        prompts.push({ type: 'user', message: { role: 'user', content: [] }, parent_tool_use_id: null, shouldQuery: false });
    }
    /** @returns undefined when the agent does not report before its first prompt */
    async report({ claude_code_version, account = {} }, prompts, totals) {
        if (claude_code_version && !this.#isAsked)
            this.ask(prompts);
        if (this.#isAsked) {
            totals.startFrom(await this.#result);
        }
        else if (Object.keys(account).length === 0) {
            // Whose credentials it uses decides whether it may be given a prompt at all.
            await within(REPORT_MS, this.#reported);
        }
        else {
            await new Promise(setImmediate);
        }
        return this.#init;
    }
}
//# sourceMappingURL=opening.js.map