import { planOfCall, statusOf } from '../plan.js';
const TASK_TOOL = /^(TaskCreate|TaskUpdate|TaskList|TodoWrite)$/;
const CREATED = /^Task #(\S+) created/;
const LISTED = /^#(\S+) \[(\w+)\] (.*)$/gm;
/** The agent's plan, put together from the calls of its tools: older models write it whole, newer ones task by task. */
export class ClaudePlan {
    #tasks;
    /** Of these tools, by id, until they are answered. */
    #calls = new Map();
    constructor(state = []) {
        this.#tasks = new Map(state);
    }
    /** Absent: it has none. */
    get state() {
        return this.#tasks.size > 0 ? { plan: [...this.#tasks] } : {};
    }
    /** @returns the whole plan, when the message has changed it */
    read(content) {
        if (typeof content === 'string')
            return undefined;
        let changed;
        for (const block of content) {
            const { type, id, name, input, tool_use_id, is_error, content: answer } = block;
            if (type === 'tool_use' && TASK_TOOL.test(String(name)))
                this.#calls.set(String(id), { name: String(name), input: (input ?? {}) });
            const call = type === 'tool_result' ? this.#calls.get(String(tool_use_id)) : undefined;
            if (!call)
                continue;
            this.#calls.delete(String(tool_use_id));
            if (!is_error)
                changed = this.#apply(call, textIn(answer)) ?? changed;
        }
        return changed;
    }
    #apply({ name, input }, answer) {
        if (name === 'TodoWrite')
            return planOfCall(name, input);
        if (name === 'TaskCreate') {
            const id = CREATED.exec(answer)?.[1];
            if (id === undefined)
                return undefined;
            this.#tasks.set(id, { content: String(input.subject), status: 'pending' });
        }
        else if (name === 'TaskUpdate') {
            const id = String(input.taskId);
            const task = this.#tasks.get(id);
            if (!task)
                return undefined;
            if (input.status === 'deleted')
                this.#tasks.delete(id);
            else
                this.#tasks.set(id, {
                    content: typeof input.subject === 'string' ? input.subject : task.content,
                    status: input.status === undefined ? task.status : statusOf(input.status),
                });
        }
        else {
            this.#tasks.clear();
            for (const [, id, status, content] of answer.matchAll(LISTED))
                this.#tasks.set(id, { content: content, status: statusOf(status) });
        }
        return [...this.#tasks.values()];
    }
}
const textIn = (answer) => typeof answer === 'string'
    ? answer
    : Array.isArray(answer)
        ? answer.map((part) => part.text ?? '').join('\n')
        : '';
//# sourceMappingURL=plan.js.map