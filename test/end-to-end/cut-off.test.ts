import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { providerEngine } from '../../src/engines/provider/index.js'
import { UNLIMITED } from '../../src/principal.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { compiledPackage } from '../fixtures/compiled.js'
import { reach, runDaemon } from '../fixtures/daemon-process.js'
import { buildJournaled } from '../fixtures/journaled.js'
import { script, startModelEndpoint } from '../fixtures/model-endpoint.js'

const ENTRY = pathToFileURL(join(compiledPackage(), 'src/index.js')).href
/** A search that never comes back: the process ends in the middle of it. */
const HOOKS = `import { providerEngine } from '${ENTRY}'
export const createEngineRunner = providerEngine({ webSearch: () => new Promise(() => {}) })`

const write = { tool: 'fs_write', id: 'w', input: { path: 'a.txt', content: 'x' } }
const search = { tool: 'web_search', id: 's', input: { query: 'who' } }
const MAY_HAVE_RUN = /may or may not have taken effect.*The files of the session are as they were before/s

const openAi = (isMistral: boolean) => (prompt: string) => [
  { role: 'system' },
  { role: 'user', content: prompt },
  { role: 'assistant', content: 'I look.', reasoning_content: 'Hm.', tool_calls: [{ id: 'w' }, { id: 's' }] },
  { role: 'tool', tool_call_id: 'w', content: /a\.txt/ },
  { role: 'tool', tool_call_id: 's', content: MAY_HAVE_RUN },
  ...(isMistral ? [{ role: 'assistant', content: '(The turn ended here.)' }] : []),
  { role: 'user', content: 'and now?' },
]

const anthropic = (prompt: string) => [
  { role: 'user', content: [{ type: 'text', text: prompt }] },
  {
    role: 'assistant',
    content: [
      { type: 'text', text: 'I look.' },
      { type: 'tool_use', id: 'w', name: 'fs_write', input: write.input },
      { type: 'tool_use', id: 's', name: 'web_search', input: search.input },
    ],
  },
  {
    role: 'user',
    content: [
      { type: 'tool_result', tool_use_id: 'w' },
      { type: 'tool_result', tool_use_id: 's', content: MAY_HAVE_RUN, is_error: true },
      { type: 'text', text: 'and now?' },
    ],
  },
]

const PROVIDERS = [
  { provider: { id: 'openai-compatible', model: 'scripted' }, shown: openAi(false) },
  { provider: { id: 'openai-compatible', model: 'mistral-large' }, shown: openAi(true) },
  { provider: { id: 'anthropic', model: 'claude-scripted', apiKeyEnv: 'SCRIPTED_KEY' }, shown: anthropic },
]

t.test('a daemon that is killed in the middle of a tool: the model is shown what was said and done', async (t) => {
  const model = await startModelEndpoint(t)
  const cwd = t.testdir({ work: {}, 'hooks.mjs': HOOKS })
  const config = {
    listen: { port: 0 },
    allowUnauthenticated: true,
    allowedCwdRoots: ['work'],
    hooks: 'hooks.mjs',
    profiles: PROVIDERS.map(({ provider }, index) => ({
      name: `p${index}`,
      engine: 'provider',
      provider: { ...provider, baseUrl: model.url },
    })),
  }
  writeFileSync(join(cwd, 'gateway.json'), JSON.stringify(config), { mode: 0o600 })
  const start = async () => {
    const daemon = runDaemon(t, [], { cwd, env: { SCRIPTED_KEY: 'k' } })
    return { daemon, ...(await reach(daemon)) }
  }
  const prompt = script({ thinking: 'Hm.', text: 'I look.', tools: [write, search] }, { text: 'never said' })

  const first = await start()
  const ids: string[] = []
  for (const [index] of PROVIDERS.entries()) {
    const asked = { profile: `p${index}`, cwd: join(cwd, 'work'), permissionMode: 'bypassPermissions', prompt }
    const { id } = (await (await first.call('/sessions', asked)).json()) as { id: string }
    ids.push(id)
    await until(async () => (await (await first.call(`/sessions/${id}/events`)).text()).includes('"tool_result"'))
  }
  first.daemon.child.kill('SIGKILL')
  await first.daemon.exited

  const second = await start()
  const before = model.requests.length
  t.equal(before, PROVIDERS.length)
  for (const [index, { provider, shown }] of PROVIDERS.entries()) {
    const said = await second.call(`/sessions/${ids[index]}/commands`, { type: 'user_message', text: 'and now?' })
    t.equal(said.status, 200)
    const { body } = await model.request(before + index + 1)
    const expected = shown(prompt)
    t.match(body.messages, expected, provider.model)
    t.equal(body.messages.length, expected.length, provider.model)
    const events = async () => (await second.call(`/sessions/${ids[index]}/events`)).text()
    await until(async () => (await events()).includes('"subtype":"success"'))
    t.notMatch(await events(), /reasoning metadata/, 'and nothing that it would not read')
    const { usage } = (await (await second.call(`/sessions/${ids[index]}`)).json()) as { usage: object }
    t.match(usage, { outputTokens: 100 }, 'each call counts once')
  }
})

t.test('what was chosen in the turn holds for what is shown of it, and nothing of it is counted again', async (t) => {
  const model = await startModelEndpoint(t)
  const price = { input: 1_000, output: 0 }
  const { registry, eventsOf, again } = await buildJournaled(t, {
    createEngineRunner: providerEngine({ prices: { first: price, other: price } }),
    profiles: [
      {
        name: 'assistant',
        engine: 'provider',
        provider: { id: 'openai-compatible', baseUrl: model.url, model: 'first', models: ['first', 'other'] },
      },
    ],
  })
  const { id } = await registry.create({ cwd: SOME_CWD, permissionMode: 'dontAsk', maxBudgetUsd: 2 })
  const list = { tool: 'fs_list', id: 'a call|1' }
  await registry.send(id, { type: 'user_message', text: script({ tools: [list] }, { text: 'I see', hang: true }) })
  await model.request(2)
  await registry.send(id, { type: 'set_model', model: 'other' })
  await registry.send(id, { type: 'set_permission_mode', mode: 'default' })
  await until(async () => (await eventsOf(id)).some(({ type }) => type === 'stream_delta'))
  await registry.durable(id)

  const next = await again()
  await next.registry.send(id, { type: 'user_message', text: 'and now?' })
  const { body } = await model.request(3)
  t.equal(body.model, 'other')
  t.match(body.messages.slice(1), [
    { role: 'user' },
    { role: 'assistant', tool_calls: [{ id: /^call_[\w-]+$/, function: { name: 'fs_list' } }] },
    { role: 'tool', tool_call_id: (body.messages[2] as { tool_calls: { id: string }[] }).tool_calls[0]!.id },
    { role: 'user', content: 'and now?' },
  ])
  await until(() => next.registry.here(id)?.status === 'idle')
  t.match(await next.registry.get(id), { permissionMode: 'default', numTurns: 1, usage: { outputTokens: 100 } })
  t.equal((await next.registry.get(id))!.cost.toFixed(3), '1.000')
})

t.test('a call that nobody had allowed is shown as one that did not run', async (t) => {
  const model = await startModelEndpoint(t)
  const provider = { id: 'openai-compatible', baseUrl: model.url, model: 'scripted' }
  const { registry, again } = await buildJournaled(t, {
    createEngineRunner: providerEngine(),
    profiles: [{ name: 'assistant', engine: 'provider', provider }],
  })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: script({ tools: [write, { ...write, id: 'w2' }] }) })
  await until(() => registry.here(id)?.pendingPermissions === 1)
  await registry.durable(id)

  const next = await again()
  await next.registry.send(id, { type: 'user_message', text: 'and now?' })
  const { body } = await model.request(2)
  t.match(body.messages.slice(3), [
    { role: 'tool', tool_call_id: 'w', content: /^The session stopped before this was allowed. It did not run.$/ },
    { role: 'tool', tool_call_id: 'w2', content: /It did not run/ },
    { role: 'user', content: 'and now?' },
  ])
})

t.test('the agent goes on with a file that it had delivered in the turn, and that is written down once', async (t) => {
  const model = await startModelEndpoint(t)
  const provider = { id: 'openai-compatible', baseUrl: model.url, model: 'scripted' }
  const { registry, eventsOf, again } = await buildJournaled(t, {
    createEngineRunner: providerEngine(),
    profiles: [{ name: 'assistant', engine: 'provider', provider }],
  })
  const { id } = await registry.create({ cwd: SOME_CWD, permissionMode: 'bypassPermissions' })
  const deliver = { tool: 'deliver_file', id: 'd', input: { path: 'a.txt' } }
  await registry.send(id, {
    type: 'user_message',
    text: script({ tools: [write] }, { tools: [deliver] }, { text: 'I', hang: true }),
  })
  await until(async () => (await eventsOf(id)).some(({ type }) => type === 'file_delivered'))
  const listed = (await registry.open(id, UNLIMITED)).files?.list()
  await registry.durable(id)

  const next = await again()
  const read = { tool: 'fs_read', id: 'r', input: { path: 'a.txt' } }
  await next.registry.send(id, { type: 'user_message', text: script({ tools: [read] }, { text: 'as it was' }) })
  await until(() => next.registry.here(id)?.status === 'idle')
  const { body } = model.requests.at(-1)!
  t.match(body.messages.at(-1), { role: 'tool', tool_call_id: 'r', content: /x/ })
  const session = await next.registry.open(id, UNLIMITED)
  t.same(session.files?.list(), listed)
  t.equal(session.delivered, undefined, 'a snapshot has it')
})
