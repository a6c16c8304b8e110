/** Looks on at a turn: which calls are open, whether anything but them is under way, and what it has taken. */
export class TurnWatch {
    #gate;
    /** What earlier agents took of the turn. */
    #earlier = { elapsedMs: 0, steps: 0 };
    #startedAt = 0;
    #steps = 0;
    /** Whether the message of the model is not over yet. */
    #isStreaming = false;
    /** What the agent does beside the turn. */
    #tasks = 0;
    constructor(gate) {
        this.#gate = gate;
    }
    get earlier() {
        return this.#earlier;
    }
    get taken() {
        const { elapsedMs, steps } = this.#earlier;
        return { elapsedMs: elapsedMs + Date.now() - this.#startedAt, steps: steps + this.#steps };
    }
    /** Whether nothing is under way but calls. */
    get isQuiet() {
        return !this.#isStreaming && this.#tasks === 0;
    }
    begin(earlier = { elapsedMs: 0, steps: 0 }) {
        this.#earlier = earlier;
        this.#startedAt = Date.now();
        this.#steps = 0;
    }
    end() {
        this.#isStreaming = false;
        this.#gate.onTurnEnd();
    }
    receive(message) {
        if (message.type === 'stream_event' && message.parent_tool_use_id === null) {
            if (message.event.type === 'message_start') {
                this.#isStreaming = true;
                this.#steps++;
            }
            else if (message.event.type === 'message_stop')
                this.#isStreaming = false;
        }
        else if (message.type === 'assistant' && message.parent_tool_use_id === null) {
            for (const id of idsOf(message.message.content, 'tool_use', 'id'))
                this.#gate.onCall(id);
        }
        else if (message.type === 'user') {
            for (const id of idsOf(message.message.content, 'tool_result', 'tool_use_id'))
                this.#gate.onToolResult(id);
        }
        else if (message.type === 'system' && message.subtype === 'background_tasks_changed') {
            this.#tasks = message.tasks.filter(({ ambient }) => !ambient).length;
        }
    }
}
/** The ids in the blocks of one type. */
function idsOf(content, type, field) {
    if (!Array.isArray(content))
        return [];
    return content.flatMap((block) => {
        const id = block?.type === type ? block[field] : undefined;
        return typeof id === 'string' ? [id] : [];
    });
}
//# sourceMappingURL=turn-watch.js.map