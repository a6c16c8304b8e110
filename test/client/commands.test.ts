import t from 'tap'
import { clientOn } from '../../client/client.js'
import type { GatewayError } from '../../client/errors.js'
import { attached, eventFrame, eventStream, fakePlatform, problem, said } from '../fixtures/client-platform.js'

const BASE = 'http://gateway.test/v1'
const OK = () => Response.json({ ok: true })

function world() {
  const platform = fakePlatform()
  const session = clientOn(platform.platform, { baseUrl: BASE }).session('s1')
  return Object.assign(platform, { session })
}

/** One that is attached over a socket. */
async function attachedWorld() {
  const w = world()
  const attachment = w.session.attach()
  void (async () => {
    for await (const _ of attachment);
  })().catch(() => {})
  await w.settle()
  w.socket.say(attached())
  return w
}

/** How a promise stands. */
function watched(promise: Promise<unknown>) {
  const outcome: { state: 'pending' | 'done' | GatewayError } = { state: 'pending' }
  promise.then(
    () => (outcome.state = 'done'),
    (error) => (outcome.state = error),
  )
  return outcome
}

t.test('a command goes over the socket and resolves once it was carried out', async (t) => {
  const w = await attachedWorld()
  const sent = watched(w.session.send('hello', { whenBusy: 'interrupt' }))
  const answered = watched(w.session.answer('r1', { answers: { 'Which?': 'Blue' } }))
  t.strictSame(w.socket.sent, [
    { type: 'user_message', text: 'hello', whenBusy: 'interrupt', id: 'id-1' },
    {
      type: 'permission_decision',
      requestId: 'r1',
      behavior: 'allow',
      updatedInput: { answers: { 'Which?': 'Blue' } },
      id: 'id-2',
    },
  ])
  await w.settle()
  t.equal(sent.state, 'pending')
  w.socket.say(
    { type: 'ack', id: 'id-1' },
    { type: 'command_error', id: 'id-2', code: 'SG_ERR_PERMISSION_NOT_FOUND', message: 'Too late.' },
  )
  await w.settle()
  t.equal(sent.state, 'done')
  t.match(answered.state, { code: 'SG_ERR_PERMISSION_NOT_FOUND', message: 'Too late.', status: 0 })
  t.equal(w.requests.length, 0)
})

t.test(
  'what was not answered before the connection was lost is sent again, in order, under the same ids',
  async (t) => {
    const w = await attachedWorld()
    const outcomes = [w.session.send('one'), w.session.send('two'), w.session.interrupt()].map(watched)
    const [first] = w.sockets
    first!.say({ type: 'ack', id: 'id-1' })
    first!.drop(1006)
    const late = watched(w.session.setModel('m'))
    await w.settle()
    t.strictSame(
      outcomes.map(({ state }) => state),
      ['done', 'pending', 'pending'],
    )
    await w.clock.advance(500)
    t.strictSame(w.socket.sent, [], 'not before the session is there')
    w.socket.say(attached())
    t.strictSame(
      w.socket.sent.map(({ type, id }) => [type, id]),
      [
        ['user_message', 'id-2'],
        ['interrupt', 'id-3'],
        ['set_model', 'id-4'],
      ],
    )
    w.socket.say({ type: 'ack', id: 'id-2' }, { type: 'ack', id: 'id-3' }, { type: 'ack', id: 'id-4' })
    await w.settle()
    t.strictSame(
      [...outcomes, late].map(({ state }) => state),
      ['done', 'done', 'done', 'done'],
    )
  },
)

t.test('without an attachment commands go over HTTP, in order, tried again under the same id', async (t) => {
  const w = world()
  let isThere = false
  w.answer = () => {
    if (!isThere) throw new TypeError('fetch failed')
    return OK()
  }
  const outcomes = [w.session.send('one', { commandId: 'mine' }), w.session.setMode('plan')].map(watched)
  await w.settle()
  isThere = true
  await w.clock.advance(500)
  t.strictSame(
    w.requests.map(({ method, url, body }) => [method, url.pathname, body]),
    [
      ['POST', '/v1/sessions/s1/commands', { type: 'user_message', text: 'one', id: 'mine' }],
      ['POST', '/v1/sessions/s1/commands', { type: 'user_message', text: 'one', id: 'mine' }],
      ['POST', '/v1/sessions/s1/commands', { type: 'set_permission_mode', mode: 'plan', id: 'id-1' }],
    ],
  )
  t.strictSame(
    outcomes.map(({ state }) => state),
    ['done', 'done'],
  )
})

t.test('a gateway that is nowhere is told in the end', async (t) => {
  const w = world()
  const sent = watched(w.session.send('hello'))
  await w.settle()
  await w.clock.advance(60_000)
  t.match(sent.state, { code: 'SG_CLIENT_UNREACHABLE', status: 0 })
})

t.test('over an event stream commands are posted', async (t) => {
  const w = await attachedWorld()
  const stream = eventStream()
  w.answer = ({ method }) => (method === 'GET' ? stream.response : OK())
  w.socket.drop(1006)
  const sent = watched(w.session.send('hello'))
  await w.settle()
  await w.clock.advance(500)
  w.socket.drop(1006)
  await w.settle()
  stream.say(attached())
  await w.settle()
  await w.settle()
  t.equal(sent.state, 'done')
  t.strictSame(
    w.requests.map(({ method }) => method),
    ['GET', 'POST'],
  )
})

t.test('who reads slowly, and waits for a command before reading on, is answered', async (t) => {
  const w = world()
  w.answer = OK
  const attachment = w.session.attach()
  await w.settle()
  w.socket.say(attached(), ...Array.from({ length: 10_000 }, (_, index) => eventFrame(said(index + 1))))
  await w.settle()
  t.ok(w.socket.isClosed, 'as much is unread as may be')
  const sent = watched(w.session.send('stop'))
  await w.settle()
  t.equal(sent.state, 'done')
  t.match(w.requests, [{ method: 'POST', body: { type: 'user_message', text: 'stop' } }])
  for await (const _ of attachment) break
  await w.settle()
  t.equal(w.clock.pendingTimers, 0)
})

t.test('a frame that the gateway finds too large is refused over HTTP, with a reason', async (t) => {
  const w = await attachedWorld()
  w.answer = () => problem(413, 'SG_ERR_BODY_TOO_LARGE')
  const sent = watched(w.session.send('much'))
  w.socket.drop(1009)
  await w.settle()
  await w.clock.advance(500)
  w.socket.say(attached())
  await w.settle()
  t.match(sent.state, { code: 'SG_ERR_BODY_TOO_LARGE', status: 413 })
  t.equal(w.socket.sent.length, 0)
})

t.test('a command that the storage did not take is tried again', async (t) => {
  const w = await attachedWorld()
  w.answer = OK
  const sent = watched(w.session.send('hello'))
  w.socket.say({ type: 'command_error', id: 'id-1', code: 'SG_ERR_STORE_UNAVAILABLE', message: 'Not now.' })
  await w.settle()
  t.equal(sent.state, 'done')
  t.strictSame(
    w.requests.map(({ body }) => body),
    [{ type: 'user_message', text: 'hello', id: 'id-1' }],
  )
})

t.test(
  'a command that the storage does not take is told in the end, the result of a tool goes on to be tried',
  async (t) => {
    const w = world()
    const attachment = w.session.attach({ executeTool: async () => ({ type: 'text', value: 'content' }) })
    await w.settle()
    let takes = false
    w.answer = () => (takes ? OK() : problem(503, 'SG_ERR_STORE_UNAVAILABLE', { 'retry-after': '5' }))
    const refuse = () => {
      const { id } = w.socket.sent.at(-1)!
      w.socket.say({ type: 'command_error', id, code: 'SG_ERR_STORE_UNAVAILABLE', message: 'Not now.' })
    }
    const tries = async (count: number) => {
      for (let at = 0; at < count; at++) {
        await w.settle()
        await w.clock.advance(5_000)
        // the connection is there all along
        w.socket.say({ type: 'pong' })
      }
      await w.settle()
    }
    w.socket.say(attached())
    const sent = watched(w.session.answer('r1', 'allow'))
    refuse()
    await tries(6)
    t.match(sent.state, { code: 'SG_ERR_STORE_UNAVAILABLE', status: 503 })
    t.equal(w.requests.length, 5)
    w.socket.say({ type: 'tool_call_request', executionId: 'x1', toolName: 'read', input: {} })
    await w.settle()
    refuse()
    await tries(12)
    takes = true
    await tries(6)
    t.strictSame(
      w.requests.slice(5).map(({ body }) => (body as { type: string }).type),
      Array(w.requests.length - 5).fill('tool_call_result'),
    )
    t.ok(w.requests.length > 10, 'for longer than a person is made to wait')
    attachment.close()
  },
)

t.test('the result of a tool that the storage does not take keeps nobody waiting who speaks behind it', async (t) => {
  const w = world()
  const attachment = w.session.attach({ executeTool: async () => ({ type: 'text', value: 'content' }) })
  await w.settle()
  w.answer = () => problem(503, 'SG_ERR_STORE_UNAVAILABLE', { 'retry-after': '5' })
  let refused = 0
  const refuse = () => {
    for (const { id } of w.socket.sent.slice(refused).filter(({ type }) => type !== 'ping'))
      w.socket.say({ type: 'command_error', id, code: 'SG_ERR_STORE_UNAVAILABLE', message: 'Not now.' })
    refused = w.socket.sent.length
  }
  w.socket.say(attached())
  w.socket.say({ type: 'tool_call_request', executionId: 'x1', toolName: 'read', input: {} })
  await w.settle()
  refuse()
  const sent = watched(w.session.send('hello'))
  const typeOf = ({ body }: { body?: unknown }) => (body as { type: string }).type
  for (let at = 0; at < 20; at++) {
    await w.settle()
    refuse()
    await w.clock.advance(5_000)
    w.socket.say({ type: 'pong' })
  }
  t.match(sent.state, { code: 'SG_ERR_STORE_UNAVAILABLE', status: 503 })
  t.equal(w.requests.filter((one) => typeOf(one) === 'user_message').length, 5)
  t.equal(typeOf(w.requests.at(-1)!), 'tool_call_result', 'which goes on to be tried')
  attachment.close()
})

t.test('who is told to come back much later is not kept waiting, and does not come at once', async (t) => {
  const w = await attachedWorld()
  const stream = eventStream()
  let posts = 0
  w.answer = ({ method }) => {
    if (method === 'GET') return stream.response
    if (++posts > 20) throw new Error('It asks without a pause.')
    return problem(429, 'SG_ERR_TOO_MANY', { 'retry-after': '3600' })
  }
  w.socket.drop(1006)
  await w.settle()
  await w.clock.advance(500)
  w.socket.drop(1006)
  await w.settle()
  stream.say(attached())
  const sent = watched(w.session.send('hello'))
  await w.settle()
  await w.settle()
  t.match(sent.state, { code: 'SG_ERR_TOO_MANY', status: 429, retryAfterMs: 3_600_000 })
  t.equal(posts, 1)
})

t.test('a session that ends says so to what was not answered', async (t) => {
  const w = await attachedWorld()
  w.answer = () => problem(409, 'SG_ERR_SESSION_ENDED')
  const sent = watched(w.session.send('hello'))
  w.socket.drop(1000)
  await w.settle()
  await w.settle()
  t.match(sent.state, { code: 'SG_ERR_SESSION_ENDED', status: 409 })
})

t.test('who gives up waiting is told, and nothing is sent again', async (t) => {
  const w = await attachedWorld()
  const aborter = new AbortController()
  const sent = watched(w.session.send('hello', { signal: aborter.signal }))
  w.socket.drop(1006)
  aborter.abort()
  await w.settle()
  await w.clock.advance(500)
  w.socket.say(attached())
  await w.settle()
  t.match(sent.state, { name: 'AbortError' })
  t.strictSame(w.socket.sent, [])
})

t.test('what was given up while the storage takes nothing is not said later, and holds up nothing', async (t) => {
  const w = world()
  w.answer = () => problem(503, 'SG_ERR_STORE_UNAVAILABLE')
  const aborter = new AbortController()
  const sent = watched(w.session.send('given up', { signal: aborter.signal }))
  const next = watched(w.session.send('next'))
  await w.settle()
  w.answer = OK
  aborter.abort()
  await w.settle()
  t.match(sent.state, { name: 'AbortError' })
  t.equal(next.state, 'done')
  await w.clock.advance(60_000)
  t.strictSame(
    w.requests.map(({ body }) => (body as { text: string }).text),
    ['given up', 'next'],
  )
})

t.test('a tool that throws before it promises anything has failed as well', async (t) => {
  const w = world()
  const attachment = w.session.attach({
    executeTool: () => {
      throw new Error('no such tool')
    },
  })
  await w.settle()
  w.socket.say(attached(), { type: 'tool_call_request', executionId: 'x1', toolName: 'read', input: {} })
  await w.settle()
  t.match(w.socket.sent, [{ type: 'tool_call_error', executionId: 'x1', reason: 'error', error: 'no such tool' }])
  attachment.close()
})

t.test('a result that cannot be sent, or is refused, is told as a failure', async (t) => {
  const w = world()
  const cycle: Record<string, unknown> = {}
  cycle.self = cycle
  const results: Record<string, unknown> = { cycle, none: undefined }
  const attachment = w.session.attach({
    executeTool: async ({ toolName }) => ({ type: 'json', value: results[toolName] }),
  })
  await w.settle()
  w.socket.say(attached(), { type: 'tool_call_request', executionId: 'x1', toolName: 'cycle', input: {} })
  await w.settle()
  t.match(w.socket.sent, [{ type: 'tool_call_error', executionId: 'x1', reason: 'error', error: /circular/ }])
  w.socket.say({ type: 'ack', id: w.socket.sent[0]!.id })
  w.socket.say({ type: 'tool_call_request', executionId: 'x2', toolName: 'none', input: {} })
  await w.settle()
  const { type, id } = w.socket.sent[1]!
  t.equal(type, 'tool_call_result')
  w.socket.say({ type: 'command_error', id, code: 'SG_ERR_VALIDATION', message: 'output has no value.' })
  await w.settle()
  t.match(w.socket.sent[2], { type: 'tool_call_error', executionId: 'x2', error: 'output has no value.' })
  attachment.close()
})

t.test('a result that is too large for a proxy is told as a failure', async (t) => {
  const w = world()
  const attachment = w.session.attach({ executeTool: async () => ({ type: 'text', value: 'more than it takes' }) })
  await w.settle()
  const types = () => w.requests.map(({ body }) => (body as { type: string }).type)
  w.answer = () =>
    types().at(-1) === 'tool_call_result'
      ? new Response('<h1>413 Request Entity Too Large</h1>', { status: 413 })
      : OK()
  w.socket.say(attached(), { type: 'tool_call_request', executionId: 'x1', toolName: 'read', input: {} })
  await w.settle()
  w.socket.drop(1009)
  await w.settle()
  await w.clock.advance(1_000)
  await w.settle()
  w.socket.say(attached())
  await w.settle()
  t.strictSame(types(), ['tool_call_result'])
  t.match(w.socket.sent.at(-1), { type: 'tool_call_error', executionId: 'x1', reason: 'error', error: /413/ })
  attachment.close()
})

t.test('a tool call that the gateway hands to the client is carried out once, and its result told', async (t) => {
  const w = world()
  const calls: unknown[] = []
  let finish = (_value: string) => {}
  const attachment = w.session.attach({
    executeTool: async ({ executionId, input, signal }) => {
      calls.push([executionId, input])
      if (executionId === 'x2') throw new Error('no such file')
      signal.addEventListener('abort', () => calls.push('canceled'))
      return {
        type: 'text',
        value: await new Promise<string>((resolve) => {
          finish = resolve
        }),
      }
    },
  })
  await w.settle()
  const request = { type: 'tool_call_request', executionId: 'x1', toolName: 'read', input: { path: 'a' } }
  w.socket.say(attached(), request)
  w.socket.drop(1006)
  await w.settle()
  await w.clock.advance(500)
  w.socket.say(attached(), request, { ...request, executionId: 'x2' }, { ...request, executionId: 'x3' })
  w.socket.say({ type: 'tool_call_canceled', executionId: 'x3', reason: 'timeout' })
  await w.settle()
  t.strictSame(calls, [['x1', { path: 'a' }], ['x2', { path: 'a' }], ['x3', { path: 'a' }], 'canceled'])
  finish('content')
  await w.settle()
  t.match(w.socket.sent, [{ type: 'tool_call_error', executionId: 'x2', reason: 'error', error: 'no such file' }])
  attachment.close()
})
