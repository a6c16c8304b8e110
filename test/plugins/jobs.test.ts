import type { FastifyRequest } from 'fastify'
import t from 'tap'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { status, WebhookSink } from '../fixtures/webhook-sink.js'

const job = (more: object = {}, session: object = {}) => ({
  session: { cwd: SOME_CWD, prompt: 'do it', ...session },
  ...more,
})

const PROFILES = ['one', 'two'].map((name) => ({ name, engine: 'provider' as const, provider: { id: 'x' } }))

/** Callers say who they are in a header: the profiles they may see, or `*`. */
const authenticate = ({ headers }: FastifyRequest) => {
  const caller = headers['x-caller']
  if (typeof caller !== 'string') return null
  return caller === '*' ? true : { allowedProfiles: caller.split(',').filter(Boolean) }
}

t.test('without a queue there are no job routes, for no method', async (t) => {
  const { call } = await buildServer(t)
  for (const path of ['/jobs', '/jobs/x', '/jobs/x/deliveries', '/queue', '/queue/next', '/queue/ws', '/queue/events'])
    for (const method of ['GET', 'POST', 'DELETE', 'PUT']) t.equal((await call(method, path)).status, 404, path)
})

t.test('a job over REST, from its submission to its end', async (t) => {
  const { call, engine, worker, clock } = await buildServer(t, { queue: {} })
  t.ok(worker.queue)
  const created = await call('POST', '/jobs', job({ meta: { ticket: 1 }, attempts: 2 }, { title: 'T' }))
  t.equal(created.status, 201)
  t.equal(created.headers.get('location'), `/v1/jobs/${created.json.id}`)
  t.match(created.json, { status: 'queued', profile: 'scripted', attempt: 1, maxAttempts: 2, createdAt: clock.now() })
  t.notOk('notes' in created.json)
  await until(() => engine.runners.length === 1)
  await until(() => engine.last.sent.length === 1)
  t.same(engine.last.sent, [{ text: 'do it', commandId: undefined }])
  const running = await call('GET', `/jobs/${created.json.id}`)
  t.match(running.json, { status: 'running', sessionId: engine.last.context.sessionId })
  const session = await call('GET', `/sessions/${running.json.sessionId}`)
  t.match(session.json, { jobId: created.json.id, title: 'T', status: 'running' })
  t.match((await call('GET', '/queue')).json, { running: 1, queued: 0, parked: 0, paused: false, maxConcurrency: 1 })
  engine.last.say('working')
  engine.last.complete({ result: 'done' })
  await until(async () => (await worker.queue?.stats())?.running === 0)
  const done = await call('GET', `/jobs/${created.json.id}`)
  t.match(done.json, { status: 'succeeded', result: { text: 'done' }, sdkSessionId: /^sdk-/ })
  t.match((await call('GET', `/sessions/${running.json.sessionId}`)).json, { status: 'closed' })
  const unchanged = await call('DELETE', `/jobs/${created.json.id}`)
  t.same([unchanged.status, unchanged.json], [200, done.json])
  t.same((await call('GET', '/jobs')).json, [done.json])
  t.same((await call('GET', '/jobs?status=failed')).json, [])
  t.equal((await call('GET', '/jobs?status=done')).status, 400)
  t.equal((await call('GET', '/jobs?limit=201')).status, 400)
  t.same((await call('GET', `/jobs/${created.json.id}/deliveries`)).json, [])
  t.equal((await call('PUT', `/jobs/${created.json.id}`)).status, 405)
})

t.test('what a session’s creation would refuse is refused at once', async (t) => {
  const { call, engine } = await buildServer(t, {
    queue: {},
    profiles: PROFILES,
    allowedCwdRoots: [SOME_CWD],
    disableBypassPermissions: true,
    authenticate,
  })
  const post = (body: object, caller = '*') => call('POST', '/jobs', body, { 'x-caller': caller })
  const table: [object, number, string, field: string | undefined, string?][] = [
    [job(), 400, 'SG_ERR_PROFILE_REQUIRED', 'session.profile'],
    [job({}, { profile: 'three' }), 400, 'SG_ERR_PROFILE_UNKNOWN', 'session.profile'],
    [job({}, { profile: 'two' }), 403, 'SG_ERR_PROFILE_FORBIDDEN', 'session.profile', 'one'],
    [job({}, { profile: 'three' }), 403, 'SG_ERR_PROFILE_FORBIDDEN', 'session.profile', 'one'],
    [job({}, { profile: 'one', cwd: '/' }), 403, 'SG_ERR_CWD_FORBIDDEN', 'session.cwd'],
    [job({}, { profile: 'one', cwd: 'relative' }), 400, 'SG_ERR_CWD_INVALID', 'session.cwd'],
    [
      job({}, { profile: 'one', permissionMode: 'bypassPermissions' }),
      ...([403, 'SG_ERR_BYPASS_DISABLED', 'session.permissionMode'] as const),
    ],
    [
      job({}, { profile: 'one', permissionMode: 'plan' }),
      ...([400, 'SG_ERR_PERMISSION_MODE', 'session.permissionMode'] as const),
    ],
    [
      job({}, { profile: 'one', capabilities: ['web_fetch'] }),
      ...([400, 'SG_ERR_CAPABILITY_NOT_GRANTED', 'session.capabilities'] as const),
    ],
    [
      job({}, { profile: 'one', mcpServers: {} }),
      ...([400, 'SG_ERR_MCP_SERVERS_NOT_ALLOWED', 'session.mcpServers'] as const),
    ],
    [job({}, { profile: 'one', resume: 'x' }), 400, 'SG_ERR_VALIDATION', 'session.resume'],
    [job({}, { profile: 'one', forkSession: true }), 400, 'SG_ERR_VALIDATION', 'session.forkSession'],
    ...['http://[::ffff:169.254.169.254]/', 'http://u:p@hooks.example/'].map((url): (typeof table)[number] => [
      job({ webhook: { url } }, { profile: 'one' }),
      ...([400, 'SG_ERR_VALIDATION', 'webhook.url'] as const),
    ]),
    [
      job({ webhook: { url: 'http://x/', headers: { te: 'x' } } }, { profile: 'one' }),
      ...([400, 'SG_ERR_VALIDATION', 'webhook.headers.te'] as const),
    ],
    [job({ retryDelayMs: '5' }, { profile: 'one' }), 400, 'SG_ERR_VALIDATION', 'retryDelayMs'],
  ]
  for (const [body, code, name, field, caller] of table) {
    const refused = await post(body, caller)
    t.match([refused.status, refused.json.code], [code, name], JSON.stringify(body))
    t.equal(refused.json.errors?.[0].path, field, `${name} names its field`)
  }
  const nowhere = await post(job({}, { profile: 'one', cwd: `${SOME_CWD}/nowhere` }))
  t.equal(nowhere.json.detail, 'session.cwd: does not exist.')
  t.same((await call('GET', '/jobs', undefined, { 'x-caller': '*' })).json, [])
  t.same(engine.runners, [])
})

t.test('webhooks into private networks follow the policy', async (t) => {
  const { call } = await buildServer(t, {
    queue: {},
    webhookPolicy: { allowPrivateNetworks: false, allowedHosts: ['127.0.0.1:7'] },
  })
  const refused = await call('POST', '/jobs', job({ webhook: { url: 'http://2130706433:8/' } }))
  t.match([refused.status, refused.json.errors], [400, [{ path: 'webhook.url' }]])
  t.equal((await call('POST', '/jobs', job({ webhook: { url: 'http://127.0.0.1:7/' } }))).status, 201)
})

t.test('nobody sees, counts or cancels the jobs of profiles they may not see', async (t) => {
  const { call, worker } = await buildServer(t, { queue: {}, profiles: PROFILES, authenticate })
  const as = (caller: string) => (method: string, path: string, body?: object) =>
    call(method, path, body as object, { 'x-caller': caller })
  const mine = (await as('one')('POST', '/jobs', job({}, { profile: 'one' }))).json
  const other = (await as('two')('POST', '/jobs', job({}, { profile: 'two' }))).json
  t.same([mine.profile, other.profile], ['one', 'two'])
  await until(async () => (await worker.queue?.stats())?.running === 1)
  const ids = async (caller: string, path = '/jobs') =>
    (await as(caller)('GET', path)).json.map(({ id }: { id: string }) => id)
  t.same(await ids('*'), [other.id, mine.id])
  t.same(await ids('one'), [mine.id])
  t.same(await ids('one', '/jobs?profile=two'), [])
  t.same(await ids(''), [])
  for (const [method, suffix] of [
    ['GET', ''],
    ['DELETE', ''],
    ['GET', '/deliveries'],
  ] as const) {
    const foreign = await as('one')(method, `/jobs/${other.id}${suffix}`)
    const unknown = await as('one')(method, `/jobs/nothing${suffix}`)
    t.equal(foreign.status, 404)
    const { instance: _a, ...body } = foreign.json
    const { instance: _b, ...same } = unknown.json
    t.same(body, same, 'the same answer as for one that is not there')
  }
  t.match((await as('one')('GET', '/queue')).json, { running: 1, queued: 0 })
  t.match((await as('two')('GET', '/queue')).json, { running: 0, queued: 1 })
  t.match((await as('*')('GET', '/queue')).json, { running: 1, queued: 1 })
  for (const [caller, count] of [
    ['one', 0],
    ['two', 1],
    ['*', 1],
  ] as const)
    t.equal((await as(caller)('GET', '/queue/next')).json.length, count, 'nobody is told what others wait for')
})

t.test('the session of a job can be deleted while its runner is being built', async (t) => {
  const building: (() => void)[] = []
  const { call, engine, worker } = await buildServer(t, {
    queue: {},
    createEngineRunner: async (context) => {
      await new Promise<void>((resolve) => building.push(resolve))
      return engine.create(context)
    },
  })
  const { json } = await call('POST', '/jobs', job({ attempts: 3 }))
  await until(() => building.length === 1)
  const { sessionId } = (await call('GET', `/jobs/${json.id}`)).json
  t.match((await call('GET', `/sessions/${sessionId}`)).json, { status: 'starting', jobId: json.id })
  t.equal((await call('DELETE', `/sessions/${sessionId}`)).status, 200)
  await until(async () => (await worker.queue?.stats())?.running === 0)
  t.match((await call('GET', `/jobs/${json.id}`)).json, { status: 'canceled' })

  const second = (await call('POST', '/jobs', job())).json
  await until(() => building.length === 2)
  t.match(await call('DELETE', `/jobs/${second.id}`), { status: 200, json: { status: 'canceled' } })
  for (const build of building) build()
  await until(() => engine.runners.length === 2 && engine.runners.every(({ closed }) => closed))
  t.same(
    engine.runners.map(({ sent }) => sent.length),
    [0, 0],
    'what was built too late is closed again',
  )
  t.match(worker.registry.count(), { live: 0 })
})

t.test('a runner that cannot be built leaves no session behind and counts as an attempt', async (t) => {
  let fails = true
  const { call, engine, worker, clock } = await buildServer(t, {
    queue: {},
    createEngineRunner: (context) => {
      if (fails) throw new Error('secret detail')
      return engine.create(context)
    },
  })
  const { json } = await call('POST', '/jobs', job({ attempts: 2, retryDelayMs: 100 }))
  await until(async () => (await worker.queue?.stats())?.queued === 1)
  t.match((await call('GET', `/jobs/${json.id}`)).json, { attempt: 2, error: 'The engine could not be started.' })
  t.same((await call('GET', '/sessions')).json, [])
  fails = false
  await clock.advance(100)
  await until(() => engine.runners.length === 1)
})

t.test('deliveries to the webhook of a job can be looked at', async (t) => {
  const sink = await WebhookSink.start(t)
  const { call, engine, worker, clock } = await buildServer(t, { queue: { webhookAttempts: 2, webhookSecret: 'x' } })
  sink.answer = status(500)
  const webhook = { url: sink.url, headers: { authorization: 'Bearer secret' } }
  const { json } = await call('POST', '/jobs', job({ webhook }))
  t.same(json.webhook, { url: sink.url, progress: 'messages' }, 'header values are never shown')
  await until(() => engine.runners.length === 1 && engine.last.sent.length === 1)
  await until(() => sink.received.length === 1)
  sink.answer = undefined
  await until(async () => (await worker.queue?.deliveries(json.id))?.length === 1)
  await clock.advance(500)
  engine.last.say('working')
  engine.last.complete()
  await until(() => sink.received.length === 4)
  t.same(sink.types, ['job_started', 'job_started', 'job_progress', 'job_completed'])
  t.match(sink.received[3]?.body, { job: { id: json.id, status: 'succeeded', webhook: { progress: 'messages' } } })
  t.equal(sink.received[3]?.headers.authorization, 'Bearer secret')
  t.match(sink.received[3]?.headers['webhook-signature'], /^v1,/)
  t.notMatch(sink.received[3]?.text, /Bearer|notes/)
  await until(async () => (await worker.queue?.deliveries(json.id))?.length === 4)
  const { json: deliveries } = await call('GET', `/jobs/${json.id}/deliveries`)
  t.match(deliveries[0], { id: sink.received[3]?.body.id, type: 'job_completed', attempt: 1, status: 204 })
  t.match(deliveries[3], { type: 'job_started', attempt: 1, status: 500, error: 'status' })
})

t.test('a webhook that wants only the end hears of no progress', async (t) => {
  const sink = await WebhookSink.start(t)
  const { call, engine } = await buildServer(t, { queue: {} })
  await call('POST', '/jobs', job({ webhook: { url: sink.url, progress: 'completion' } }))
  await until(() => engine.runners.length === 1 && engine.last.sent.length === 1)
  engine.last.say('working')
  engine.last.complete()
  await until(() => sink.received.length === 2)
  t.same(sink.types, ['job_started', 'job_completed'])
})

t.test('shutting down ends runs as failed attempts, and their webhooks are told', async (t) => {
  const sink = await WebhookSink.start(t)
  const { call, engine, worker } = await buildServer(t, { queue: {} })
  const first = (await call('POST', '/jobs', job({ webhook: { url: sink.url } }))).json
  const second = (await call('POST', '/jobs', job())).json
  await until(() => engine.runners.length === 1 && engine.last.sent.length === 1)
  await worker.close()
  t.match(await worker.queue?.get(first.id), { status: 'failed', error: 'The gateway shut down during the run.' })
  t.match(await worker.queue?.get(second.id), { status: 'queued' })
  t.same(sink.types, ['job_started', 'job_completed'])
  await t.rejects(worker.queue!.submit(job() as never), { code: 'SG_ERR_SHUTTING_DOWN' })
})

t.test('the documents and the metrics know of jobs when there is a queue', async (t) => {
  const { call, engine, url, worker } = await buildServer(t, { queue: {}, metrics: true })
  const openapi = (await call('GET', '/openapi.json')).json
  const paths = Object.keys(openapi.paths).filter((path) => /jobs|queue/.test(path))
  t.same(paths.sort(), [
    '/v1/jobs',
    '/v1/jobs/{id}',
    '/v1/jobs/{id}/deliveries',
    '/v1/queue',
    '/v1/queue/events',
    '/v1/queue/next',
  ])
  const asyncapi = (await call('GET', '/asyncapi.json')).json
  t.same(Object.keys(asyncapi.channels.queue.messages), ['queue_attached', 'job_event', 'queue_stats'])
  const sink = await WebhookSink.start(t)
  await call('POST', '/jobs', job({ webhook: { url: sink.url } }))
  await until(() => engine.runners.length === 1 && sink.received.length === 1)
  await until(async () => (await worker.queue?.stats())?.running === 1)
  const text = await (await fetch(`${url}/metrics`)).text()
  t.match(text, /session_gateway_jobs\{state="running"\} 1/)
  t.match(text, /session_gateway_webhook_deliveries_total\{outcome="lost"\} 0/)
  t.match(text, /session_gateway_turns_total\{subtype="success"\} 0/, 'before the first turn')
  const without = await buildServer(t)
  t.notOk((await without.call('GET', '/asyncapi.json')).json.channels.queue)
})
