import { jsonSchema } from 'ai'
import t, { type Test } from 'tap'
import { type ProviderEngineOptions, providerEngine } from '../../../src/engines/provider/engine.js'
import { keptAnswer, withoutThinking } from '../../../src/engines/provider/kept-answer.js'
import { type ScriptedAnswer, script, startModelEndpoint } from '../../fixtures/model-endpoint.js'
import { open } from './host.js'

// What vendors refuse to read although their own models wrote it: one such part would keep a session from every further call.

/** What the model is shown of its answers with the message after them. */
async function shownAfter(t: Test, vendor: string, ...answers: ScriptedAnswer[]) {
  const endpoint = await startModelEndpoint(t)
  const provider = { id: vendor, baseUrl: endpoint.url, apiKeyEnv: 'KEY', model: 'fake' }
  const { runner, host } = await open(providerEngine({ env: { KEY: 'k' } }), { provider })
  t.teardown(() => runner.close())
  runner.send(script(...answers))
  const end = await host.turn(1)
  runner.send('go on')
  await host.turn(2)
  const { messages } = endpoint.requests.at(-1)!.body
  return { end, host, messages, answers: messages.filter(({ role }) => role === 'assistant') }
}

t.test('blank text beside a call is not shown again', async (t) => {
  const call = { tool: 'fs_list', id: 'call-1' }
  const { answers, host } = await shownAfter(t, 'anthropic', { text: '\n\n', tools: [call] }, { text: 'done' })
  t.match(answers, [{ content: [{ type: 'tool_use', id: 'call-1' }] }, { content: [{ type: 'text', text: 'done' }] }])
  t.match(host.of('assistant_message')[0]?.message.content, [{ type: 'text', text: '\n\n' }], 'clients see all of it')
})

t.test('an answer of nothing but blank text is not shown again', async (t) => {
  const { answers, end } = await shownAfter(t, 'anthropic', { text: ' \n' })
  t.same(answers, [])
  t.match(end, { subtype: 'success', result: ' \n' })
})

t.test('thinking that nothing follows is not shown again', async (t) => {
  const cut = await shownAfter(t, 'anthropic', { thinking: 'Let me see', stopReason: 'max_tokens' })
  t.same(cut.answers, [])
  t.match(cut.end, { subtype: 'error_during_execution' })
  const blank = await shownAfter(t, 'anthropic', { thinking: 'Let me see', text: '\n' })
  t.same(blank.answers, [])
})

t.test('thinking before a call, or before what is said, is', async (t) => {
  const call = { tool: 'fs_list', id: 'call-1' }
  const { answers } = await shownAfter(
    t,
    'anthropic',
    { thinking: 'A list', tools: [call] },
    { thinking: 'All there', text: 'done' },
  )
  t.match(answers, [
    { content: [{ type: 'thinking' }, { type: 'tool_use' }] },
    { content: [{ type: 'thinking' }, { type: 'text' }] },
  ])
})

for (const [name, shown] of [
  ['functions.fs_list', 'unknown_functions_fs_list'],
  ['', 'unknown_'],
  ['x'.repeat(300), `unknown_${'x'.repeat(56)}`],
  ['constructor', 'unknown_constructor'],
  ['delete_all', 'delete_all'],
] as const)
  t.test(`a call of "${name.slice(0, 20)}", which is no tool, is shown with a name that one can have`, async (t) => {
    const call = { tool: name, id: 'call-1' }
    const { answers, host, messages } = await shownAfter(t, 'anthropic', { tools: [call] }, { text: 'done' })
    t.match(answers[0], { content: [{ type: 'tool_use', id: 'call-1', name: shown }] })
    t.match(host.results, { 'call-1': { content: `There is no tool ${name}.`, isError: true } })
    t.match(messages[2], { content: [{ type: 'tool_result', tool_use_id: 'call-1' }] })
    t.match(host.of('assistant_message')[0]?.message.content, [{ type: 'tool_use', name }], 'clients see its own')
  })

/** What the model is shown of the result of a tool of an MCP server. */
async function shownResult(t: Test, vendor: string, result: object) {
  const endpoint = await startModelEndpoint(t)
  const execute = async () => result
  const tools = async () => ({ look: { description: 'Looks.', inputSchema: jsonSchema({ type: 'object' }), execute } })
  const server = { tools } as unknown as NonNullable<ProviderEngineOptions['mcpServers']>[string]
  const provider = { id: vendor, baseUrl: endpoint.url, apiKeyEnv: 'KEY', model: 'fake' }
  const { runner, host } = await open(providerEngine({ env: { KEY: 'k' }, mcpServers: { things: server } }), {
    provider,
  })
  t.teardown(() => runner.close())
  host.decide = () => ({ behavior: 'allow' })
  runner.send(script({ tools: [{ tool: 'mcp__things__look', id: 'call-1' }] }, { text: 'done' }))
  await host.turn(1)
  const { content } = endpoint.requests[1]!.body.messages.at(-1)!
  return { host, content }
}

const IMAGE = { type: 'image', data: 'ZG90', mimeType: 'image/png' }

t.test('blank text of a tool beside its image is not shown', async (t) => {
  const { content } = await shownResult(t, 'anthropic', { content: [{ type: 'text', text: '\n' }, IMAGE] })
  const [result] = content as { content: { type: string }[] }[]
  t.same(
    result?.content.map(({ type }) => type),
    ['image'],
  )
})

for (const [what, result] of [
  ['that says nothing', { content: [{ type: 'text', text: '' }] }],
  ['that says nothing in two parts', { content: [IMAGE, IMAGE].map(() => ({ type: 'text', text: ' ' })) }],
  ['that fails without a word', { content: [{ type: 'text', text: '\n' }], isError: true }],
] as const)
  t.test(`a tool ${what} is shown with words: vendors refuse a result that has none`, async (t) => {
    const { content, host } = await shownResult(t, 'anthropic', result)
    t.match(content, [{ type: 'tool_result', tool_use_id: 'call-1', content: '(no output)' }])
    t.match(host.results['call-1'], { isError: 'isError' in result })
    t.equal((await shownResult(t, 'openai-compatible', result)).content, '(no output)')
  })

t.test('so is one that fails with an image alone', async (t) => {
  const { content } = await shownResult(t, 'anthropic', { content: [IMAGE], isError: true })
  t.match(content, [{ type: 'tool_result', content: '(no output)', is_error: true }])
})

t.test('an image is not written out as text where a provider takes none in the result of a tool', async (t) => {
  const result = { content: [{ type: 'text', text: 'The page:' }, IMAGE] }
  const { content, host } = await shownResult(t, 'openai-compatible', result)
  t.equal(content, 'The page:\n[An image was left out: this provider takes none in the result of a tool]')
  t.match(host.results['call-1'], { content: [{ text: 'The page:' }, { type: 'image' }] }, 'clients see it')
})

for (const [model, behind] of [
  ['mistral-medium-latest', ['assistant', 'user']],
  ['mistralai/Devstral-Small', ['assistant', 'user']],
  ['open-mixtral-8x7b', ['assistant', 'user']],
  ['a-model', ['user']],
] as const)
  t.test(`behind results of tools ${model} is shown ${behind.join(', ')}, whatever ended the turn there`, async (t) => {
    const endpoint = await startModelEndpoint(t)
    const provider = { id: 'openai-compatible', baseUrl: endpoint.url, model }
    const { runner, host } = await open(providerEngine(), { provider, config: { maxTurns: 1 } })
    t.teardown(() => runner.close())
    const call = { tool: 'fs_list', id: 'call-1' }
    runner.send(script({ tools: [call] }))
    t.match(await host.turn(1), { subtype: 'error_max_turns' })
    runner.send(script({ tools: [call] }))
    t.match(await host.turn(2), { subtype: 'error_max_turns' })
    runner.send('go on')
    t.match(await host.turn(3), { subtype: 'success' })
    const { messages } = endpoint.requests.at(-1)!.body
    const turn = ['user', 'assistant', 'tool']
    t.same(
      messages.map(({ role }) => role),
      ['system', ...turn, ...behind.slice(0, -1), ...turn, ...behind],
    )
  })

t.test('what one model thought is not shown to another', async (t) => {
  const endpoint = await startModelEndpoint(t)
  const provider = { id: 'anthropic', baseUrl: endpoint.url, apiKeyEnv: 'KEY', models: ['one', 'two'] }
  const { runner, host } = await open(providerEngine({ env: { KEY: 'k' } }), { provider })
  t.teardown(() => runner.close())
  const thoughts = (n: number) => {
    const { messages } = endpoint.requests[n - 1]!.body
    return (messages as { content: { type: string }[] }[]).flatMap(({ content }) => content).map(({ type }) => type)
  }
  const write = { tool: 'fs_write', id: 'call-1', input: { path: 'a', content: '' } }
  const prompt = script(
    { thinking: 'First', text: 'said', tools: [{ tool: 'fs_list', id: 'call-0' }] },
    { thinking: 'A file', tools: [write] },
    { text: 'done' },
  )
  runner.send(prompt)
  const { answer } = await host.nextQuestion()
  t.same(thoughts(2).filter((type) => type === 'thinking').length, 1, 'the model itself is shown it')
  await runner.setModel?.('one')
  await runner.setModel?.('two')
  answer({ behavior: 'allow' })
  t.match(await host.turn(1), { result: 'done' })
  t.equal(endpoint.requests[2]?.body.model, 'two')
  t.same(thoughts(3), ['text', 'text', 'tool_use', 'tool_result', 'tool_use', 'tool_result'])
})

t.test('thinking that is mere text is: models that think refuse a call of a tool without any', async (t) => {
  const endpoint = await startModelEndpoint(t)
  const provider = { id: 'openai-compatible', baseUrl: endpoint.url, apiKeyEnv: 'KEY', models: ['one', 'two'] }
  const { runner, host } = await open(providerEngine({ env: { KEY: 'k' } }), { provider })
  t.teardown(() => runner.close())
  runner.send(script({ thinking: 'A list', tools: [{ tool: 'fs_list', id: 'call-1' }] }, { text: 'done' }))
  await host.turn(1)
  await runner.setModel?.('two')
  runner.send('go on')
  await host.turn(2)
  const { model, messages } = endpoint.requests.at(-1)!.body
  t.equal(model, 'two')
  t.match(
    messages.filter(({ role }) => role === 'assistant'),
    [{ reasoning_content: 'A list', tool_calls: [{ id: 'call-1' }] }, { content: 'done' }],
  )
})

t.test('what was said after thinking that is left out is no item of its vendor any more', async (t) => {
  const item = (itemId: string, more = {}) => ({ providerOptions: { openai: { itemId, ...more } } })
  const text = { type: 'text' as const, text: 'said' }
  const thought = { type: 'reasoning' as const, text: '', ...item('rs_1', { reasoningEncryptedContent: 'x' }) }
  t.strictSame(
    withoutThinking(
      { role: 'assistant', content: [thought, { ...text, ...item('msg_1', { phase: 'final' }) }] },
      'two',
    ),
    { role: 'assistant', content: [{ ...text, providerOptions: { openai: { phase: 'final' } } }] },
  )
  const unthought = { role: 'assistant' as const, content: [{ ...text, ...item('msg_1') }] }
  t.strictSame(withoutThinking(unthought, 'two'), unthought)
})

t.test('a call has an id that every vendor takes where another model is shown it, and so has its result', async (t) => {
  const endpoint = await startModelEndpoint(t)
  const provider = { id: 'openai-compatible', baseUrl: endpoint.url, apiKeyEnv: 'KEY', models: ['one', 'two', 'three'] }
  const { runner, host } = await open(providerEngine({ env: { KEY: 'k' } }), { provider })
  t.teardown(() => runner.close())
  const shown = () => {
    const messages = endpoint.requests.at(-1)!.body.messages as {
      tool_calls?: { id: string }[]
      tool_call_id?: string
    }[]
    return messages.flatMap(({ tool_calls, tool_call_id }) => tool_calls?.map(({ id }) => id) ?? tool_call_id ?? [])
  }
  const long = 'x'.repeat(65)
  const list = { tool: 'fs_list', id: long }
  const write = { tool: 'fs_write', id: 'functions.fs_write:0', input: { path: 'a', content: '' } }
  runner.send(script({ tools: [list] }, { tools: [write] }, { text: 'done' }))
  const { answer, ask } = await host.nextQuestion()
  t.equal(ask.toolUseId, write.id)
  t.same(shown(), [long, long], 'the model itself may have put into an id what it wants to read again')
  await runner.setModel?.('two')
  answer({ behavior: 'allow' })
  t.match(await host.turn(1), { result: 'done' })
  const [first, , second] = shown()
  t.same(shown(), [first, first, second, second])
  t.match([first, second], [/^[\w-]{1,64}$/, /^[\w-]{1,64}$/])
  t.match(host.results, { [long]: {}, [write.id]: {} }, 'clients see its own')
  runner.send(script({ tools: [list] }, { text: 'done' }))
  await host.turn(2)
  t.not(shown().at(-1), long, 'an id that a client has seen stays the one call')
  runner.send(script({ tools: [{ ...list, id: first! }] }, { text: 'done' }))
  await host.turn(3)
  t.equal(shown().filter((id) => id === first).length, 2, 'nor is one that a model was shown another call')
})

t.test('nor is it where the session was restored in between', async (t) => {
  const endpoint = await startModelEndpoint(t)
  const provider = { id: 'openai-compatible', baseUrl: endpoint.url, apiKeyEnv: 'KEY', models: ['one', 'two'] }
  const engine = providerEngine({ env: { KEY: 'k' } })
  const before = await open(engine, { provider })
  t.teardown(() => before.runner.close())
  before.runner.send(script({ tools: [{ tool: 'fs_list', id: 'functions.fs_list:0' }] }, { text: 'done' }))
  await before.host.turn(1)
  const { runner, host } = await open(engine, { provider, restore: before.runner.snapshot!() })
  t.teardown(() => runner.close())
  await runner.setModel?.('two')
  runner.send('hi')
  await host.turn(1)
  const calls = () =>
    endpoint.requests.at(-1)!.body.messages.flatMap(({ tool_calls }) => (tool_calls as { id: string }[]) ?? [])
  const [{ id } = { id: '' }] = calls()
  runner.send(script({ tools: [{ tool: 'fs_list', id }] }, { text: 'done' }))
  await host.turn(2)
  t.equal(new Set(calls().map((call) => call.id)).size, 2)
})

t.test(
  'a session that goes on with the default model, its own no longer being listed, is shown so as well',
  async (t) => {
    const endpoint = await startModelEndpoint(t)
    const engine = providerEngine({ env: { KEY: 'k' } })
    const provider = { id: 'anthropic', baseUrl: endpoint.url, apiKeyEnv: 'KEY' }
    const before = await open(engine, { provider: { ...provider, models: ['one', 'two'] } })
    t.teardown(() => before.runner.close())
    before.runner.send(script({ thinking: 'A list', tools: [{ tool: 'fs_list', id: 'call-1' }] }, { text: 'done' }))
    await before.host.turn(1)
    const { runner, host } = await open(engine, {
      provider: { ...provider, models: ['two'] },
      restore: before.runner.snapshot!(),
    })
    t.teardown(() => runner.close())
    runner.send('go on')
    await host.turn(1)
    const { model, messages } = endpoint.requests.at(-1)!.body
    t.equal(model, 'two')
    t.match(messages[1], { content: [{ type: 'tool_use', id: 'call-1' }] })
  },
)

t.test('thinking that a vendor sealed does not end an answer, behind a call neither', async (t) => {
  const call = { id: 'c', name: 'fs_list', input: {} }
  const made = { type: 'tool-call' as const, toolCallId: 'c', toolName: 'fs_list', input: {} }
  const thought = { type: 'reasoning' as const, text: 'And now' }
  const sealed = { ...thought, providerOptions: { anthropic: { signature: 'x' } } }
  const kept = (last: typeof thought) => keptAnswer({ role: 'assistant', content: [made, last] }, [call])
  t.strictSame(kept(sealed), { role: 'assistant', content: [made] })
  t.strictSame(kept(thought), { role: 'assistant', content: [made, thought] })
})

t.test(
  'thinking that is signed with an id alone stays for all but models of Anthropic, as DeepSeek wants it',
  async (t) => {
    const made = { type: 'tool-call' as const, toolCallId: 'c', toolName: 'fs_list', input: {} }
    const answer = (signature: string) => {
      const thought = { type: 'reasoning' as const, text: 'A list', providerOptions: { anthropic: { signature } } }
      return { role: 'assistant' as const, content: [thought, made] }
    }
    const byId = answer('91cfbb94-554b-4136-8e21-fa02280d56ed')
    t.strictSame(withoutThinking(byId, 'deepseek-v4-flash'), byId)
    t.strictSame(withoutThinking(byId, 'claude-opus'), { role: 'assistant', content: [made] })
    t.strictSame(withoutThinking(answer('EqoBCkgIARAB'), 'deepseek-v4-flash'), { role: 'assistant', content: [made] })
  },
)
