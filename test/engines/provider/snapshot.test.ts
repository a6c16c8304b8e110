import t from 'tap'
import { type ProviderEngineOptions, providerEngine } from '../../../src/engines/provider/index.js'
import type { Runner, RunnerSnapshot, SessionRunnerConfig } from '../../../src/engines/runner.js'
import { script, startModelEndpoint } from '../../fixtures/model-endpoint.js'
import { VirtualClock } from '../../fixtures/virtual-clock.js'
import { gate, open } from './host.js'

type TapTest = typeof t

const deploy = {
  name: 'deploy',
  description: 'Deploys to production.',
  inputSchema: { type: 'object', properties: { version: { type: 'string' } } },
  timeoutMs: 60_000,
}
const deployCall = (id: string) => ({ tool: 'deploy', id, input: { version: id } })
const write = { tool: 'fs_write', id: 'w', input: { path: 'a.txt', content: 'päckchen' } }
const ok = (value: unknown) => ({ status: 'ok' as const, output: { type: 'json' as const, value } })

async function world(t: Pick<TapTest, 'teardown'>, options: ProviderEngineOptions = {}) {
  const endpoint = await startModelEndpoint(t)
  const clock = new VirtualClock()
  const engine = providerEngine({ clock, deferredTools: [deploy], ...options })
  const provider = { id: 'openai-compatible', baseUrl: endpoint.url, model: 'fake', models: ['fake', 'other'] }
  const begin = async (config: Partial<SessionRunnerConfig> = {}, restore?: RunnerSnapshot) => {
    const session = await open(engine, { provider, config, ...(restore && { restore }) })
    t.teardown(() => session.runner.close())
    return session
  }
  return { clock, endpoint, begin }
}

/** As a store keeps it: the runner is out of service and only JSON is left. */
async function park(runner: Runner): Promise<RunnerSnapshot> {
  const snapshot = runner.snapshot!()
  await runner.close()
  const kept = JSON.parse(JSON.stringify(snapshot)) as RunnerSnapshot
  t.same(kept, snapshot, 'a snapshot is plain JSON')
  return kept
}

t.test('a deferred call is handed over without asking, and its result lets the turn go on', async (t) => {
  const { clock, endpoint, begin } = await world(t)
  const { runner, host } = await begin()
  runner.send(script({ tools: [deployCall('d')] }, { text: 'deployed' }))
  await host.waiting()
  t.match(host.deferred, [{ toolName: 'deploy', input: { version: 'd' }, expiresAt: clock.now() + 60_000 }])
  t.same(host.asked, [])
  t.same(host.of('turn_completed'), [], 'waiting is no end')
  const { executionId } = host.deferred[0]!
  runner.settleExecution?.('another', ok(1))
  runner.settleExecution?.(executionId, ok({ url: 'there' }))
  runner.settleExecution?.(executionId, ok('again'))
  t.match(await host.turn(), { subtype: 'success', result: 'deployed' })
  t.same(host.results, { d: { content: '{"url":"there"}', isError: false } })
  t.match(endpoint.requests[1]?.body.messages.at(-1), { role: 'tool', content: '{"url":"there"}' })
})

t.test('a failed execution is tool output, not a failed turn', async (t) => {
  const { begin } = await world(t)
  const { runner, host } = await begin()
  runner.send(script({ tools: [deployCall('d'), deployCall('e')] }, { text: 'pity' }))
  await host.waiting()
  const [first, second] = host.deferred
  runner.settleExecution?.(first!.executionId, { status: 'failed', reason: 'timeout', error: 'too late' })
  await host.waiting(2)
  t.pass('one of two results: it waits on')
  runner.settleExecution?.(second!.executionId, { status: 'ok', output: { type: 'text', value: 'plain' } })
  t.match(await host.turn(), { subtype: 'success', result: 'pity' })
  t.same(JSON.parse(String(host.results.d?.content)), { status: 'failed', reason: 'timeout', error: 'too late' })
  t.match(host.results, { d: { isError: true }, e: { content: 'plain', isError: false } })
})

t.test('a deferred call waits for its result in a snapshot, beside calls that are done', async (t) => {
  const { clock, endpoint, begin } = await world(t)
  const { runner, host } = await begin({ allowedTools: ['fs_write'], model: 'fake' })
  await runner.setModel?.('other')
  runner.send(
    script({ text: 'Both.', tools: [write, deployCall('d'), { tool: 'fs_list', id: 'l' }] }, { text: 'done' }),
  )
  await host.waiting()
  t.match(host.results, { w: { isError: false }, l: { isError: false } }, 'the others ran before it waits')
  await clock.advance(500)
  clock.set(3_600_000)
  const { executionId } = host.deferred[0]!
  const snapshot = await park(runner)
  t.equal(host.of('turn_completed').length, 0)

  await clock.advance(3_600_000)
  const woken = await begin({ allowedTools: ['fs_write'], model: 'fake' }, snapshot)
  clock.set(-7_200_000)
  woken.runner.settleExecution?.(executionId, ok('fine'))
  const end = await woken.host.turn()
  t.match(end, { subtype: 'success', result: 'done', numTurns: 2, usage: { inputTokens: 1600 }, durationMs: 500 })
  t.same(Object.keys(woken.host.results), ['d'], 'what was told is not told again')
  t.equal(woken.host.waits, 0, 'a result that is there at once leaves nothing to wait for')
  t.match(woken.host.events[0], {
    type: 'system_init',
    model: 'other',
    sdkSessionId: host.of('system_init')[0]?.sdkSessionId,
  })
  t.same(
    endpoint.requests[1]?.body.messages.slice(1).map((message) => message.role),
    ['user', 'assistant', 'tool', 'tool', 'tool'],
  )
  t.equal(Buffer.from(woken.runner.files!.read('a.txt')!).toString(), 'päckchen')
  t.same(woken.runner.files?.list(), runner.files?.list())
  t.equal(endpoint.requests.length, 2, 'no model call was made twice')
})

t.test('a restored turn that still waits says so again, with the same ids', async (t) => {
  const { begin } = await world(t)
  const { runner, host } = await begin()
  runner.send(script({ tools: [deployCall('d'), deployCall('e')] }, { text: 'done' }))
  await host.waiting()
  const woken = await begin({}, await park(runner))
  await woken.host.waiting()
  t.same(woken.host.deferred, host.deferred)
  const [first, second] = host.deferred
  woken.runner.settleExecution?.(first!.executionId, ok(1))
  const again = await begin({}, await park(woken.runner))
  again.runner.settleExecution?.(second!.executionId, ok(2))
  t.match(await again.host.turn(), { subtype: 'success', result: 'done' })
})

t.test('a request for leave is asked again after a restore, by the same id', async (t) => {
  const { endpoint, begin } = await world(t)
  const { runner, host } = await begin()
  runner.send(script({ tools: [{ tool: 'fs_list', id: 'l' }, write, deployCall('d')] }, { text: 'done' }))
  const { ask } = await host.nextQuestion()
  const snapshot = await park(runner)

  const woken = await begin({}, snapshot)
  const question = await woken.host.nextQuestion()
  t.same(question.ask, ask)
  t.equal(endpoint.requests.length, 1, 'the model was not asked again')
  question.answer({ behavior: 'allow', updatedInput: { path: 'b.txt', content: 'x' } })
  await woken.host.waiting()
  t.match(woken.runner.files?.list(), [{ path: 'b.txt', bytes: 1 }])
  const [last] = woken.host.deferred
  const final = await begin({}, await park(woken.runner))
  final.runner.settleExecution?.(last!.executionId, ok('fine'))
  t.match(await final.host.turn(), { subtype: 'success', result: 'done' })
  t.match(final.runner.files?.list(), [{ path: 'b.txt' }])
})

t.test(
  'what a person was asked is theirs to decide after a restore, too, whatever mode was chosen while they were',
  async (t) => {
    const { begin } = await world(t)
    for (const mode of ['bypassPermissions', 'dontAsk'] as const) {
      const { runner, host } = await begin()
      runner.send(script({ tools: [write] }, { text: 'done' }))
      const { ask } = await host.nextQuestion()
      await runner.setPermissionMode!(mode)
      const denied = await begin({}, await park(runner))
      const question = await denied.host.nextQuestion()
      t.same(question.ask, ask)
      const again = await begin({}, await park(denied.runner))
      const last = await again.host.nextQuestion()
      last.answer({ behavior: mode === 'dontAsk' ? 'allow' : 'deny' })
      t.match(await again.host.turn(), { subtype: 'success', result: 'done' })
      t.equal(again.runner.files?.list().length, mode === 'dontAsk' ? 1 : 0)
    }
  },
)

t.test('interrupting a session that waits ends the turn; after a restore no model call is made either', async (t) => {
  const { endpoint, begin } = await world(t)
  const { runner, host } = await begin()
  runner.send(script({ tools: [deployCall('d')] }, { text: 'never said' }))
  await host.waiting()
  const snapshot = await park(runner)
  const { executionId } = host.deferred[0]!

  const woken = await begin({}, snapshot)
  woken.runner.settleExecution?.(executionId, { status: 'failed', reason: 'interrupted', error: 'interrupted' })
  await woken.runner.interrupt()
  t.match(await woken.host.turn(), { subtype: 'interrupted' })
  t.equal(endpoint.requests.length, 1)
  woken.runner.send('ping')
  t.equal((await woken.host.turn(2)).result, 'pong')

  const other = await begin({}, snapshot)
  await other.host.waiting()
  await other.runner.interrupt()
  t.match(other.host.results, { d: { isError: true, content: /interrupted/ } })
  other.runner.settleExecution?.(executionId, ok('late'))
  t.equal(other.host.of('user_message').length, 1)
})

t.test('a call that ran when the snapshot was taken does not run twice', async (t) => {
  const entered = gate()
  let runs = 0
  const webSearch = async () => {
    runs += 1
    entered.open()
    return new Promise<never>(() => {})
  }
  const { begin } = await world(t, { webSearch })
  const { runner, host } = await begin({ permissionMode: 'bypassPermissions' })
  runner.send(script({ tools: [{ tool: 'web_search', id: 's', input: { query: 'x' } }] }, { text: 'I see' }))
  await entered.opened
  const snapshot = await park(runner)
  t.same(host.results, {})
  const woken = await begin({}, snapshot)
  t.match(await woken.host.turn(), { subtype: 'success', result: 'I see' })
  t.match(woken.host.results, { s: { isError: true, content: /may or may not/ } })
  t.equal(runs, 1)
  t.match(woken.host.events[0], { permissionMode: 'bypassPermissions' })
})

t.test('between turns: the conversation, the files and the totals go on', async (t) => {
  const { endpoint, begin } = await world(t, { prices: { fake: { input: 1000, output: 0 } } })
  const { runner, host } = await begin({ permissionMode: 'dontAsk', allowedTools: ['fs_write'] })
  runner.send(script({ tools: [write] }, { text: 'first' }))
  await host.turn()
  const woken = await begin({ allowedTools: ['fs_write'] }, await park(runner))
  t.match(woken.host.events[0], { permissionMode: 'dontAsk' })
  t.equal(woken.host.events.length, 2, 'nothing happens by itself')
  woken.runner.send('and?')
  t.match(await woken.host.turn(), { numTurns: 3, usage: { inputTokens: 800 } })
  t.match(woken.host.of('turn_completed')[0]?.totalCostUsd.toFixed(6), '3.000000')
  t.match(endpoint.requests[2]?.body.messages.at(-2), { role: 'assistant', content: 'first' })
})

t.test('a model that the profile no longer lists gives way; a snapshot of something else is refused', async (t) => {
  const { begin } = await world(t)
  const { runner } = await begin()
  await runner.setModel?.('other')
  const snapshot = await park(runner)
  const provider = { id: 'demo', models: ['demo'] }
  const { host } = await open(providerEngine(), { provider, restore: snapshot })
  t.match(host.events[0], { model: 'demo' })
  const asked = await open(providerEngine(), { provider, config: { model: 'fake' }, restore: snapshot })
  t.match(asked.host.events[0], { model: 'demo' }, 'also the one that the session was created with')
  await t.rejects(begin({}, { engine: 'cli', state: {} }), { code: 'SG_ERR_ENGINE_START' })
  await t.rejects(begin({}, { engine: 'provider', state: { version: 2 } }), { code: 'SG_ERR_ENGINE_START' })
  await t.rejects(begin({}, { engine: 'provider', state: null }), { code: 'SG_ERR_ENGINE_START' })
})

t.test('an execution that cannot be registered is an error of its call', async (t) => {
  const { begin } = await world(t)
  const { runner, host } = await begin()
  host.deferExecution = async () => {
    throw new Error('the store is full')
  }
  runner.send(script({ tools: [deployCall('d')] }, { text: 'pity' }))
  t.match(await host.turn(), { subtype: 'success', result: 'pity' })
  t.match(host.results, { d: { isError: true, content: /the store is full/ } })
})

t.test('deferred tools need a usable name of their own', async (t) => {
  const named = (name: string) => ({ ...deploy, name })
  for (const tools of [[named('fs_read')], [named('a b')], [named('x'), named('x')], [named('')]]) {
    t.throws(() => providerEngine({ deferredTools: tools }), { code: 'SG_ERR_OPTION' })
  }
})

t.test('the default model is the one that the session began with, also when it goes on with another one', async (t) => {
  const { begin } = await world(t)
  for (const [given, chosen, began] of [
    [{}, 'other', 'fake'],
    [{ model: 'other' }, 'fake', 'other'],
  ] as const) {
    const first = await begin(given)
    await first.runner.setModel?.(chosen)
    // what was chosen is what the next start is asked for
    const next = await begin({ model: chosen }, await park(first.runner))
    await next.runner.setModel?.(undefined)
    t.match(next.host.of('model_changed'), [{ model: began }])
  }
})
