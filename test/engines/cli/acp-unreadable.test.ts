import t from 'tap'
import { type Logger, silentLogger } from '../../../src/lib/logger.js'
import { wrongIn } from '../../../src/sessions/engine-events.js'
import { MutatedValues } from '../../fixtures/mutated-values.js'
import { rounds } from '../../fixtures/rounds.js'
import { startRawAcp } from '../../fixtures/scripted-acp.js'

/** Another run: FUZZ_SEED=… */
const SEED = Number(process.env.FUZZ_SEED ?? 20260101)
const MESSAGES = rounds(1_000, 20_000)

const hello = (more: object) => ({
  result: { protocolVersion: 1, agentCapabilities: { loadSession: true, ...(more as { can?: object }).can }, ...more },
})
const opened = (more: object) => ({
  result: { sessionId: 's', modes: { currentModeId: 'ask' }, ...more },
})
const options = (...configOptions: object[]) => opened({ configOptions })
const model = (more: object) => ({ type: 'select', id: 'model', currentValue: 'small', options: [], ...more })

for (const [what, answers, told] of [
  ['its version', { initialize: hello({ agentInfo: { version: 5 } }) }, {}],
  ['its logins', { initialize: hello({ authMethods: 5, agentInfo: null }) }, {}],
  ['which model it uses', { 'session/new': options(model({ currentValue: 5 })) }, {}],
  ['which it uses of an earlier kind', { 'session/new': opened({ models: { currentModelId: {} }, modes: 'x' }) }, {}],
  [
    'the names of its models',
    {
      'session/new': options(
        model({ options: [{ value: 5 }, { value: 'small' }, { value: 'l', name: [], description: {} }] }),
      ),
    },
    {
      models: [
        { value: 'small', displayName: 'small' },
        { value: 'l', displayName: 'l' },
      ],
    },
  ],
  [
    'one of its options, and of its models,',
    { 'session/new': options(null!, model({ options: [null, { group: 'g', options: [5, { value: 's' }] }] })) },
    { models: [{ value: 's', displayName: 's' }] },
  ],
  [
    'one of its models of an earlier kind',
    {
      'session/new': opened({ models: { currentModelId: 's', availableModels: [null, { modelId: 's', name: 'S' }] } }),
    },
    { models: [{ value: 's', displayName: 'S' }] },
  ],
] as [string, Record<string, object>, object][])
  t.test(`an agent that tells ${what} in the wrong type is open all the same`, async (t) => {
    const { runner, host } = await startRawAcp(t, answers)
    t.match(host.of('system_init'), [{ sdkSessionId: 's' }])
    if ('models' in told) t.strictSame(host.of('capabilities').at(-1)?.models, told.models)
    t.strictSame(host.events.filter(wrongIn), [])
    t.match(await host.turn(runner, '[]'), { subtype: 'success' })
  })

t.test('a login that is offered in no words is none', async (t) => {
  const answers = {
    initialize: hello({ authMethods: [null] }),
    'session/new': { error: { code: -32000, message: 'Sign in' } },
  }
  await t.rejects(startRawAcp(t, answers), {
    code: 'SG_ERR_ENGINE_START',
    message:
      'The agent is not logged in: Sign in. Log in with the agent itself, or name one of its methods in agents[].auth: it offers none.',
  })
})

for (const sessions of [undefined, null, 5, [null, 5, { sessionId: 7 }]])
  t.test(
    `what an agent lists is not taken for its sessions where it is none: ${JSON.stringify(sessions)}`,
    async (t) => {
      const answers = {
        initialize: hello({ can: { sessionCapabilities: { list: {} } } }),
        'session/load': { error: { code: -32603, message: 'busy' } },
        'session/list': { result: { sessions } },
      }
      const state = {
        agent: 'scripted',
        sdkSessionId: 's',
        permissionMode: 'default',
        isFresh: false,
        numTurns: 1,
        costUsd: 0,
      }
      const started = startRawAcp(t, answers, { restore: { engine: 'cli', state } })
      await t.rejects(started, { message: /could not open the session: busy/ })
    },
  )

const update = (sessionUpdate: unknown, more: object = {}) => ({
  ...{ jsonrpc: '2.0', method: 'session/update' },
  params: { sessionId: 's', update: { sessionUpdate, ...more } },
})

t.test('a message that cannot be read is passed over, and the operator is told once of each type', async (t) => {
  const written = t.capture(console, 'error')
  const warnings: object[] = []
  const logger: Logger = { ...silentLogger, warn: (fields) => void warnings.push(fields) }
  const { runner, host } = await startRawAcp(t, {}, { logger })
  const before = host.events.length
  const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`
  const unreadable = [
    ...['null', '[]', '"x"', '{}', '{"result":5}', '{"error":5}', '{"id":{},"result":5}', '{"id":77,"result":5}'],
    ...['{"jsonrpc":"2.0","method":5}', `{"jsonrpc":"2.0","method":5,"params":${deep}}`],
    ...[null, 5, [], { sessionId: 's' }, { sessionId: 's', update: [] }].map((params) => ({ ...update(''), params })),
    ...[
      update(5),
      update('agent_message_chunk'),
      update('agent_message_chunk', { content: { type: 'text', text: 5 } }),
    ],
    ...[update('tool_call', { toolCallId: 'c' }), update('tool_call_update', { toolCallId: null })],
    ...[update('plan'), update('usage_update', { used: '1', size: 2 }), update('current_mode_update', { modeId: 'x' })],
    { ...update('notice'), params: { sessionId: 5, update: { sessionUpdate: 'notice' } } },
  ]
  t.match(await host.turn(runner, JSON.stringify(unreadable)), { subtype: 'success' })
  t.match(
    host.events.slice(before).map(({ type }) => type),
    ['turn_completed'],
    'nothing of it is told',
  )
  const kinds = ['agent_message_chunk', 'tool_call', 'tool_call_update', 'plan', 'usage_update', 'current_mode_update']
  t.match(warnings, [
    { sessionId: 'session-1', agent: 'scripted', problem: 'method: Expected string.' },
    ...['session/update', ...kinds, 'notice'].map((type) => ({ type, problem: /^[\w.]*: / })),
  ])
  t.equal(warnings.length, 9)
  t.strictSame(written(), [], 'nobody but the operator is told')
})

t.test('what is asked in another shape is refused, and the operator is told once', async (t) => {
  const warnings: object[] = []
  const logger: Logger = { ...silentLogger, warn: (fields) => void warnings.push(fields) }
  const { runner, host } = await startRawAcp(t, {}, { logger, answer: () => ({ behavior: 'allow' }) })
  const yes = { optionId: 'y', name: 'Yes', kind: 'allow_once' }
  const asked = { sessionId: 's', toolCall: { toolCallId: 'c', title: 'x' }, options: [yes] }
  const unreadable = [
    ...[null, [], {}, { ...asked, sessionId: 5 }, { ...asked, toolCall: null }, { ...asked, toolCall: { title: 'x' } }],
    ...[
      { ...asked, options: 'yes' },
      { ...asked, options: [null] },
      { ...asked, options: [{ ...yes, kind: 5 }] },
    ],
  ].map((params, at) => ({ jsonrpc: '2.0', id: at + 100, method: 'session/request_permission', params }))
  t.match(await host.turn(runner, JSON.stringify(unreadable)), { subtype: 'success' })
  t.strictSame(host.asks, [])
  t.match(warnings, [{ agent: 'scripted', type: 'session/request_permission', problem: /^: Expected object/ }])
  t.equal(warnings.length, 1)
})

t.test(
  'of what is asked with a way to answer that nobody knows, a newer one say, the others are offered',
  async (t) => {
    const warnings: object[] = []
    const logger: Logger = { ...silentLogger, warn: (fields) => void warnings.push(fields) }
    const { runner, host } = await startRawAcp(t, {}, { logger, answer: () => ({ behavior: 'allow' }) })
    const options = ['allow_for_today', 'allow_once', 'reject_once'].map((kind) => ({
      optionId: kind,
      name: kind,
      kind,
    }))
    const toolCall = { toolCallId: 'c', title: 'x', rawInput: { command: 'ls' } }
    const ask = { method: 'session/request_permission', params: { sessionId: 's', toolCall, options } }
    await host.turn(runner, JSON.stringify([{ jsonrpc: '2.0', id: 100, ...ask }]))
    t.match(host.asks, [{ toolUseId: 'c', input: { command: 'ls' } }])
    t.match(warnings, [{ type: 'session/request_permission', problem: /^options\.0\.kind: / }])
  },
)

t.test('whatever it says, its turns end, and what is told has the shape of its type', async (t) => {
  const written = t.capture(console, 'error')
  const values = new MutatedValues(SEED)
  const text = { type: 'text', text: 'hi' }
  const usage = { inputTokens: 5, outputTokens: 1, totalTokens: 8, cachedReadTokens: 2, thoughtTokens: 1 }
  const call = {
    ...{
      toolCallId: 'c',
      title: 'shell',
      kind: 'execute',
      status: 'in_progress',
      locations: [{ path: '/a', line: 1 }],
    },
    rawInput: { command: 'ls', server: 'a', tool: 'b', arguments: { x: 1 } },
    content: [
      { type: 'diff', path: '/a', oldText: 'a', newText: 'b' },
      { type: 'terminal', terminalId: 't' },
      { type: 'content', content: text },
    ],
    _meta: { is_mcp_tool_call: true, terminal_output_delta: { data: 'x' }, claudeCode: { parentToolUseId: 'p' } },
  }
  const todos = { name: 'TodoWrite', rawInput: { todos: [{ content: 'a', status: 'pending' }] } }
  const output = { result: { content: [text] }, output: 'x' }
  const configOptions = [model({ category: 'model', name: 'Model', options: [{ value: 'small', name: 'Small' }] })]
  const ways = ['allow_once', 'reject_once'].map((kind) => ({ optionId: kind, name: kind, kind }))
  const answer = { jsonrpc: '2.0', id: '$id' }
  const messages = [
    ...[update('user_message_chunk', { content: text }), update('agent_thought_chunk', { content: text })],
    update('agent_message_chunk', { content: text, messageId: 'm', _meta: { usage, parentToolUseId: 'c' } }),
    update('agent_message_chunk', { content: { type: 'image', data: 'x', mimeType: 'image/png' } }),
    ...[update('tool_call', call), update('tool_call', { ...call, ...todos, toolCallId: 't' })],
    ...['c', 't'].map((toolCallId) =>
      update('tool_call_update', { toolCallId, status: 'completed', content: [], rawOutput: output }),
    ),
    update('plan', { entries: [{ content: 'a', priority: 'high', status: 'pending' }] }),
    update('available_commands_update', {
      availableCommands: [{ name: 'a', description: 'b', input: { hint: 'h' } }],
    }),
    ...[update('current_mode_update', { currentModeId: 'ask' }), update('config_option_update', { configOptions })],
    ...[update('session_info_update', { title: 't' }), update('of_a_newer_protocol', { a: [1] })],
    update('usage_update', { used: 10, size: 100, cost: { amount: 0.5, currency: 'USD' } }),
    ...['session/request_permission', 'terminal/create'].map((method) => ({
      ...{ jsonrpc: '2.0', id: 'q', method },
      params: { sessionId: 's', toolCall: { ...call, toolCallId: 'd' }, options: ways },
    })),
    { jsonrpc: '2.0', method: '$/cancel_request', params: { requestId: 'q' } },
    { ...answer, result: { stopReason: 'end_turn', usage, _meta: { quota: { token_count: usage } } } },
    { ...answer, error: { code: -32603, message: 'no', data: { details: 'x', message: 'y' } } },
  ]
  for (const name of ['scripted', 'qwen']) {
    const { runner, host } = await startRawAcp(t, {}, { name })
    host.answer = () => ({ behavior: values.chance(0.5) ? 'allow' : 'deny' })
    for (let left = MESSAGES / 2; left > 0; left--) {
      const message = values.spoiled(values.pick(messages))
      const from = host.events.length
      await host.turn(runner, JSON.stringify([values.pick(messages), message]))
      const told = host.events.slice(from)
      const misshapen = [...told.filter(wrongIn), ...host.of('session_error'), ...written()]
      if (misshapen.length > 0 || /TypeError|Cannot read/.test(JSON.stringify(told)))
        return t.strictSame([message, misshapen, told], [], `FUZZ_SEED=${SEED}`)
    }
    t.match(await host.turn(runner, '[]'), { subtype: 'success' })
  }
})

for (const [what, answer, message] of [
  [
    'an error without text',
    { error: { code: -32000 } },
    'The agent could not begin: the agent gave no reason for its error -32000.',
  ],
  ['an error that is a text', { error: 'no disk' }, 'The agent could not begin: no disk'],
  [
    'an error of another shape',
    { error: { code: '5', message: { text: 'x' }, data: { message: 'no disk' } } },
    'The agent could not begin: no disk',
  ],
  ['nothing', {}, 'The agent does not speak the Agent Client Protocol: its answer to initialize is null.'],
] as [string, object, string][])
  t.test(`what an agent answers with ${what} is told in words`, async (t) => {
    await t.rejects(startRawAcp(t, { initialize: answer }), { code: 'SG_ERR_ENGINE_START', message })
  })

t.test('an answer that names no error has none', async (t) => {
  const { runner, host } = await startRawAcp(t)
  const answer = { id: '$id', error: null, result: { stopReason: 'max_turn_requests' } }
  t.match(await host.turn(runner, JSON.stringify([answer])), { subtype: 'error_max_turns' })
  await runner.setPermissionMode!('default')
})

t.test('what an agent counts beyond measure is not counted', async (t) => {
  const { runner, host } = await startRawAcp(t)
  const costs = [1, 1.5, 1e308, 1.7e308, 0.5, 1e308, 2].map((amount) =>
    update('usage_update', { used: 1, size: 2, cost: { amount, currency: 'USD' } }),
  )
  t.match(await host.turn(runner, JSON.stringify(costs)), { totalCostUsd: 3.5 })
})

t.test('what qwen asks about with an input that is no object is asked', async (t) => {
  const { runner, host } = await startRawAcp(t, {}, { name: 'qwen', answer: () => ({ behavior: 'allow' }) })
  const options = [{ optionId: 'y', name: 'Yes', kind: 'allow_once' }]
  const asks = ['execute', 'fetch', 'edit', 'other'].map((kind, at) => ({
    ...{ jsonrpc: '2.0', id: at + 100, method: 'session/request_permission' },
    params: { sessionId: 's', toolCall: { toolCallId: `c${at}`, title: 'x', kind, rawInput: 'ls' }, options },
  }))
  await host.turn(runner, JSON.stringify(asks))
  t.match(
    host.asks.map(({ toolName }) => toolName),
    ['execute', 'fetch', 'edit', 'other'],
  )
})
