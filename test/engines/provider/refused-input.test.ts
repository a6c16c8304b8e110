import t from 'tap'
import { providerEngine } from '../../../src/engines/provider/index.js'
import { script, startModelEndpoint } from '../../fixtures/model-endpoint.js'
import { open } from './host.js'

type TapTest = typeof t

async function session(t: Pick<TapTest, 'teardown'>, found = 'one') {
  const { url, requests } = await startModelEndpoint(t)
  const engine = providerEngine({
    webSearch: async () => [{ title: found, url: 'https://example.com' }],
  })
  const { runner, host } = await open(engine, {
    provider: { id: 'openai-compatible', baseUrl: url, model: 'fake' },
    config: { permissionMode: 'bypassPermissions' },
  })
  t.teardown(() => runner.close())
  /** What the model was shown last, but for the system prompt. */
  const shown = () => requests.at(-1)!.body.messages.slice(1)
  return { runner, host, shown }
}

const TAKEN_BACK = 'The session goes on without what was refused: the message was taken back.'

t.test('a message that the provider refuses to read is taken back, and the next one is answered', async (t) => {
  const { runner, host, shown } = await session(t)
  runner.send('one')
  t.equal((await host.turn(1)).result, 'pong')
  for (const [index, status] of [400, 413, 422].entries()) {
    runner.send(script({ status }))
    t.match(await host.turn(index + 2), {
      subtype: 'error_during_execution',
      errors: [`HTTP ${status}: scripted ${status}`, TAKEN_BACK],
    })
  }
  runner.send('two')
  t.match(await host.turn(5), { subtype: 'success', result: 'pong' })
  t.same(
    shown().map(({ content }) => content),
    ['one', 'pong', 'two'],
  )
  const { messages } = runner.snapshot!().state as { messages: unknown[] }
  t.equal(messages.length, 4, 'nor does a successor know of it')
})

t.test('so is one before it that was never read: only the refusal of a later one tells', async (t) => {
  const { runner, host, shown } = await session(t)
  runner.send(script({ status: 401 }))
  t.same((await host.turn(1)).errors, ['HTTP 401: scripted 401'], 'a key that is refused says nothing of the message')
  runner.send(script({ status: 400 }))
  t.match(await host.turn(2), { errors: ['HTTP 400: scripted 400', TAKEN_BACK] })
  runner.send('two')
  t.equal((await host.turn(3)).result, 'pong')
  t.same(shown(), [{ role: 'user', content: 'two' }])
})

t.test('a refusal after a tool has run leaves what it did, and the beginning of what is too long', async (t) => {
  const { runner, host, shown } = await session(t, 'long '.repeat(10_000))
  const write = { tool: 'fs_write', id: 'w', input: { path: 'a.txt', content: 'one' } }
  const search = { tool: 'web_search', id: 's', input: { query: 'x' } }
  runner.send(script({ tools: [write, search] }, { status: 400 }))
  const shortened = 'only the beginning of the last results of tools is kept for the model.'
  t.match(await host.turn(1), {
    subtype: 'error_during_execution',
    errors: ['HTTP 400: scripted 400', `The session goes on without what was refused: ${shortened}`],
  })
  t.match(String(host.results.s?.content), /^.{40000}/s, 'the log has all of it')
  t.match(runner.files?.list(), [{ path: 'a.txt' }])

  const lengths: number[] = []
  for (const turn of [2, 3, 4]) {
    runner.send('and now?')
    t.match(await host.turn(turn), { result: 'pong' })
    const [, , wrote, found] = shown() as { role: string; content: string }[]
    t.match(wrote, { role: 'tool', content: 'Wrote a.txt (3 bytes).' })
    t.match(found, {
      role: 'tool',
      content: /\n\[The rest, \d+ characters, was left out: the provider refused/,
    })
    lengths.push(found!.content.length)
  }
  t.equal(new Set(lengths).size, 1)
  t.ok(lengths[0]! < 5_000)
})

t.test('results that nobody refused stay whole, whatever is refused after they were read', async (t) => {
  const { runner, host, shown } = await session(t, 'long '.repeat(10_000))
  const search = { tool: 'web_search', id: 's', input: { query: 'x' } }
  runner.send(script({ tools: [search] }, { text: 'read' }))
  t.equal((await host.turn(1)).result, 'read')
  runner.send(script({ status: 400 }))
  t.match(await host.turn(2), { errors: ['HTTP 400: scripted 400', TAKEN_BACK] })
  runner.send('two')
  await host.turn(3)
  t.match(shown()[2], { role: 'tool', content: /^.{40000}/s })
  t.match(shown().slice(3), [{ content: 'read' }, { content: 'two' }])
})

for (const message of [
  'Your credit balance is too low to access the API. Please go to Plans & Billing.',
  'API key not valid. Please pass a valid API key.',
  'The model `fake` does not exist or you do not have access to it.',
  'invalid model: fake',
])
  t.test(`a message stays when it is not what is refused: ${message}`, async (t) => {
    const { runner, host, shown } = await session(t)
    const refused = script({ status: 400, message })
    runner.send(refused)
    t.same((await host.turn(1)).errors, [`HTTP 400: ${message}`])
    runner.send('once more')
    t.match(await host.turn(2), { result: 'pong' })
    t.match(shown(), [{ content: refused }, { content: 'once more' }])
    runner.send(refused)
    t.same((await host.turn(3)).errors, [`HTTP 400: ${message}`])
    runner.send(refused)
    t.same((await host.turn(4)).errors, [`HTTP 400: ${message}`, TAKEN_BACK], 'it may be the message all the same')
  })

const CONTEXT = [
  "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
  'prompt is too long: 210000 tokens > 200000 maximum',
  'input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again',
  'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
]
t.test('a conversation that is too long as a whole says what to do', async (t) => {
  const { runner, host } = await session(t)
  runner.send('one'.repeat(1_000))
  await host.turn(1)
  const whole = /^The conversation as a whole has become too long for the model: begin a new session/
  for (const [index, message] of CONTEXT.entries()) {
    runner.send(script({ status: 400, message }))
    t.match((await host.turn(index + 2)).errors, [`HTTP 400: ${message}`, TAKEN_BACK, whole])
  }
  runner.send(script({ status: 400, message: CONTEXT[0]! }) + ' '.repeat(5_000))
  t.equal((await host.turn(CONTEXT.length + 2)).errors?.length, 2, 'one long message does not make it so')
})

t.test('one value that is too long is not taken for a conversation that is', async (t) => {
  const { runner, host } = await session(t)
  runner.send('one'.repeat(1_000))
  await host.turn(1)
  for (const [index, message] of [
    "Invalid 'input[2].call_id': string too long. Expected a string with maximum length 64, but got a string with length 65 instead.",
    'max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.',
    'max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for fake',
  ].entries()) {
    runner.send(script({ status: 400, message }))
    t.same((await host.turn(index + 2)).errors, [`HTTP 400: ${message}`, TAKEN_BACK])
  }
})

const REFUSED = 'The model, or a filter of its vendor, refused to answer (refusal).'
const REFUSED_AGAIN = 'If it refuses what you say next, too, choose another model or begin a new session.'

/** One on a vendor that refuses in its answers. */
async function refusing(t: Pick<TapTest, 'teardown'>, id: string) {
  const { url, requests } = await startModelEndpoint(t)
  const engine = providerEngine({
    env: { KEY: 'k' },
    webSearch: async () => [{ title: 'long '.repeat(400), url: 'x' }],
  })
  const { runner, host } = await open(engine, {
    provider: { id, baseUrl: url, model: 'fake', apiKeyEnv: 'KEY' },
    config: { permissionMode: 'bypassPermissions' },
  })
  t.teardown(() => runner.close())
  const shown = () => JSON.stringify(requests.at(-1)!.body.messages)
  return { runner, host, shown }
}

t.test(
  'what a model of Anthropic refuses in its answer is not shown to it again: it would refuse all that follows',
  async (t) => {
    const { runner, host, shown } = await refusing(t, 'anthropic')
    runner.send('one')
    await host.turn(1)
    const call = { tool: 'fs_write', id: 'w', input: { path: 'a', content: 'b' } }
    const refused = script({ text: 'First you', tools: [call], stopReason: 'refusal' })
    runner.send(refused)
    t.match(await host.turn(2), { subtype: 'error_during_execution', errors: [REFUSED, TAKEN_BACK, REFUSED_AGAIN] })
    t.match(host.of('assistant_message').at(-1)?.message, {
      content: [{ text: 'First you' }, { type: 'tool_use' }],
      stopReason: 'refusal',
    })
    t.match(host.results, { w: { isError: true, content: REFUSED } }, 'clients see the end of each call')
    t.same(runner.files?.list(), [])
    runner.send('two')
    t.match(await host.turn(3), { subtype: 'success', result: 'pong' })
    t.match(shown(), /one.*pong.*two/)
    t.notMatch(shown(), /First you|refusal|"w"/)
  },
)

t.test('of a result of a tool that it refuses the beginning stays', async (t) => {
  const { runner, host, shown } = await refusing(t, 'anthropic')
  const search = { tool: 'web_search', id: 's', input: { query: 'x' } }
  runner.send(script({ tools: [search] }, { text: 'I', stopReason: 'refusal' }))
  const shortened = /without what was refused: only the beginning of the last results of tools/
  t.match((await host.turn(1)).errors, [REFUSED, shortened, REFUSED_AGAIN])
  runner.send('two')
  await host.turn(2)
  t.match(shown(), /The rest, \d+ characters, was left out/)
})

t.test('other vendors refuse what they say nothing to; what they cut off is kept', async (t) => {
  const { runner, host, shown } = await refusing(t, 'openai-compatible')
  runner.send(script({ stopReason: 'content_filter' }))
  t.same((await host.turn(1)).errors, [REFUSED, TAKEN_BACK, REFUSED_AGAIN])
  runner.send(script({ text: 'half', stopReason: 'content_filter' }))
  t.same((await host.turn(2)).errors, [REFUSED])
  runner.send('two')
  t.match(await host.turn(3), { subtype: 'success', result: 'pong' })
  t.match(shown(), /"half"/)
})
