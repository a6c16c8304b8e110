import { createServer } from 'node:http';
/** The prompt that makes the model give these answers. */
export const script = (...answers) => `@@${JSON.stringify(answers)}@@`;
const TOKENS = { input: 1000, cached: 200, output: 50 };
/** What an agent adds to what a person said. */
const REMINDER = /<system-reminder>.*?<\/system-reminder>/gs;
const WITHOUT_SCRIPT = { text: 'pong' };
/**
 * The vendors of the agents' models on loopback: Anthropic messages, OpenAI chat and responses, Gemini. The newest thing that a person
 * said carries the script; how far it has come is counted in the conversation itself, so that nothing is kept here.
 */
export async function startVendors(t) {
    let calls = 0;
    const asked = [];
    const server = createServer((request, response) => {
        void serve(request, response).catch(() => response.destroy());
    });
    async function serve(request, response) {
        let text = '';
        for await (const piece of request)
            text += piece;
        const { pathname } = new URL(request.url ?? '/', 'http://vendor');
        const aside = ASIDES.find(({ path }) => path.test(pathname));
        if (aside) {
            response.writeHead(200, { 'content-type': 'application/json' });
            response.end(JSON.stringify(aside.answer));
            return;
        }
        const vendor = VENDORS.find(({ path }) => path.test(pathname));
        if (request.method !== 'POST' || !vendor) {
            response.writeHead(pathname.endsWith('/models') ? 200 : 404, { 'content-type': 'application/json' });
            response.end(JSON.stringify({ object: 'list', data: [], models: [] }));
            return;
        }
        calls++;
        const body = JSON.parse(text);
        const turns = vendor.turns(body);
        asked.push({
            key: keyOf(request),
            text: turns.flatMap(({ role, text }) => (role === 'human' ? text : [])).join('\n'),
            body: text,
        });
        const answer = answerOf(turns);
        if (answer.status) {
            response.writeHead(answer.status, { 'content-type': 'application/json' });
            const error = { type: 'scripted', message: `scripted ${answer.status}`, code: answer.status, status: 'SCRIPTED' };
            response.end(JSON.stringify({ type: 'error', error }));
            return;
        }
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        for (const frame of vendor.frames(answer, body.model ?? 'scripted', `call_${calls}`)) {
            if (response.destroyed)
                return;
            const name = vendor.named ? `event: ${frame.type}\n` : '';
            response.write(frame === 'done' ? 'data: [DONE]\n\n' : `${name}data: ${JSON.stringify(frame)}\n\n`);
            if (answer.slowMs)
                await new Promise((done) => setTimeout(done, answer.slowMs));
        }
        response.end();
    }
    await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });
    return { url: `http://127.0.0.1:${server.address().port}`, calls: () => calls, asked };
}
/** However an agent sends it. */
function keyOf({ headers }) {
    const key = headers['x-api-key'] ?? headers['x-goog-api-key'] ?? headers.authorization;
    return key?.toString().replace(/^Bearer /, '');
}
function answerOf(turns) {
    const start = turns.findLastIndex(({ role, text }) => role === 'human' && text.replace(REMINDER, '').trim() !== '');
    // Agents put what was said before a failure into one message with what was said after it.
    const written = [...(turns[start]?.text ?? '').matchAll(/@@(\[.*?\])@@/gs)].at(-1)?.[1];
    if (!written)
        return WITHOUT_SCRIPT;
    // What one answer said and what it called may stand in the conversation one after the other.
    const step = turns
        .slice(start + 1)
        .filter(({ role }, at, after) => role === 'model' && after[at - 1]?.role !== 'model').length;
    const answers = JSON.parse(written);
    return answers[step] ?? { text: 'The script has come to its end.' };
}
/** What a person said may stand in one message with the results of calls that were interrupted. */
const SCRIPT = /@@\[/;
const textOf = (content) => typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join('\n');
const words = (text = '') => text.match(/\S+\s*/g) ?? [];
const anthropic = {
    path: /\/v1\/messages$/,
    named: true,
    turns: ({ messages }) => messages.map(({ role, content }) => ({
        role: role === 'assistant'
            ? 'model'
            : role !== 'user'
                ? 'other'
                : Array.isArray(content) &&
                    content.some((part) => part.type === 'tool_result') &&
                    !SCRIPT.test(textOf(content))
                    ? 'tool'
                    : 'human',
        text: textOf(content),
    })),
    *frames({ text, tool, input = {}, also = [] }, model, id) {
        const usage = { input_tokens: TOKENS.input, cache_read_input_tokens: TOKENS.cached, output_tokens: 1 };
        yield {
            type: 'message_start',
            message: { id: `msg_${id}`, type: 'message', role: 'assistant', model, content: [], stop_reason: null, usage },
        };
        let index = 0;
        if (text) {
            yield { type: 'content_block_start', index, content_block: { type: 'text', text: '' } };
            for (const word of words(text))
                yield { type: 'content_block_delta', index, delta: { type: 'text_delta', text: word } };
            yield { type: 'content_block_stop', index: index++ };
        }
        for (const [at, call] of (tool ? [{ tool, input }, ...also] : []).entries()) {
            const content_block = { type: 'tool_use', id: at === 0 ? id : `also_${at}_${id}`, name: call.tool, input: {} };
            yield { type: 'content_block_start', index, content_block };
            const delta = { type: 'input_json_delta', partial_json: JSON.stringify(call.input) };
            yield { type: 'content_block_delta', index, delta };
            yield { type: 'content_block_stop', index: index++ };
        }
        const delta = { stop_reason: tool ? 'tool_use' : 'end_turn', stop_sequence: null };
        yield { type: 'message_delta', delta, usage: { output_tokens: TOKENS.output } };
        yield { type: 'message_stop' };
    },
};
const chat = {
    path: /\/chat\/completions$/,
    named: false,
    turns: ({ messages }) => messages.map(({ role, content }) => ({
        role: role === 'user' ? 'human' : role === 'assistant' ? 'model' : role === 'tool' ? 'tool' : 'other',
        text: textOf(content),
    })),
    *frames({ text, tool, input = {} }, model, id) {
        const head = { id, object: 'chat.completion.chunk', created: 1, model };
        const choice = (delta, finish_reason = null) => ({
            ...head,
            choices: [{ index: 0, delta, finish_reason }],
        });
        yield choice({ role: 'assistant', content: '' });
        for (const content of words(text))
            yield choice({ content });
        const called = { name: tool, arguments: JSON.stringify(input) };
        if (tool)
            yield choice({ tool_calls: [{ index: 0, id, type: 'function', function: called }] });
        yield choice({}, tool ? 'tool_calls' : 'stop');
        const usage = {
            ...{ prompt_tokens: TOKENS.input, completion_tokens: TOKENS.output, total_tokens: TOKENS.input + TOKENS.output },
            prompt_tokens_details: { cached_tokens: TOKENS.cached },
        };
        yield { ...head, choices: [], usage };
        yield 'done';
    },
};
const responses = {
    path: /\/responses$/,
    named: true,
    turns: ({ input }) => input.map(({ role, content, type }) => ({
        role: role === 'user'
            ? 'human'
            : role === 'assistant' || /call$/.test(type ?? '')
                ? 'model'
                : role
                    ? 'other'
                    : 'tool',
        text: textOf(content),
    })),
    *frames({ text, tool, namespace, input = {} }, model, id) {
        let sequence_number = 0;
        const frame = (type, fields) => ({ type, sequence_number: sequence_number++, ...fields });
        const said = { type: 'message', id: `m_${id}`, role: 'assistant', status: 'completed' };
        const output = [];
        yield frame('response.created', { response: { id, object: 'response', model, status: 'in_progress', output: [] } });
        if (text) {
            const place = { item_id: said.id, output_index: 0, content_index: 0 };
            output.push({ ...said, content: [{ type: 'output_text', text, annotations: [] }] });
            yield frame('response.output_item.added', { output_index: 0, item: { ...said, content: [] } });
            for (const delta of words(text))
                yield frame('response.output_text.delta', { ...place, delta });
            yield frame('response.output_item.done', { output_index: 0, item: output[0] });
        }
        if (tool) {
            const called = { name: tool, arguments: JSON.stringify(input), ...(namespace && { namespace }) };
            const item = { type: 'function_call', id: `f_${id}`, call_id: id, ...called };
            yield frame('response.output_item.done', { output_index: output.length, item });
            output.push(item);
        }
        const usage = {
            ...{ input_tokens: TOKENS.input, output_tokens: TOKENS.output, total_tokens: TOKENS.input + TOKENS.output },
            input_tokens_details: { cached_tokens: TOKENS.cached },
            output_tokens_details: { reasoning_tokens: 0 },
        };
        yield frame('response.completed', {
            response: { id, object: 'response', model, status: 'completed', output, usage },
        });
    },
};
const gemini = {
    path: /:streamGenerateContent$/,
    named: false,
    turns: ({ contents }) => contents.map(({ role, parts }) => ({
        role: role === 'model' ? 'model' : parts.some((part) => part.functionResponse) ? 'tool' : 'human',
        text: textOf(parts),
    })),
    *frames({ text, tool, input = {} }, model, id) {
        const usageMetadata = {
            ...{
                promptTokenCount: TOKENS.input,
                candidatesTokenCount: TOKENS.output,
                cachedContentTokenCount: TOKENS.cached,
            },
            totalTokenCount: TOKENS.input + TOKENS.output,
        };
        const chunk = (part, finish) => ({
            candidates: [{ index: 0, content: { role: 'model', parts: [part] }, ...finish }],
            ...{ usageMetadata, modelVersion: model },
        });
        for (const word of words(text))
            yield chunk({ text: word });
        yield chunk(tool ? { functionCall: { name: tool, args: input, id } } : { text: '' }, { finishReason: 'STOP' });
    },
};
/** What an agent wants to know beside the conversation: how many tokens there are, which model to take, whose turn it is. */
const ASIDES = [
    { path: /\/count_tokens$/, answer: { input_tokens: 42 } },
    { path: /:countTokens$/, answer: { totalTokens: 42 } },
    {
        path: /:generateContent$/,
        answer: {
            candidates: [
                {
                    ...{ index: 0, finishReason: 'STOP' },
                    content: {
                        role: 'model',
                        parts: [
                            {
                                text: JSON.stringify({
                                    reasoning: '',
                                    next_speaker: 'user',
                                    model_choice: 'flash',
                                    complexity_score: 1,
                                }),
                            },
                        ],
                    },
                },
            ],
        },
    },
];
const VENDORS = [anthropic, chat, responses, gemini];
//# sourceMappingURL=vendors.js.map