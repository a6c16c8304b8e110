import t from 'tap'
import type { PermissionMode } from '../../../schemas/permissions.js'
import { providerEngine } from '../../../src/engines/provider/index.js'
import type { SessionRunnerConfig } from '../../../src/engines/runner.js'
import { script, startModelEndpoint } from '../../fixtures/model-endpoint.js'
import { open } from './host.js'

type TapTest = typeof t

async function session(t: Pick<TapTest, 'teardown'>, config: Partial<SessionRunnerConfig> = {}) {
  const { url, requests } = await startModelEndpoint(t)
  const engine = providerEngine({ webSearch: async () => [] })
  const provider = { id: 'openai-compatible', baseUrl: url, model: 'fake' }
  const { runner, host } = await open(engine, { provider, config })
  t.teardown(() => runner.close())
  return { runner, host, requests }
}

const write = { tool: 'fs_write', id: 'w', input: { path: 'a.txt', content: 'shown' } }
const questions = [{ question: 'Which?', header: 'Pick', options: [{ label: 'A' }, { label: 'B' }] }]
const asking = { tool: 'AskUserQuestion', id: 'q', input: { questions } }

const contentOf = (bytes: Uint8Array | undefined) => bytes && Buffer.from(bytes).toString()

t.test('a call that asks runs the input that was shown', async (t) => {
  const { runner, host } = await session(t)
  runner.send(script({ tools: [write] }, { text: 'ok' }))
  const { ask, answer } = await host.nextQuestion()
  t.same(ask, { toolName: 'fs_write', toolUseId: 'w', input: write.input, title: 'Write a.txt' })
  t.same(runner.files?.list(), [], 'nothing ran before the allow')
  t.equal(host.of('assistant_message').length, 1, 'the call was shown before it was asked about')
  answer({ behavior: 'allow' })
  await host.turn()
  t.equal(contentOf(runner.files?.read('a.txt')), 'shown')
})

t.test('an allow with another input runs exactly that one', async (t) => {
  const { runner, host } = await session(t)
  host.decide = () => ({ behavior: 'allow', updatedInput: { path: 'b.txt', content: 'changed' } })
  runner.send(script({ tools: [write] }, { text: 'ok' }))
  await host.turn()
  t.match(host.results, { w: { content: 'Wrote b.txt (7 bytes).', isError: false } })
  t.same(
    runner.files?.list().map((file) => file.path),
    ['b.txt'],
  )
})

t.test('an allow with an input that the tool cannot take runs nothing', async (t) => {
  const { runner, host } = await session(t)
  host.decide = () => ({ behavior: 'allow', updatedInput: { path: 'b.txt' } })
  runner.send(script({ tools: [write] }, { text: 'ok' }))
  t.match(await host.turn(), { subtype: 'success' })
  t.match(host.results, { w: { isError: true, content: /content/ } })
  t.same(runner.files?.list(), [])
})

t.test('a deny becomes the result of the call, and the model goes on', async (t) => {
  const { runner, host, requests } = await session(t)
  host.decide = () => ({ behavior: 'deny', message: 'not on a Sunday' })
  runner.send(script({ tools: [write] }, { text: 'as you wish' }))
  t.match(await host.turn(), { subtype: 'success', result: 'as you wish' })
  t.match(host.results, { w: { isError: true, content: 'not on a Sunday' } })
  t.match(requests[1]?.body.messages.at(-1), { role: 'tool', content: /not on a Sunday/ })
  t.same(runner.files?.list(), [])
})

t.test('a deny that interrupts ends the turn, and every call has a result', async (t) => {
  const { runner, host, requests } = await session(t)
  host.decide = () => ({ behavior: 'deny', message: 'stop', interrupt: true })
  runner.send(script({ tools: [write, { ...write, id: 'w2' }] }, { text: 'never said' }))
  t.match(await host.turn(), { subtype: 'interrupted', isError: false })
  t.match(host.results, { w: { isError: true, content: 'stop' }, w2: { isError: true, content: /interrupted/ } })
  t.equal(requests.length, 1)
  t.equal(host.asked.length, 1)
  runner.send('ping')
  t.equal((await host.turn(2)).result, 'pong')
})

t.test('calls are asked about one after another, and nothing runs meanwhile', async (t) => {
  const { runner, host } = await session(t, { allowedTools: ['web_search'] })
  const search = { tool: 'web_search', id: 's', input: { query: 'x' } }
  runner.send(script({ tools: [search, write, { ...write, id: 'w2' }] }, { text: 'ok' }))
  const first = await host.nextQuestion()
  t.same([first.ask.toolUseId, host.asked.length], ['w', 1])
  t.ok(host.results.s, 'what ran before is finished')
  first.answer({ behavior: 'allow' })
  const second = await host.nextQuestion()
  t.equal(second.ask.toolUseId, 'w2')
  t.ok(host.results.w)
  second.answer({ behavior: 'deny' })
  await host.turn()
  t.match(host.results, { w2: { isError: true, content: /did not allow fs_write/ } })
})

t.test('nobody is asked about a call that cannot run, and a title shows what would really run', async (t) => {
  const { runner, host } = await session(t)
  host.decide = () => ({ behavior: 'deny' })
  const tools = [
    { tool: 'fs_write', id: 'outside', input: { path: '../x', content: '' } },
    { tool: 'fs_write', id: 'turned', input: { path: 'a\u202etxt.exe', content: '' } },
    { tool: 'web_fetch', id: 'inside', input: { url: 'http://127.0.0.1/' } },
    { tool: 'download', id: 'where', input: { url: 'https://example.com/x', path: '/etc/x' } },
    { tool: 'fs_write', id: 'odd', input: { path: './a//b', content: '' } },
    { tool: 'web_fetch', id: 'url', input: { url: 'https://example.com/a\nb\u202e' } },
  ]
  runner.send(script({ tools }, { text: 'ok' }))
  await host.turn()
  t.same(
    host.asked.map(({ toolUseId, title }) => [toolUseId, title]),
    [
      ['odd', 'Write a/b'],
      ['url', 'Fetch https://example.com/ab%E2%80%AE'],
    ],
  )
  t.match(host.results, { outside: { isError: true }, inside: { isError: true, content: /private address/ } })
})

const LEAVE: [mode: PermissionMode, tool: object, expected: 'asked' | 'ran' | 'refused'][] = [
  ['default', { tool: 'fs_list' }, 'ran'],
  ['default', write, 'asked'],
  ['default', { tool: 'web_search', input: { query: 'x' } }, 'asked'],
  ['default', { tool: 'deliver_file', input: { path: 'a' } }, 'asked'],
  ['default', { tool: 'web_fetch', input: { url: 'https://example.com/' } }, 'asked'],
  ['default', { tool: 'download', input: { url: 'https://example.com/' } }, 'asked'],
  ['default', asking, 'asked'],
  ['dontAsk', { tool: 'fs_list' }, 'ran'],
  ['dontAsk', write, 'refused'],
  ['dontAsk', asking, 'refused'],
  ['bypassPermissions', write, 'ran'],
  ['bypassPermissions', { tool: 'web_search', input: { query: 'x' } }, 'ran'],
  ['bypassPermissions', asking, 'asked'],
]
for (const [permissionMode, tool, expected] of LEAVE) {
  t.test(`${permissionMode}: ${JSON.stringify(tool)} ${expected}`, async (t) => {
    const { runner, host } = await session(t, { permissionMode })
    host.decide = () => ({ behavior: 'deny', message: 'asked' })
    runner.send(script({ tools: [{ ...(tool as typeof write), id: 'call' }] }, { text: 'ok' }))
    await host.turn()
    const { content, isError } = host.results.call!
    const seen = content === 'asked' ? 'asked' : isError && /not allowed/.test(String(content)) ? 'refused' : 'ran'
    t.equal(seen, expected)
    t.equal(host.asked.length, expected === 'asked' ? 1 : 0)
  })
}

t.test('allowedTools need no leave, also in dontAsk; disallowedTools do not exist', async (t) => {
  const config = { permissionMode: 'dontAsk' as const, allowedTools: ['fs_write'], disallowedTools: ['fs_list'] }
  const { runner, host, requests } = await session(t, config)
  runner.send(script({ tools: [write, { tool: 'fs_list', id: 'l' }] }, { text: 'ok' }))
  await host.turn()
  t.match(host.results, { w: { isError: false }, l: { isError: true, content: 'There is no tool fs_list.' } })
  t.notOk(requests[0]?.body.tools?.some((tool) => tool.function?.name === 'fs_list'))
  const init = host.of('system_init')[0]
  t.notOk(init?.tools.includes('fs_list'))
})

t.test('a question is answered by the allow', async (t) => {
  const { runner, host, requests } = await session(t)
  runner.send(script({ tools: [asking] }, { text: 'thanks' }))
  const { ask, answer } = await host.nextQuestion()
  t.match(ask, { toolName: 'AskUserQuestion', toolUseId: 'q', input: { questions } })
  answer({ behavior: 'allow', updatedInput: { questions, answers: { 'Which?': 'B' } } })
  await host.turn()
  t.same(JSON.parse(String(host.results.q?.content)), { answers: { 'Which?': 'B' } })
  t.match(requests[1]?.body.messages.at(-1), { role: 'tool', content: /"B"/ })
})

t.test('a question that is let pass without an answer, and one that is no question', async (t) => {
  const { runner, host } = await session(t)
  host.decide = () => ({ behavior: 'allow' })
  const bad = { tool: 'AskUserQuestion', id: 'bad', input: { questions: [] } }
  runner.send(script({ tools: [asking, bad] }, { text: 'ok' }))
  await host.turn()
  t.match(host.results, { q: { isError: true }, bad: { isError: true, content: /questions/ } })
  t.equal(host.asked.length, 1)
})

t.test('the mode can change while the session runs, to modes of this engine only', async (t) => {
  const { runner, host } = await session(t)
  await runner.setPermissionMode?.('dontAsk')
  t.match(host.of('permission_mode_changed'), [{ mode: 'dontAsk' }])
  runner.send(script({ tools: [write] }, { text: 'ok' }))
  await host.turn()
  t.match(host.results, { w: { isError: true, content: /dontAsk/ } })
  await t.rejects(runner.setPermissionMode!('plan'), { code: 'SG_ERR_PERMISSION_MODE' })
  t.equal(host.of('permission_mode_changed').length, 1)
})

t.test('a mode of the other engine is refused when the runner is built', async (t) => {
  await t.rejects(session(t, { permissionMode: 'acceptEdits' }), { code: 'SG_ERR_PERMISSION_MODE' })
})
