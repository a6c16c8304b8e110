import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

/** One answer of the model: to a call of it, in the order of the calls of a turn. */
export interface Answer {
  text?: string
  tool?: string
  /** In which the tool stands, where a vendor has such. */
  namespace?: string
  input?: object
  /** Further calls in the same message; of Anthropic's models only. */
  also?: { tool: string; input: object }[]
  /** Refuses with this status, always. */
  status?: number
  /** Milliseconds between two words. */
  slowMs?: number
}

export interface Vendors {
  /** Without a path. */
  url: string
  /** How often a model was called. */
  calls(): number
  /** The key that each call of a model came with, what the person said in it, and all of it. */
  readonly asked: { key: string | undefined; text: string; body: string }[]
}

/** The prompt that makes the model give these answers. */
export const script = (...answers: Answer[]): string => `@@${JSON.stringify(answers)}@@`

interface Turn {
  role: 'human' | 'model' | 'tool' | 'other'
  text: string
}

// biome-ignore lint/suspicious/noExplicitAny: four vendors' bodies, of which a few fields are read
type Json = any

const TOKENS = { input: 1000, cached: 200, output: 50 }
/** What an agent adds to what a person said. */
const REMINDER = /<system-reminder>.*?<\/system-reminder>/gs
const WITHOUT_SCRIPT: Answer = { text: 'pong' }

/**
 * The vendors of the agents' models on loopback: Anthropic messages, OpenAI chat and responses, Gemini. The newest thing that a person
 * said carries the script; how far it has come is counted in the conversation itself, so that nothing is kept here.
 */
export async function startVendors(t: Pick<Test, 'teardown'>): Promise<Vendors> {
  let calls = 0
  const asked: Vendors['asked'] = []
  const server = createServer((request, response) => {
    void serve(request, response).catch(() => response.destroy())
  })

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = ''
    for await (const piece of request) text += piece
    const { pathname } = new URL(request.url ?? '/', 'http://vendor')
    const aside = ASIDES.find(({ path }) => path.test(pathname))
    if (aside) {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify(aside.answer))
      return
    }
    const vendor = VENDORS.find(({ path }) => path.test(pathname))
    if (request.method !== 'POST' || !vendor) {
      response.writeHead(pathname.endsWith('/models') ? 200 : 404, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ object: 'list', data: [], models: [] }))
      return
    }
    calls++
    const body: Json = JSON.parse(text)
    const turns = vendor.turns(body)
    asked.push({
      key: keyOf(request),
      text: turns.flatMap(({ role, text }) => (role === 'human' ? text : [])).join('\n'),
      body: text,
    })
    const answer = answerOf(turns)
    if (answer.status) {
      response.writeHead(answer.status, { 'content-type': 'application/json' })
      const error = { type: 'scripted', message: `scripted ${answer.status}`, code: answer.status, status: 'SCRIPTED' }
      response.end(JSON.stringify({ type: 'error', error }))
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const frame of vendor.frames(answer, body.model ?? 'scripted', `call_${calls}`)) {
      if (response.destroyed) return
      const name = vendor.named ? `event: ${frame.type}\n` : ''
      response.write(frame === 'done' ? 'data: [DONE]\n\n' : `${name}data: ${JSON.stringify(frame)}\n\n`)
      if (answer.slowMs) await new Promise((done) => setTimeout(done, answer.slowMs))
    }
    response.end()
  }

  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, calls: () => calls, asked }
}

/** However an agent sends it. */
function keyOf({ headers }: IncomingMessage): string | undefined {
  const key = headers['x-api-key'] ?? headers['x-goog-api-key'] ?? headers.authorization
  return key?.toString().replace(/^Bearer /, '')
}

function answerOf(turns: Turn[]): Answer {
  const start = turns.findLastIndex(({ role, text }) => role === 'human' && text.replace(REMINDER, '').trim() !== '')
  // Agents put what was said before a failure into one message with what was said after it.
  const written = [...(turns[start]?.text ?? '').matchAll(/@@(\[.*?\])@@/gs)].at(-1)?.[1]
  if (!written) return WITHOUT_SCRIPT
  // What one answer said and what it called may stand in the conversation one after the other.
  const step = turns
    .slice(start + 1)
    .filter(({ role }, at, after) => role === 'model' && after[at - 1]?.role !== 'model').length
  const answers = JSON.parse(written) as Answer[]
  return answers[step] ?? { text: 'The script has come to its end.' }
}

/** What a person said may stand in one message with the results of calls that were interrupted. */
const SCRIPT = /@@\[/
const textOf = (content: Json): string =>
  typeof content === 'string' ? content : (content ?? []).map((part: Json) => part.text ?? '').join('\n')
const words = (text = '') => text.match(/\S+\s*/g) ?? []

interface Vendor {
  path: RegExp
  /** Whether a frame carries its type as the event's name. */
  named: boolean
  turns(body: Json): Turn[]
  frames(answer: Answer, model: string, id: string): Iterable<Json>
}

const anthropic: Vendor = {
  path: /\/v1\/messages$/,
  named: true,
  turns: ({ messages }) =>
    messages.map(({ role, content }: Json) => ({
      role:
        role === 'assistant'
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
    const usage = { input_tokens: TOKENS.input, cache_read_input_tokens: TOKENS.cached, output_tokens: 1 }
    yield {
      type: 'message_start',
      message: { id: `msg_${id}`, type: 'message', role: 'assistant', model, content: [], stop_reason: null, usage },
    }
    let index = 0
    if (text) {
      yield { type: 'content_block_start', index, content_block: { type: 'text', text: '' } }
      for (const word of words(text))
        yield { type: 'content_block_delta', index, delta: { type: 'text_delta', text: word } }
      yield { type: 'content_block_stop', index: index++ }
    }
    for (const [at, call] of (tool ? [{ tool, input }, ...also] : []).entries()) {
      const content_block = { type: 'tool_use', id: at === 0 ? id : `also_${at}_${id}`, name: call.tool, input: {} }
      yield { type: 'content_block_start', index, content_block }
      const delta = { type: 'input_json_delta', partial_json: JSON.stringify(call.input) }
      yield { type: 'content_block_delta', index, delta }
      yield { type: 'content_block_stop', index: index++ }
    }
    const delta = { stop_reason: tool ? 'tool_use' : 'end_turn', stop_sequence: null }
    yield { type: 'message_delta', delta, usage: { output_tokens: TOKENS.output } }
    yield { type: 'message_stop' }
  },
}

const chat: Vendor = {
  path: /\/chat\/completions$/,
  named: false,
  turns: ({ messages }) =>
    messages.map(({ role, content }: Json) => ({
      role: role === 'user' ? 'human' : role === 'assistant' ? 'model' : role === 'tool' ? 'tool' : 'other',
      text: textOf(content),
    })),
  *frames({ text, tool, input = {} }, model, id) {
    const head = { id, object: 'chat.completion.chunk', created: 1, model }
    const choice = (delta: object, finish_reason: string | null = null) => ({
      ...head,
      choices: [{ index: 0, delta, finish_reason }],
    })
    yield choice({ role: 'assistant', content: '' })
    for (const content of words(text)) yield choice({ content })
    const called = { name: tool, arguments: JSON.stringify(input) }
    if (tool) yield choice({ tool_calls: [{ index: 0, id, type: 'function', function: called }] })
    yield choice({}, tool ? 'tool_calls' : 'stop')
    const usage = {
      ...{ prompt_tokens: TOKENS.input, completion_tokens: TOKENS.output, total_tokens: TOKENS.input + TOKENS.output },
      prompt_tokens_details: { cached_tokens: TOKENS.cached },
    }
    yield { ...head, choices: [], usage }
    yield 'done'
  },
}

const responses: Vendor = {
  path: /\/responses$/,
  named: true,
  turns: ({ input }) =>
    input.map(({ role, content, type }: Json) => ({
      role:
        role === 'user'
          ? 'human'
          : role === 'assistant' || /call$/.test(type ?? '')
            ? 'model'
            : role
              ? 'other'
              : 'tool',
      text: textOf(content),
    })),
  *frames({ text, tool, namespace, input = {} }, model, id) {
    let sequence_number = 0
    const frame = (type: string, fields: object) => ({ type, sequence_number: sequence_number++, ...fields })
    const said = { type: 'message', id: `m_${id}`, role: 'assistant', status: 'completed' }
    const output: Json[] = []
    yield frame('response.created', { response: { id, object: 'response', model, status: 'in_progress', output: [] } })
    if (text) {
      const place = { item_id: said.id, output_index: 0, content_index: 0 }
      output.push({ ...said, content: [{ type: 'output_text', text, annotations: [] }] })
      yield frame('response.output_item.added', { output_index: 0, item: { ...said, content: [] } })
      for (const delta of words(text)) yield frame('response.output_text.delta', { ...place, delta })
      yield frame('response.output_item.done', { output_index: 0, item: output[0] })
    }
    if (tool) {
      const called = { name: tool, arguments: JSON.stringify(input), ...(namespace && { namespace }) }
      const item = { type: 'function_call', id: `f_${id}`, call_id: id, ...called }
      yield frame('response.output_item.done', { output_index: output.length, item })
      output.push(item)
    }
    const usage = {
      ...{ input_tokens: TOKENS.input, output_tokens: TOKENS.output, total_tokens: TOKENS.input + TOKENS.output },
      input_tokens_details: { cached_tokens: TOKENS.cached },
      output_tokens_details: { reasoning_tokens: 0 },
    }
    yield frame('response.completed', {
      response: { id, object: 'response', model, status: 'completed', output, usage },
    })
  },
}

const gemini: Vendor = {
  path: /:streamGenerateContent$/,
  named: false,
  turns: ({ contents }) =>
    contents.map(({ role, parts }: Json) => ({
      role: role === 'model' ? 'model' : parts.some((part: Json) => part.functionResponse) ? 'tool' : 'human',
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
    }
    const chunk = (part: object, finish?: object) => ({
      candidates: [{ index: 0, content: { role: 'model', parts: [part] }, ...finish }],
      ...{ usageMetadata, modelVersion: model },
    })
    for (const word of words(text)) yield chunk({ text: word })
    yield chunk(tool ? { functionCall: { name: tool, args: input, id } } : { text: '' }, { finishReason: 'STOP' })
  },
}

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
]

const VENDORS = [anthropic, chat, responses, gemini]
