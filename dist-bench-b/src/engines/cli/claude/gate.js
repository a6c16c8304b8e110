import { toError } from '../../../errors.js';
import { askPerson } from './permissions.js';
const INTERRUPTED = 'Interrupted by the user.';
/** Of all calls in one answer the agent can put off one. */
export const ONE_AT_A_TIME = 'This was not run, because another call of the same message had to wait for its result. Call it again if it is still needed.';
const decided = (permissionDecision, permissionDecisionReason, updatedInput) => ({
    hookSpecificOutput: {
        hookEventName: 'PreToolUse',
        permissionDecision,
        permissionDecisionReason,
        ...(updatedInput && { updatedInput: updatedInput }),
    },
});
/**
 * What every call of the agent passes before it runs. A call of a deferred tool, and one that a person is asked about without a time
 * limit, waits here, where it can still be put off: then the agent ends, and its successor comes to the same call again.
 */
export class Gate {
    #options;
    /** Calls that the model has made, and of them those that are let through, until their results are told. */
    #open = new Set();
    #running = new Set();
    #settled = new Map();
    #decisions = new Map();
    #held;
    #last = Promise.resolve();
    #onResult = () => { };
    #onPutOff = () => { };
    #isPuttingOff = false;
    #hasReturned = false;
    constructor(options) {
        this.#options = options;
    }
    /** The call that waits, when nothing else is under way. */
    get held() {
        return this.#running.size === 0 ? this.#held : undefined;
    }
    /** Calls that are refused when the one that waits is put off. */
    get refusedThen() {
        return [...this.#open].filter((id) => id !== this.#held?.toolUseId);
    }
    /** Whether the agent has come to the call again that it was parked at. */
    get hasReturned() {
        return this.#hasReturned;
    }
    /** The model has made a call. */
    onCall(toolUseId) {
        this.#open.add(toolUseId);
    }
    onToolResult(toolUseId) {
        this.#open.delete(toolUseId);
        this.#running.delete(toolUseId);
    }
    onTurnEnd() {
        this.#open.clear();
        this.#running.clear();
        this.#decisions.clear();
        this.#onPutOff();
    }
    settle(executionId, result) {
        const isHeld = this.#held?.execution?.executionId === executionId;
        if (isHeld || this.#options.restored?.execution?.executionId === executionId)
            this.#settled.set(executionId, result);
        if (isHeld)
            this.#onResult(result);
    }
    /** Has the agent end its turn at the call that waits, and refuses whatever it comes to then. */
    putOff() {
        this.#isPuttingOff = true;
        this.#onPutOff();
    }
    /** The hook before each call. */
    before = async (call) => {
        if (this.#isPuttingOff)
            return decided('deny', ONE_AT_A_TIME);
        const guarded = this.#options.guard(call);
        if (guarded.hookSpecificOutput)
            return guarded;
        const tool = this.#options.hostedTools?.find(call.tool_name);
        // a helper's call cannot be put off
        if (call.agent_id !== undefined)
            return this.#pass(call, tool ? decided('allow', 'Declared by the operator.') : {});
        if (tool)
            return this.#inTurn(call, () => this.#awaitResult(call, tool));
        if (await this.#options.isPatientAsk(call))
            return this.#inTurn(call, () => this.#awaitPerson(call));
        return this.#pass(call, {});
    };
    /** What the agent asks after its own rules; the call waits in the agent then, which cannot be parked. */
    ask = async (...ask) => {
        await this.#options.told();
        const [, input, { toolUseID }] = ask;
        if (this.#decisions.has(toolUseID))
            return { behavior: 'allow', updatedInput: input };
        return askPerson(this.#options.host(), ...ask);
    };
    #pass({ tool_use_id }, output) {
        this.#running.add(tool_use_id);
        return output;
    }
    /** One call waits at a time: only one of a message can be put off. */
    #inTurn(call, wait) {
        const mine = this.#last.then(async () => {
            await this.#options.told();
            if (this.#isPuttingOff)
                return decided('deny', ONE_AT_A_TIME);
            if (this.#options.restored?.toolUseId === call.tool_use_id)
                this.#hasReturned = true;
            if (this.#options.isInterrupted())
                return decided('deny', INTERRUPTED);
            try {
                return await wait();
            }
            catch (error) {
                return decided('deny', toError(error).message);
            }
            finally {
                this.#held = undefined;
            }
        });
        this.#last = mine;
        return mine;
    }
    async #awaitResult(call, tool) {
        const { hostedTools, host, restored } = this.#options;
        const toolUseId = call.tool_use_id;
        const earlier = restored?.toolUseId === toolUseId ? restored.execution : undefined;
        const execution = earlier ?? hostedTools.execution(tool);
        const { executionId } = execution;
        const putOff = this.#hold({ toolUseId, execution });
        const delivered = new Promise((resolve) => {
            this.#onResult = resolve;
        });
        if (!this.#settled.has(executionId)) {
            await host().deferExecution({ ...execution, toolName: tool.name, input: call.tool_input });
            if (!this.#settled.has(executionId))
                host().waitForExecutions();
        }
        const result = this.#settled.get(executionId) ?? (await Promise.race([delivered, putOff]));
        if (!result)
            return decided('defer', 'Its result comes later.');
        this.#settled.delete(executionId);
        hostedTools.answer({ toolUseId, toolName: tool.name, result });
        return this.#pass(call, decided('allow', 'Its result has come.'));
    }
    async #awaitPerson(call) {
        const { host, interrupt } = this.#options;
        const { tool_use_id: toolUseId, tool_name: toolName, tool_input: input } = call;
        const putOff = this.#hold({ toolUseId });
        const asked = host().requestPermission({ toolName, toolUseId, input });
        const decision = await Promise.race([asked, putOff]);
        if (!decision)
            return decided('defer', 'Somebody answers later.');
        if (decision.behavior === 'deny') {
            if (decision.interrupt)
                interrupt();
            return decided('deny', decision.message ?? 'The user does not allow this.');
        }
        this.#decisions.set(toolUseId, decision);
        return this.#pass(call, decided('allow', 'The user allows it.', decision.updatedInput ?? input));
    }
    #hold(call) {
        this.#held = call;
        return new Promise((resolve) => {
            this.#onPutOff = () => resolve(undefined);
        });
    }
}
//# sourceMappingURL=gate.js.map