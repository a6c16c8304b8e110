import { Readable } from 'node:stream'
import t from 'tap'
import { type ClientOptions, clientOn } from '../../client/client.js'
import { createClient } from '../../client/index.js'
import { platform } from '../../client/platform.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { fakePlatform, problem } from '../fixtures/client-platform.js'
import { PushService } from '../fixtures/push-service.js'

const BASE = 'http://gateway.test/v1'

function world(options: Partial<ClientOptions> = {}) {
  const platform = fakePlatform()
  return Object.assign(platform, { client: clientOn(platform.platform, { baseUrl: BASE, ...options }) })
}
type World = ReturnType<typeof world>

/** Answers the requests that come one after the other; what is thrown is a connection that failed. */
function answers(w: World, ...given: (Response | Error)[]): void {
  w.answer = () => {
    const next = given.shift()
    if (next instanceof Response) return next
    throw next ?? new Error('one request too many')
  }
}
const lost = () => new TypeError('fetch failed')

/** Runs a call with as much time as it takes. */
async function run<T>(w: World, call: Promise<T>): Promise<T> {
  let isDone = false
  const done = () => {
    isDone = true
  }
  call.then(done, done)
  while (!isDone) await w.clock.advance(1000)
  return call
}

t.test('a create that was not answered is tried again under its key, and makes one', async (t) => {
  const w = world()
  answers(
    w,
    lost(),
    problem(503, 'SG_ERR_SHUTTING_DOWN', { 'retry-after': '2' }),
    problem(502, 'SG_ERR_NODE_LOST'),
    problem(409, 'SG_ERR_IDEMPOTENCY_IN_FLIGHT'),
    Response.json({ id: 's1' }, { status: 201 }),
  )
  const started = w.clock.now()
  t.same(await run(w, w.client.sessions.create({ cwd: '/' })), { id: 's1' })
  t.strictSame(
    w.requests.map(({ headers }) => headers.get('idempotency-key')),
    ['id-1', 'id-1', 'id-1', 'id-1', 'id-1'],
  )
  t.ok(w.clock.now() - started >= 2500, 'it waited as long as it was told to')
  answers(w, Response.json({ id: 'j1' }), Response.json({ id: 'j2' }))
  await w.client.jobs.submit({ session: { cwd: '/', prompt: 'x' } })
  await w.client.jobs.submit({ session: { cwd: '/', prompt: 'x' } }, { idempotencyKey: 'mine' })
  t.strictSame(
    w.requests.slice(-2).map(({ headers }) => headers.get('idempotency-key')),
    ['id-2', 'mine'],
  )
})

t.test('what cannot be done twice is not tried again unless it was refused', async (t) => {
  const w = world()
  const calls: (() => Promise<unknown>)[] = [
    () => w.client.sessions.remove('s1'),
    () => w.client.sessions.rename('s1', 'x'),
    () => w.client.profiles.remove('p'),
    () => w.client.profiles.update('p', {}),
    () => w.client.sessions.command('s1', { type: 'interrupt' }),
  ]
  for (const call of calls) {
    w.requests.length = 0
    answers(w, lost())
    await t.rejects(run(w, call()), { status: 0, code: 'SG_CLIENT_UNREACHABLE' })
    t.equal(w.requests.length, 1)
    answers(w, problem(502, 'SG_ERR_NODE_LOST'))
    await t.rejects(run(w, call()), { status: 502, code: 'SG_ERR_NODE_LOST' })
    t.equal(w.requests.length, 2, 'nobody knows whether it was done')
    answers(w, problem(429, 'SG_ERR_TOO_MANY'), Response.json({ id: 's1', name: 'p', ok: true }))
    await run(w, call())
    t.equal(w.requests.length, 4, 'the gateway said that it did nothing')
    // a proxy may have passed the request on
    answers(w, new Response('busy', { status: 503 }))
    await t.rejects(run(w, call()), { status: 503, code: 'SG_CLIENT_UNREACHABLE' })
  }
})

t.test('a refusal is an error with everything that the gateway said', async (t) => {
  const w = world()
  answers(w, problem(400, 'SG_ERR_VALIDATION', {}, { errors: [{ path: 'cwd', message: 'is missing' }] }))
  await t.rejects(w.client.sessions.create({} as never), {
    name: 'GatewayError',
    status: 400,
    code: 'SG_ERR_VALIDATION',
    detail: 'It is SG_ERR_VALIDATION.',
    message: 'It is SG_ERR_VALIDATION.',
    errors: [{ path: 'cwd', message: 'is missing' }],
    instance: 'req-1',
    retryAfterMs: undefined,
  })
  answers(w, problem(429, 'SG_ERR_TOO_MANY', { 'retry-after': '120' }))
  await t.rejects(w.client.sessions.get('s1'), { code: 'SG_ERR_TOO_MANY', retryAfterMs: 120_000 })
  t.equal(w.requests.length, 2, 'nobody is made to wait for two minutes unasked')
})

t.test('gives up on a gateway that is not there, or does not answer', async (t) => {
  const w = world()
  w.answer = () => {
    throw lost()
  }
  await t.rejects(run(w, w.client.sessions.get('s1')), { code: 'SG_CLIENT_UNREACHABLE', cause: TypeError })
  t.equal(w.requests.length, 5)
  w.answer = () => new Promise(() => {})
  await t.rejects(run(w, w.client.sessions.remove('s1')), { message: /did not answer in time/ })
})

t.test('what stands between may have codes of its own: only the catalogue is the word of a gateway', async (t) => {
  const w = world()
  const message = 'The server answered 401, and not as a gateway does.'
  for (const body of [{ code: 'login_required', detail: 'Sign in.' }, { code: 401 }, null, 'no']) {
    w.answer = () => Response.json(body, { status: 401 })
    await t.rejects(run(w, w.client.sessions.get('s1')), { status: 401, code: 'SG_CLIENT_UNREACHABLE', message })
  }
})

t.test(
  'an answer is read also from a fetch that has streams of another kind, and texts that come from no Blob',
  async (t) => {
    const w = world()
    const own = (text: string, body: unknown) =>
      Object.defineProperties(new Response(text, { headers: { 'content-type': 'application/json' } }), {
        body: { value: body },
        blob: { value: async () => ({ size: text.length }) },
      })
    // a polyfilled stream is not taken by the platform's own, and that may have none to pipe through
    const polyfilled = (text: string) =>
      Object.assign(new Blob([text]).stream(), { pipeThrough: () => t.fail('it is piped') })
    for (const bodyOf of [() => null, () => Readable.from(['{}']), polyfilled]) {
      w.answer = () => own('{"id":"s1"}', bodyOf('{"id":"s1"}'))
      t.match(await run(w, w.client.sessions.get('s1')), { id: 's1' })
      w.answer = () => own('[{"id":"s1"}]', bodyOf('[{"id":"s1"}]'))
      t.match(await run(w, w.client.sessions.list().toArray()), [{ id: 's1' }])
    }
  },
)

t.test('a file is read whole also from a fetch that has no streams', async (t) => {
  const w = world()
  w.answer = () => Object.defineProperty(new Response('# Tides'), 'body', { value: undefined })
  t.equal(await (await w.client.sessions.file('s1', 'report.md')).text(), '# Tides')
})

/** Answers in parts, as the test gives them. */
function inParts(w: World, type: string) {
  const parts = { say: (_text: string) => {}, end: () => {} }
  w.answer = ({ signal }) => {
    const start = (body: ReadableStreamDefaultController<Uint8Array>) => {
      signal?.addEventListener('abort', () => body.error(signal.reason))
      parts.say = (text) => body.enqueue(Buffer.from(text))
      parts.end = () => body.close()
    }
    return new Response(new ReadableStream({ start }), { headers: { 'content-type': type } })
  }
  return parts
}

t.test('a file may take as long as it takes, while some of it comes', async (t) => {
  const w = world()
  const parts = inParts(w, 'text/markdown')
  const fetched = w.client.sessions.file('s1', 'report.md')
  for (const text of ['slow', 'ly', ' but', ' surely']) {
    await w.settle()
    parts.say(text)
    await w.clock.advance(45_000)
  }
  parts.end()
  const file = await fetched
  t.strictSame([await file.text(), file.type, w.requests.length], ['slowly but surely', 'text/markdown', 1])
  t.equal(w.clock.pendingTimers, 0)
  const silent = run(w, w.client.sessions.file('s1', 'report.md'))
  await t.rejects(silent, { code: 'SG_CLIENT_UNREACHABLE' })
})

t.test('so may every other answer, as over a slow line, and the first part of it', async (t) => {
  const w = world()
  const parts = inParts(w, 'application/json')
  for (const [ask, texts] of [
    [() => w.client.sessions.get('s1'), ['{"id":', '"s1', '"}']],
    [() => w.client.sessions.list().toArray(), ['[{', '"id":"s1"', '}]']],
  ] as const) {
    const asked = w.requests.length
    const { answer } = w
    w.answer = async (request) => {
      await new Promise<void>((resolve) => w.platform.after(45_000, resolve))
      return answer(request)
    }
    const fetched: Promise<unknown> = ask()
    await w.clock.advance(45_000)
    for (const text of texts) {
      await w.clock.advance(45_000)
      parts.say(text)
      await w.settle()
    }
    parts.end()
    t.match(JSON.stringify(await fetched), /"id":"s1"/)
    t.equal(w.requests.length, asked + 1)
    w.answer = answer
  }
  t.equal(w.clock.pendingTimers, 0)
})

t.test('an abort is passed on as it is', async (t) => {
  const w = world()
  w.answer = () => new Promise(() => {})
  const aborter = new AbortController()
  const call = w.client.sessions.get('s1', { signal: aborter.signal })
  const rejected = t.rejects(call, { name: 'AbortError' })
  await w.settle()
  aborter.abort()
  await rejected
  t.equal(w.clock.pendingTimers, 0)
})

t.test('an abort does not wait for whoever gives out tokens', async (t) => {
  const never = () => new Promise<string>(() => {})
  for (const getToken of [never, ({ rejected }: { rejected?: string }) => (rejected ? never() : 'old')]) {
    const w = world({ getToken })
    w.answer = () => problem(401, 'SG_ERR_UNAUTHENTICATED')
    const aborter = new AbortController()
    const rejected = t.rejects(w.client.sessions.get('s1', { signal: aborter.signal }), { name: 'AbortError' })
    await w.settle()
    aborter.abort()
    await rejected
    t.equal(w.clock.pendingTimers, 0)
  }
})

t.test('whoever gives out tokens may fail, and a call says so as any other failure', async (t) => {
  const failure = new Error('The vault is closed.')
  const fails = () => {
    throw failure
  }
  for (const getToken of [fails, ({ rejected }: { rejected?: string }) => (rejected ? fails() : 'old')]) {
    const w = world({ getToken })
    w.answer = () => problem(401, 'SG_ERR_UNAUTHENTICATED')
    const error = await w.client.sessions.get('s1').catch((error: unknown) => error)
    t.match(error, { name: 'GatewayError', code: 'SG_CLIENT_UNREACHABLE', cause: failure })
  }
})

t.test('a timer for longer than the platform can count does not run at once', async (t) => {
  const cancel = platform.after(30 * 86_400_000, () => t.fail('ran'))
  await new Promise((resolve) => platform.after(5, () => resolve(undefined)))
  cancel()
})

t.test('a token that is no longer taken is asked for again, once for all requests', async (t) => {
  const asked: unknown[] = []
  const w = world({
    getToken: async (question) => {
      asked.push(question)
      return `token-${asked.length}`
    },
  })
  w.answer = ({ headers, url }) =>
    headers.get('authorization') === 'Bearer token-2'
      ? Response.json(url.pathname === '/v1/queue' ? { running: 0 } : [])
      : problem(401, 'SG_ERR_UNAUTHENTICATED')
  await Promise.all([w.client.sessions.list().toArray(), w.client.jobs.list().toArray(), w.client.queue.stats()])
  t.strictSame(asked, [{}, { rejected: 'token-1' }])
  w.answer = () => problem(401, 'SG_ERR_UNAUTHENTICATED')
  await t.rejects(w.client.queue.stats(), { code: 'SG_ERR_UNAUTHENTICATED' })
  t.equal(asked.length, 3)
})

t.test('a list comes page by page, as far as it is read, also behind a proxy that moved the path', async (t) => {
  const w = world()
  w.answer = ({ url }) => {
    const page = Number(url.searchParams.get('cursor') ?? 0)
    const headers = page < 2 ? { link: `<http://inside/other?limit=2&cursor=${page + 1}>; rel="next"` } : undefined
    return Response.json([{ id: `${page}a` }, { id: `${page}b` }], { ...(headers && { headers }) })
  }
  const list = w.client.sessions.list({ limit: 2, status: 'idle' })
  const ids: string[] = []
  for await (const { id } of list) {
    ids.push(id)
    if (id === '1a') break
  }
  t.strictSame(ids, ['0a', '0b', '1a'])
  t.equal(w.requests.length, 2)
  t.equal(w.requests[0]?.url.search, '?limit=2&status=idle')
  t.equal(w.requests[1]?.url.pathname, '/v1/sessions')
  t.equal((await list.toArray()).length, 6)
})

t.test('a page that could not be fetched is asked for again: the list has not ended', async (t) => {
  const w = world()
  const link = { link: '</v1/sessions?cursor=2>; rel="next"' }
  w.answer = ({ url }) =>
    url.searchParams.has('cursor') ? problem(500, 'SG_ERR_INTERNAL') : Response.json([1], { headers: link })
  const pages = w.client.sessions.list().pages()[Symbol.asyncIterator]()
  t.strictSame(await pages.next(), { done: false, value: [1] })
  await t.rejects(pages.next(), { code: 'SG_ERR_INTERNAL' })
  w.answer = ({ url }) => Response.json([Number(url.searchParams.get('cursor'))])
  const both = await Promise.all([pages.next(), pages.next()])
  t.strictSame(both, [
    { done: false, value: [2] },
    { done: true, value: undefined },
  ])
})

t.test('what is no list is told of as that: a server of something else answered', async (t) => {
  const w = world()
  for (const body of [{ a: 1 }, null, 'text']) {
    answers(w, new Response(JSON.stringify(body)))
    const fails = run(w, w.client.sessions.list().toArray())
    await t.rejects(fails, { name: 'GatewayError', code: 'SG_CLIENT_UNREACHABLE', message: /no list/ })
  }
})

t.test('what is no answer of a gateway is told of as that, and nothing is made of it', async (t) => {
  const w = world()
  const { sessions, jobs, profiles, inbox, queue, usage, executions, sdkSessions, notifications } = w.client
  const result = { status: 'ok', output: { type: 'text', value: '' } } as const
  const calls: (() => Promise<unknown>)[] = [
    () => sessions.create({ cwd: '/' }),
    () => sessions.get('s1'),
    () => sessions.rename('s1', 'x'),
    () => sessions.remove('s1'),
    () => sessions.events('s1').toArray(),
    () => sessions.command('s1', { type: 'ping', id: '1' }),
    () => w.client.session('s1').send('x'),
    () => sessions.resolvePermission('s1', 'r1', 'allow'),
    () => sessions.files('s1'),
    () => jobs.submit({ session: { cwd: '/', prompt: 'x' } }),
    () => jobs.get('j1'),
    () => jobs.cancel('j1'),
    () => jobs.deliveries('j1'),
    () => profiles.list(),
    () => profiles.get('p'),
    () => profiles.create({ name: 'p' }),
    () => profiles.update('p', {}),
    () => inbox.count(),
    () => inbox.answer([]),
    () => queue.stats(),
    () => usage.get(),
    () => executions.resolve('e1', result),
    () => sdkSessions.list(),
    () => notifications.vapidKey(),
  ]
  for (const [index, call] of calls.entries())
    for (const body of ['{}', 'null', '"text"', '']) {
      answers(w, new Response(body))
      const refusal = { name: 'GatewayError', code: 'SG_CLIENT_UNREACHABLE', message: /not as a gateway does/ }
      await t.rejects(run(w, call()), refusal, `call ${index}, answered with ${body}`)
    }
  w.answer = () => new Response('<title>A router</title>', { headers: { 'content-type': 'text/html' } })
  await t.rejects(run(w, sessions.get('s1')), { message: /no JSON, and not as a gateway does/ })
  const attachment = w.client.session('s1').attach()
  const following = attachment[Symbol.asyncIterator]().next()
  await w.settle()
  w.socket.drop(1006)
  await w.settle()
  const error = { status: 200, message: /no event stream, and not as a gateway does/ }
  t.match(attachment.connection, { state: 'reconnecting', error })
  attachment.close()
  t.match(await following, { done: true })
})

t.test('every operation of a gateway has its method', async (t) => {
  const channels = [{ format: 'web_push' as const, subject: 'mailto:ops@example.com' }]
  const { api } = await buildServer(t, { queue: {}, notifications: { channels } })
  const asked = new Set<string>()
  const w = world()
  w.answer = ({ method, url }) => {
    asked.add(`${method} ${url.pathname}`)
    return problem(404, 'SG_ERR_NOT_FOUND')
  }
  const { client } = w
  const { sessions, profiles, jobs, queue, executions, sdkSessions, inbox, notifications } = client
  const request = { cwd: SOME_CWD, prompt: 'x' }
  const calls = [
    sessions.list().toArray(),
    sessions.create(request),
    sessions.get('{id}'),
    sessions.rename('{id}', null),
    sessions.remove('{id}'),
    sessions.events('{id}').toArray(),
    sessions.command('{id}', { type: 'ping' }),
    sessions.resolvePermission('{id}', '{requestId}', 'allow'),
    sessions.files('{id}'),
    sessions.file('{id}', '{path}'),
    executions.resolve('{executionId}', { status: 'ok', output: { type: 'text', value: '' } }),
    profiles.list(),
    profiles.get('{name}'),
    profiles.create({ name: 'x' }),
    profiles.update('{name}', {}),
    profiles.remove('{name}'),
    sdkSessions.list(),
    sdkSessions.remove('{sessionId}'),
    jobs.list().toArray(),
    jobs.submit({ session: request }),
    jobs.get('{id}'),
    jobs.cancel('{id}'),
    jobs.deliveries('{id}'),
    inbox.list().toArray(),
    inbox.count(),
    inbox.answer([{ sessionId: '{id}', requestId: '{requestId}', answer: 'allow' }]),
    notifications.list().toArray(),
    notifications.deliveries('{id}'),
    notifications.vapidKey(),
    client.usage.get(),
    client.directories(),
    notifications.subscribe({ endpoint: 'https://push.example/1', keys: { p256dh: 'x', auth: 'x' } }),
    notifications.unsubscribe({ endpoint: 'https://push.example/1' }),
    (async () => {
      for await (const _ of notifications.watch());
    })(),
    queue.stats(),
    (async () => {
      for await (const _ of queue.watch());
    })(),
  ]
  await Promise.allSettled([...calls, w.settle().then(() => w.sockets.map((socket) => socket.drop(1006)))])
  const document = (await (await fetch(`${api}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, unknown>>
  }
  const documented = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.keys(operations)
      .filter((method) => /^(get|post|put|patch|delete)$/.test(method))
      .map((method) => `${method.toUpperCase()} ${path.startsWith('/v1') ? path : `/v1${path}`}`),
  )
  const offered = new Set([...asked].map((operation) => decodeURIComponent(operation)))
  const ABOUT_THE_API = /\/(openapi|asyncapi)\.json$|\/docs/
  t.strictSame(
    documented.filter((operation) => !offered.has(operation) && !ABOUT_THE_API.test(operation)),
    [],
    'add a method to client/client.ts',
  )
  t.ok(documented.length > 15)
})

t.test('has a browser told, which a page gives as it got it', async (t) => {
  const service = await PushService.start(t)
  const { api, engine } = await buildServer(t, {
    notifications: { channels: [{ format: 'web_push', subject: 'mailto:ops@example.com' }] },
    webhookPolicy: { allowPrivateNetworks: true },
  })
  const { notifications, sessions } = createClient({ baseUrl: api })
  service.publicKey = await notifications.vapidKey()
  t.equal(Buffer.from(service.publicKey, 'base64url').length, 65)
  const browser = service.subscribe()
  // a PushSubscription has getters and methods, and says what it is by toJSON
  class PageSubscription {
    get endpoint() {
      return browser.endpoint
    }
    unsubscribe() {}
    toJSON() {
      return { ...browser.request, expirationTime: null }
    }
  }
  const first = await notifications.subscribe(new PageSubscription(), { events: ['permission_requested'] })
  t.ok(first.expiresAt > first.createdAt)
  const again = await notifications.subscribe({ ...browser.request, expirationTime: null })
  t.equal(again.id, first.id, 'the same browser')
  await sessions.create({ cwd: SOME_CWD, prompt: 'x' })
  void engine.last.host.requestPermission({ toolName: 'Bash', toolUseId: 'tool', input: {} })
  await until(() => browser.received.length === 1, 'what the browser is told')
  t.equal(browser.received[0]?.message.type, 'permission_requested')
  t.same(await notifications.unsubscribe(browser), { deleted: true })
  await t.rejects(notifications.unsubscribe(browser), { code: 'SG_ERR_SUBSCRIPTION_NOT_FOUND' })
  await t.rejects(notifications.subscribe({ ...browser.request, keys: { p256dh: 'x', auth: 'y' } }), {
    code: 'SG_ERR_VALIDATION',
    errors: [{ path: 'keys.p256dh' }],
  })
})

t.test('drives a real gateway', async (t) => {
  const files = {
    list: () => [{ path: 'a b/ü.txt', bytes: 2, modifiedAt: 1 }],
    read: (path: string) => (path === 'a b/ü.txt' ? new TextEncoder().encode('hi') : undefined),
  }
  const { api, engine } = await buildServer(t, {
    script: {
      files,
      send: (runner, text) => {
        runner.say(text)
        runner.complete()
      },
    },
    queue: {},
  })
  const client = createClient({ baseUrl: api })
  const { id } = await client.sessions.create({ cwd: SOME_CWD, prompt: 'hello', title: 'One' })
  t.equal((await client.sessions.get(id)).title, 'One')
  t.equal((await client.sessions.rename(id, 'Two')).title, 'Two')
  t.same(await client.sessions.files(id), files.list())
  t.equal(await (await client.sessions.file(id, 'a b/ü.txt')).text(), 'hi')
  const types: string[] = []
  const attachment = client.session(id).attach()
  await client.session(id).send('again')
  for await (const item of attachment) {
    types.push(item.type)
    if (types.filter((type) => type === 'turn_completed').length === 2) break
  }
  t.equal(engine.last.sent.length, 2)
  const replay = await client.sessions.events(id, { limit: 2 }).toArray()
  t.strictSame(replay.map(({ type }) => type).slice(0, types.length), types)
  const job = await client.jobs.submit({ session: { cwd: SOME_CWD, prompt: 'work' } })
  t.match(await client.jobs.wait(job.id), { status: 'succeeded', prompt: 'work' })
  t.match(await client.jobs.list().toArray(), [{ id: job.id }])
  t.match(await client.profiles.list(), { profiles: [{ name: 'scripted' }], canManage: false })
  await t.rejects(client.sessions.get('nothing'), { code: 'SG_ERR_SESSION_NOT_FOUND', status: 404 })
  t.equal((await client.sessions.remove(id)).status, 'closed')
})
