import t from 'tap'
import { platform } from '../../client/platform.js'
import { problem } from '../fixtures/client-platform.js'
import { answers, lost, run, world } from '../fixtures/client-requests.js'

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
  // a proxy's, whatever the clock here says
  const dates = { date: 'Thu, 01 Jan 2099 00:00:00 GMT', 'retry-after': 'Thu, 01 Jan 2099 00:01:00 GMT' }
  answers(w, problem(429, 'SG_ERR_TOO_MANY', dates))
  await t.rejects(w.client.sessions.get('s1'), { code: 'SG_ERR_TOO_MANY', retryAfterMs: 60_000 })
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
