import { createServer } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { UnsupportedFunctionalityError } from 'ai'
import t from 'tap'
import { eventStreamFetch } from '../../../src/engines/provider/event-stream.js'
import { toolMessage, userMessage } from '../../../src/engines/provider/transcript-messages.js'
import { runTurn, type TurnContext } from '../../../src/engines/provider/turn.js'
import { NO_USAGE } from '../../../src/engines/token-usage.js'
import { script, startModelEndpoint } from '../../fixtures/model-endpoint.js'
import { openAt, vendorThatSays } from './some-vendor.js'

for (const vendor of ['openai-compatible', 'anthropic'])
  t.test(`a connection to ${vendor} that breaks in an answer is told as that`, async (t) => {
    const endpoint = await startModelEndpoint(t)
    const { runner, host } = await openAt(t, endpoint.url, vendor)
    runner.send(script({ text: 'half an', hang: true }))
    const { drop } = await endpoint.request(1)
    await host.until(() => host.of('stream_delta').length > 1)
    drop()
    const end = await host.turn(1)
    t.match(end, { subtype: 'error_during_execution', errors: [/^The answer of the model broke off: (?!terminated)/] })
    t.match(host.of('assistant_message').at(-1)?.message.content, [{ type: 'text', text: 'half an' }])
  })

t.test('one that breaks before the first word is no success with the status of one', async (t) => {
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(': nothing yet\n\n', () => request.socket.resetAndDestroy())
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => server.close())
  const { runner, host } = await openAt(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`)
  runner.send('hi')
  const { errors = [] } = await host.turn(1)
  t.match(errors, [/ECONNRESET|broke off|closed/])
  t.notMatch(errors[0], /HTTP 200|successful/)
})

t.test('an answer that fills the context is not told as one that a limit cut off', async (t) => {
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const usage = { input_tokens: 10, output_tokens: 1 }
      const message = { id: 'm', type: 'message', role: 'assistant', model: 'fake', content: [], usage }
      const ended = { stop_reason: 'model_context_window_exceeded', stop_sequence: null }
      for (const event of [
        { type: 'message_start', message },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'half of it' } },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: ended, usage: { output_tokens: 9 } },
        { type: 'message_stop' },
      ])
        response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
      response.end()
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  const { runner, host } = await openAt(t, url, 'anthropic')
  runner.send('hi')
  t.match(await host.turn(1), {
    subtype: 'error_during_execution',
    errors: [/^The answer of the model was cut off: nothing more fits.*begin a new session/],
  })
  t.match(host.of('assistant_message')[0]?.message, {
    stopReason: 'model_context_window_exceeded',
    content: [{ type: 'text', text: 'half of it' }],
  })
})

for (const [answer, told] of [
  [{ stopReason: 'NO_IMAGE' }, 'The model ended its answer without a word (NO_IMAGE).'],
  [{ stopReason: 'UNEXPECTED_TOOL_CALL' }, 'The model ended its answer with an error: UNEXPECTED_TOOL_CALL.'],
  [{ text: 'I', stopReason: 'MALFORMED_RESPONSE' }, 'The model ended its answer with an error: MALFORMED_RESPONSE.'],
] as const)
  t.test(`a turn that nothing came of is no success: ${JSON.stringify(answer)}`, async (t) => {
    const endpoint = await startModelEndpoint(t)
    const { runner, host } = await openAt(t, endpoint.url)
    runner.send(script(answer))
    t.match(await host.turn(1), { subtype: 'error_during_execution', isError: true, errors: [told] })
    runner.send('go on')
    t.match(await host.turn(2), { subtype: 'success', result: 'pong' }, 'and the session goes on')
  })

t.test('a model that has nothing to say, or to add to what it has done, is a success', async (t) => {
  const endpoint = await startModelEndpoint(t)
  const { runner, host } = await openAt(t, endpoint.url)
  runner.send(script({ thinking: 'Hm.' }))
  t.match(await host.turn(1), { subtype: 'success', result: '' })
  runner.send(script({ tools: [{ tool: 'none' }] }, {}))
  t.match(await host.turn(2), { subtype: 'success', result: '' })
  runner.send(script({ tools: [{ tool: 'none' }] }, { stopReason: 'UNHEARD_OF' }))
  t.match(await host.turn(3), { errors: ['The model ended its answer without a word (UNHEARD_OF).'] })
})

/** The end of a turn whose model answers with these parts, as the package of its vendor reads them. */
const endOf = (...parts: object[]) =>
  turnOf(async () => ({ stream: ReadableStream.from([{ type: 'stream-start', warnings: [] }, ...parts]) }))

function turnOf(doStream: () => Promise<object>, messages = [userMessage('Draw.')]) {
  const model = { specificationVersion: 'v3', provider: 'fake', modelId: 'fake', supportedUrls: {}, doStream }
  const context = {
    config: {},
    source: { open: () => model, redact: (text: string) => text },
    state: { messages, model: 'fake', totals: { numTurns: 0, costUsd: 0 } },
    prices: {},
    request: { system: '', tools: {}, claimId: () => true, onWarning: () => {}, drained: () => undefined },
    hold: { over: undefined },
    calls: { abandon: () => {} },
    emit: () => {},
  } as unknown as TurnContext
  const turn = { elapsedMs: 0, steps: 0, usage: NO_USAGE, work: null }
  return runTurn(context, turn, new AbortController().signal)
}

const used = { inputTokens: { total: 1 }, outputTokens: { total: 1 } }

t.test('what the package of a vendor cannot send is taken back as what the vendor refuses is', async (t) => {
  const image = { type: 'image' as const, data: 'aGk=', mediaType: 'image/svg+xml' }
  const result = { id: 'c', name: 'look', result: { content: [image] } }
  const call = { type: 'tool-call' as const, toolCallId: 'c', toolName: 'look', input: {} }
  const messages = [userMessage('Look.'), { role: 'assistant' as const, content: [call] }, toolMessage([result], true)]
  const message = 'Unsupported image mime type: image/svg+xml'
  const refuse = async () => {
    throw new UnsupportedFunctionalityError({ functionality: 'image', message })
  }
  t.match((await turnOf(refuse, messages)).errors, [message, /^The session goes on without what was refused: only the/])
  t.match(messages.at(-1)?.content, [{ output: { type: 'text', value: /^\[An image was left out/ } }])
})

t.test('an image alone is told as what a session cannot tell', async (t) => {
  const file = { type: 'file', mediaType: 'image/png', data: 'aGk=' }
  const finish = { type: 'finish', finishReason: { unified: 'stop', raw: 'STOP' }, usage: used }
  t.match(await endOf(file, finish), {
    subtype: 'error_during_execution',
    errors: [/^The model answered with what a session cannot tell \(image\/png\), and without a word/],
  })
})

t.test('a refusal in words of its own is told with them, and is no success without a word', async (t) => {
  const piece = (delta: object, finish_reason: string | null = null) => ({
    choices: [{ index: 0, delta, finish_reason }],
  })
  const pieces = [
    piece({ refusal: null }),
    piece({ refusal: 'I will ' }),
    piece({ refusal: 'not.' }),
    piece({}, 'stop'),
  ]
  const body = pieces.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('')
  const server = createServer((request, response) => {
    request.resume().once('end', () => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(body))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => server.close())
  const { runner, host } = await openAt(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`)
  runner.send('hi')
  t.match(await host.turn(1), { subtype: 'error_during_execution', errors: [/refused to answer/] })
  const message = { stopReason: 'refusal', content: [{ type: 'text', text: 'I will not.' }] }
  t.match(host.of('assistant_message')[0], { message })
})

t.test('an answer that tells its usage with every word, and no end, has broken off', async (t) => {
  const said = [
    { type: 'text-start', id: '0' },
    { type: 'text-delta', id: '0', delta: 'half an' },
    { type: 'text-end', id: '0' },
  ]
  const finish = (raw?: string) => ({ type: 'finish', finishReason: { unified: 'other', raw }, usage: used })
  t.match(await endOf(...said, finish()), {
    subtype: 'error_during_execution',
    errors: ['The answer of the model broke off.'],
  })
  t.match(await endOf(...said, finish('UNHEARD_OF')), { subtype: 'success', result: 'half an' })
})

const USED = { prompt_tokens: 1, completion_tokens: 1 }
const saying = (content: string, more: object = {}) => ({ choices: [{ index: 0, delta: { content } }], ...more })
const MESSAGE = { id: 'm', type: 'message', role: 'assistant', model: 'fake', content: [] }
const anthropicSaying = (text: string) => [
  { type: 'message_start', message: { ...MESSAGE, usage: { input_tokens: 1, output_tokens: 1 } } },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
  { type: 'content_block_stop', index: 0 },
]
const unnamed = { type: 'message_delta', delta: { stop_reason: null }, usage: { output_tokens: 2 } }
for (const [what, vendor, chunks, isWhole] of [
  ['usage alone behind it', 'openai-compatible', [saying('hi'), { choices: [], usage: USED }], false],
  ['usage with every word', 'openai-compatible', [saying('h', { usage: USED }), saying('i')], false],
  [
    'a blank reason with every word',
    'openai-compatible',
    [{ choices: [{ index: 0, delta: { content: 'hi' }, finish_reason: '' }] }],
    false,
  ],
  ['the end of its message', 'anthropic', [...anthropicSaying('hi'), unnamed, { type: 'message_stop' }], true],
  ['no end of its message', 'anthropic', [...anthropicSaying('hi'), unnamed], false],
] as const)
  t.test(`an answer of ${vendor} that names no reason of its end, with ${what}`, async (t) => {
    const server = createServer((request, response) => {
      request.resume().once('end', () => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        for (const chunk of chunks) response.write(`data: ${JSON.stringify(chunk)}\n\n`)
        response.end(vendor === 'anthropic' ? '' : 'data: [DONE]\n\n')
      })
    })
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    t.teardown(() => server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
    const { runner, host } = await openAt(t, url, vendor)
    runner.send('hi')
    t.match(
      await host.turn(1),
      isWhole
        ? { subtype: 'success', result: 'hi' }
        : { subtype: 'error_during_execution', errors: ['The answer of the model broke off.'] },
    )
  })

for (const [body, told] of [
  ['data: {nonsense', 'The provider sent what is no JSON: {nonsense'],
  ['<html>Welcome!</html>', 'The answer of the model broke off.'],
] as const)
  t.test(`nor is what Anthropic's package makes of ${body}`, async (t) => {
    const server = createServer((request, response) => {
      request.resume().once('end', () => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.end(`${body}\n\n`)
      })
    })
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    t.teardown(() => server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
    const { runner, host } = await openAt(t, url, 'anthropic')
    runner.send('hi')
    t.strictSame((await host.turn(1)).errors, [told])
  })

for (const vendor of ['openai-compatible', 'anthropic'])
  for (const status of [302, 307, 308])
    t.test(`a ${status} is not followed with the key of ${vendor}, and where it points is told`, async (t) => {
      const seen: string[] = []
      const server = createServer((request, response) => {
        seen.push(`${request.method} ${request.url}`)
        request.resume().once('end', () => response.writeHead(status, { location: '/elsewhere/k?key=k' }).end('moved'))
      })
      await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
      t.teardown(() => server.close())
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const { runner, host } = await openAt(t, `${url}/v1`, vendor, 'secret-key')
      runner.send('hi')
      const end = await host.turn(1)
      const told = `HTTP ${status}: The provider redirects to ${url}/elsewhere/k?key=k, which is not followed: `
      t.match(end, { subtype: 'error_during_execution', isError: true })
      t.match(end.errors?.[0], told)
      t.equal(seen.length, 1)
      t.match(seen[0], /^POST \/v1\//)
    })

t.test('counts that can be none are nothing, and parts of a token are none', async (t) => {
  const { url } = await startModelEndpoint(t)
  const { runner, host } = await openAt(t, url)
  const details = { prompt_tokens_details: { cached_tokens: 0 } }
  runner.send(script({ text: 'hi', usage: { prompt_tokens: 1e300, completion_tokens: 12.5, ...details } }))
  const none = { inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 }
  t.strictSame((await host.turn(1)).usage, { ...none, outputTokens: 13 })
  runner.send(script({ text: 'hi', usage: { prompt_tokens: -7, completion_tokens: 5, ...details } }))
  t.strictSame((await host.turn(2)).usage, { ...none, outputTokens: 5 })
})

t.test('what is not of the protocol is told in a sentence, by its beginning, and without the key', async (t) => {
  const frames = ['{ "message": "gone, said KEYKEY" }', 'hello', `{ "choices": "${'nonsense'.repeat(1000)}" }`]
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(`data: ${frames.shift()}\n\ndata: [DONE]\n\n`)
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => server.close())
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  const { runner, host } = await openAt(t, baseUrl, 'openai-compatible', 'KEYKEY')
  runner.send('hi')
  const misfit = 'The provider sent what its protocol does not have: '
  t.strictSame((await host.turn(1)).errors, [`${misfit}{"message":"gone, said [redacted]"}`])
  runner.send('hi')
  t.strictSame((await host.turn(2)).errors, ['The provider sent what is no JSON: hello'])
  runner.send('hi')
  const [error = ''] = (await host.turn(3)).errors ?? []
  t.ok(error.startsWith(`${misfit}{"choices":"nonsense`) && error.length < 250, error)
})

t.test('what is not of the protocol of anthropic is told as that where it is the first of an answer', async (t) => {
  const frames = ['{"hello":"KEYKEY"}', '5', '{"type":"message_start"}', '{oops']
  const url = await vendorThatSays(
    t,
    frames.map((frame) => ({ headers: { 'content-type': 'text/event-stream' }, body: `data: ${frame}\n\n` })),
  )
  const { runner, host } = await openAt(t, url, 'anthropic', 'KEYKEY')
  const strange = 'The provider sent what its protocol does not have: '
  for (const [turn, told] of [
    `${strange}{"hello":"[redacted]"}`,
    `${strange}5`,
    `${strange}{"type":"message_start"}`,
    'The provider sent what is no JSON: {oops',
  ].entries()) {
    runner.send('hi')
    t.strictSame((await host.turn(turn + 1)).errors, [told])
  }
})

t.test('the input of a call that is no JSON is not told again', async (t) => {
  const { url } = await startModelEndpoint(t)
  const { runner, host } = await openAt(t, url)
  const rawInput = `{ "path": "${'a'.repeat(1000)}`
  runner.send(script({ tools: [{ tool: 'fs_write', id: 'w1', rawInput }] }, { text: 'ok' }))
  t.equal((await host.turn(1)).result, 'ok')
  const { content, isError } = host.results.w1 ?? {}
  t.ok(isError)
  t.match(content, /^The call of fs_write is not valid: its input is no JSON: .{1,100}$/)
})

for (const vendor of ['openai-compatible', 'anthropic'])
  t.test(`a document in place of the stream of ${vendor} is told as that`, async (t) => {
    const html = '<!doctype html><title>Sign in</title>'
    const url = await vendorThatSays(t, [
      { body: ' {"error":{"message":"Suspended."}}' },
      { body: html, headers: { 'content-type': 'text/html; charset=utf-8' } },
    ])
    const { runner, host } = await openAt(t, url, vendor)
    const told = 'The provider answered with'
    runner.send('hi')
    t.strictSame((await host.turn(1)).errors, [
      `${told} application/json, not with a stream of events: {"error":{"message":"Suspended."}}`,
    ])
    runner.send('hi')
    t.strictSame((await host.turn(2)).errors, [`${told} text/html, not with a stream of events: ${html}`])
  })

t.test('a stream that is sent as another type is read all the same', async (t) => {
  const delta = { choices: [{ index: 0, delta: { content: 'fine' }, finish_reason: 'stop' }] }
  const url = await vendorThatSays(t, [{ body: `data: ${JSON.stringify(delta)}\n\ndata: [DONE]\n\n` }])
  const { runner, host } = await openAt(t, url)
  runner.send('hi')
  t.equal((await host.turn(1)).result, 'fine')
})

t.test('a stream without an end, and a call without a name, are told in sentences of their own', async (t) => {
  const frame = (delta: object) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`
  const call = { index: 0, id: 'a', function: { arguments: '{}' } }
  const headers = { 'content-type': 'text/event-stream' }
  const url = await vendorThatSays(t, [
    { headers, body: frame({ content: 'half' }) },
    { headers, body: frame({ tool_calls: [call] }) },
  ])
  const { runner, host } = await openAt(t, url)
  runner.send('hi')
  t.strictSame((await host.turn(1)).errors, ['The answer of the model broke off.'])
  runner.send('hi')
  t.strictSame((await host.turn(2)).errors, [
    `The provider sent what its protocol does not have: ${JSON.stringify(call)}`,
  ])
})

t.test('a refusal that is not written as its vendor would is told by its body, and when to try again', async (t) => {
  const url = await vendorThatSays(t, [
    { status: 404, body: '{"error":"model not loaded"}' },
    { status: 403, body: '<html><h1>No</h1><hr>proxy</html>', headers: { 'content-type': 'text/html' } },
    { status: 401, body: '' },
    { status: 402, body: '{"error":{"message":"Pay first"}}', headers: { 'retry-after': '3600' } },
  ])
  const { runner, host } = await openAt(t, url)
  const told = async (turn: number) => {
    runner.send('hi')
    return (await host.turn(turn)).errors?.[0]
  }
  t.equal(await told(1), 'HTTP 404: Not Found: {"error":"model not loaded"}')
  t.equal(await told(2), 'HTTP 403: Forbidden: No proxy')
  t.equal(await told(3), 'HTTP 401: Unauthorized')
  t.equal(await told(4), 'HTTP 402: Pay first (to be tried again in 3600 s)')
})

t.test('a refusal is told as it was said, whatever its status and its reason', async (t) => {
  for (const [status, reason] of [
    [503, 'Недоступно'],
    [999, 'Denied'],
  ] as const) {
    const server = createTcpServer((socket) => {
      socket.once('data', () => socket.end(`HTTP/1.1 ${status} ${reason}\r\ncontent-length: 2\r\n\r\nno`))
    })
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    t.teardown(() => server.close())
    const reached = eventStreamFetch(fetch, (text) => text)
    const answer = await reached(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    t.match(answer, { ok: false, status, statusText: reason })
    t.equal(await answer.text(), 'no')
  }
})

t.test('of a key that is told where a body is cut nothing is told', async (t) => {
  const key = `sk-${'7'.repeat(60)}`
  const body = JSON.stringify({ error: `${'no '.repeat(35)}${key}` })
  const url = await vendorThatSays(t, [{ status: 403, body }, { body }])
  const { runner, host } = await openAt(t, url, 'openai-compatible', key)
  for (const turn of [1, 2]) {
    runner.send('hi')
    t.match((await host.turn(turn)).errors, [/no no(?!.*sk-7)/])
  }
})

t.test('a stream that begins with much white space is read on as any other', async (t) => {
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode(' '.repeat(8192))),
  })
  const reached = eventStreamFetch(
    async () => new Response(body, { headers: { 'content-type': 'text/plain' } }),
    (text) => text,
  )
  const response = await reached('http://127.0.0.1')
  const reader = response.body!.getReader()
  t.equal((await reader.read()).value?.length, 8192)
  await reader.cancel()
})

for (const [vendor, inputTokens] of [
  ['anthropic', 1000],
  ['openai-compatible', 800],
] as const)
  t.test(`what an answer of ${vendor} has told of its usage counts when it breaks off or is interrupted`, async (t) => {
    const endpoint = await startModelEndpoint(t)
    const { runner, host } = await openAt(t, endpoint.url, vendor)
    const used = { inputTokens, cacheReadTokens: 200 }
    runner.send(script({ text: 'half', breaksOff: true }))
    t.match((await host.turn(1)).usage, used)
    runner.send(script({ text: 'half', breaksOff: true, hang: true }))
    await host.until(() => host.of('stream_delta').length > 1)
    await runner.interrupt()
    t.match(await host.turn(2), { subtype: 'interrupted', usage: used })
  })
