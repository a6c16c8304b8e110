import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { FIRST_SILENCE_MS } from '../../../src/engines/cli/acp/turn.js'
import { ANSWER_MS, INTERRUPT_GRACE_MS } from '../../../src/engines/cli/control.js'
import { BUILT_IN_AGENTS, cliEngine } from '../../../src/engines/cli/index.js'
import { START_TIMEOUT_MS } from '../../../src/engines/cli/launch.js'
import { createWorkerServer } from '../../../src/server.js'
import { until } from '../../fixtures/build.js'
import { attach } from '../../fixtures/client.js'
import { processesOf } from '../../fixtures/processes.js'
import { acpFolder, SCRIPTED_ACP, startAcp } from '../../fixtures/scripted-acp.js'
import { ScriptedHost } from '../../fixtures/scripted-host.js'
import { VirtualClock } from '../../fixtures/virtual-clock.js'

const declared = (name: string, env: Record<string, string> = {}) => [
  { name, command: process.execPath, args: [SCRIPTED_ACP], env, modes: { default: 'ask' } },
]
const script = (...steps: object[]) => JSON.stringify(steps)
const DEAF = script({ text: 'begun' }, { deaf: true })

async function start(t: Test, name = 'scripted') {
  const clock = new VirtualClock()
  const { runner, host } = await startAcp(t, { name, clock })
  /** Begins a turn that comes to nothing. */
  const hang = async (text: string) => {
    const spoke = host.next('stream_delta')
    runner.send(text)
    await spoke
  }
  return { clock, runner, host, hang }
}

t.test('silence is told while the agent’s model may not answer, ever less often', async (t) => {
  const { clock, host, hang } = await start(t)
  await hang(DEAF)
  await clock.advance(FIRST_SILENCE_MS - 1)
  t.equal(host.of('engine_event').length, 0)
  await clock.advance(1)
  t.match(host.of('engine_event'), [{ payload: { type: 'agent_silent', silentMs: FIRST_SILENCE_MS } }])
  await clock.advance(FIRST_SILENCE_MS * 7)
  t.strictSame(
    host.of('engine_event').map(({ payload }) => (payload as { silentMs: number }).silentMs / FIRST_SILENCE_MS),
    [1, 2, 4, 8],
  )
})

t.test('an agent that runs a tool or waits for a person is not silent', async (t) => {
  const { clock, runner, host } = await start(t)
  runner.send(script({ tool: 'shell', input: { command: 'make' }, ask: true }))
  await host.asked()
  await clock.advance(FIRST_SILENCE_MS * 10)
  t.equal(host.of('engine_event').length, 0)
})

t.test('an agent that tries again for minutes is ended when its patience is, with the reason', async (t) => {
  const { patienceMs } = BUILT_IN_AGENTS.get('gemini')!.acp!
  const { clock, runner, host, hang } = await start(t, 'gemini')
  await hang(DEAF)
  const over = host.next('turn_completed')
  await clock.advance(patienceMs!)
  t.equal(host.of('turn_completed').length, 0, 'it is asked to end first')
  await clock.advance(INTERRUPT_GRACE_MS)
  t.match(await over, { subtype: 'error_during_execution', isError: true, errors: [/said nothing for 90 s/] })
  t.equal(runner.isSpent, true)
})

t.test('an agent is neither ended nor thought to speak because the clock was set', async (t) => {
  const { patienceMs } = BUILT_IN_AGENTS.get('gemini')!.acp!
  for (const byMs of [3 * 3_600_000, -3 * 3_600_000]) {
    const { clock, host, hang } = await start(t, 'gemini')
    await hang(DEAF)
    const over = host.next('turn_completed')
    clock.set(byMs)
    await clock.advance(FIRST_SILENCE_MS)
    const told = [{ payload: { type: 'agent_silent', silentMs: FIRST_SILENCE_MS } }]
    if (!t.match(host.of('engine_event'), told)) return
    await clock.advance(patienceMs! - FIRST_SILENCE_MS + INTERRUPT_GRACE_MS)
    t.match(await over, { errors: [/said nothing for 90 s/] })
  }
})

t.test('an agent is not thought silent while the gateway was stopped, and it with it', async (t) => {
  const { patienceMs } = BUILT_IN_AGENTS.get('gemini')!.acp!
  const { clock, host, hang } = await start(t, 'gemini')
  await hang(DEAF)
  const over = host.next('turn_completed')
  await clock.advance(FIRST_SILENCE_MS - 1)
  clock.standStill(patienceMs! * 10)
  await clock.advance(FIRST_SILENCE_MS - 1)
  t.strictSame(host.of('engine_event'), [], 'what was before it does not count, either')
  await clock.advance(1)
  t.match(host.of('engine_event'), [{ payload: { type: 'agent_silent', silentMs: FIRST_SILENCE_MS } }])
  await clock.advance(FIRST_SILENCE_MS)
  clock.standStill(patienceMs! * 10)
  await clock.advance(patienceMs! - 2 * FIRST_SILENCE_MS - 1)
  t.equal(host.of('turn_completed').length, 0)
  await clock.advance(1 + INTERRUPT_GRACE_MS)
  t.match(await over, { errors: [/said nothing for 90 s/] })
})

t.test('an agent that does not answer refuses a model', async (t) => {
  const { clock, runner, hang } = await start(t)
  await hang(DEAF)
  const refused = t.rejects(runner.setModel!('large'), {
    code: 'SG_ERR_ENGINE_REFUSED',
    message: 'The agent does not answer.',
  })
  await clock.advance(ANSWER_MS)
  await refused
})

t.test('an interrupt that the agent follows leaves it as it is', async (t) => {
  const { clock, runner, host, hang } = await start(t)
  await hang(script({ text: 'begun' }, { hang: true }))
  const over = host.next('turn_completed')
  await runner.interrupt()
  t.match(await over, { subtype: 'interrupted', isError: false })
  await clock.advance(INTERRUPT_GRACE_MS * 2)
  t.equal(runner.isSpent, false)
  t.match(await host.turn(runner, 'hi'), { result: 'pong' })
  t.equal(clock.pendingTimers, 0)
})

t.test('a program that is started and answers nothing is told of with what it said', async (t) => {
  const clock = new VirtualClock()
  const cwd = acpFolder()
  const program = `const fs = require('node:fs')
    fs.writeSync(2, 'Usage: mine --acp')
    fs.writeFileSync('said', '')
    setInterval(() => {}, 60_000)`
  const agents = [{ name: 'mine', command: process.execPath, args: ['-e', program] }]
  const runner = await cliEngine({ agents, clock })({
    ...{ sessionId: 'session-1', config: { cwd } },
    profile: { name: 'p', engine: 'cli', agent: 'mine' },
    bridge: { execute: () => Promise.reject(new Error('not here')) },
  })
  t.teardown(() => runner.close())
  const started = runner.start(new ScriptedHost())
  started.catch(() => {})
  await until(() => existsSync(join(cwd, 'said')), 'what it says')
  await clock.advance(START_TIMEOUT_MS)
  await t.rejects(started, {
    code: 'SG_ERR_ENGINE_START',
    message: /^The agent did not start within 120 s\. It answered nothing .* args .*\. It said: Usage: mine --acp$/,
  })
})

for (const { canLoad, ...env } of [{ canLoad: true }, { canLoad: false, ACP_NO_LOAD: '1' }])
  t.test(
    `an agent that does not hear an interrupt is ended, and the session goes on${canLoad ? '' : ', anew'}`,
    async (t) => {
      const clock = new VirtualClock()
      const agents = declared('scripted', env as Record<string, string>)
      const worker = createWorkerServer(
        { allowUnauthenticated: true, profiles: [{ name: 'scripted', agent: 'scripted' }], agents },
        { createCliRunner: cliEngine({ agents, clock }), env: {} },
      )
      t.teardown(() => worker.close())
      const api = `${(await worker.listen(0)).url}/v1`
      const response = await fetch(`${api}/sessions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ cwd: acpFolder() }),
      })
      const { id } = (await response.json()) as { id: string }
      const client = await attach(t, api, id)
      const ends = () => client.events.filter((event) => event.type === 'turn_completed')
      client.send({ type: 'user_message', text: 'hi' })
      await client.until(() => ends().length === 1)
      client.send({ type: 'user_message', text: DEAF })
      await client.until(({ events }) => events.filter(({ type }) => type === 'stream_delta').length > 1)
      const [pid] = processesOf(id)
      client.send({ type: 'user_message', text: script({ tell: 'request' }), id: 'later' })
      client.send({ type: 'interrupt', id: 'interrupt' })
      await client.until(({ frames }) => frames.some((frame) => frame.type === 'ack' && frame.id === 'interrupt'))
      await clock.advance(INTERRUPT_GRACE_MS)
      await client.until(() => ends().length === 3)
      t.match(ends(), [{ subtype: 'success' }, { subtype: 'interrupted', isError: false }, { subtype: 'success' }])
      t.equal(client.events.filter(({ type }) => type === 'session_error').length, 0)
      t.notOk(processesOf(id).includes(pid!), 'its process is gone')
      t.match(
        ends()[2],
        { result: canLoad ? /"sessionId":"scripted-session"/ : /"mcpServers"/ },
        'what waited has its turn',
      )
      t.equal(
        client.events.filter((event) => event.type === 'engine_event' && /history_lost/.test(JSON.stringify(event)))
          .length,
        canLoad ? 0 : 1,
      )
    },
  )
