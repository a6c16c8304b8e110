import t from 'tap'
import { foldTranscript } from '../../client/index.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { attach } from '../fixtures/client.js'
import { expectNoEvents } from '../fixtures/documented.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

expectNoEvents(t)

const loop: { self?: unknown } = {}
loop.self = loop

t.test('what an engine reports of itself never spoils an answer', async (t) => {
  const { call, engine, api } = await buildServer(t)
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
  const { host } = engine.last
  const odd: unknown[] = [
    Number.NaN,
    Number.POSITIVE_INFINITY,
    -1,
    '7',
    null,
    undefined,
    {},
    [],
    { toString: null },
    { toJSON: 1 },
  ]
  for (const value of odd) {
    const init = {
      sdkSessionId: value,
      model: value,
      apiKeySource: value,
      permissionMode: value,
      cwd: value,
      tools: value,
    }
    host.emit({ type: 'system_init', ...init } as never)
    host.emit({ type: 'model_changed', model: value } as never)
    const usage = { inputTokens: value, outputTokens: value, cacheCreationTokens: value, cacheReadTokens: value }
    host.emit({ type: 'turn_completed', numTurns: value, totalCostUsd: value, usage } as never)
    host.emit({ type: 'turn_completed', usage: value } as never)
    t.equal((await call('GET', '/sessions')).status, 200, `${typeof value} ${JSON.stringify(value)}`)
  }
  const info = (await call('GET', `/sessions/${json.id}`)).json
  const none = { inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 }
  t.match(info, { status: 'idle', usage: none, cost: 0, numTurns: 0 })
  const client = await attach(t, api, json.id)
  await client.untilFrame('synced')
  t.same(client.attached.session, { ...info, attachedClients: 1 })
})

/** An event of each type that an engine tells, as it is to be. */
const whole: Record<string, object> = {
  system_init: {
    ...{ sdkSessionId: 's', model: 'm', cwd: '/', apiKeySource: 'none', permissionMode: 'default' },
    ...{ tools: [], skills: [], slashCommands: [], mcpServers: [] },
  },
  capabilities: { models: [{ value: 'm', displayName: 'M' }], commands: [{ name: 'c' }] },
  permission_mode_changed: { mode: 'default' },
  user_message: { message: { role: 'user', content: 'x' }, uuid: 'u', parentToolUseId: null },
  assistant_message: {
    message: { role: 'assistant', content: [{ type: 'text', text: 'x' }] },
    ...{ uuid: 'a', parentToolUseId: null },
  },
  stream_delta: { uuid: 'd', blockIndex: 0, delta: { type: 'text', text: 'x' }, parentToolUseId: null },
  turn_completed: {
    ...{ subtype: 'success', isError: false, durationMs: 1, numTurns: 1, totalCostUsd: 0 },
    usage: { inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 },
  },
  execution_dispatched: { executionId: 'e', toolName: 'x', backend: 'client' },
  execution_result: { executionId: 'e', output: { type: 'text', value: 'x' } },
  file_delivered: { path: 'x', bytes: 1 },
  context_usage: { usage: { totalTokens: 1, maxTokens: 2, percentage: 50 } },
  plan_updated: { entries: [{ content: 'x', status: 'pending' }] },
  rate_limit: { info: {} },
}

t.test('events of the wrong shape are told of by their field, and spoil no transcript', async (t) => {
  const warned: object[] = []
  const warn = (fields: object, message: string) => {
    if (message.includes('wrong shape')) warned.push(fields)
  }
  const { call, engine, api } = await buildServer(t, { logger: { info() {}, warn, error() {} } })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
  const client = await attach(t, api, json.id)
  const { host } = engine.last
  for (const [type, body] of Object.entries(whole)) {
    for (const name of Object.keys(body)) {
      const { [name as never]: _, ...others } = body
      for (const value of [undefined, null, true, Number.NaN, { toString: null }, [null]])
        host.emit({ type, ...others, [name]: value } as never)
    }
  }
  t.strictSame(
    warned.map(({ type }: { type?: string }) => type),
    Object.keys(whole),
    'each type once',
  )
  t.match(warned[0], { sessionId: json.id, type: 'system_init', problem: /^sdkSessionId: Expected string/ })
  engine.last.say('I go on.')
  engine.last.complete()
  await client.until(
    ({ events }) => events.at(-1)?.type === 'turn_completed' && JSON.stringify(events).includes('go on'),
  )
  const { events } = (await call('GET', `/sessions/${json.id}/events?limit=1000`)).json
  t.ok(events.some(({ payload }: { payload?: { type?: string } }) => payload?.type === 'assistant_message'))
  t.match(foldTranscript(events).items.toArray().at(-2), { parts: [{ text: 'I go on.' }] })
})

t.test('a turn whose end has the wrong shape has ended, as far as the engine said how', async (t) => {
  const { call, engine } = await buildServer(t)
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
  const ends = [
    [
      { isError: false, result: 'done' },
      { subtype: 'success', isError: false, result: 'done', durationMs: 0 },
    ],
    [{ subtype: 'interrupted' }, { subtype: 'interrupted', isError: false }],
    [
      { isError: true, errors: ['a', 5] },
      { subtype: 'error_during_execution', isError: true, errors: ['a'] },
    ],
    [{ usage: { inputTokens: 7 } }, { subtype: 'success', isError: false }],
    [{ subtype: 'well' }, { isError: true, errors: [/did not say how the turn ended \(isError: /] }],
  ]
  for (const [said] of ends) engine.last.host.emit({ type: 'turn_completed', ...said } as never)
  const { events } = (await call('GET', `/sessions/${json.id}/events`)).json
  const told = events.filter(({ type }: { type: string }) => type === 'turn_completed')
  t.match(
    told,
    ends.map(([, shown]) => shown),
  )
  t.match((await call('GET', `/sessions/${json.id}`)).json, { status: 'idle', usage: { inputTokens: 7 } })
})

t.test('what an event lacks is told of, and the event is kept as it is', async (t) => {
  const problems: unknown[] = []
  const warn = ({ problem }: { problem?: string }) => void problems.push(problem)
  const { call, engine } = await buildServer(t, { logger: { info() {}, warn, error() {} } })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
  const message = { role: 'assistant', content: [{ type: 'text', text: 'short' }] }
  const said = { type: 'assistant_message', message, uuid: undefined }
  engine.last.host.emit(said as never)
  engine.last.host.emit({ type: 'assistant_message', uuid: 'u', parentToolUseId: null } as never)
  const { events } = (await call('GET', `/sessions/${json.id}/events`)).json
  t.match(events.slice(-2), [
    { type: 'assistant_message', message },
    { type: 'engine_event', payload: { uuid: 'u' } },
  ])
  t.match(problems, [/^parentToolUseId: Required/])
  t.match(foldTranscript(events).items.toArray().at(-1), { parts: [{ text: 'short' }] })
})

t.test('a file without a path, and work without a name, say nothing that could be shown', async (t) => {
  const { call, engine } = await buildServer(t)
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
  for (const odd of [
    { type: 'file_delivered', path: null, bytes: 5 },
    { type: 'file_delivered', bytes: 5 },
    { type: 'execution_dispatched', executionId: 'x' },
  ])
    engine.last.host.emit(odd as never)
  const { events } = (await call('GET', `/sessions/${json.id}/events`)).json
  t.match(events.slice(-3), [
    { type: 'engine_event', payload: { type: 'file_delivered' } },
    { type: 'engine_event', payload: { type: 'file_delivered' } },
    { type: 'engine_event', payload: { executionId: 'x' } },
  ])
})

t.test("what an engine says that has no type here is in the log; what is the gateway's to tell is not", async (t) => {
  const warned: unknown[] = []
  const warn = ({ type }: { type?: unknown }) => void warned.push(type)
  const { call, engine } = await buildServer(t, { logger: { info() {}, warn, error() {} } })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
  const ours = [
    { type: 'status_changed', status: 'failed' },
    { type: 'session_closed', reason: 'client' },
    { type: 5 },
    {},
  ]
  for (const odd of [{ type: 'thought', words: 3 }, { type: 'toString' }, ...ours, null])
    engine.last.host.emit(odd as never)
  const { events } = (await call('GET', `/sessions/${json.id}/events`)).json
  t.match(events.slice(-2), [
    { type: 'engine_event', payload: { type: 'thought', words: 3 } },
    { type: 'engine_event', payload: { type: 'toString' } },
  ])
  t.strictSame(warned, ['status_changed', 'session_closed', 5, undefined, undefined])
  t.match((await call('GET', `/sessions/${json.id}`)).json, { status: 'running' })
})

t.test('null for what may be left out is as good as nothing', async (t) => {
  const { call, engine } = await buildServer(t)
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
  const { host } = engine.last
  const message = { role: 'assistant', content: 'short', model: null, stopReason: null, usage: null }
  host.emit({ type: 'assistant_message', message, uuid: 'u', parentToolUseId: null } as never)
  const { events } = (await call('GET', `/sessions/${json.id}/events`)).json
  t.match(foldTranscript(events).items.toArray().at(-1), { parts: [{ text: 'short' }] })
  const words = { title: null, description: null, decisionReason: null, agentId: null }
  void host.requestPermission({ toolName: 'x', toolUseId: 'u', input: {}, ...words } as never)
  const [{ request }] = (await call('GET', '/inbox')).json
  t.strictSame(Object.keys(request), ['id', 'toolName', 'toolUseId', 'input', 'expiresAt'])
})

t.test('a mode that this gateway does not know is the mode of a newer agent', async (t) => {
  const { call, engine } = await buildServer(t)
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
  const foldedAfter = async (event: object) => {
    engine.last.host.emit(event as never)
    return foldTranscript((await call('GET', `/sessions/${json.id}/events`)).json.events)
  }
  const init = { type: 'system_init', ...whole.system_init, model: 'new', permissionMode: 'novel' }
  t.match(await foldedAfter(init), { permissionMode: 'novel', init: { model: 'new' } })
  t.match(await foldedAfter({ type: 'permission_mode_changed', mode: 'newer' }), { permissionMode: 'newer' })
})

t.test('a message does not grow by what is no text', async (t) => {
  const { call, engine } = await buildServer(t)
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
  for (const delta of [{ type: 'text' }, { type: 'thinking', text: null }, { type: 'tool_input' }])
    engine.last.host.emit({ type: 'stream_delta', uuid: 'u', blockIndex: 0, delta, parentToolUseId: null } as never)
  const { events } = (await call('GET', `/sessions/${json.id}/events`)).json
  t.same(foldTranscript(events).streaming, [])
})

t.test('an engine that dies without a word of why has died', async (t) => {
  const { call, engine } = await buildServer(t)
  for (const message of [undefined, 5, { toString: null }]) {
    const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
    engine.last.host.emit({ type: 'session_error', message, code: {} } as never)
    t.match((await call('GET', `/sessions/${json.id}`)).json, {
      status: 'failed',
      statusDetail: 'The engine failed, and did not say why.',
    })
  }
})

t.test('what cannot be shown to anybody is a rejection to the engine, and waits for nobody', async (t) => {
  const { call, engine, api } = await buildServer(t)
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
  const client = await attach(t, api, json.id)
  const { host, context } = engine.last
  for (const input of [1n, loop, { deep: [{ n: 1n }] }]) {
    await t.rejects(host.requestPermission({ toolName: 'Write', toolUseId: 'u', input: input as never }), TypeError)
    await t.rejects(context.bridge.execute({ executionId: 'e', toolName: 'x', input }), TypeError)
  }
  t.match((await call('GET', `/sessions/${json.id}`)).json, { status: 'running', pendingPermissions: 0 })
  const date = new Date(0)
  void host.requestPermission({ toolName: 'Write', toolUseId: 'u', input: { date, gone: () => {} } })
  await client.untilEvent('permission_requested')
  const [request] = client.events.flatMap((event) => (event.type === 'permission_requested' ? [event.request] : []))
  t.same(request?.input, { date: date.toISOString() }, 'what is shown is JSON')
})

t.test('what has the wrong shape is a rejection to the engine, and spoils no list', async (t) => {
  const { call, engine } = await buildServer(t)
  await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
  const { host } = engine.last
  const asks: [unknown, RegExp][] = [
    [{}, /wrong shape: toolName: Expected string\.$/],
    [{ toolName: 5, toolUseId: 'u', input: {} }, /toolName: /],
    [{ toolName: 'x', toolUseId: {}, input: {} }, /toolUseId: /],
    [{ toolName: 'x', toolUseId: 'u', input: 'y' }, /input: /],
    [{ toolName: 'x', toolUseId: 'u', input: [] }, /input: /],
    [{ toolName: 'x', toolUseId: 'u', input: {}, title: 5 }, /title: /],
  ]
  for (const [ask, message] of asks) await t.rejects(host.requestPermission(ask as never), { message })
  const executions: [unknown, RegExp][] = [
    [{ executionId: 'e' }, /^toolName: /],
    [{ executionId: 'e', toolName: {} }, /^toolName: /],
    [{ executionId: 'e', toolName: 'x', expiresAt: 'soon' }, /^expiresAt: /],
    [{ executionId: 'e', toolName: 'x', expiresAt: Number.NaN }, /^expiresAt: /],
  ]
  for (const [execution, message] of executions) await t.rejects(host.deferExecution(execution as never), { message })
  void host.requestPermission({ toolName: 'x', toolUseId: 'u', input: {} })
  const { status, json } = await call('GET', '/inbox')
  t.equal(status, 200)
  t.strictSame(
    json.map(({ request }: { request: { toolName: string } }) => request.toolName),
    ['x'],
  )
})

t.test('what runs after an allow is what was shown, whatever the engine did with its input', async (t) => {
  const { call, engine } = await buildServer(t)
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
  const input = { path: 'harmless', date: new Date(0) }
  const decision = engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 'u', input })
  input.path = '/etc/passwd'
  const { events } = (await call('GET', `/sessions/${json.id}/events`)).json
  const { request } = events.find((event: { type: string }) => event.type === 'permission_requested')
  await call('POST', `/sessions/${json.id}/permissions/${request.id}`, { behavior: 'allow' })
  t.same(await decision, { behavior: 'allow', updatedInput: request.input })
  t.same(request.input, { path: 'harmless', date: '1970-01-01T00:00:00.000Z' })
})

t.test('questions of any form are answered by policy', async (t) => {
  const { call, engine } = await buildServer(t)
  await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go', questionBehavior: 'auto' })
  const ask = (questions: unknown) =>
    engine.last.host.requestPermission({ toolName: 'AskUserQuestion', toolUseId: 'u', input: { questions } })
  const good = { question: 'Which?', options: [{ label: 'first' }, { label: 'second' }] }
  const odd = [
    null,
    7,
    'x',
    [],
    {},
    { question: 'a' },
    { question: 'b', options: [null] },
    { options: [{ label: 'x' }] },
  ]
  for (const questions of [undefined, null, 'x', {}, odd]) {
    t.match(await ask(questions), { behavior: 'allow', updatedInput: { answers: {} } })
  }
  t.match(await ask([...odd, good]), { updatedInput: { answers: { 'Which?': 'first' } } })
})

t.test('an engine that reports bypassPermissions where that is disabled is given no prompt', async (t) => {
  const { call, engine } = await buildServer(t, {
    disableBypassPermissions: true,
    requireApiKey: true,
    script: { start: () => {} },
  })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
  engine.last.host.emit({ type: 'system_init', apiKeySource: 'env', permissionMode: 'bypassPermissions' } as never)
  t.same(engine.last.sent, [])
  t.match((await call('GET', `/sessions/${json.id}`)).json, { status: 'failed' })
  t.ok(engine.last.closed)
})

t.test('an event that throws when it is looked at is told by what it throws', async (t) => {
  const { call, engine } = await buildServer(t)
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
  engine.last.host.emit({
    type: 'model_changed',
    get model(): string {
      throw new TypeError('the model is gone')
    },
  })
  t.match((await call('GET', `/sessions/${json.id}`)).json, {
    status: 'failed',
    statusDetail: /cannot be taken: the model is gone$/,
  })
})

t.test('an engine whose start rejects with what is no Error says of it what can be said', async (t) => {
  const notSaid = () => {
    throw new Error('not to be asked')
  }
  const torn = new Proxy({}, { get: notSaid, ownKeys: notSaid })
  const thrown: [unknown, RegExp | string][] = [
    ['no such binary', 'no such binary'],
    [{ code: 7, message: 'no such binary' }, 'no such binary'],
    [{ status: 401, headers: { authorization: 'secret' } }, /says nothing of why: an object with status, headers\.$/],
    [undefined, /says nothing of why: undefined\.$/],
    [Object.create(null), /says nothing of why: object\.$/],
    [torn, /cannot be looked at/],
  ]
  for (const [reason, statusDetail] of thrown) {
    const { call, registry } = await buildServer(t, { script: { start: () => Promise.reject(reason) } })
    const { json } = await call('POST', '/sessions', { cwd: SOME_CWD })
    await until(async () => (await registry.get(json.id))?.status === 'failed')
    t.match(await registry.get(json.id), { statusDetail })
  }
})

t.test('whoever interrupts an engine that does not answer is told so, and its session goes on', async (t) => {
  const clock = new VirtualClock()
  const { call, engine, registry } = await buildServer(t, { clock })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
  let asked = 0
  engine.last.interrupt = () => {
    asked++
    return new Promise(() => {})
  }
  const interrupted = call('POST', `/sessions/${json.id}/commands`, { type: 'interrupt' })
  await until(() => asked === 1)
  await clock.advance(30_000)
  t.match(await interrupted, { status: 409, json: { code: 'SG_ERR_ENGINE_REFUSED', detail: /did not answer in time/ } })
  engine.last.complete()
  await until(async () => (await registry.get(json.id))?.status === 'idle')
})
