import { mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ANSWER_MS, INTERRUPT_GRACE_MS } from '../../../src/engines/cli/control.js'
import { cliEngine } from '../../../src/engines/cli/index.js'
import { createWorkerServer } from '../../../src/server.js'
import { until } from '../../fixtures/build.js'
import { attach } from '../../fixtures/client.js'
import { processesOf } from '../../fixtures/processes.js'
import { ScriptedHost } from '../../fixtures/scripted-host.js'
import { VirtualClock } from '../../fixtures/virtual-clock.js'

const SDK = new URL('../../fixtures/scripted-claude-sdk.mjs', import.meta.url).href
const sdk = (await import(SDK)) as {
  queries: { options: { resume?: string; sessionId?: string }; calls: unknown[]; hear(): void }[]
}
const folder = () => realpathSync(mkdtempSync(join(tmpdir(), 'claude-deaf-')))
const script = (...steps: object[]) => JSON.stringify(steps)
const begun = {
  ...{ type: 'assistant', uuid: 'sdk-uuid', parent_tool_use_id: null },
  message: { id: 'm1', role: 'assistant', model: 'claude-x', content: [{ type: 'text', text: 'begun' }] },
}
const stream = (event: object) => ({ type: 'stream_event', parent_tool_use_id: null, event })
/** One call of the model to its end, and another one that is not over. */
const spent = [
  stream({
    type: 'message_start',
    message: { usage: { input_tokens: 7, output_tokens: 1, cache_read_input_tokens: 3 } },
  }),
  begun,
  stream({ type: 'message_delta', usage: { output_tokens: 20 } }),
  stream({ type: 'message_start', message: { usage: { input_tokens: 5, output_tokens: 1 } } }),
]
/** Says that it has begun before. */
const DEAF = script(...spent, { type: 'begun' }, { deaf: true }, { type: 'result', result: 'late' })

function engineOf(clock: VirtualClock) {
  const home = folder()
  const agents = [{ name: 'claude', env: { CLAUDE_PROCESS: '1' } }]
  return { cwd: home, agents, engine: cliEngine({ agents, claudeSdk: SDK, clock, env: { HOME: home } }) }
}

async function start(t: Test) {
  const clock = new VirtualClock()
  const { cwd, engine } = engineOf(clock)
  const runner = await engine({
    ...{ sessionId: 'session-1', config: { cwd }, profile: { name: 'p', engine: 'cli' } },
    bridge: { execute: () => Promise.reject(new Error('not here')) },
  })
  const host = new ScriptedHost()
  t.teardown(() => runner.close())
  await runner.start(host)
  return { clock, runner, host, query: sdk.queries.at(-1)! }
}

t.test('an agent that does not hear an interrupt is ended with its turn', async (t) => {
  const { clock, runner, host, query } = await start(t)
  const spoke = host.next('engine_event')
  runner.send(DEAF)
  await spoke
  const [pid] = processesOf('session-1')
  const over = host.next('turn_completed')
  const interrupted = runner.interrupt()
  await clock.advance(INTERRUPT_GRACE_MS - 1)
  t.equal(runner.isSpent, false)
  await clock.advance(1)
  await interrupted
  const usage = { inputTokens: 12, outputTokens: 21, cacheReadTokens: 3, cacheCreationTokens: 0 }
  t.match(await over, { subtype: 'interrupted', isError: false, usage }, 'what it is known to have cost')
  t.match([query.calls, runner.isSpent], [['interrupt'], true])
  t.notOk(processesOf('session-1').includes(pid!), 'its process is gone')
  t.match(host.of('assistant_message'), [{ message: { content: [{ text: 'begun' }] } }], 'what it had said is told')
  t.match(runner.snapshot!(), { state: { sdkSessionId: query.options.sessionId } })
  await runner.close()
  t.equal(host.of('turn_completed').length, 1)
  t.equal(host.of('session_error').length, 0, 'its end is no failure of the session')
})

const delta = (text: string) => stream({ type: 'content_block_delta', delta: { type: 'text_delta', text } })

t.test('one that is killed while it speaks: what it had said is told, and once how it ended', async (t) => {
  const { runner, host } = await start(t)
  const spoke = host.next('engine_event')
  const whole = { ...begun, message: { ...begun.message, content: [{ type: 'text', text: 'whole' }] } }
  const helper = (one: object) => ({ ...one, parent_tool_use_id: 'toolu_1' })
  runner.send(
    script(
      ...[stream({ type: 'message_start' }), delta('beg'), delta('un'), begun],
      ...[stream({ type: 'content_block_start' }), delta('half'), delta(' of it')],
      ...[stream({ type: 'message_start' }), delta('whole')].map(helper),
      helper(whole),
      ...[{ type: 'begun' }, { deaf: true }],
    ),
  )
  await spoke
  const died = host.next('session_error')
  process.kill(processesOf('session-1')[0]!, 'SIGKILL')
  t.match(await died, { message: /^The agent was ended by SIGKILL/ })
  t.match(
    host.of('assistant_message').map(({ message, parentToolUseId }) => [parentToolUseId, message.content]),
    [
      [null, [{ text: 'begun' }]],
      ['toolu_1', [{ text: 'whole' }]],
      [null, [{ text: 'half of it' }]],
    ],
  )
  t.equal(host.of('assistant_message').length, 3)
  const [, , half] = host.of('assistant_message')
  t.equal(half!.uuid, host.of('stream_delta')[2]!.uuid, 'it takes the place of its deltas')
})

t.test('one that is killed while it speaks: what its calls are known to have cost is counted, each once', async (t) => {
  const calls = (...more: object[]) => script(...spent, ...more, { type: 'begun' }, { deaf: true })
  const opened = { usage: { inputTokens: 5, outputTokens: 1 } }
  for (const [more, last] of [
    [[], [{ ...opened, content: [] }]],
    [[delta('ha'), delta('lf')], [{ ...opened, content: [{ text: 'half' }] }]],
    [[begun], [{ content: [{ text: 'begun' }] }, { ...opened, content: [] }]],
  ] as const) {
    const { runner, host } = await start(t)
    const spoke = host.next('engine_event')
    runner.send(calls(...more))
    await spoke
    const died = host.next('session_error')
    process.kill(processesOf('session-1')[0]!, 'SIGKILL')
    await died
    const told = host.of('assistant_message').map(({ message }) => message)
    t.match(told, [{ usage: { inputTokens: 7, outputTokens: 20, cacheReadTokens: 3 } }, ...last])
    t.equal(told.length, 1 + last.length)
  }
})

/** Goes on by itself after the end of its turn. */
const goesOn = (...steps: object[]) => script({ type: 'result' }, stream({ type: 'message_start' }), ...steps)
const ofItsOwn = { type: 'result', is_error: true, origin: { kind: 'task-notification' } }

t.test('a message that comes after the interrupt of a turn of its own does not end with that', async (t) => {
  const { clock, runner, host, query } = await start(t)
  await host.turn(runner, goesOn({ wait: true }, ofItsOwn))
  await until(() => !runner.canRelease, 'a turn of its own')
  const interrupted = runner.interrupt()
  const begins = { type: 'system', subtype: 'status', status: 'requesting' }
  const end = host.turn(runner, script(begins, { type: 'begun' }, { wait: true }, { type: 'result', is_error: true }))
  await interrupted
  await until(() => host.of('engine_event').length === 1, 'the message’s turn')
  t.same(query.calls, ['interrupt'], 'that is not interrupted, too')
  await clock.advance(INTERRUPT_GRACE_MS)
  t.equal(runner.isSpent, false)
  await runner.interrupt()
  t.match(await end, { subtype: 'interrupted', isError: false })
})

t.test('nor is it lost when the agent does not follow: it is to be sent again', async (t) => {
  const { clock, runner, host } = await start(t)
  await host.turn(runner, goesOn({ deaf: true }))
  await until(() => !runner.canRelease, 'a turn of its own')
  const interrupted = runner.interrupt()
  const lost = { subtype: 'error_during_execution', isError: true, errors: [/Send it again/] }
  const first = host.turn(runner, 'meanwhile')
  await clock.advance(INTERRUPT_GRACE_MS)
  await interrupted
  t.match(await first, lost)
  t.equal(runner.isSpent, true)
  t.match(await host.turn(runner, 'before its successor is there'), lost)
  t.equal(host.of('turn_completed').length, 3)
})

t.test('one that follows no interrupt of a turn of its own is ended with it', async (t) => {
  const { clock, runner, host } = await start(t)
  await host.turn(runner, goesOn({ deaf: true }))
  await until(() => !runner.canRelease, 'a turn of its own')
  const over = host.next('turn_completed')
  const interrupted = runner.interrupt()
  await clock.advance(INTERRUPT_GRACE_MS)
  await interrupted
  t.match(await over, { subtype: 'interrupted', isError: false })
  t.match([runner.isSpent, runner.canRelease], [true, true])
})

t.test('one that follows stays, and so does nothing of the interrupt', async (t) => {
  const { clock, runner, host } = await start(t)
  const spoke = host.next('engine_event')
  runner.send(script({ type: 'begun' }, { wait: true }, { type: 'result', subtype: 'error', is_error: true }))
  await spoke
  const over = host.next('turn_completed')
  await runner.interrupt()
  t.match(await over, { subtype: 'interrupted' })
  await clock.advance(INTERRUPT_GRACE_MS)
  t.equal(runner.isSpent, false)
  t.match(await host.turn(runner, 'hi'), { result: 'pong' })
})

t.test('one that does not answer refuses a mode and a model; what it takes later is told then', async (t) => {
  const { clock, runner, host, query } = await start(t)
  const spoke = host.next('engine_event')
  runner.send(DEAF)
  await spoke
  const refusal = { code: 'SG_ERR_ENGINE_REFUSED', message: 'The agent does not answer.' }
  const refused = [t.rejects(runner.setPermissionMode!('plan'), refusal), t.rejects(runner.setModel!('big'), refusal)]
  await clock.advance(ANSWER_MS)
  await Promise.all(refused)
  t.equal(host.of('permission_mode_changed').length + host.of('model_changed').length, 0)
  const over = host.next('turn_completed')
  query.hear()
  t.match(await over, { result: 'late' })
  t.match(host.of('permission_mode_changed'), [{ mode: 'plan' }])
  t.match(host.of('model_changed'), [{ model: 'big' }])
})

t.test('a session whose agent was ended so goes on with the next message, where it was', async (t) => {
  const clock = new VirtualClock()
  const { cwd, agents, engine } = engineOf(clock)
  const worker = createWorkerServer(
    { allowUnauthenticated: true, profiles: [{ name: 'claude', agent: 'claude' }], agents },
    { createCliRunner: engine, env: {} },
  )
  t.teardown(() => worker.close())
  const api = `${(await worker.listen(0)).url}/v1`
  const response = await fetch(`${api}/sessions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ cwd }),
  })
  const { id } = (await response.json()) as { id: string }
  const client = await attach(t, api, id)
  const ends = () => client.events.filter((event) => event.type === 'turn_completed')
  client.send({ type: 'user_message', text: 'hi' })
  await client.until(() => ends().length === 1)
  const first = sdk.queries.at(-1)!
  client.send({ type: 'user_message', text: DEAF })
  await client.until(({ events }) => events.some(({ type }) => type === 'engine_event'))
  client.send({ type: 'user_message', text: 'go on', id: 'later' })
  await client.until(({ frames }) => frames.some((frame) => frame.type === 'ack' && frame.id === 'later'))
  client.send({ type: 'interrupt', id: 'interrupt' })
  await until(() => first.calls.includes('interrupt'), 'the agent asked')
  await clock.advance(INTERRUPT_GRACE_MS)
  await client.until(() => ends().length === 3)
  t.match(ends(), [{ subtype: 'success' }, { subtype: 'interrupted', isError: false }, { result: 'pong' }])
  t.match(sdk.queries.at(-1)!.options, { resume: first.options.sessionId })
  t.equal(client.events.filter(({ type }) => type === 'session_error').length, 0)
  await client.until(({ frames }) => frames.some((frame) => frame.type === 'ack' && frame.id === 'interrupt'))
})
