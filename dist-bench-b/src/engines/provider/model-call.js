import { APICallError, jsonSchema, RetryError, streamText, } from 'ai';
import { toError } from '../../errors.js';
import { newId } from '../../lib/new-id.js';
// Sessions tell warnings as events; the SDK would write them to the host's console.
globalThis.AI_SDK_LOG_WARNINGS ??= false;
/** The tools as the SDK is shown them. */
export const toolSet = (tools) => Object.fromEntries(Array.from(tools, ({ name, description, inputSchema }) => [
    name,
    { description, inputSchema: jsonSchema(inputSchema) },
]));
/** One call of the model, streamed. Never rejects for what the provider did: a refusal or an outage is a `BrokenAnswer`. */
export async function callModel(request) {
    const answer = new AnswerBuilder(request);
    try {
        const result = streamText({
            model: request.model,
            system: request.system,
            messages: request.messages,
            tools: request.tools,
            ...(request.maxOutputTokens !== undefined && { maxOutputTokens: request.maxOutputTokens }),
            abortSignal: request.signal,
            onError: () => { },
        });
        let usage;
        let finishReason = 'other';
        let providerMetadata;
        let model = request.modelId;
        for await (const part of result.fullStream) {
            if (part.type === 'abort')
                return { blocks: answer.spoken };
            if (part.type === 'error')
                return { blocks: answer.spoken, error: describeUpstreamError(part.error) };
            if (part.type === 'start-step') {
                part.warnings.forEach(request.onWarning);
            }
            else if (part.type === 'finish-step') {
                usage = part.usage;
                finishReason = part.finishReason;
                providerMetadata = part.providerMetadata;
                model = part.response.modelId || model;
            }
            else {
                answer.take(part);
            }
            const drained = request.drained(request.signal);
            if (drained)
                await drained;
        }
        if (finishReason === 'error')
            return { blocks: answer.spoken, error: 'The model ended its answer with an error.' };
        const { messages } = await result.response;
        const message = messages.find((candidate) => candidate.role === 'assistant');
        return {
            blocks: answer.blocks,
            model,
            stopReason: STOP_REASONS[finishReason] ?? finishReason,
            usage: tokenUsage(usage),
            reportedCostUsd: reportedCost(usage, providerMetadata),
            message: message && asJson(answer.withCallsAsHere(message)),
            toolCalls: answer.toolCalls,
            isCutOff: finishReason !== 'stop' && finishReason !== 'tool-calls',
        };
    }
    catch (thrown) {
        if (request.signal.aborted)
            return { blocks: answer.spoken };
        return { blocks: answer.spoken, error: describeUpstreamError(thrown) };
    }
}
/** The names that the other engines use as well. */
const STOP_REASONS = {
    stop: 'end_turn',
    'tool-calls': 'tool_use',
    length: 'max_tokens',
    'content-filter': 'refusal',
};
/** Gathers the parts of a stream into blocks. A block has its index from its first content, so that empty ones leave no hole. */
class AnswerBuilder {
    blocks = [];
    toolCalls = [];
    #request;
    #open = new Map();
    #said = [];
    constructor(request) {
        this.#request = request;
    }
    /** The blocks of an answer that broke off: a call that was not finished was never made. */
    get spoken() {
        return this.blocks.filter((block) => block.type !== 'tool_use');
    }
    take(part) {
        switch (part.type) {
            case 'text-delta':
            case 'reasoning-delta':
                this.#speak(part.type === 'text-delta' ? 'text' : 'thinking', part.id, part.text);
                break;
            case 'tool-input-start':
                this.#call(part.id, part.toolName);
                break;
            case 'tool-input-delta':
                this.#request.onDelta(this.#call(part.id, ''), { type: 'tool_input', json: part.delta });
                break;
            case 'tool-call':
                if (!part.providerExecuted)
                    this.#complete(part);
                break;
        }
    }
    /** The message with the calls as they are here: their ids may be others, and an input that cannot be run is left out. */
    withCallsAsHere(message) {
        if (message.role !== 'assistant' || typeof message.content === 'string')
            return message;
        const calls = this.toolCalls.values();
        const content = message.content.map((part) => {
            if (part.type !== 'tool-call' || part.providerExecuted)
                return part;
            const { id, input } = calls.next().value;
            return { ...part, toolCallId: id, input };
        });
        return { ...message, content };
    }
    #speak(type, id, words) {
        if (words === '')
            return;
        const key = `${type}:${id}`;
        const index = this.#open.get(key) ?? this.blocks.length;
        this.#open.set(key, index);
        const said = (this.#said[index] ?? '') + words;
        this.#said[index] = said;
        this.blocks[index] = type === 'text' ? { type, text: said } : { type, thinking: said };
        this.#request.onDelta(index, { type, text: words });
    }
    #call(givenId, name) {
        const known = this.#open.get(`call:${givenId}`);
        if (known !== undefined)
            return known;
        // Some endpoints count their call ids from zero in every answer; approvals hang on an id, so it must be one call's alone.
        const id = givenId !== '' && this.#request.claimId(givenId) ? givenId : `call_${newId()}`;
        const index = this.blocks.push({ type: 'tool_use', id, name, input: {} }) - 1;
        this.#open.set(`call:${givenId}`, index);
        return index;
    }
    #complete(part) {
        const name = part.toolName;
        const problem = part.invalid ? toError(part.error).message : inputProblem(part.input);
        const input = problem ? {} : part.input;
        const index = this.#call(part.toolCallId, name);
        this.#open.delete(`call:${part.toolCallId}`);
        const { id } = this.blocks[index];
        this.blocks[index] = { type: 'tool_use', id, name, input };
        this.toolCalls.push({
            id,
            name,
            input,
            ...(problem && { problem: `The call of ${name} is not valid: ${problem}` }),
        });
    }
}
/** What is nested deeper could be told and stored no more: other parts of the gateway stop at 64 levels. */
const MAX_INPUT_DEPTH = 32;
function inputProblem(input) {
    if (typeof input !== 'object' || input === null || Array.isArray(input))
        return 'its input is not an object';
    return isWithin(MAX_INPUT_DEPTH, input) ? undefined : `its input is nested deeper than ${MAX_INPUT_DEPTH} levels`;
}
const isWithin = (levels, value) => typeof value !== 'object' ||
    value === null ||
    (levels > 0 && Object.values(value).every((member) => isWithin(levels - 1, member)));
const asJson = (value) => JSON.parse(JSON.stringify(value));
const count = (tokens) => (tokens !== undefined && tokens > 0 ? tokens : 0);
/** The SDK's `inputTokens` holds the cached ones as well; here each token is counted in one place. */
function tokenUsage(usage) {
    const details = usage?.inputTokenDetails;
    const cacheReadTokens = count(details?.cacheReadTokens);
    const cacheCreationTokens = count(details?.cacheWriteTokens);
    return {
        inputTokens: count(details?.noCacheTokens ?? count(usage?.inputTokens) - cacheReadTokens - cacheCreationTokens),
        outputTokens: count(usage?.outputTokens),
        cacheCreationTokens,
        cacheReadTokens,
    };
}
/** Routers that bill by themselves tell the cost: in `usage.cost`, or in the metadata of their provider. */
function reportedCost(usage, metadata) {
    const gateway = metadata?.gateway;
    for (const told of [usage?.raw?.cost, gateway?.cost]) {
        const cost = typeof told === 'string' ? Number.parseFloat(told) : told;
        if (typeof cost === 'number' && cost >= 0 && Number.isFinite(cost))
            return cost;
    }
    return undefined;
}
const MAX_ERROR_LENGTH = 1000;
/** What the provider said, with its status code; of several attempts the last. */
function describeUpstreamError(thrown) {
    const attempts = RetryError.isInstance(thrown) ? thrown.errors.length : 1;
    const error = toError(RetryError.isInstance(thrown) ? thrown.lastError : thrown);
    const status = APICallError.isInstance(error) && error.statusCode ? `HTTP ${error.statusCode}: ` : '';
    const tries = attempts > 1 ? ` (after ${attempts} attempts)` : '';
    return `${status}${error.message.slice(0, MAX_ERROR_LENGTH)}${tries}`;
}
/** The results of one answer's calls, as the model is shown them. */
export const toolMessage = (results) => ({
    role: 'tool',
    content: results.map(({ id, name, result }) => ({
        type: 'tool-result',
        toolCallId: id,
        toolName: name,
        output: modelOutput(result),
    })),
});
function modelOutput({ content, isError }) {
    if (typeof content === 'string')
        return { type: isError ? 'error-text' : 'text', value: content };
    if (isError) {
        return { type: 'error-text', value: content.map((part) => (part.type === 'text' ? part.text : '')).join('\n') };
    }
    return {
        type: 'content',
        value: content.map((part) => part.type === 'text' ? part : { type: 'image-data', data: part.data, mediaType: part.mediaType }),
    };
}
export const userMessage = (content) => ({ role: 'user', content });
/** What is kept of an answer that broke off: its text. Thinking without its signature would be refused when it is sent back. */
export function partialMessage(blocks) {
    const spoken = blocks.flatMap((block) => (block.type === 'text' && 'text' in block ? [String(block.text)] : []));
    return spoken.length > 0 ? { role: 'assistant', content: spoken.join('') } : undefined;
}
/** Ids of all tool calls in a transcript. */
export function toolCallIds(messages) {
    const ids = new Set();
    for (const { role, content } of messages) {
        if (role !== 'assistant' || typeof content === 'string')
            continue;
        for (const part of content)
            if (part.type === 'tool-call')
                ids.add(part.toolCallId);
    }
    return ids;
}
//# sourceMappingURL=model-call.js.map