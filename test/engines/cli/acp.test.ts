import { existsSync, mkdtempSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type CliEngineOptions, cliEngine } from '../../../src/engines/cli/index.js'
import type { RunnerSnapshot, SessionRunnerConfig } from '../../../src/engines/runner.js'
import { isRunning, whenGone } from '../../fixtures/processes.js'
import { ACP_MODES, SCRIPTED_ACP, script } from '../../fixtures/scripted-acp.js'
import { ScriptedHost } from '../../fixtures/scripted-host.js'
import { turns } from '../../fixtures/turns.js'

interface World {
  config?: Partial<SessionRunnerConfig>
  env?: Record<string, string>
  restore?: RunnerSnapshot
  options?: CliEngineOptions
}

/** A runner of the scripted agent that has not been started. */
async function build(t: Test, { config, env, restore, options }: World = {}) {
  const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'acp-')))
  const engine = cliEngine({
    agents: [
      { name: 'scripted', command: process.execPath, args: [SCRIPTED_ACP], modes: ACP_MODES, ...(env && { env }) },
    ],
    ...options,
  })
  const runner = await engine({
    sessionId: 'session-1',
    config: { cwd, ...config },
    profile: { name: 'p', engine: 'cli', agent: 'scripted' },
    bridge: { execute: () => Promise.reject(new Error('not here')) },
    ...(restore && { restore }),
  })
  const host = new ScriptedHost()
  t.teardown(() => runner.close())
  return { runner, host, cwd }
}

/** A runner that has been started. */
async function start(t: Test, world?: World) {
  const built = await build(t, world)
  await built.runner.start(built.host)
  return built
}

t.test('tells what it is before the first prompt, once', async (t) => {
  const { runner, host, cwd } = await start(t, { config: { mcpServers: { files: { command: 'x' } } } })
  t.match(host.events[0], {
    type: 'system_init',
    sdkSessionId: 'scripted-session',
    model: 'small',
    cwd,
    permissionMode: 'default',
    agent: 'scripted',
    engineVersion: '1.2.3',
    mcpServers: [{ name: 'files', status: 'unknown' }],
  })
  t.match(host.of('capabilities')[0]?.models, [
    { value: 'small', displayName: 'Small' },
    { value: 'large', displayName: 'Large', description: 'slow' },
  ])
  await host.turn(runner, 'hi')
  t.equal(host.of('system_init').length, 1)
})

t.test('an answer streams, and the message that completes it has the same uuid', async (t) => {
  const { runner, host } = await start(t)
  const end = await host.turn(runner, script({ thought: 'hm' }, { text: 'two words' }))
  const [message] = host.of('assistant_message')
  t.match(message?.message.content, [
    { type: 'thinking', thinking: 'hm' },
    { type: 'text', text: 'two words' },
  ])
  t.strictSame(
    host.of('stream_delta').map(({ uuid, blockIndex, delta }) => [uuid === message?.uuid, blockIndex, delta]),
    [
      [true, 0, { type: 'thinking', text: 'hm' }],
      [true, 1, { type: 'text', text: 'two ' }],
      [true, 1, { type: 'text', text: 'words' }],
    ],
  )
  t.match(end, { subtype: 'success', isError: false, result: 'two words', numTurns: 1 })
  // What came from the cache is counted among the input by this agent, as its total shows.
  t.strictSame(end.usage, { inputTokens: 60, outputTokens: 20, cacheCreationTokens: 0, cacheReadTokens: 40 })
})

t.test('nobody gets deltas who does not want them', async (t) => {
  const { runner, host } = await start(t, { config: { includePartialMessages: false } })
  await host.turn(runner, 'hi')
  t.equal(host.of('stream_delta').length, 0)
  t.equal(host.of('assistant_message').length, 1)
})

t.test('a tool call asks, runs when allowed, and appears as use and result', async (t) => {
  const { runner, host } = await start(t)
  host.answer = ({ input }) => ({ behavior: 'allow', updatedInput: { ...input } })
  await host.turn(runner, script({ text: 'so' }, { tool: 'shell', input: { command: 'ls' }, ask: true, result: 'a b' }))
  t.match(host.asks, [{ toolName: 'shell', toolUseId: 'call-1', input: { command: 'ls' }, title: 'shell' }])
  t.match(
    host.of('assistant_message').map(({ message }) => message.content),
    [[{ type: 'text', text: 'so' }], [{ type: 'tool_use', id: 'call-1', name: 'shell', input: { command: 'ls' } }]],
  )
  t.match(host.of('user_message'), [
    { synthetic: true, message: { content: [{ type: 'tool_result', tool_use_id: 'call-1', content: 'a b' }] } },
  ])
})

t.test('a denied call does not run, and its end is told although the agent does not tell it', async (t) => {
  const { runner, host } = await start(t)
  host.answer = () => ({ behavior: 'deny', message: 'no' })
  const end = await host.turn(runner, script({ tool: 'shell', input: { command: 'ls' }, ask: true }, { text: 'well' }))
  t.match(host.of('user_message')[0]?.message.content, [{ type: 'tool_result', tool_use_id: 'call-1', is_error: true }])
  t.equal(end.subtype, 'success')
})

t.test('an allow with another input than was shown runs nothing', async (t) => {
  const { runner, host } = await start(t)
  host.answer = () => ({ behavior: 'allow', updatedInput: { command: 'rm' } })
  await host.turn(runner, script({ tool: 'shell', input: { command: 'ls' }, ask: true }, { text: 'well' }))
  t.match(host.of('user_message')[0]?.message.content, [{ is_error: true }])
})

t.test('a refusal that ends the turn of an agent which has stopped speaking ends nothing else', async (t) => {
  const { runner, host } = await start(t)
  const end = host.next('session_error')
  let refuse = () => {}
  host.answer = () =>
    new Promise((decide) => {
      refuse = () => decide({ behavior: 'deny', interrupt: true })
    })
  const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }]
  runner.send(script({ mute: { toolCall: { toolCallId: 'call', title: 'run' }, options } }))
  await host.asked()
  await t.rejects(runner.setModel!('large'), 'it is not heard any more')
  refuse()
  t.match(await end, { code: 'SG_ERR_ENGINE_FAILED' })
})

t.test('nor is an interrupt of one an error: its end is told in a moment', async (t) => {
  const { runner, host } = await start(t)
  const end = host.next('session_error')
  const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }]
  runner.send(script({ mute: { toolCall: { toolCallId: 'call', title: 'run' }, options } }))
  await host.asked()
  await t.rejects(runner.setModel!('large'), 'it is not heard any more')
  await runner.interrupt()
  t.match(await end, { code: 'SG_ERR_ENGINE_FAILED' })
})

t.test('an interrupt ends the turn, also one that waits for a person, and the session goes on', async (t) => {
  const { runner, host } = await start(t)
  const hung = host.next('turn_completed')
  const spoke = host.next('stream_delta')
  runner.send(script({ text: 'begun' }, { hang: true }))
  await spoke
  await runner.interrupt()
  t.match(await hung, { subtype: 'interrupted', isError: false })

  const asking = host.next('turn_completed')
  runner.send(script({ tool: 'shell', input: { command: 'ls' }, ask: true }))
  await host.asked()
  await runner.interrupt()
  t.equal((await asking).subtype, 'interrupted')
  t.equal((await host.turn(runner, 'hi')).subtype, 'success')
})

t.test('what fails upstream ends the turn, not the session', async (t) => {
  const { runner, host } = await start(t)
  t.match(await host.turn(runner, script({ error: 'quota exceeded' })), {
    isError: true,
    subtype: 'error_during_execution',
    errors: [/quota exceeded/],
  })
  t.match(await host.turn(runner, script({ stop: 'max_turn_requests' })), { subtype: 'error_max_turns', isError: true })
  t.equal((await host.turn(runner, 'hi')).subtype, 'success')
})

t.test('the death of the agent ends the session', async (t) => {
  const { runner, host } = await start(t)
  const died = host.next('session_error')
  runner.send(script({ text: 'last words' }, { crash: true }))
  t.match(await died, { message: /SIGKILL/, code: 'SG_ERR_ENGINE_FAILED' })
  t.equal(host.of('turn_completed').length, 0)
  t.match(host.of('assistant_message')[0]?.message.content, [{ text: 'last words' }])
})

t.test('the death of the agent is told also while something that it started holds its pipe open', async (t) => {
  const wrapped = { command: '/bin/sh', args: ['-c', 'sleep 600 & exec "$0" "$1"', process.execPath, SCRIPTED_ACP] }
  const { runner, host } = await start(t, {
    options: { agents: [{ name: 'scripted', ...wrapped, modes: ACP_MODES }] },
  })
  const died = host.next('session_error')
  runner.send(script({ text: 'last words' }, { crash: true }))
  t.match(await died, { message: /SIGKILL/, code: 'SG_ERR_ENGINE_FAILED' })
  t.match(host.of('assistant_message')[0]?.message.content, [{ text: 'last words' }])
})

t.test('close ends the agent and all that it started, whatever group it went to', async (t) => {
  const { runner, host } = await start(t)
  const pids = [Number((await host.turn(runner, script({ child: 'same group' }))).result)]
  pids.push(Number((await host.turn(runner, script({ child: 'own group' }))).result))
  t.ok(pids.every(isRunning))
  await runner.close()
  for (const pid of pids) await whenGone(pid)
  t.equal(host.of('session_error').length, 0)
})

t.test('an earlier session is replayed, then goes on', async (t) => {
  const { runner, host } = await start(t, { config: { resume: 'earlier' } })
  t.match(
    host.events.map(({ type }) => type),
    ['system_init', 'capabilities', 'user_message', 'assistant_message'],
  )
  t.match(host.of('user_message')[0], { replay: true, message: { role: 'user', content: 'said before' } })
  t.match(host.of('assistant_message')[0], { replay: true, message: { content: [{ text: 'answered before' }] } })
  t.equal(host.of('stream_delta').length, 0)
  await host.turn(runner, 'hi')
  t.notOk(host.of('assistant_message')[1]?.replay)
})

t.test('a successor goes on from a snapshot: same session, mode and counts, nothing told twice', async (t) => {
  const first = await start(t)
  await first.runner.setPermissionMode!('acceptEdits')
  await first.host.turn(first.runner, 'hi')
  const restore = JSON.parse(JSON.stringify(first.runner.snapshot!()))
  await first.runner.close()

  const { runner, host } = await start(t, { restore })
  t.match(host.of('system_init')[0], { sdkSessionId: 'scripted-session', permissionMode: 'acceptEdits' })
  t.equal(host.of('user_message').length, 0)
  t.equal((await host.turn(runner, 'hi')).numTurns, 2)
})

t.test('only what an agent can come back to is offered to come back to', async (t) => {
  const { runner, host } = await build(t)
  t.equal(runner.snapshot, undefined, 'nobody knows yet')
  await runner.start(host)
  t.match(runner.snapshot?.(), { engine: 'cli', state: { sdkSessionId: 'scripted-session' } })
  const forgetful = await start(t, { env: { ACP_NO_LOAD: '1' } })
  await forgetful.host.turn(forgetful.runner, 'hi')
  t.equal(forgetful.runner.snapshot, undefined)
})

t.test('a session without a turn is begun anew when the agent knows nothing of it; another one is not', async (t) => {
  const first = await start(t)
  const untouched = first.runner.snapshot!()
  const { runner, host } = await start(t, { restore: untouched, env: { ACP_FORGETS: '1' } })
  t.equal(host.of('user_message').length, 0)
  t.match(await host.turn(runner, 'hi'), { subtype: 'success', numTurns: 1 })
  const known = await start(t, { restore: untouched })
  t.equal((await known.host.turn(known.runner, script({ tell: 'request' }))).result?.includes('sessionId'), true)

  await first.host.turn(first.runner, 'hi')
  const lost = await build(t, { restore: first.runner.snapshot!(), env: { ACP_FORGETS: '1' } })
  await t.rejects(lost.runner.start(lost.host), { code: 'SG_ERR_AGENT_STATE_GONE', message: /Create a new session/ })
})

t.test('only an agent that has nothing of a session any more is taken to have lost it', async (t) => {
  const first = await start(t)
  await first.host.turn(first.runner, 'hi')
  const refusalWith = async (env: Record<string, string>) => {
    const { runner, host } = await build(t, { restore: first.runner.snapshot!(), env })
    return runner.start(host).catch((error) => error.code)
  }
  t.equal(await refusalWith({ ACP_FAILS_TO_LOAD: '1' }), 'SG_ERR_ENGINE_START', 'it does not say why')
  const listing = (sessions: string[]) => ({ ACP_FAILS_TO_LOAD: '1', ACP_LISTS: JSON.stringify(sessions) })
  t.equal(await refusalWith(listing(['other', 'scripted-session'])), 'SG_ERR_ENGINE_START', 'it still lists it')
  t.equal(await refusalWith(listing(['other', 'another'])), 'SG_ERR_AGENT_STATE_GONE', 'it lists others')
})

t.test('what cannot start says why', async (t) => {
  const { runner, host } = await build(t, { env: { ACP_NO_LOGIN: '1' } })
  await t.rejects(runner.start(host), { message: /not logged in: Authentication required/ })
  const unknown = await build(t, { config: { resume: 'unknown' } })
  await t.rejects(unknown.runner.start(unknown.host), { message: /No such session/ })
  const old = await build(t, { config: { resume: 'x' }, env: { ACP_NO_LOAD: '1' } })
  await t.rejects(old.runner.start(old.host), { message: /cannot resume/ })
})

t.test('what the protocol has no word for is refused before anything starts', async (t) => {
  await t.rejects(build(t, { config: { maxTurns: 3 } }), { code: 'SG_ERR_UNSUPPORTED', message: /maxTurns/ })
  await t.rejects(build(t, { options: { agents: [{ name: 'scripted', command: 'no-such-agent' }] } }), {
    code: 'SG_ERR_ENGINE_START',
    message: /not installed.*no-such-agent/,
  })
})

t.test('a config directory that is not there is told with what names it, and what to do', async (t) => {
  const AGENT_CONFIG_DIR = join(mkdtempSync(join(tmpdir(), 'acp-')), 'not-mounted')
  const { runner, host } = await build(t, { config: { env: { AGENT_CONFIG_DIR } } })
  await t.rejects(runner.start(host), {
    code: 'SG_ERR_ENGINE_START',
    message: /\(configDir of the profile, or AGENT_CONFIG_DIR\) is not there\. Create it/,
  })
  await runner.close()
  t.notOk(existsSync(AGENT_CONFIG_DIR))
})

t.test('close while it starts leaves nothing', async (t) => {
  const { runner, host } = await build(t, { env: { ACP_SLOW_START: '60000' } })
  const started = runner.start(host)
  await runner.close()
  await t.rejects(started)
  t.equal(host.of('session_error').length, 0)
})

t.test('the agent sees its own environment, and nothing of the gateway', async (t) => {
  const { runner, host, cwd } = await start(t, {
    config: { env: { FOR_SESSION: 'yes', AGENT_CONFIG_DIR: tmpdir(), NOTIFY_SOCKET: '/x' } },
    options: {
      env: { PATH: process.env.PATH, HOME: '/home/x', GATEWAY_SECRET: 's', NOTIFY_SOCKET: '/run/x', FOO_API_KEY: 'k' },
      agents: [{ name: 'scripted', command: process.execPath, args: [SCRIPTED_ACP], env: { FROM_ROW: '1' } }],
    },
  })
  const env = JSON.parse((await host.turn(runner, script({ tell: 'env' }))).result!)
  t.match(env, { FOR_SESSION: 'yes', FROM_ROW: '1', HOME: '/home/x', AGENT_CONFIG_DIR: tmpdir(), PWD: cwd })
  for (const name of ['GATEWAY_SECRET', 'NOTIFY_SOCKET', 'FOO_API_KEY']) t.notOk(name in env, name)
  t.equal(JSON.parse((await host.turn(runner, script({ tell: 'cwd' }))).result!), cwd)
})

t.test('while its host is not drained its pipe is left unread', async (t) => {
  const { runner, host } = await start(t)
  let drain = () => {}
  host.drained = new Promise((resolve) => {
    drain = () => {
      host.drained = undefined
      resolve()
    }
  })
  const words = 5_000
  const end = host.next('turn_completed')
  runner.send(script({ text: 'word '.repeat(words) }))
  await host.next('stream_delta')
  await turns(1_000)
  const unread = words - host.of('stream_delta').length
  t.ok(unread > words / 2, `${unread} words`)
  drain()
  t.match(await end, { subtype: 'success', result: 'word '.repeat(words) })
})
