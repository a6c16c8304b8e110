import { parentOf, saidName, toolNameOf } from './tool-names.js';
/**
 * The calls of a session by id. Agents tell of a call in pieces: some introduce it by asking for permission, some name it before they
 * know its input, none repeats everything.
 */
export class ToolCalls {
    #calls = new Map();
    #naming;
    constructor(naming) {
        this.#naming = naming;
    }
    /** @param options what may be answered, where it is told by a request for permission */
    learn(told, options) {
        const known = this.#calls.get(told.toolCallId);
        const call = known ?? {
            ...{ id: told.toolCallId, parent: null, name: toolNameOf(told, this.#naming, options) },
            ...{ input: {}, shown: [], content: [] },
            ...{ terminal: '', status: 'pending', isTold: false, isDone: false, isDenied: false },
        };
        if (!known)
            this.#calls.set(call.id, call);
        // Once a name was said it is the call's, in requests and results alike.
        else if (!call.isTold)
            call.name = saidName(told) ?? call.name;
        call.parent ??= parentOf(told._meta) ?? null;
        if (told.title)
            call.title = told.title;
        if (isFilled(told.rawInput))
            call.input = argumentsIn(told) ?? told.rawInput;
        if (told.content?.length) {
            if (call.isTold)
                call.content = told.content;
            else
                call.shown = told.content;
        }
        if (told.rawOutput !== undefined && told.rawOutput !== '')
            call.output = told.rawOutput;
        if (told.status)
            call.status = told.status;
        const delta = told._meta?.terminal_output_delta?.data;
        if (typeof delta === 'string')
            call.terminal += delta;
        return call;
    }
    forget(id) {
        this.#calls.delete(id);
    }
    /** Those whose end was not told. */
    open() {
        return [...this.#calls.values()];
    }
}
const isFilled = (value) => typeof value === 'object' && value !== null && Object.keys(value).length > 0;
/** What the tool of a server is called with, where the agent wraps it. */
function argumentsIn({ rawInput, _meta }) {
    const { arguments: input } = (rawInput ?? {});
    return _meta?.is_mcp_tool_call && typeof input === 'object' && input !== null ? input : undefined;
}
/** What is shown to the person who decides. */
export function inputOf({ input, title, shown }) {
    if (isFilled(input))
        return input;
    return { ...(title && { title }), ...(shown.length > 0 && { content: shown.map(plain) }) };
}
/** What the tool answered, as the text that the model sees, or as the agent tells it. */
export function resultOf({ content, output, terminal }) {
    const texts = (content.length > 0 ? content : serverContent(output)).map(plain);
    if (texts.length > 0 && texts.every((part) => typeof part === 'string'))
        return texts.join('\n');
    if (terminal)
        return terminal;
    if (typeof output === 'string')
        return output;
    const inner = output?.output;
    if (typeof inner === 'string')
        return inner;
    if (texts.length > 0)
        return texts.map((part) => (typeof part === 'string' ? { type: 'text', text: part } : part));
    return output === undefined ? '' : [{ type: 'text', text: JSON.stringify(output) }];
}
/** The answer of a server's tool, where the agent wraps it. */
function serverContent(output) {
    const { content } = (output?.result ?? {});
    return Array.isArray(content) ? content.map((part) => ({ type: 'content', content: part })) : [];
}
/** Text as a string, anything else as it is. */
function plain(part) {
    const { type, content } = part;
    return type === 'content' && content?.type === 'text' ? (content.text ?? '') : part;
}
//# sourceMappingURL=tool-calls.js.map