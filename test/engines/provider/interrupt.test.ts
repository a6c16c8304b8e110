import t from 'tap'
import { type ProviderEngineOptions, providerEngine } from '../../../src/engines/provider/index.js'
import type { SessionRunnerConfig } from '../../../src/engines/runner.js'
import { script, startModelEndpoint } from '../../fixtures/model-endpoint.js'
import { gate, open } from './host.js'

type TapTest = typeof t

async function session(
  t: Pick<TapTest, 'teardown'>,
  { config, options }: { config?: Partial<SessionRunnerConfig>; options?: ProviderEngineOptions } = {},
) {
  const endpoint = await startModelEndpoint(t)
  const provider = { id: 'openai-compatible', baseUrl: endpoint.url, model: 'fake' }
  const { runner, host } = await open(providerEngine(options), { provider, ...(config && { config }) })
  t.teardown(() => runner.close())
  return { runner, host, endpoint, requests: endpoint.requests }
}

const bypass = { permissionMode: 'bypassPermissions' as const }
const search = { tool: 'web_search', id: 's', input: { query: 'x' } }

t.test('in the middle of an answer: the words so far are kept, and the session goes on', async (t) => {
  const { runner, host, requests } = await session(t)
  runner.send(script({ thinking: 'hm', text: 'half an answer', hang: true }))
  await host.until(() => host.of('stream_delta').length === 4)
  await runner.interrupt()
  const [answer] = host.of('assistant_message')
  t.match(answer?.message.content, [
    { type: 'thinking', thinking: 'hm' },
    { type: 'text', text: 'half an answer' },
  ])
  t.equal(answer?.uuid, host.of('stream_delta')[0]?.uuid)
  t.match(host.events.at(-1), { type: 'turn_completed', subtype: 'interrupted', isError: false })
  await requests[0]?.closed
  t.pass('the endpoint was hung up on')

  runner.send('ping')
  t.equal((await host.turn(2)).result, 'pong')
  t.match(requests[1]?.body.messages, [
    { role: 'system' },
    { role: 'user' },
    { role: 'assistant', content: 'half an answer' },
    { role: 'user', content: 'ping' },
  ])
})

t.test('white space that came before the first word is not kept for the model', async (t) => {
  const { runner, host, requests } = await session(t)
  runner.send(script({ text: '\n\n', hang: true }))
  await host.until(() => host.of('stream_delta').length === 1)
  await runner.interrupt()
  runner.send('ping')
  t.equal((await host.turn(2)).result, 'pong')
  t.match(
    requests[1]?.body.messages.map(({ role }) => role),
    ['system', 'user', 'user'],
  )
})

t.test('before the first word there is no message', async (t) => {
  const { runner, host, endpoint, requests } = await session(t)
  runner.send(script({ hang: true }))
  await endpoint.request(1)
  await runner.interrupt()
  t.match(host.events.at(-1), { type: 'turn_completed', subtype: 'interrupted', numTurns: 0 })
  t.same(host.of('assistant_message'), [])
  runner.send('ping')
  t.equal((await host.turn(2)).result, 'pong')
  t.equal(requests.at(-1)?.body.messages.filter((message) => message.role === 'assistant').length, 0)
})

t.test('while somebody is asked: a late allow runs nothing', async (t) => {
  const { runner, host, requests } = await session(t)
  const write = { tool: 'fs_write', id: 'w', input: { path: 'a', content: 'b' } }
  runner.send(script({ tools: [write, search] }, { text: 'never said' }))
  const { answer } = await host.nextQuestion()
  await runner.interrupt()
  answer({ behavior: 'allow' })
  t.match(host.results, { w: { isError: true, content: /interrupted/ }, s: { isError: true } })
  runner.send('ping')
  t.equal((await host.turn(2)).result, 'pong')
  t.same(runner.files?.list(), [])
  t.equal(requests.length, 2)
})

t.test('while a tool runs: it is told, and one that does not listen is left behind', async (t) => {
  const entered = gate()
  const leave = gate()
  let aborted = false
  const webSearch = async (_query: string, { signal }: { signal: AbortSignal }) => {
    signal.addEventListener('abort', () => {
      aborted = true
    })
    entered.open()
    await leave.opened
    return []
  }
  const { runner, host, requests } = await session(t, { config: bypass, options: { webSearch } })
  runner.send(script({ tools: [search] }, { text: 'never said' }))
  await entered.opened
  await runner.interrupt()
  t.equal(aborted, true)
  t.match(host.results, { s: { isError: true, content: 'The turn was interrupted.' } })
  t.match(await host.turn(), { subtype: 'interrupted' })
  leave.open()
  runner.send('ping')
  t.equal((await host.turn(2)).result, 'pong')
  t.equal(host.of('user_message').length, 1, 'the late result is dropped')
  t.match(
    requests[1]?.body.messages.map((message) => message.role),
    ['system', 'user', 'assistant', 'tool', 'user'],
    'the transcript is valid',
  )
})

t.test('right after the message, and between turns', async (t) => {
  const { runner, host, requests } = await session(t)
  await runner.interrupt()
  t.same(host.of('turn_completed'), [], 'nothing to end')
  runner.send('ping')
  await runner.interrupt()
  t.match(await host.turn(), { subtype: 'interrupted' })
  t.equal(requests.length, 0)
})

t.test('close ends everything without another word', async (t) => {
  const { runner, host } = await session(t)
  runner.send(script({ tools: [{ tool: 'fs_write', id: 'w', input: { path: 'a', content: 'b' } }] }))
  const { answer } = await host.nextQuestion()
  const before = host.events.length
  await runner.close()
  answer({ behavior: 'allow' })
  await runner.close()
  t.equal(host.events.length, before)
  t.same(runner.files?.list(), [])
  t.throws(() => runner.send('ping'), { code: 'SG_ERR_SESSION_ENDED' })
})

t.test('the end of the session ends the turn', async (t) => {
  const { runner, host, requests } = await session(t)
  runner.send(script({ text: 'half', hang: true }))
  await host.until(() => host.of('stream_delta').length === 1)
  const before = host.events.length
  host.session.abort()
  await requests[0]?.closed
  await runner.close()
  t.equal(host.events.length, before)
})

t.test('a dozen calls at a time are no leak that Node warns of', async (t) => {
  const warnings: Error[] = []
  const onWarning = (warning: Error) => warnings.push(warning)
  process.on('warning', onWarning)
  t.teardown(() => process.off('warning', onWarning))
  const searching = gate()
  let begun = 0
  const webSearch = async () => {
    if (++begun === 12) searching.open()
    await searching.opened
    return []
  }
  const { runner, host } = await session(t, { config: bypass, options: { webSearch } })
  const tools = Array.from({ length: 12 }, (_, n) => ({ ...search, id: `s${n}` }))
  runner.send(script({ tools }, { text: 'ok' }))
  t.match(await host.turn(), { subtype: 'success' })
  t.equal(Object.keys(host.results).length, 12)
  // a warning is told a moment after its cause
  await new Promise(setImmediate)
  t.strictSame(warnings, [])
})
