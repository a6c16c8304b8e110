import { randomUUID } from 'node:crypto';
import { ClaudePlan } from './plan.js';
import { messageUsage, Totals } from './totals.js';
/** Said often, and of no use to anybody who reads the log. */
const NOISE = new Set([
    'session_state_changed',
    'attachment',
    'thinking_tokens',
    'command_lifecycle',
    'control_request_progress',
]);
/**
 * Makes the gateway's events of what the SDK says. An assistant message comes once per content block; what it costs is known only a
 * moment later, so each is held back until then, or until anything else happens.
 */
export class ClaudeTranslator {
    totals;
    #emit;
    #withDeltas;
    #plan;
    #streams = new Map();
    /** The agent's own name of its last message in this turn. */
    lastUuid;
    #held;
    constructor(emit, withDeltas, state) {
        this.#emit = emit;
        this.#withDeltas = withDeltas;
        this.totals = new Totals(state);
        this.#plan = new ClaudePlan(state?.plan);
    }
    get state() {
        return { ...this.totals.state, ...this.#plan.state };
    }
    /** Everything but inits, status changes and results, which are the runner's to judge. */
    translate(message) {
        if (message.type === 'stream_event') {
            this.#stream(message);
            return;
        }
        this.flush();
        if (message.type === 'assistant')
            this.#assistant(message);
        else if (message.type === 'user')
            this.#user(message);
        else if (message.type === 'rate_limit_event')
            this.#emit({ type: 'rate_limit', info: message.rate_limit_info });
        else if (!NOISE.has(message.type) && !NOISE.has(String(message.subtype)))
            this.#emit({ type: 'engine_event', payload: message });
    }
    /** Lets go of the message that is held back: something else is about to be told. */
    flush() {
        const held = this.#held;
        this.#held = undefined;
        if (held)
            this.#emit(held.event);
    }
    /**
     * @param interrupted whether somebody asked for this end
     * @param earlier what the turn took before it was parked
     */
    complete(result, interrupted, earlier = { elapsedMs: 0, steps: 0 }) {
        this.flush();
        this.#streams.clear();
        const subtype = subtypeOf(result, interrupted);
        const isError = subtype !== 'success' && subtype !== 'interrupted';
        this.#emit({
            type: 'turn_completed',
            subtype,
            isError,
            durationMs: earlier.elapsedMs + (result.duration_ms ?? 0),
            ...this.totals.add(result, earlier.steps),
            ...(!isError && result.result !== undefined && { result: result.result }),
            ...(isError && { errors: errorsOf(result) }),
        });
        this.lastUuid = undefined;
    }
    #stream({ event, parent_tool_use_id: parent }) {
        const stream = this.#streams.get(parent);
        switch (event.type) {
            case 'message_start':
                this.flush();
                this.#streams.set(parent, { uuid: randomUUID(), usage: event.message?.usage ?? {} });
                return;
            case 'content_block_start':
                this.flush();
                if (stream)
                    stream.uuid = randomUUID();
                return;
            case 'content_block_delta':
                if (stream && this.#withDeltas)
                    this.#delta(stream.uuid, parent, event.delta ?? {});
                return;
            case 'message_delta':
                if (stream && this.#held?.parent === parent) {
                    const { message } = this.#held.event;
                    message.usage = messageUsage({ ...stream.usage, ...event.usage });
                    if (event.delta?.stop_reason)
                        message.stopReason = event.delta.stop_reason;
                }
                this.flush();
                return;
        }
    }
    #delta(uuid, parent, delta) {
        const told = delta.type === 'text_delta'
            ? { type: 'text', text: delta.text ?? '' }
            : delta.type === 'thinking_delta'
                ? { type: 'thinking', text: delta.thinking ?? '' }
                : delta.type === 'input_json_delta'
                    ? { type: 'tool_input', json: delta.partial_json ?? '' }
                    : undefined;
        if (told)
            this.#emit({ type: 'stream_delta', uuid, blockIndex: 0, delta: told, parentToolUseId: parent });
    }
    #assistant(said) {
        const parent = said.parent_tool_use_id;
        const stream = this.#streams.get(parent);
        const event = {
            type: 'assistant_message',
            message: assistantMessage(said),
            uuid: stream?.uuid ?? said.uuid,
            parentToolUseId: parent,
        };
        // A second message of the same block must not take the first one's name.
        if (stream)
            stream.uuid = randomUUID();
        this.#held = { event, parent };
        if (parent === null) {
            this.lastUuid = said.uuid;
            this.#plan.read(event.message.content);
        }
        if (!stream)
            this.flush();
    }
    #user(said) {
        if (said.isReplay)
            return;
        const content = contentOf(said.message.content);
        this.#emit({
            type: 'user_message',
            message: { role: 'user', content },
            uuid: said.uuid ?? randomUUID(),
            parentToolUseId: said.parent_tool_use_id,
            synthetic: true,
        });
        const entries = said.parent_tool_use_id === null ? this.#plan.read(content) : undefined;
        if (entries)
            this.#emit({ type: 'plan_updated', entries });
    }
}
/** A message as it stands in the transcript; what it cost is not said, because the transcript does not know. */
export function assistantMessage({ message }) {
    return {
        role: 'assistant',
        content: contentOf(message.content),
        ...(message.model && { model: message.model }),
        ...(message.stop_reason && { stopReason: message.stop_reason }),
    };
}
export const contentOf = (content) => typeof content === 'string' ? content : Array.isArray(content) ? content : [];
function subtypeOf(result, interrupted) {
    if (result.subtype === 'error_max_turns' || result.subtype === 'error_max_budget_usd')
        return result.subtype;
    // `success` says how the turn ended, not that it went well.
    if (!result.is_error && result.subtype === 'success')
        return 'success';
    return interrupted || result.terminal_reason?.startsWith('aborted') ? 'interrupted' : 'error_during_execution';
}
function errorsOf(result) {
    const errors = (result.errors ?? []).filter((error) => typeof error === 'string');
    if (errors.length > 0)
        return errors;
    return [result.result || result.terminal_reason || result.subtype];
}
//# sourceMappingURL=translate.js.map