import t from 'tap'
import { providerEngine } from '../../../src/engines/provider/index.js'
import { script, startModelEndpoint } from '../../fixtures/model-endpoint.js'
import { turns } from '../../fixtures/turns.js'
import { gate, open } from './host.js'

const compatible = (url: string) => ({
  id: 'openai-compatible',
  baseUrl: url,
  model: 'fake',
  models: ['fake', 'other'],
})

t.test('streams an answer and ends the turn with its usage', async (t) => {
  const { url, requests } = await startModelEndpoint(t)
  const { runner, host } = await open(providerEngine(), { provider: compatible(url) })
  t.teardown(() => runner.close())

  runner.send(script({ thinking: 'let me see', text: 'hello to you' }))
  const end = await host.turn()

  t.match(host.events[0], {
    type: 'system_init',
    model: 'fake',
    cwd: '/project',
    apiKeySource: 'none',
    permissionMode: 'default',
    mcpServers: [],
  })
  t.match(host.of('capabilities')[0]?.models, [{ value: 'fake', displayName: 'fake' }, { value: 'other' }])
  const [answer] = host.of('assistant_message')
  t.same(answer?.message, {
    role: 'assistant',
    content: [
      { type: 'thinking', thinking: 'let me see' },
      { type: 'text', text: 'hello to you' },
    ],
    model: 'fake',
    stopReason: 'end_turn',
    usage: { inputTokens: 800, outputTokens: 50, cacheCreationTokens: 0, cacheReadTokens: 200 },
  })
  const deltas = host.of('stream_delta')
  t.same(
    new Set(deltas.map((delta) => delta.uuid)),
    new Set([answer?.uuid]),
    'deltas carry the id of the message to be',
  )
  const said = (index: number) =>
    deltas.flatMap(({ blockIndex, delta }) => (blockIndex === index && 'text' in delta ? delta.text : [])).join('')
  t.same([said(0), said(1)], ['let me see', 'hello to you'])
  t.match(end, {
    subtype: 'success',
    isError: false,
    numTurns: 1,
    totalCostUsd: 0,
    result: 'hello to you',
    usage: { inputTokens: 800, outputTokens: 50, cacheCreationTokens: 0, cacheReadTokens: 200 },
  })
  t.equal(requests[0]?.headers.authorization, undefined)
})

t.test('sends no deltas when partial messages are not wanted', async (t) => {
  const { url } = await startModelEndpoint(t)
  const config = { includePartialMessages: false }
  const { runner, host } = await open(providerEngine(), { provider: compatible(url), config })
  t.teardown(() => runner.close())
  runner.send('ping')
  t.equal((await host.turn()).result, 'pong')
  t.same(host.of('stream_delta'), [])
  t.equal(host.of('assistant_message').length, 1)
})

t.test('runs a tool call between two model calls and keeps the transcript over turns', async (t) => {
  const { url, requests } = await startModelEndpoint(t)
  const config = { permissionMode: 'bypassPermissions' as const }
  const { runner, host } = await open(providerEngine(), { provider: compatible(url), config })
  t.teardown(() => runner.close())
  const write = { tool: 'fs_write', input: { path: 'a.txt', content: 'one' }, id: 'w1' }
  runner.send(script({ text: 'Writing.', tools: [write] }, { text: 'Done.' }))
  const end = await host.turn()
  t.match(end, { subtype: 'success', numTurns: 2, result: 'Done.', usage: { inputTokens: 1600, outputTokens: 100 } })

  const [first, second] = host.of('assistant_message')
  t.match(first?.message, {
    stopReason: 'tool_use',
    content: [
      { type: 'text', text: 'Writing.' },
      { type: 'tool_use', id: 'w1', name: 'fs_write', input: write.input },
    ],
  })
  t.match(second?.message.content, [{ type: 'text', text: 'Done.' }])
  const inputs = host.of('stream_delta').flatMap(({ delta }) => (delta.type === 'tool_input' ? delta.json : []))
  t.same(JSON.parse(inputs.join('')), write.input)
  t.match(host.of('user_message'), [
    {
      synthetic: true,
      parentToolUseId: null,
      message: {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'w1', content: 'Wrote a.txt (3 bytes).' }],
      },
    },
  ])
  const order = host.events.map((event) => event.type).filter((type) => type !== 'stream_delta')
  t.same(order.slice(2), ['assistant_message', 'user_message', 'assistant_message', 'turn_completed'])

  runner.send('and now?')
  t.match(await host.turn(2), { numTurns: 3, usage: { inputTokens: 800 } }, 'turns add up, usage is of the turn')
  t.same(
    requests[2]?.body.messages.map((message) => message.role),
    ['system', 'user', 'assistant', 'tool', 'assistant', 'user'],
  )
})

t.test('calls that need no leave run side by side, and every one gets its result', async (t) => {
  const { url, requests } = await startModelEndpoint(t)
  const started: string[] = []
  const bothStarted = gate()
  const engine = providerEngine({
    webSearch: async (query) => {
      started.push(query)
      if (started.length === 2) bothStarted.open()
      await bothStarted.opened
      return [{ title: query, url: 'https://example.com' }]
    },
  })
  const config = { permissionMode: 'bypassPermissions' as const }
  const { runner, host } = await open(engine, { provider: compatible(url), config })
  t.teardown(() => runner.close())
  const search = (query: string) => ({ tool: 'web_search', input: { query }, id: query })
  runner.send(script({ tools: [search('one'), search('two')] }, { text: 'ok' }))
  await host.turn()
  t.same(started, ['one', 'two'])
  t.same(Object.keys(host.results).sort(), ['one', 'two'])
  t.equal(requests[1]?.body.messages.filter((message) => message.role === 'tool').length, 2)
})

t.test('what the model gets wrong comes back to it as a tool error', async (t) => {
  const { url } = await startModelEndpoint(t)
  const { runner, host } = await open(providerEngine(), { provider: compatible(url) })
  t.teardown(() => runner.close())
  runner.send(
    script(
      {
        tools: [
          { tool: 'no_such_tool', id: 'unknown' },
          { tool: 'fs_write', id: 'not-json', rawInput: '{"path": "a' },
          { tool: 'fs_write', id: 'list', rawInput: '[1]' },
          {
            tool: 'fs_write',
            id: 'deep',
            rawInput: `{"path":"a","content":${'['.repeat(3_000)}${']'.repeat(3_000)}}`,
          },
          { tool: 'fs_write', id: 'poisoned', rawInput: '{"__proto__":{"path":"a"},"path":"a","content":""}' },
          { tool: 'fs_write', id: 'wrong', input: { path: 7, content: 'x' } },
          { tool: 'fs_read', id: 'outside', input: { path: '../secret' } },
        ],
      },
      { text: 'I see.' },
    ),
  )
  t.match(await host.turn(), { subtype: 'success', result: 'I see.' })
  t.match(host.results, {
    unknown: { isError: true, content: /no_such_tool/ },
    'not-json': { isError: true, content: /not valid/ },
    list: { isError: true, content: /not an object/ },
    deep: { isError: true, content: /deeper than 32 levels/ },
    poisoned: { isError: true, content: /not valid/ },
    wrong: { isError: true, content: /path: Expected string/ },
    outside: { isError: true, content: /leads outside/ },
  })
  t.same(host.asked, [], 'nobody is bothered with a call that cannot run')
})

t.test('a call id that an endpoint uses again becomes another one', async (t) => {
  const { url, requests } = await startModelEndpoint(t)
  const { runner, host } = await open(providerEngine(), { provider: compatible(url) })
  t.teardown(() => runner.close())
  const list = { tool: 'fs_list', id: 'call_0' }
  runner.send(script({ tools: [list] }, { tools: [list, { tool: 'fs_list', id: '' }] }, { text: 'ok' }))
  await host.turn()
  const used = host
    .of('assistant_message')
    .flatMap(({ message }) => (typeof message.content === 'string' ? [] : message.content))
    .flatMap((block) => (block.type === 'tool_use' && 'id' in block ? String(block.id) : []))
  t.equal(used[0], 'call_0')
  t.equal(new Set(used).size, 3, 'each call has its own id')
  t.same(Object.keys(host.results).sort(), [...used].sort(), 'and each result belongs to one')
  const sent = requests[2]?.body.messages.flatMap((message) => (message.tool_calls as { id: string }[]) ?? [])
  t.same(
    sent?.map((call) => call.id),
    used,
    'the model sees the same ids',
  )
})

t.test('an answer that is cut off in a tool call does not run it', async (t) => {
  const { url } = await startModelEndpoint(t)
  const config = { permissionMode: 'bypassPermissions' as const }
  const { runner, host } = await open(providerEngine(), { provider: compatible(url), config })
  t.teardown(() => runner.close())
  const write = { tool: 'fs_write', id: 'w', input: { path: 'a', content: 'half' } }
  runner.send(script({ tools: [write], stopReason: 'length' }))
  t.match(await host.turn(), { subtype: 'error_during_execution', isError: true, errors: [/cut off \(max_tokens\)/] })
  t.match(host.results, { w: { isError: true } })
  t.same(runner.files?.list(), [])
  runner.send('go on')
  t.equal((await host.turn(2)).result, 'pong')
})

t.test('an answer that is cut off, or refused by a filter, is no success, and its words are kept', async (t) => {
  const { url, requests } = await startModelEndpoint(t)
  const { runner, host } = await open(providerEngine(), { provider: compatible(url) })
  t.teardown(() => runner.close())
  runner.send(script({ text: 'half an', stopReason: 'length' }))
  const cut = await host.turn(1)
  t.match(cut, { subtype: 'error_during_execution', isError: true, errors: [/cut off \(max_tokens\)/] })
  t.notOk('result' in cut)
  t.match(host.of('assistant_message')[0]?.message, {
    content: [{ type: 'text', text: 'half an' }],
    stopReason: 'max_tokens',
  })
  runner.send(script({ stopReason: 'content_filter' }))
  t.match(await host.turn(2), { subtype: 'error_during_execution', isError: true, errors: [/\(refusal\)/] })
  runner.send('go on')
  t.match(await host.turn(3), { subtype: 'success', result: 'pong' })
  t.match(requests.at(-1)?.body.messages.slice(1, 3), [{ role: 'user' }, { role: 'assistant', content: 'half an' }])
})

t.test('an answer that ends for a call of a tool which did not come is no success', async (t) => {
  const { url } = await startModelEndpoint(t)
  const { runner, host } = await open(providerEngine(), { provider: compatible(url) })
  t.teardown(() => runner.close())
  runner.send(script({ text: 'I look into it', stopReason: 'tool_calls' }))
  const lost = await host.turn(1)
  t.match(lost, { subtype: 'error_during_execution', isError: true, errors: [/\(tool_use\), and no call came/] })
  t.match(host.of('assistant_message')[0]?.message.content, [{ type: 'text', text: 'I look into it' }])
  runner.send('go on')
  t.match(await host.turn(2), { subtype: 'success', result: 'pong' })
})

t.test('upstream refusals end the turn, name their status and leave the session usable', async (t) => {
  const { url, requests } = await startModelEndpoint(t)
  const engine = providerEngine({ env: { KEY: 'sk-secret' } })
  const { runner, host } = await open(engine, { provider: { ...compatible(url), apiKeyEnv: 'KEY' } })
  t.teardown(() => runner.close())
  t.match(host.events[0], { apiKeySource: 'KEY' })

  runner.send(script({ status: 401 }))
  t.match(await host.turn(1), { subtype: 'error_during_execution', isError: true, errors: ['HTTP 401: scripted 401'] })
  t.equal(requests.length, 1, 'a refusal is not tried again')
  t.equal(requests[0]?.headers.authorization, 'Bearer sk-secret')

  runner.send(script({ status: 503, times: 1, headers: { 'retry-after-ms': '1' }, text: 'recovered' }))
  t.match(await host.turn(2), { subtype: 'success', result: 'recovered' })
  t.equal(requests.length, 3, 'an outage is')

  runner.send(script({ status: 429, headers: { 'retry-after-ms': '1' } }))
  t.match(await host.turn(3), { isError: true, errors: ['HTTP 429: scripted 429 (after 3 attempts)'] })

  const saidBefore = host.of('stream_delta').length
  runner.send(script({ text: 'half an', hang: true }))
  await host.until(() => host.of('stream_delta').length === saidBefore + 2)
  requests.at(-1)?.drop()
  t.match(await host.turn(4), { subtype: 'error_during_execution', isError: true })
  t.match(host.of('assistant_message').at(-1)?.message.content, [{ type: 'text', text: 'half an' }], 'words are kept')

  runner.send('ping')
  t.match(await host.turn(5), { subtype: 'success', result: 'pong' })
  t.notMatch(JSON.stringify(host.events), /sk-secret/)
})

t.test('a key that the provider repeats in its refusal does not show', async (t) => {
  const { url } = await startModelEndpoint(t)
  const engine = providerEngine({ env: { KEY: 'scripted' } })
  const { runner, host } = await open(engine, { provider: { ...compatible(url), apiKeyEnv: 'KEY' } })
  t.teardown(() => runner.close())
  runner.send(script({ status: 401 }))
  t.same((await host.turn()).errors, ['HTTP 401: [redacted] 401'])
  runner.send(script({ status: 400, message: `${'x'.repeat(996)}scripted` }))
  t.notMatch((await host.turn(2)).errors?.[0], /scri/, 'nor a part of it, where the text is cut')
})

t.test('half a character, whoever says it, does not come into the transcript', async (t) => {
  const { url, requests } = await startModelEndpoint(t)
  const { runner, host } = await open(providerEngine(), { provider: compatible(url) })
  t.teardown(() => runner.close())
  const call = { tool: 'fs_read', id: 'r', rawInput: '{"path":"\\ud83d"}' }
  runner.send(`\ud83d ${script({ tools: [call] }, { text: 'ok' })}`)
  await host.turn()
  t.match(
    host.of('assistant_message')[0]?.message.content,
    [{ input: { path: '\ud83d' } }],
    'the log has what was said',
  )
  const [, said, made, told] = requests[1]!.body.messages
  t.match(said, { role: 'user', content: /^\ufffd / })
  t.match(made, { role: 'assistant', tool_calls: [{ function: { arguments: '{"path":"\ufffd"}' } }] })
  t.match(told, { role: 'tool' })
})

t.test('maxTurns counts the model calls of a turn', async (t) => {
  const { url, requests } = await startModelEndpoint(t)
  const { runner, host } = await open(providerEngine(), { provider: compatible(url), config: { maxTurns: 2 } })
  t.teardown(() => runner.close())
  const again = { tools: [{ tool: 'fs_list' }] }
  runner.send(script(again, again, again))
  t.match(await host.turn(), { subtype: 'error_max_turns', isError: true, numTurns: 2, errors: [/limit of 2/] })
  t.equal(requests.length, 2)
  t.equal(Object.keys(host.results).length, 2, 'the last calls still got their results')
  runner.send('ping')
  t.match(await host.turn(2), { subtype: 'success', numTurns: 3 }, 'the next turn counts anew')
})

t.test('cost comes from the price table and maxBudgetUsd bounds the session', async (t) => {
  const { url } = await startModelEndpoint(t)
  // 800 fresh input, 200 cached and 50 output tokens a call
  const engine = providerEngine({ prices: { fake: { input: 1000, output: 2000, cacheRead: 500 } } })
  const { runner, host } = await open(engine, { provider: compatible(url), config: { maxBudgetUsd: 1.5 } })
  t.teardown(() => runner.close())
  const again = { tools: [{ tool: 'fs_list' }] }
  runner.send(script(again, again, again))
  const end = await host.turn()
  t.match(end, { subtype: 'error_max_budget_usd', isError: true, errors: [/budget of 1.5 USD/] })
  t.ok(Math.abs(end.totalCostUsd - 2) < 1e-9, `two calls of 1 dollar each, got ${end.totalCostUsd}`)
  runner.send('ping')
  t.match(await host.turn(2), { subtype: 'error_max_budget_usd', numTurns: 2 }, 'no model call is left')
})

t.test('a model whose name every object has a member of has no price', async (t) => {
  const { url } = await startModelEndpoint(t)
  const engine = providerEngine({ prices: { fake: { input: 1000, output: 2000 } } })
  const provider = { id: 'openai-compatible', baseUrl: url }
  const { runner, host } = await open(engine, { provider, config: { model: 'constructor' } })
  t.teardown(() => runner.close())
  runner.send('ping')
  t.match(await host.turn(), { subtype: 'success', totalCostUsd: 0 })
})

t.test('a cost that the provider tells wins over the table', async (t) => {
  const { url } = await startModelEndpoint(t)
  const engine = providerEngine({ prices: { fake: { input: 1000, output: 2000 } } })
  const { runner, host } = await open(engine, { provider: compatible(url) })
  t.teardown(() => runner.close())
  runner.send(script({ text: 'hi', usage: { cost: 0.25 } }))
  t.equal((await host.turn()).totalCostUsd, 0.25)
})

t.test('an answer that breaks off is an error, and what it is known to have cost counts', async (t) => {
  const { url } = await startModelEndpoint(t)
  const engine = providerEngine({ prices: { fake: { input: 1000, output: 2000, cacheRead: 500 } } })
  const { runner, host } = await open(engine, { provider: compatible(url), config: { maxBudgetUsd: 1.5 } })
  t.teardown(() => runner.close())
  const usage = { inputTokens: 800, outputTokens: 50, cacheCreationTokens: 0, cacheReadTokens: 200 }
  runner.send(script({ text: 'half an', breaksOff: true }))
  t.match(await host.turn(1), {
    subtype: 'error_during_execution',
    errors: ['The answer of the model broke off.'],
    usage,
  })
  runner.send(script({ text: 'half an', breaksOff: true, error: 'overloaded' }))
  const end = await host.turn(2)
  t.match(end, { subtype: 'error_during_execution', errors: ['overloaded'], usage })
  t.ok(Math.abs(end.totalCostUsd - 2) < 1e-9, `two calls of 1 dollar each, got ${end.totalCostUsd}`)
  t.match(host.of('assistant_message').at(-1)?.message, { content: [{ type: 'text', text: 'half an' }], usage })
  runner.send('ping')
  t.match(await host.turn(3), { subtype: 'error_max_budget_usd' })
})

t.test('an answer of an anthropic model that breaks off is no success', async (t) => {
  const { url } = await startModelEndpoint(t)
  const engine = providerEngine({ env: { KEY: 'k' } })
  const provider = { id: 'anthropic', baseUrl: url, apiKeyEnv: 'KEY', model: 'fake' }
  const { runner, host } = await open(engine, { provider })
  t.teardown(() => runner.close())
  runner.send(script({ text: 'half an', breaksOff: true }))
  t.match(await host.turn(1), { subtype: 'error_during_execution', errors: ['The answer of the model broke off.'] })
  t.match(host.of('assistant_message').at(-1)?.message.content, [{ type: 'text', text: 'half an' }])
  runner.send('ping')
  t.match(await host.turn(2), { subtype: 'success', result: 'pong' })
})

t.test('refuses a message while a turn is in progress', async (t) => {
  const { url } = await startModelEndpoint(t)
  const { runner, host } = await open(providerEngine(), { provider: compatible(url) })
  t.teardown(() => runner.close())
  runner.send('ping')
  t.throws(() => runner.send('ping'), { code: 'SG_ERR_SESSION_BUSY' })
  await host.turn()
})

t.test('the next message may be sent from within turn_completed', async (t) => {
  const { url } = await startModelEndpoint(t)
  const { runner, host } = await open(providerEngine(), { provider: compatible(url) })
  t.teardown(() => runner.close())
  const emit = host.emit.bind(host)
  host.emit = (event) => {
    emit(event)
    if (event.type === 'turn_completed' && host.of('turn_completed').length === 1) runner.send('ping')
  }
  runner.send('ping')
  t.equal((await host.turn(2)).result, 'pong')
})

t.test('while its host is not drained it reads no more of its model', async (t) => {
  const endpoint = await startModelEndpoint(t)
  const provider = { id: 'openai-compatible', baseUrl: endpoint.url, model: 'fake' }
  const { runner, host } = await open(providerEngine(), { provider })
  t.teardown(() => runner.close())
  let drain = () => {}
  const drained = new Promise<void>((resolve) => {
    drain = () => {
      host.emit = emit
      host.drained = undefined
      resolve()
    }
  })
  const emit = host.emit.bind(host)
  host.emit = (event) => {
    emit(event)
    if (event.type === 'stream_delta') host.drained = drained
  }
  runner.send(script({ text: 'word '.repeat(1_000) }))
  await host.until(() => host.of('stream_delta').length === 1)
  await turns(100)
  t.equal(host.of('stream_delta').length, 1)
  drain()
  t.equal((await host.turn(1)).result, 'word '.repeat(1_000))
  t.equal(host.of('stream_delta').length, 1_000)
})
