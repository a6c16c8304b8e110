import t, { type Test } from 'tap'
import { type BuildOptions, buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { attach } from '../fixtures/client.js'
import { headerOf, isProblem } from '../fixtures/problem.js'

const ask = { toolName: 'Write', toolUseId: 'use', input: { path: 'a' } }

/** A gateway with one session in it, whose engine has begun. */
async function buildSession(t: Test, options: BuildOptions = {}, request: object = {}) {
  const server = await buildServer(t, options)
  const { json } = await server.call('POST', '/sessions', { cwd: SOME_CWD, ...request })
  const path = `/sessions/${json.id}`
  const command = (body: unknown) => server.call('POST', `${path}/commands`, body)
  return { ...server, id: json.id as string, path, command, runner: server.engine.last }
}

t.test('every refusal of a command, over REST and over a socket', async (t) => {
  const { command, api, id, runner } = await buildSession(t, { disableBypassPermissions: true }, { prompt: 'busy' })
  const output = { type: 'text', value: 'x' }
  const rows: [command: unknown, status: number, code: string, path?: string][] = [
    ...[null, true, 7, 'close', [], [{ type: 'close' }]].map((body): (typeof rows)[number] => [
      body,
      400,
      'SG_ERR_VALIDATION',
    ]),
    [{}, 400, 'SG_ERR_VALIDATION', 'type'],
    [{ type: 7 }, 400, 'SG_ERR_VALIDATION', 'type'],
    [{ type: ['close'] }, 400, 'SG_ERR_VALIDATION', 'type'],
    ...['', 'CLOSE', 'close ', '__proto__', 'constructor', 'toString', 'event'].map((type): (typeof rows)[number] => [
      { type },
      400,
      'SG_ERR_UNKNOWN_COMMAND',
      'type',
    ]),
    [{ type: 'close', id: 7 }, 400, 'SG_ERR_VALIDATION', 'id'],
    [{ type: 'close', id: 'x'.repeat(201) }, 400, 'SG_ERR_VALIDATION', 'id'],
    [{ type: 'close', force: true }, 400, 'SG_ERR_VALIDATION', 'force'],
    [{ type: 'interrupt', sessionId: 'other' }, 400, 'SG_ERR_VALIDATION', 'sessionId'],
    [{ type: 'user_message' }, 400, 'SG_ERR_VALIDATION', 'text'],
    [{ type: 'user_message', text: '' }, 400, 'SG_ERR_VALIDATION', 'text'],
    [{ type: 'user_message', text: ['x'] }, 400, 'SG_ERR_VALIDATION', 'text'],
    [{ type: 'user_message', text: 'x', whenBusy: 'drop' }, 400, 'SG_ERR_VALIDATION', 'whenBusy'],
    [{ type: 'user_message', text: 'x', whenBusy: 'reject' }, 409, 'SG_ERR_SESSION_BUSY'],
    [{ type: 'permission_decision', behavior: 'allow' }, 400, 'SG_ERR_VALIDATION', 'requestId'],
    [{ type: 'permission_decision', requestId: 'x', behavior: 'maybe' }, 400, 'SG_ERR_VALIDATION'],
    [
      { type: 'permission_decision', requestId: 'x', behavior: 'allow', message: 'y' },
      400,
      'SG_ERR_VALIDATION',
      'message',
    ],
    [
      { type: 'permission_decision', requestId: 'x', behavior: 'deny', updatedInput: {} },
      400,
      'SG_ERR_VALIDATION',
      'updatedInput',
    ],
    [
      { type: 'permission_decision', requestId: 'x', behavior: 'allow', updatedInput: null },
      400,
      'SG_ERR_VALIDATION',
      'updatedInput',
    ],
    [{ type: 'permission_decision', requestId: '__proto__', behavior: 'allow' }, 404, 'SG_ERR_PERMISSION_NOT_FOUND'],
    [{ type: 'set_permission_mode' }, 400, 'SG_ERR_VALIDATION', 'mode'],
    [{ type: 'set_permission_mode', mode: 'yolo' }, 400, 'SG_ERR_VALIDATION', 'mode'],
    [{ type: 'set_permission_mode', mode: 'plan' }, 400, 'SG_ERR_PERMISSION_MODE', 'mode'],
    [{ type: 'set_permission_mode', mode: 'bypassPermissions' }, 403, 'SG_ERR_BYPASS_DISABLED'],
    [{ type: 'set_model', model: '' }, 400, 'SG_ERR_VALIDATION', 'model'],
    [{ type: 'set_model', model: null }, 400, 'SG_ERR_VALIDATION', 'model'],
    [{ type: 'tool_call_result', executionId: 'x' }, 400, 'SG_ERR_VALIDATION', 'output'],
    [
      { type: 'tool_call_result', executionId: 'x', output: { type: 'text', value: 1 } },
      400,
      'SG_ERR_VALIDATION',
      'output.value',
    ],
    [{ type: 'tool_call_result', executionId: 'x', output, logs: [1] }, 400, 'SG_ERR_VALIDATION', 'logs.0'],
    [{ type: 'tool_call_result', executionId: 'constructor', output }, 404, 'SG_ERR_EXECUTION_NOT_FOUND'],
    [{ type: 'tool_call_error', executionId: 'x', reason: 'r' }, 400, 'SG_ERR_VALIDATION', 'error'],
    [{ type: 'tool_call_error', executionId: 'x', reason: 'r', error: 'e' }, 404, 'SG_ERR_EXECUTION_NOT_FOUND'],
  ]
  const client = await attach(t, api, id)
  await client.untilFrame('synced')
  const before = runner.sent.length
  for (const [body, status, code, path] of rows) {
    const what = JSON.stringify(body).slice(0, 90)
    const answer = await command(JSON.stringify(body))
    isProblem(t, answer, status, code, what)
    if (path) t.equal(answer.json.errors[0].path, path, what)
    client.frames.length = 0
    client.send(JSON.stringify(body))
    await client.untilFrame('command_error')
    t.match(client.frames, [{ type: 'command_error', code, message: answer.json.detail }], `${what} over a socket`)
  }
  for (const text of ['', 'close', '{"type":"close"', '{"type":"close","__proto__":{}}', `{"a":${'['.repeat(70)}`]) {
    client.frames.length = 0
    client.send(text)
    await client.untilFrame('command_error')
  }
  client.frames.length = 0
  client.socket.send(Buffer.from('{"type":"close"}'), { binary: true })
  await client.untilFrame('command_error')
  t.same(runner.sent.length, before, 'the engine heard nothing')
  client.frames.length = 0
  client.send({ type: 'ping', id: 'last' })
  await client.untilFrame('ack')
  t.same(client.frames, [{ type: 'pong' }, { type: 'ack', id: 'last' }], 'and the socket lives on')
})

t.test('an error carries the id of its command, if it can be read', async (t) => {
  const { api, id } = await buildSession(t)
  const client = await attach(t, api, id)
  await client.untilFrame('synced')
  client.frames.length = 0
  for (const frame of [{ type: 'nothing', id: 'a' }, { id: 'b' }, { type: 'nothing', id: 7 }, ['c']]) client.send(frame)
  await client.until(() => client.frames.length === 4)
  t.same(
    client.frames.map((frame) => 'id' in frame && frame.id),
    ['a', 'b', false, false],
  )
})

t.test('what the engine does not do, refuses or never answers', async (t) => {
  const { command, runner, clock } = await buildSession(
    t,
    {
      script: {
        capabilities: { setModel: false, permissionModes: ['default'] },
        interrupt: () => new Promise(() => {}),
      },
    },
    { prompt: 'go' },
  )
  const changes = [
    { field: 'model', frame: { type: 'set_model', model: 'x' } },
    { field: 'mode', frame: { type: 'set_permission_mode', mode: 'dontAsk' } },
  ]
  for (const { field, frame } of changes) {
    const unsupported = await command(frame)
    isProblem(t, unsupported, 400, 'SG_ERR_UNSUPPORTED', field)
    t.match(unsupported.json.errors, [{ path: field }])
  }
  runner.setPermissionMode = () => Promise.reject(new Error('not now'))
  const refused = await command({ type: 'set_permission_mode', mode: 'default' })
  isProblem(t, refused, 409, 'SG_ERR_ENGINE_REFUSED')
  t.match(refused.json.detail, /not now/)
  const timers = clock.pendingTimers
  const silent = command({ type: 'interrupt' })
  await until(() => clock.pendingTimers > timers)
  await clock.advance(30_000)
  isProblem(t, await silent, 409, 'SG_ERR_ENGINE_REFUSED')
})

t.test('a queue of messages that is full is a 429 with Retry-After', async (t) => {
  const { command } = await buildSession(t, {}, { prompt: 'go' })
  for (let at = 0; at < 100; at++) t.equal((await command({ type: 'user_message', text: 'x' })).status, 200)
  const answer = await command({ type: 'user_message', text: 'x' })
  isProblem(t, answer, 429, 'SG_ERR_TOO_MANY')
  t.match(headerOf(answer, 'retry-after'), /^\d+$/)
})

t.test('permissions: unknown, another session’s, answered, expired, denied by the end', async (t) => {
  const world = await buildSession(t, {}, { prompt: 'go' })
  const { call, path, runner, engine, clock } = world
  const other = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
  const theirs = engine.last.host.requestPermission(ask)
  const pendingOf = async (id: string) =>
    (await call('GET', `/sessions/${id}/events`)).json.events.findLast(
      (e: { type: string }) => e.type === 'permission_requested',
    ).request.id
  const theirId = await pendingOf(other.json.id)
  const answer = (requestId: string, body: object = { behavior: 'allow' }) =>
    call('POST', `${path}/permissions/${requestId}`, body)
  for (const requestId of ['nothing', '__proto__', '%00', theirId])
    isProblem(t, await answer(requestId), 404, 'SG_ERR_PERMISSION_NOT_FOUND', requestId)

  const mine = runner.host.requestPermission(ask)
  const requestId = await pendingOf(world.id)
  const invalid: [body: unknown, path?: string][] = [
    [{}],
    [{ behavior: 'ALLOW' }],
    [{ behavior: 'allow', updatedInput: [] }, 'updatedInput'],
    [{ behavior: 'allow', interrupt: true }, 'interrupt'],
    [{ behavior: 'deny', message: 1 }, 'message'],
    [{ behavior: 'deny', interrupt: 'yes' }, 'interrupt'],
    [{ behavior: 'allow', requestId }, 'requestId'],
    [null],
  ]
  for (const [body, field] of invalid) {
    const refused = await answer(requestId, JSON.stringify(body) as never)
    isProblem(t, refused, 400, 'SG_ERR_VALIDATION', JSON.stringify(body))
    if (field) t.equal(refused.json.errors[0].path, field)
  }
  t.match(await answer(requestId, { behavior: 'deny', message: 'no' }), { status: 200, json: { resolved: true } })
  t.same(await mine, { behavior: 'deny', message: 'no' })
  isProblem(t, await answer(requestId), 404, 'SG_ERR_PERMISSION_NOT_FOUND', 'answered')

  const late = runner.host.requestPermission(ask)
  const lateId = await pendingOf(world.id)
  await clock.advance(300_000)
  isProblem(t, await answer(lateId), 404, 'SG_ERR_PERMISSION_NOT_FOUND', 'expired')
  t.match(await late, { behavior: 'deny' })
  t.match(await theirs, { behavior: 'deny' }, 'the other session’s was answered by nobody')

  const last = runner.host.requestPermission(ask)
  const lastId = await pendingOf(world.id)
  await world.command({ type: 'close' })
  isProblem(t, await answer(lastId), 404, 'SG_ERR_PERMISSION_NOT_FOUND', 'ended')
  t.match(await last, { behavior: 'deny' })
})

t.test('an ended session', async (t) => {
  const { command, call, path } = await buildSession(t)
  await command({ type: 'close' })
  for (const type of ['interrupt', 'close', 'set_model'])
    isProblem(t, await command({ type }), 409, 'SG_ERR_SESSION_ENDED', type)
  isProblem(t, await command({ type: 'user_message', text: 'x' }), 409, 'SG_ERR_SESSION_ENDED')
  for (const read of ['', '/events']) t.equal((await call('GET', `${path}${read}`)).status, 200, 'it can be read')
})

t.test('an answer to a question is text: what is none is refused, and the question waits on', async (t) => {
  const questions = [{ question: 'Which?', header: 'Pick', options: [{ label: 'red' }, { label: 'blue' }] }]
  const question = { toolName: 'AskUserQuestion', toolUseId: 'q', input: { questions } }
  const { call, command, path, runner } = await buildSession(t, {}, { prompt: 'go' })
  const asked = runner.host.requestPermission(question)
  const [{ request }] = (await call('GET', '/inbox')).json
  const rows: [answers: unknown, field: string][] = [
    [null, 'updatedInput.answers'],
    ['blue', 'updatedInput.answers'],
    [['blue'], 'updatedInput.answers'],
    [{ 'Which?': ['red', 'blue'] }, 'updatedInput.answers.Which?'],
    [{ 'Which?': 1 }, 'updatedInput.answers.Which?'],
  ]
  for (const [answers, field] of rows) {
    const decision = { behavior: 'allow', updatedInput: { answers } }
    for (const answer of [
      await call('POST', `${path}/permissions/${request.id}`, decision),
      await command({ type: 'permission_decision', requestId: request.id, ...decision }),
    ]) {
      isProblem(t, answer, 400, 'SG_ERR_VALIDATION', JSON.stringify(answers))
      t.match(answer.json.errors, [{ path: field }])
    }
  }
  t.match((await call('GET', path)).json, { status: 'awaiting_approval', pendingPermissions: 1 })
  const answers = { 'Which?': 'red, blue' }
  await call('POST', `${path}/permissions/${request.id}`, { behavior: 'allow', updatedInput: { answers } })
  t.strictSame(await asked, { behavior: 'allow', updatedInput: { questions, answers } })
})

t.test('queries and titles', async (t) => {
  const { call, path } = await buildSession(t)
  const rows: [method: string, path: string, body: unknown, field: string][] = [
    ...[
      'limit=0',
      'limit=201',
      'limit=1e2',
      'limit=1.0',
      'limit=',
      'limit=1&limit=2',
      'limit=__proto__',
      'limit=99999999999999999999',
    ].map((query): (typeof rows)[number] => ['GET', `/sessions?${query}`, undefined, 'limit']),
    ...['cursor=', 'cursor=x', 'cursor=%00', 'cursor=MS4y&cursor=MS4y'].map((query): (typeof rows)[number] => [
      'GET',
      `/sessions?${query}`,
      undefined,
      'cursor',
    ]),
    ...['status=', 'status=Idle', 'status=idle,closed', 'status=idle&status=closed'].map(
      (query): (typeof rows)[number] => ['GET', `/sessions?${query}`, undefined, 'status'],
    ),
    ['GET', '/sessions?engine=python', undefined, 'engine'],
    ['GET', '/sessions?profile=a&profile=b', undefined, 'profile'],
    ...['-1', '-0', '', 'x', '1.5', '0x1', '1e3', ' 1', '9007199254740992', '1&afterSeq=2'].map(
      (afterSeq): (typeof rows)[number] => ['GET', `${path}/events?afterSeq=${afterSeq}`, undefined, 'afterSeq'],
    ),
    ['GET', `${path}/events?limit=1001`, undefined, 'limit'],
    ['GET', `${path}/events?epoch=a&epoch=b`, undefined, 'epoch'],
    ...[{}, { title: '' }, { title: 'x'.repeat(501) }, { title: 7 }, { title: ['x'] }].map(
      (body): (typeof rows)[number] => ['PATCH', path, body, 'title'],
    ),
    ['PATCH', path, { title: 'x', status: 'closed' }, 'status'],
  ]
  for (const [method, url, body, field] of rows) {
    const answer = await call(method, url, body)
    isProblem(t, answer, 400, 'SG_ERR_VALIDATION', `${method} ${url}`)
    t.equal(answer.json.errors[0].path, field)
  }
  t.match((await call('GET', `${path}/events?afterSeq=-1`)).json, { detail: /^afterSeq: .* greater or equal to 0\.$/ })
  const stream = { accept: 'text/event-stream' }
  for (const id of ['x', '1', ':', ':-1', 'a:b:1', `:${'9'.repeat(16)}`])
    isProblem(
      t,
      await call('GET', `${path}/events`, undefined, { ...stream, 'last-event-id': id }),
      400,
      'SG_ERR_VALIDATION',
      `Last-Event-ID ${id}`,
    )
  t.match((await call('PATCH', path, { title: 'named' })).json, { title: 'named' })
})
