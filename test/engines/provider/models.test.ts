import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { type ProviderEngineOptions, providerEngine } from '../../../src/engines/provider/index.js'
import { script, startModelEndpoint } from '../../fixtures/model-endpoint.js'
import { type Opening, open } from './host.js'

const build = (provider: Opening['provider'], options: ProviderEngineOptions = {}, more: Partial<Opening> = {}) =>
  open(providerEngine({ env: {}, ...options }), { provider, ...more })

t.test('a provider from a package that is installed is imported when it is named', async (t) => {
  const { url, requests } = await startModelEndpoint(t)
  const provider = { id: 'anthropic', baseUrl: url, model: 'fake-claude', apiKeyEnv: 'MY_KEY' }
  const { runner, host } = await build(provider, { env: { MY_KEY: 'sk-mine' } })
  t.teardown(() => runner.close())
  t.match(host.events[0], { model: 'fake-claude', apiKeySource: 'MY_KEY' })

  const write = { tool: 'fs_write', id: 'w', input: { path: 'a.txt', content: 'x' } }
  runner.send(script({ thinking: 'well', text: 'Writing.', tools: [write] }, { text: 'Done.' }))
  const { answer } = await host.nextQuestion()
  answer({ behavior: 'allow' })
  t.match(await host.turn(), {
    subtype: 'success',
    result: 'Done.',
    usage: { inputTokens: 2000, outputTokens: 100, cacheCreationTokens: 600, cacheReadTokens: 400 },
  })
  t.match(host.of('assistant_message')[0]?.message.content, [
    { type: 'thinking', thinking: 'well' },
    { type: 'text', text: 'Writing.' },
    { type: 'tool_use', id: 'w', name: 'fs_write' },
  ])
  t.match(
    host.of('engine_event').map(({ payload }) => payload),
    [{ type: 'model_warning', warning: { feature: 'maxOutputTokens' } }],
    'warnings of the package are events, told once',
  )
  t.equal(host.of('engine_event').length, 1)
  t.equal(requests[0]?.path, '/v1/messages')
  t.equal(requests[0]?.headers['x-api-key'], 'sk-mine')
  const answered = requests[1]?.body.messages.at(1)?.content
  t.match(answered, [{ type: 'thinking', thinking: 'well', signature: 'signature' }, { text: 'Writing.' }, { id: 'w' }])
})

t.test('a model of OpenAI is shown the session itself, not what its vendor has kept of it', async (t) => {
  // biome-ignore lint/suspicious/noExplicitAny: a body of which a few fields are read
  const asked: any[] = []
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const piece of request) text += piece
    asked.push(JSON.parse(text))
    const content = [{ type: 'output_text', text: `answer ${asked.length}`, annotations: [] }]
    const item = { type: 'message', id: `msg_${asked.length}`, role: 'assistant', status: 'completed', content }
    const about = { id: `resp_${asked.length}`, object: 'response', created_at: 1, model: 'm' }
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 }
    const delta = { item_id: item.id, output_index: 0, content_index: 0, delta: content[0]!.text }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const frame of [
      { type: 'response.created', response: { ...about, status: 'in_progress', output: [] } },
      { type: 'response.output_item.added', output_index: 0, item: { ...item, content: [] } },
      { type: 'response.output_text.delta', ...delta },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { ...about, status: 'completed', output: [item], usage } },
    ])
      response.write(`data: ${JSON.stringify(frame)}\n\n`)
    response.end()
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => server.close())
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  const { runner, host } = await build({ id: 'openai', model: 'm', baseUrl }, { env: { OPENAI_API_KEY: 'sk' } })
  t.teardown(() => runner.close())
  for (const turn of [1, 2]) {
    runner.send(`question ${turn}`)
    t.match(await host.turn(turn), { subtype: 'success', result: `answer ${turn}` })
  }
  t.equal(asked[1].store, false)
  t.match(asked[1].input.slice(-3), [
    { role: 'user', content: [{ text: 'question 1' }] },
    { role: 'assistant', content: [{ text: 'answer 1' }] },
    { role: 'user', content: [{ text: 'question 2' }] },
  ])
})

t.test('a package that is not installed is named with the line that installs it', async (t) => {
  const provider = { id: 'google', model: 'gemini' }
  await t.rejects(build(provider, { env: { GOOGLE_GENERATIVE_AI_API_KEY: 'x' } }), {
    code: 'SG_ERR_ENGINE_START',
    statusCode: 502,
    message: /npm i @ai-sdk\/google@\^3$/,
  })
})

t.test('a variable that is not set is named', async (t) => {
  const missing = (name: string) => ({ code: 'SG_ERR_ENGINE_START', message: new RegExp(`variable ${name} `) })
  const base = { baseUrl: 'http://127.0.0.1:1', model: 'm' }
  await t.rejects(build({ id: 'openai-compatible', ...base, apiKeyEnv: 'MY_KEY' }), missing('MY_KEY'))
  await t.rejects(build({ id: 'openai', ...base }), missing('OPENAI_API_KEY'))
  await t.rejects(build({ id: 'anthropic', ...base, apiKeyEnv: 'EMPTY' }, { env: { EMPTY: '' } }), missing('EMPTY'))
})

t.test('the variable of the provider itself is read when the profile names none', async (t) => {
  const { runner, host } = await build({ id: 'openai', model: 'm' }, { env: { OPENAI_API_KEY: 'sk' } })
  t.match(host.events[0], { apiKeySource: 'OPENAI_API_KEY' })
  await runner.close()
})

t.test('what a profile leaves out is said', async (t) => {
  const refused = (message: RegExp) => ({ code: 'SG_ERR_ENGINE_START', message })
  await t.rejects(build({ id: 'openai-compatible', model: 'm' }), refused(/baseUrl/))
  await t.rejects(build({ id: 'openai-compatible', baseUrl: 'http://127.0.0.1:1' }), refused(/names no model/))
  await t.rejects(build({ id: 'constructor', model: 'm' }), refused(/Known here: demo, openai-compatible, openai/))
  const create = providerEngine()
  const context = { sessionId: 's', config: { cwd: '/' }, bridge: { execute: () => Promise.reject(new Error()) } }
  await t.rejects(
    async () => create({ ...context, profile: { name: 'p', engine: 'provider' } }),
    refused(/p names no provider/),
  )
})

t.test('models: the default, the list, and the change between two turns', async (t) => {
  const { url, requests } = await startModelEndpoint(t)
  const provider = { id: 'openai-compatible', baseUrl: url, models: ['one', 'two'] }
  const { runner, host } = await build(provider)
  t.teardown(() => runner.close())
  t.match(host.events[0], { model: 'one' })
  await runner.setModel?.('two')
  runner.send('ping')
  await host.turn()
  const errors = [{ path: 'model', message: /one, two/ }]
  await t.rejects(runner.setModel!('three'), { code: 'SG_ERR_UNSUPPORTED', message: /one, two/, errors })
  await runner.setModel?.(undefined)
  runner.send('ping')
  await host.turn(2)
  t.same(
    requests.map((request) => request.body.model),
    ['two', 'one'],
  )
  t.match(host.of('model_changed'), [{ model: 'two' }, { model: 'one' }])
  t.equal(host.of('model_changed').length, 2)
  t.match(host.of('assistant_message')[0]?.message, { model: 'two' })
})

t.test('a session can begin with a listed model only', async (t) => {
  const provider = { id: 'openai-compatible', baseUrl: 'http://127.0.0.1:1', model: 'one', models: ['two'] }
  const { host } = await build(provider, {}, { config: { model: 'two' } })
  t.match(host.events[0], { model: 'two' })
  t.match(
    host.of('capabilities')[0]?.models.map(({ value }) => value),
    ['one', 'two'],
  )
  await t.rejects(build(provider, {}, { config: { model: 'three' } }), { code: 'SG_ERR_UNSUPPORTED', statusCode: 400 })
})

t.test('instructions of the profile follow those of the engine', async (t) => {
  const { url, requests } = await startModelEndpoint(t)
  const provider = { id: 'openai-compatible', baseUrl: url, model: 'm' }
  const { runner, host } = await build(provider, {}, { session: { instructions: 'Speak in rhyme.' } })
  t.teardown(() => runner.close())
  runner.send('ping')
  await host.turn()
  t.match(requests[0]?.body.messages[0], { role: 'system', content: /scratch filesystem.*\n\nSpeak in rhyme\.$/ })
})
