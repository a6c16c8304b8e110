import { toError } from '../../errors.js';
import { newId } from '../../lib/new-id.js';
import { failure } from './tool.js';
const MAX_RESULT_CHARACTERS = 200_000;
/**
 * Works off the tool calls of one answer. They start in the order the model gave; those that need nobody's leave run side by side, and
 * while somebody is asked or a deferred result is awaited, nothing runs: so that moment can be a snapshot.
 */
export class CallDesk {
    #context;
    #emit;
    #onSettled = () => { };
    constructor(context, emit) {
        this.#context = context;
        this.#emit = emit;
    }
    /** Resolves when each call has a result that was told. Rejects when the turn is aborted, or the gateway could not be reached. */
    async workOff(calls, signal) {
        const running = [];
        for (const call of calls) {
            signal.throwIfAborted();
            if (call.phase === 'done')
                this.#tell(call);
            else if (call.phase === 'deferred')
                await this.#defer(call, signal);
            else
                await this.#take(call, running, signal);
        }
        await untilAborted(Promise.all(running), signal);
        while (calls.some((call) => call.phase === 'deferred')) {
            const settled = new Promise((resolve) => {
                this.#onSettled = resolve;
            });
            this.#context.host.waitForExecutions();
            await untilAborted(settled, signal);
        }
    }
    /** Delivers the result of a deferred call; an id that waits for none is ignored. */
    settle(executionId, result) {
        const call = this.#context.state.turn?.work?.calls.find((candidate) => candidate.executionId === executionId);
        if (call?.phase !== 'deferred')
            return;
        this.#finish(call, executionOutput(result));
        this.#onSettled();
    }
    /** Gives every call that has no result the same one. */
    abandon(calls, reason) {
        for (const call of calls) {
            if (call.phase === 'done')
                this.#tell(call);
            else
                this.#finish(call, failure(reason));
        }
    }
    /** Decides about a call that nobody has decided about yet. */
    async #take(call, running, signal) {
        const { tools, state, host } = this.#context;
        const tool = tools.get(call.name);
        if (!tool)
            return this.#finish(call, failure(`There is no tool ${call.name}.`));
        const problem = call.problem ?? problemOf(tool, call.input);
        if (problem)
            return this.#finish(call, failure(problem));
        let input = call.input;
        const leave = tools.leaveFor(tool, state.permissionMode);
        if (leave === 'refused') {
            return this.#finish(call, failure(`${call.name} is not allowed in permission mode ${state.permissionMode}.`));
        }
        if (leave === 'ask') {
            await untilAborted(Promise.all(running), signal);
            const title = tool.title?.(input);
            const ask = { toolName: call.name, toolUseId: call.id, input, ...(title && { title }) };
            const decision = await untilAborted(host.requestPermission(ask), signal);
            if (decision.behavior !== 'allow') {
                this.#finish(call, failure(decision.message || `The user did not allow ${call.name}.`));
                if (decision.interrupt)
                    this.#context.interrupt();
                return;
            }
            input = decision.updatedInput ?? input;
            const changed = problemOf(tool, input);
            if (changed)
                return this.#finish(call, failure(changed));
        }
        call.input = input;
        const { hold } = this.#context;
        if (hold.over) {
            await hold.passed(signal);
            signal.throwIfAborted();
        }
        if (!tool.run)
            return this.#defer(call, signal);
        call.phase = 'started';
        running.push(this.#run(call, tool.run, input, signal));
    }
    async #run(call, run, input, signal) {
        const work = async () => run(input, { toolUseId: call.id, signal, emit: this.#emit });
        try {
            this.#finish(call, await untilAborted(work(), signal));
        }
        catch (thrown) {
            if (!signal.aborted)
                this.#finish(call, failure(toError(thrown).message));
        }
    }
    async #defer(call, signal) {
        const { host, clock, tools } = this.#context;
        const timeoutMs = tools.get(call.name)?.timeoutMs;
        call.phase = 'deferred';
        call.executionId ??= newId();
        if (timeoutMs !== undefined)
            call.expiresAt ??= clock.now() + timeoutMs;
        const { executionId, name: toolName, input, expiresAt } = call;
        try {
            // After a restore the id is known already, which changes nothing.
            const deferral = host.deferExecution({
                executionId,
                toolName,
                input,
                ...(expiresAt !== undefined && { expiresAt }),
            });
            await untilAborted(deferral, signal);
        }
        catch (thrown) {
            if (signal.aborted)
                throw thrown;
            this.#finish(call, failure(`${toolName} could not be handed over: ${toError(thrown).message}`));
        }
    }
    #finish(call, result) {
        call.phase = 'done';
        call.result = capped(result);
        this.#tell(call);
    }
    #tell(call) {
        if (call.told || !call.result)
            return;
        call.told = true;
        const block = { type: 'tool_result', tool_use_id: call.id, ...resultBlock(call.result) };
        this.#emit({
            type: 'user_message',
            message: { role: 'user', content: [block] },
            uuid: newId(),
            parentToolUseId: null,
            synthetic: true,
        });
    }
}
const problemOf = (tool, input) => {
    const problem = tool.problemWith?.(input);
    return problem && `The input of ${tool.name} is not valid: ${problem}`;
};
function resultBlock({ content, isError }) {
    const shown = typeof content === 'string'
        ? content
        : content.map((part) => (part.type === 'text' ? part : imageBlock(part)));
    return { content: shown, ...(isError && { is_error: true }) };
}
const imageBlock = ({ mediaType, data }) => ({
    type: 'image',
    source: { type: 'base64', media_type: mediaType, data },
});
function capped(result) {
    const { content } = result;
    if (typeof content !== 'string' || content.length <= MAX_RESULT_CHARACTERS)
        return result;
    const left = content.length - MAX_RESULT_CHARACTERS;
    return { ...result, content: `${content.slice(0, MAX_RESULT_CHARACTERS)}\n[${left} more characters were left out]` };
}
function executionOutput(result) {
    if (result.status === 'ok') {
        const { output } = result;
        return { content: output.type === 'text' ? output.value : (JSON.stringify(output.value) ?? 'null') };
    }
    const { status, reason, error } = result;
    return failure(JSON.stringify({ status, reason, error }));
}
/** The promise, or the signal's reason as soon as it aborts; a late result is dropped. */
export function untilAborted(promise, signal) {
    return new Promise((resolve, reject) => {
        const onAbort = () => reject(signal.reason);
        if (signal.aborted)
            onAbort();
        else
            signal.addEventListener('abort', onAbort, { once: true });
        promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
    });
}
//# sourceMappingURL=calls.js.map