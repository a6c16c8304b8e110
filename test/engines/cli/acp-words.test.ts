import type { SessionUpdate } from '@agentclientprotocol/sdk'
import t, { type Test } from 'tap'
import { SessionCost } from '../../../src/engines/cli/acp/cost.js'
import { AFTERWARDS_MS } from '../../../src/engines/cli/acp/runner.js'
import { ToolCalls } from '../../../src/engines/cli/acp/tool-calls.js'
import { AcpTranslator } from '../../../src/engines/cli/acp/translate.js'
import type { RunnerEvent } from '../../../src/engines/runner.js'
import { call, chunk, done, script, startAcp } from '../../fixtures/scripted-acp.js'
import { VirtualClock } from '../../fixtures/virtual-clock.js'

const start = (t: Test, name?: string) => startAcp(t, { name })

/** Who said what, in the order in which it is told. */
const said = (events: readonly RunnerEvent[]) =>
  events.flatMap((event) => {
    if (event.type !== 'assistant_message' && event.type !== 'user_message') return []
    const { content } = event.message
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content
    return blocks.map((block) => [
      event.parentToolUseId,
      'text' in block ? block.text : 'name' in block ? block.name : 'content' in block ? block.content : block.type,
    ])
  })

t.test('what is said while a call runs stands before its result', async (t) => {
  const { runner, host } = await start(t)
  const end = await host.turn(
    runner,
    script(
      ...[{ raw: call('c1') }, { raw: chunk('meanwhile') }, { raw: done('c1', 'listed') }, { raw: chunk('after') }],
    ),
  )
  t.strictSame(said(host.events), [
    [null, 'execute'],
    [null, 'meanwhile'],
    [null, 'listed'],
    [null, 'after'],
  ])
  t.equal(end.result, 'after')
})

t.test(
  'of a call that is told by its end alone, as qwen does of one that it refuses, the answer is no input',
  async (t) => {
    const { runner, host } = await start(t)
    const refused = { ...done('c1', 'Blocked: sleep 31'), status: 'failed', title: 'sleep 31' }
    await host.turn(runner, script({ raw: refused }, { raw: chunk('after') }))
    const [told] = host.of('assistant_message').map(({ message }) => message.content)
    t.match(told, [{ type: 'tool_use', id: 'c1', input: { title: 'sleep 31', content: undefined } }])
    const [result] = host.of('user_message').map(({ message }) => message.content)
    t.match(result, [{ tool_use_id: 'c1', content: 'Blocked: sleep 31', is_error: true }])
  },
)

t.test('the words of a helper that names its call are not the agent’s', async (t) => {
  const { runner, host } = await start(t)
  const _meta = { parentToolCallId: 'helper' }
  const end = await host.turn(
    runner,
    script(
      ...[{ raw: chunk('I ask. ') }, { raw: call('helper') }, { raw: chunk('found ', { _meta }) }],
      ...[{ raw: call('c2', { _meta }) }, { raw: done('c2', 'listed') }, { raw: chunk('it', { _meta }) }],
      ...[{ raw: done('helper', 'found it') }, { raw: chunk('It is there.') }],
    ),
  )
  t.strictSame(said(host.events), [
    [null, 'I ask. '],
    [null, 'execute'],
    ['helper', 'found '],
    ['helper', 'execute'],
    ['helper', 'listed'],
    ['helper', 'it'],
    [null, 'found it'],
    [null, 'It is there.'],
  ])
  t.match(
    host.of('stream_delta').map(({ parentToolUseId }) => parentToolUseId),
    [null, 'helper', 'helper', null],
  )
  t.equal(end.result, 'It is there.')
})

t.test('a helper of qwen, whose words look like the agent’s own, is told by the call that runs it', async (t) => {
  const { runner, host } = await start(t, 'qwen')
  const end = await host.turn(
    runner,
    script(
      ...[{ raw: call('helper', { _meta: { toolName: 'agent' }, kind: 'other' }) }, { raw: chunk('searching') }],
      ...[{ raw: done('helper', 'nothing') }],
    ),
  )
  t.strictSame(said(host.events), [
    [null, 'agent'],
    ['helper', 'searching'],
    [null, 'nothing'],
  ])
  t.equal(end.result, undefined, 'the agent itself has said nothing')
})

t.test('what comes from another session than the agent’s own is a helper’s', async (t) => {
  const { runner, host } = await start(t)
  const of = 'child-session'
  await host.turn(
    runner,
    script(
      ...[
        { raw: call('helper') },
        { raw: chunk('from below'), of },
        { raw: call('c2'), of },
        { raw: done('c2', 'x'), of },
      ],
      ...[{ raw: { sessionUpdate: 'session_info_update', title: 'of the helper' }, of }],
      ...[{ raw: done('helper', 'done') }, { raw: chunk('from above') }],
    ),
  )
  t.strictSame(said(host.events), [
    [null, 'execute'],
    ['helper', 'from below'],
    ['helper', 'execute'],
    ['helper', 'x'],
    [null, 'done'],
    [null, 'from above'],
  ])
  t.strictSame(host.of('engine_event'), [])
})

t.test('a note of the agent’s own is not glued to what its model says', async (t) => {
  const { runner, host } = await start(t)
  const end = await host.turn(
    runner,
    script(
      { raw: chunk('Warning.') },
      { raw: chunk('Hel', { messageId: 'm1' }) },
      { raw: chunk('lo', { messageId: 'm1' }) },
    ),
  )
  t.strictSame(said(host.events), [
    [null, 'Warning.'],
    [null, 'Hello'],
  ])
  t.equal(end.result, 'Hello')
})

t.test('a call of qwen has one name, whether it was asked for or not', async (t) => {
  const { runner, host } = await start(t, 'qwen')
  host.answer = ({ input }) => ({ behavior: 'allow', updatedInput: { ...input } })
  const options = [{ optionId: 'allow_once', name: 'Allow', kind: 'allow_once' }]
  const asked = (toolCallId: string, kind: string, rawInput: object) => ({
    asks: { toolCall: { ...{ toolCallId, status: 'pending', title: 'its words', kind }, rawInput }, options },
  })
  await host.turn(
    runner,
    script(
      asked('c1', 'execute', { command: 'ls' }),
      { raw: done('c1', 'listed', { _meta: { toolName: 'run_shell_command' } }) },
      { raw: call('c2', { _meta: { toolName: 'run_shell_command' } }) },
      asked('c3', 'edit', { file_path: 'a', content: 'b' }),
      asked('c4', 'edit', { file_path: 'a', old_string: 'b', new_string: 'c' }),
      asked('c5', 'fetch', { url: 'http://127.0.0.1' }),
    ),
  )
  t.strictSame(
    host.asks.map(({ toolName }) => toolName),
    ['run_shell_command', 'write_file', 'edit', 'web_fetch'],
  )
  t.strictSame(
    said(host.events).flatMap(([, name]) =>
      name === 'listed' || /^The turn ended while this was running/.test(String(name)) ? [] : name,
    ),
    ['run_shell_command', 'run_shell_command', 'write_file', 'edit', 'web_fetch'],
  )
})

t.test('an agent that calls with a list asks about an object, as whoever answers is shown one', async (t) => {
  const { runner, host } = await start(t)
  host.answer = () => ({ behavior: 'deny', message: 'no' })
  const options = [{ optionId: 'once', name: 'Allow', kind: 'allow_once' }]
  const toolCall = { toolCallId: 'c1', status: 'pending', title: 'its words', kind: 'execute', rawInput: ['ls', '-l'] }
  await host.turn(runner, script({ asks: { toolCall, options } }))
  t.strictSame(
    host.asks.map(({ input }) => input),
    [{ rawInput: ['ls', '-l'] }],
  )
})

t.test('a tool of a server that qwen asks for has its own name, and is taken for no other', async (t) => {
  const { runner, host } = await start(t, 'qwen')
  host.answer = () => ({ behavior: 'deny', message: 'no' })
  const asked = (toolCallId: string, tool: string, rawInput: object) => ({
    asks: {
      toolCall: { toolCallId, status: 'pending', title: 'its words', kind: 'other', rawInput },
      options: [
        { optionId: 'always', name: `Always Allow in project: ${tool}`, kind: 'allow_always' },
        { optionId: 'once', name: 'Allow', kind: 'allow_once' },
      ],
    },
  })
  await host.turn(
    runner,
    script(
      asked('c1', 'deploy', { branch: 'main' }),
      asked('c2', 'mcp__session-gateway__deploy', {}),
      asked('c3', 'trick', { questions: [] }),
    ),
  )
  t.strictSame(
    host.asks.map(({ toolName }) => toolName),
    ['mcp__?__deploy', 'mcp__?__mcp__session-gateway__deploy', 'mcp__?__trick'],
  )
})

t.test('the agent’s plan is told, by an update or by its tool', async (t) => {
  const { runner, host } = await start(t)
  const entries = [
    { content: 'look', status: 'completed', priority: 'high' },
    { content: 'do', status: 'in_progress', priority: 'low' },
  ]
  const todos = [
    { content: 'rest', status: 'cancelled' },
    { description: 'then', status: 'pending' },
  ]
  await host.turn(
    runner,
    script(
      { raw: { sessionUpdate: 'plan', entries } },
      { raw: call('c1', { name: 'todowrite', rawInput: { todos } }) },
      { raw: done('c1', 'written') },
      { raw: call('c2', { name: 'todowrite', rawInput: { todos: 'no list' } }) },
      { raw: done('c2', 'written') },
      { raw: call('c3', { name: 'todowrite', rawInput: { todos } }) },
      { raw: done('c3', 'refused', { status: 'failed' }) },
    ),
  )
  t.strictSame(
    host.of('plan_updated').map((event) => event.entries),
    [
      entries,
      [
        { content: 'rest', status: 'completed' },
        { content: 'then', status: 'pending' },
      ],
    ],
  )
  t.strictSame(host.of('engine_event'), [])
})

t.test('what is said after the end of a turn is a message of its own', async (t) => {
  const { runner, host } = await start(t)
  const late = host.next('stream_delta')
  await host.turn(runner, script({ late: 'afterwards ' }))
  await late
  const end = await host.turn(runner, script({ text: 'next' }))
  t.strictSame(said(host.events), [
    [null, 'afterwards '],
    [null, 'next'],
  ])
  t.equal(end.result, 'next')
})

t.test('a call that is told of after the end of a turn is no part of the next one', async (t) => {
  const { runner, host } = await startAcp(t, { name: 'opencode', modes: { default: 'ask' } })
  const call = { sessionUpdate: 'tool_call', toolCallId: 'left', title: 'task', kind: 'other', status: 'in_progress' }
  const late = host.next('assistant_message')
  await host.turn(runner, script({ late: call }))
  t.match((await late).message.content, [{ type: 'tool_use', id: 'left', name: 'task' }])
  const end = await host.turn(runner, script({ text: 'next' }))
  t.strictSame(said(host.events).at(-1), [null, 'next'], 'the words are nobody’s helper’s')
  t.equal(end.result, 'next')
  t.match(host.of('user_message'), [{ message: { content: [{ tool_use_id: 'left', is_error: true }] } }])
})

t.test('what is said after the end of a turn is told once it is known to be over', async (t) => {
  const clock = new VirtualClock()
  const { runner, host } = await startAcp(t, { clock })
  const sayLater = async (text: string) => {
    await host.turn(runner, script({ later: text }))
    const late = host.next('stream_delta')
    await runner.setModel!('large')
    await late
  }
  await sayLater('afterwards')
  await clock.advance(AFTERWARDS_MS - 1)
  t.strictSame(said(host.events), [])
  await clock.advance(1)
  t.strictSame(said(host.events), [[null, 'afterwards']])

  await sayLater('again')
  runner.tellRest?.()
  t.strictSame(said(host.events).at(-1), [null, 'again'], 'or somebody else is about to speak')
})

t.test('a message that does not end is told in parts, each as it is full, and loses nothing', async (t) => {
  const { runner, host } = await start(t)
  const piece = 'x'.repeat(3 * 1024 ** 2)
  await host.turn(runner, script(...['a', 'b', 'c'].map((end) => ({ raw: chunk(piece + end, { messageId: 'm' }) }))))
  const parts = said(host.events).map(([, text]) => text)
  t.equal(parts.join('') === `${piece}a${piece}b${piece}c`, true)
  t.equal(parts.length, 2)
  const [first, last] = host.of('assistant_message').map(({ uuid }) => uuid)
  t.not(first, last)
  t.strictSame(
    host.of('stream_delta').map(({ uuid }) => uuid),
    [first, first, last],
    'what is typed is part of the message that it ends in',
  )
})

t.test('an update of a kind that there is none of here is told as it is, in its place', async (t) => {
  const { runner, host } = await start(t)
  const update = { sessionUpdate: 'weather_update', sky: { is: 'blue' } }
  const printed = t.capture(console, 'error')
  await host.turn(runner, script({ raw: chunk('before', { messageId: 'm' }) }, { raw: update }, { text: 'after' }))
  t.strictSame(
    host.of('engine_event').map(({ payload }) => payload),
    [update],
  )
  t.strictSame(printed(), [], 'and not to whoever reads what the host prints')
})

t.test('an answer to nothing that was asked, and a second one, are nothing that a host prints', async (t) => {
  const { runner, host } = await start(t)
  const printed = t.capture(console, 'error')
  const answers = [0, 1, 77, '\u001b[31mforged', null].map((id) => JSON.stringify({ jsonrpc: '2.0', id, result: {} }))
  const end = await host.turn(runner, script(...answers.map((says) => ({ says })), { text: 'goes on' }))
  t.match(end, { subtype: 'success', result: 'goes on' })
  t.strictSame(printed(), [])
})

t.test('what an agent says costs the same however many of its calls have no end yet', (t) => {
  const calls = new ToolCalls(undefined)
  let looks = 0
  const { open } = calls
  calls.open = function () {
    looks += 1
    return open.call(this)
  }
  const emit = () => {}
  const cost = new SessionCost({ costUsd: 0 })
  const translator = new AcpTranslator({ emit, withDeltas: true, calls, traits: undefined, cost, title: undefined })
  for (let at = 0; at < 100; at++) {
    translator.translate(call(`c${at}`) as SessionUpdate)
    translator.translate(chunk('so') as SessionUpdate)
  }
  t.equal(open.call(calls).length, 100)
  t.equal(looks, 0, 'nobody goes through all of them')
  t.end()
})
