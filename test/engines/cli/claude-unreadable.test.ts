import t from 'tap'
import type { RunnerEvent } from '../../../src/engines/runner.js'
import { type Logger, silentLogger } from '../../../src/lib/logger.js'
import { wrongIn } from '../../../src/sessions/engine-events.js'
import { said, script, sdk, start, stream } from '../../fixtures/claude-engine.js'
import { MutatedValues } from '../../fixtures/mutated-values.js'
import { rounds } from '../../fixtures/rounds.js'

/** Another run: FUZZ_SEED=… */
const SEED = Number(process.env.FUZZ_SEED ?? 20260101)
const MESSAGES = rounds(1_000, 20_000)

t.beforeEach(() => sdk.present())

const user = (content: unknown) => ({
  ...{ type: 'user', uuid: 'u', parent_tool_use_id: null },
  message: { role: 'user', content },
})
const init = { type: 'system', subtype: 'init', session_id: 's', model: 'm', permissionMode: 'default' }
const NO_USAGE = { inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 }

t.test('a message that cannot be read is passed over, and the operator is told once of each type', async (t) => {
  const warnings: object[] = []
  const logger: Logger = { ...silentLogger, warn: (fields) => void warnings.push(fields) }
  const { runner, host } = await start(t, { logger })
  const before = host.events.length
  const unreadable = [
    ...[[], { type: 5 }, { type: 'assistant' }, { ...said({}), message: null }],
    ...[null, 5, [null], [{ type: 'text', text: 5 }], [{ type: 'tool_use', id: 'x' }]].map((content) => ({
      ...said({}),
      message: { content },
    })),
    ...[{ type: 'user' }, user(null), user([null]), user([{ type: null }])],
    ...[stream({ type: 5 }), { type: 'stream_event', parent_tool_use_id: null }, { ...stream({}), event: null }],
    ...[{ type: 'rate_limit_event' }, { type: 'rate_limit_event', rate_limit_info: [] }],
    ...[
      { ...init, model: 5 },
      { ...init, session_id: null },
      { ...init, permissionMode: {} },
    ],
    ...[null, [null]].map((tasks) => ({ type: 'system', subtype: 'background_tasks_changed', tasks })),
  ]
  t.match(await host.turn(runner, script(...unreadable, { type: 'result', result: 'pong' })), { result: 'pong' })
  t.match(
    host.events.slice(before).map(({ type }) => type),
    ['turn_completed'],
    'nothing of it is told',
  )
  const types = ['assistant', 'user', 'stream_event', 'rate_limit_event', 'system/init']
  t.match(warnings, [
    { sessionId: 'session-1', agent: 'claude', problem: 'type: Expected string.' },
    ...[...types, 'system/background_tasks_changed'].map((type) => ({ type, problem: /^[\w.]+: / })),
  ])
  t.equal(warnings.length, 7)
})

t.test('what a message can do without is left out where it is of another type', async (t) => {
  const { runner, host } = await start(t)
  const { parent_tool_use_id: _none, ...lone } = said({ type: 'text', text: 'hi' })
  await host.turn(
    runner,
    script(
      { ...lone, uuid: 5, message: { ...lone.message, model: {}, stop_reason: null } },
      { ...init, tools: 'Bash', mcp_servers: [null], skills: [5], claude_code_version: 5 },
      { type: 'result' },
    ),
  )
  t.match(host.of('assistant_message'), [
    { message: { content: [{ text: 'hi' }] }, uuid: /^[0-9a-f-]{36}$/, parentToolUseId: null },
  ])
  t.match(host.of('system_init').at(-1), { sdkSessionId: 's', tools: [], mcpServers: [], skills: [] })
  t.strictSame(host.events.filter(wrongIn), [])
})

t.test('of a list with an entry that cannot be read the others are', async (t) => {
  sdk.present({ answer: { models: [null, { value: 'm' }, { value: 5 }], commands: [{ name: 'help' }, 'x'] } })
  const warnings: object[] = []
  const logger: Logger = { ...silentLogger, warn: (fields) => void warnings.push(fields) }
  const { runner, host } = await start(t, { logger })
  t.match(host.of('capabilities'), [{ models: [{ value: 'm', displayName: 'm' }], commands: [{ name: 'help' }] }])
  const text = { type: 'text', text: 'hi' }
  const result = { type: 'tool_result', tool_use_id: 't', content: 'yes' }
  await host.turn(
    runner,
    script(
      { ...said({}), message: { content: [null, text, { type: 'text', text: 5 }] } },
      user([5, result]),
      { ...init, tools: ['Bash', 5], skills: [null, 'pdf'], mcp_servers: [null, { name: 'm', status: 'failed' }, {}] },
      { type: 'result' },
    ),
  )
  t.strictSame(
    [...host.of('assistant_message'), ...host.of('user_message')].map(({ message }) => message.content),
    [[text], [result]],
  )
  const servers = [{ name: 'm', status: 'failed' }]
  t.match(host.of('system_init').at(-1), { tools: ['Bash'], skills: ['pdf'], mcpServers: servers })
  t.strictSame(host.events.filter(wrongIn), [])
  t.match(
    warnings,
    ['assistant', 'user', 'system/init'].map((type) => ({ type })),
  )
})

t.test(
  'however it is told, the end of a turn ends it, and its figures are numbers, as are those after it',
  async (t) => {
    const ends: [end: object, told: object][] = [
      [{ usage: null, modelUsage: [null], total_cost_usd: 'much', num_turns: [null], duration_ms: '1' }, {}],
      [{ modelUsage: { m: null }, usage: 5, total_cost_usd: -1, num_turns: -1, duration_ms: 1e300 }, {}],
      [{ modelUsage: { m: { inputTokens: '7' } }, total_cost_usd: null }, { usage: NO_USAGE }],
      [
        { modelUsage: { m: null, other: { inputTokens: 7 } }, usage: { input_tokens: 1 } },
        { usage: { ...NO_USAGE, inputTokens: 7 } },
      ],
      [{ origin: null, user_message_uuids: 5, result: { toString: 1 }, terminal_reason: 5, errors: 'x' }, {}],
      [{ subtype: 5, is_error: false }, {}],
      [
        { subtype: 5, is_error: null },
        { subtype: 'error_during_execution', isError: true, errors: [String] },
      ],
      [{ subtype: 'success', is_error: 'no' }, {}],
      [{ subtype: null, is_error: true, result: 5, terminal_reason: {} }, { errors: ['error_during_execution'] }],
    ]
    const { runner, host } = await start(t)
    for (const [end, told] of ends) {
      const expected = 'errors' in told ? told : { subtype: 'success', isError: false, ...told }
      t.match(await host.turn(runner, script({ type: 'result', ...end })), expected, JSON.stringify(end))
    }
    t.match(await host.turn(runner, 'hi'), { result: 'pong' })
    t.strictSame(host.events.filter(wrongIn), [])
  },
)

t.test('an agent that says of itself what cannot be read is open all the same', async (t) => {
  sdk.present({ answer: { commands: 5, models: [null], account: null, current_permission_mode: [] } })
  const { host } = await start(t)
  t.match(host.of('system_init'), [{ apiKeySource: 'none', permissionMode: 'default' }])
  t.match(host.of('capabilities'), [{ models: [], commands: [] }])
})

t.test('a plan is read of calls and results of any type', async (t) => {
  const { runner, host } = await start(t)
  const call = (id: string, name: string, input: unknown) => said({ type: 'tool_use', id, name, input })
  const result = (id: string, content: unknown) => user([{ type: 'tool_result', tool_use_id: id, content }])
  const odd = { toString: 1 }
  await host.turn(
    runner,
    script(
      ...[call('a', 'TaskCreate', null), result('a', [null, 5, { text: odd }])],
      ...[call('b', 'TaskCreate', { subject: odd }), result('b', 'Task #1 created')],
      ...[call('c', 'TaskUpdate', { taskId: odd }), result('c', 'yes')],
      ...[call('d', 'TodoWrite', { todos: [{ content: 'e', status: odd }] }), result('d', {})],
      ...[call('f', 'TodoWrite', { todos: [{ content: 'g', status: 'constructor' }] }), result('f', 'yes')],
      { type: 'result' },
    ),
  )
  const told = (content: string) => ({ entries: [{ content, status: 'pending' }] })
  t.match(host.of('plan_updated'), [told('e'), told('g')])
})

t.test('what the SDK itself cannot read ends the session in words for a person', async (t) => {
  const { runner, host } = await start(t)
  const died = host.next('session_error')
  runner.send(script({ misread: true }))
  t.match(await died, { message: /^What the agent said cannot be read \(Cannot read properties of null .*\)\./ })
})

t.test('whatever it says, its turns end, and what is told has the shape of its type', async (t) => {
  const values = new MutatedValues(SEED)
  const block = { type: 'tool_use', id: 't', name: 'TaskCreate', input: { subject: 'x' } }
  const usage = { input_tokens: 5, output_tokens: 1, cache_read_input_tokens: 2 }
  const messages = [
    { ...said(block), message: { ...said(block).message, stop_reason: 'end_turn' } },
    user([{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: 'Task #1 created' }] }]),
    ...[
      { type: 'text_delta', text: 'h' },
      { type: 'input_json_delta', partial_json: '{' },
    ].map((delta) => stream({ type: 'content_block_delta', index: 0, delta })),
    ...[stream({ type: 'message_start', message: { usage } }), stream({ type: 'message_delta', usage, delta: {} })],
    ...[stream({ type: 'content_block_start' }), stream({ type: 'message_stop' })],
    { ...init, tools: ['Bash'], mcp_servers: [{ name: 'm', status: 'x' }], slash_commands: ['a'], skills: ['b'] },
    { type: 'system', subtype: 'status', status: 'compacting', compact_result: 'failed', compact_error: 'no' },
    { type: 'system', subtype: 'background_tasks_changed', tasks: [{ ambient: true }] },
    { type: 'rate_limit_event', rate_limit_info: { status: 'allowed' } },
    {
      ...{ type: 'result', subtype: 'success', is_error: false, num_turns: 1, duration_ms: 1, total_cost_usd: 0.5 },
      ...{ usage, modelUsage: { m: { inputTokens: 1 } }, result: 'x', terminal_reason: 'completed', errors: ['e'] },
      ...{ origin: { kind: 'human' } },
    },
  ]
  const { runner, host } = await start(t)
  for (let left = MESSAGES; left > 0; left--) {
    const message = values.spoiled(values.pick(messages))
    // those are steps of what stands in for the agent
    if (typeof message !== 'object' || message === null) continue
    const context = values.chance(0.5) ? [messages[4]!, messages[0]!] : []
    const from = host.events.length
    await host.turn(runner, script(...context, message, { type: 'result', result: 'pong' }))
    const misshapen = host.events.slice(from).filter(isMisshapen)
    if (misshapen.length > 0 || host.of('session_error').length > 0)
      return t.strictSame([message, misshapen, host.of('session_error')], [], `FUZZ_SEED=${SEED}`)
  }
  t.match(await host.turn(runner, 'hi'), { result: 'pong' })
})

/** A mode may be one that is newer than this gateway. */
function isMisshapen(event: RunnerEvent): boolean {
  const wrong = wrongIn(event)
  return wrong !== undefined && !/^(mode|permissionMode): Expected one of/.test(wrong.problem)
}
