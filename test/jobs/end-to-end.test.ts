import t, { type Test } from 'tap'
import type { SessionNotification } from '../../schemas/notifications.js'
import type { DemoAnswer } from '../../src/engines/provider/index.js'
import { providerEngine } from '../../src/engines/provider/index.js'
import type { QueueServerOptions } from '../../src/jobs/options.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { type Answer, status, WebhookSink } from '../fixtures/webhook-sink.js'

const script = (answers: DemoAnswer[]): string => `@@${JSON.stringify(answers)}@@`

/** A gateway whose jobs run on the real provider engine, with its offline model and one tool whose work happens elsewhere. */
async function world(t: Test, queue: QueueServerOptions = {}, onRestore: () => Promise<void> = async () => {}) {
  const lookup = { name: 'lookup', description: 'Looks something up.', inputSchema: { type: 'object' } }
  const engine = providerEngine({ demoChunkDelayMs: 0, deferredTools: [lookup] })
  const notified: SessionNotification[] = []
  const server = await buildServer(t, {
    queue,
    notifications: { onNotification: (notification) => notified.push(notification) },
    profiles: [{ name: 'demo', engine: 'provider', provider: { id: 'demo' } }],
    createEngineRunner: async (context) => {
      if (context.restore) await onRestore()
      return engine(context)
    },
  })
  const submit = async (prompt: string, more: object = {}) =>
    (await server.call('POST', '/jobs', { session: { cwd: SOME_CWD, prompt }, ...more })).json
  const job = async (id: string) => (await server.call('GET', `/jobs/${id}`)).json
  const over = async (id: string) => {
    await until(async () => (await job(id)).finishedAt !== undefined, 'the end of the job')
    return job(id)
  }
  return { ...server, submit, job, over, notified }
}

t.test('jobs run on a real engine, and their usage is counted', async (t) => {
  const { submit, over, call } = await world(t, { maxConcurrency: 3 })
  const jobs = await Promise.all(['hello', 'good morning', 'how are you'].map((prompt) => submit(prompt)))
  const done = await Promise.all(jobs.map(({ id }) => over(id)))
  let total = 0
  for (const one of done) {
    t.match(one, { status: 'succeeded', result: { text: /offline demonstration model/ }, usage: { numTurns: 1 } })
    t.ok(one.usage.tokens > 0)
    total += one.usage.tokens
  }
  t.match((await call('GET', '/queue')).json, { queued: 0, running: 0, dailyTokensUsed: total })
})

t.test('a model that fails is a failed attempt, and one that hangs is ended by the watchdog', async (t) => {
  const { submit, over, clock, job, engine, notified } = await world(t, { maxConcurrency: 2 })
  const failed = await over((await submit(script([{ fail: 'overloaded' }]))).id)
  t.match(failed, { status: 'failed', error: /overloaded/, result: { isError: true } })
  const hanging = await submit(script([{ text: 'let me think', hang: true }]), { maxDurationMs: 60_000 })
  let now = await job(hanging.id)
  while (now.status !== 'running' || now.sessionId === undefined) now = await job(hanging.id)
  await clock.advance(60_000)
  const error = 'The run took longer than 60000 ms.'
  t.match(await over(hanging.id), { status: 'failed', error, result: { subtype: 'interrupted', errors: [error] } })
  const told = () => notified.find(({ type, session }) => type === 'turn_completed' && session.jobId === hanging.id)
  await until(told)
  t.match(told(), { preview: error })
  t.same(engine.runners, [])
})

t.test('of a run that is ended while it asks nobody is said to have denied that', async (t) => {
  const { submit, over, clock, registry } = await world(t)
  const resolved: unknown[] = []
  const asked = new Promise<void>((resolve) => {
    registry.on('session_event', ({ event }) => {
      if (event.type === 'permission_requested') resolve()
      if (event.type === 'permission_resolved') resolved.push(event.message)
    })
  })
  const write = { tool: 'fs_write', input: { path: 'a', content: 'b' } }
  const { id } = await submit(script([{ tools: [write] }]), { maxDurationMs: 60_000 })
  await asked
  await clock.advance(60_000)
  t.match(await over(id), { status: 'failed' })
  t.same(resolved, ['The run took longer than 60000 ms.'])
})

t.test('a permission is approved from the webhook’s consumer', async (t) => {
  const sink = await WebhookSink.start(t)
  const { submit, over, call } = await world(t)
  sink.answer = ({ body }, response) => {
    response.writeHead(202).end()
    const { progress, job } = body
    if (progress?.kind === 'permission_requested')
      void call('POST', `/sessions/${job.sessionId}/permissions/${progress.request.id}`, { behavior: 'allow' })
  }
  const { id } = await submit('write a report', { webhook: { url: sink.url } })
  const done = await over(id)
  t.match(done, { status: 'succeeded' })
  await until(() => sink.types.includes('job_completed'))
  const kinds = sink.received.flatMap(({ body }) => body.progress?.kind ?? [])
  t.ok(kinds.includes('permission_requested') && kinds.includes('permission_resolved'), kinds.join())
  const { files } = (await call('GET', `/sessions/${done.sessionId}/files`)).json
  t.match(files, [{ path: /report\.md$/ }], 'what it made can be fetched while its session is listed')
})

t.test('a job parks, the next one runs meanwhile, and it finishes after its result', async (t) => {
  const sink = await WebhookSink.start(t)
  const { submit, over, job, call, notified } = await world(t)
  const prompt = script([{ text: 'asking', tools: [{ tool: 'lookup', input: { q: 1 } }] }, { text: 'now I know' }])
  const { id } = await submit(prompt, { webhook: { url: sink.url } })
  await until(() => sink.types.includes('job_parked'), 'the park')
  const parked = await job(id)
  t.match(parked, { status: 'parked', parkedAt: Number, parkedExecutionId: String })
  t.match((await call('GET', `/sessions/${parked.sessionId}`)).json, { status: 'parked', jobId: id })
  const { body } = sink.received.find(({ body }) => body.type === 'job_parked')!
  t.equal(body.executionId, parked.parkedExecutionId)
  t.match(await over((await submit('hello')).id), { status: 'succeeded' }, 'the slot is free')
  const result = { status: 'ok', output: { type: 'json', value: { answer: 42 } } }
  const path = `/executions/${parked.parkedExecutionId}/result`
  t.match((await call('POST', path, result)).json, { applied: true, sessionId: parked.sessionId })
  t.match((await call('POST', path, result)).json, { applied: false })
  const done = await over(id)
  t.match(done, { status: 'succeeded', sessionId: parked.sessionId, result: { text: 'now I know' }, attempt: 1 })
  t.notOk('parkedAt' in done || 'parkedExecutionId' in done)
  t.ok(done.usage.tokens > parked.usage.tokens)
  await until(() => sink.types.includes('job_completed'))
  const lifecycle = sink.types.filter((type) => type !== 'job_progress')
  t.same(lifecycle, ['job_started', 'job_parked', 'job_resumed', 'job_completed'])
  const types = notified.flatMap(({ type, sessionId }) => (sessionId === parked.sessionId ? [type] : []))
  t.same(types, ['turn_completed', 'session_closed'], 'a session that was rebuilt is told once')
})

t.test('a job that waits for an approval without limit parks, and its answer wakes it', async (t) => {
  const sink = await WebhookSink.start(t)
  const { call, over } = await world(t)
  let asked = ''
  sink.answer = ({ body: { type, progress, job } }, response) => {
    response.writeHead(200).end()
    if (progress?.kind === 'permission_requested') asked = progress.request.id
    if (type === 'job_parked')
      void call('POST', `/sessions/${job.sessionId}/permissions/${asked}`, { behavior: 'allow' })
  }
  const session = { cwd: SOME_CWD, prompt: 'write a report', approvalTimeoutMs: 0 }
  const { id } = (await call('POST', '/jobs', { session, webhook: { url: sink.url } })).json
  t.match(await over(id), { status: 'succeeded', attempt: 1 })
  await until(() => sink.types.includes('job_completed'))
  const parks = sink.received.filter(({ body }) => body.type === 'job_parked')
  t.ok(parks.length > 0)
  for (const { body } of parks) t.notOk('executionId' in body || 'parkedExecutionId' in body.job)
})

for (const what of ['jobs', 'sessions'])
  t.test(`deleting from ${what} cancels a job at once while its runner is being rebuilt`, async (t) => {
    let rebuild: (() => void) | undefined
    const { submit, job, call } = await world(t, {}, () => new Promise((resolve) => (rebuild = resolve)))
    const { id } = await submit(script([{ tools: [{ tool: 'lookup', input: {} }] }, { text: 'never' }]), {
      attempts: 2,
    })
    let parked = await job(id)
    while (parked.status !== 'parked') parked = await job(id)
    const output = { type: 'text', value: 'x' }
    const result = call('POST', `/executions/${parked.parkedExecutionId}/result`, { status: 'ok', output })
    await until(() => rebuild !== undefined, 'the rebuild')
    const deleted = call('DELETE', `/${what}/${what === 'jobs' ? id : parked.sessionId}`)
    await until(async () => (await job(id)).status === 'canceled', 'the cancellation')
    rebuild?.()
    t.equal((await deleted).status, 200)
    await result
    t.match(await job(id), { status: 'canceled', attempt: 1 })
    t.equal((await call('GET', `/sessions/${parked.sessionId}`)).status, 404)
  })

t.test('shutting down writes down what is parked and what is not', async (t) => {
  const { submit, job, call, worker } = await world(t, { maxConcurrency: 2 })
  const waits = await submit(script([{ tools: [{ tool: 'lookup', input: {} }] }]))
  const runs = await submit(script([{ text: 'on it', hang: true }]), { attempts: 2 })
  await until(async () => (await job(waits.id)).status === 'parked', 'the park')
  const runOf = async () => (await call('GET', `/sessions/${(await job(runs.id)).sessionId}`)).json
  await until(async () => (await runOf())?.status === 'running', 'the run, with its engine')
  await worker.close()
  t.match(await worker.queue?.get(waits.id), { status: 'parked' })
  t.match(await worker.queue?.get(runs.id), { status: 'queued', attempt: 2 }, 'the next process repeats it')
  t.equal(await call('GET', '/jobs').catch(() => 'gone'), 'gone')
})

t.test('canceling a parked job keeps a late result from waking it', async (t) => {
  const { submit, job, call } = await world(t)
  const { id } = await submit(script([{ tools: [{ tool: 'lookup', input: {} }] }, { text: 'never' }]))
  let parked = await job(id)
  while (parked.status !== 'parked') parked = await job(id)
  t.match((await call('DELETE', `/jobs/${id}`)).json, { status: 'canceled' })
  const late = await call('POST', `/executions/${parked.parkedExecutionId}/result`, {
    status: 'ok',
    output: { type: 'text', value: 'late' },
  })
  t.ok(late.status === 404 || late.json.applied === false)
  t.equal((await call('GET', `/sessions/${parked.sessionId}`)).status, 404)
  t.match(await job(id), { status: 'canceled' })
})

t.test('deleting the session of a parked job cancels the job', async (t) => {
  const { submit, job, over, call } = await world(t)
  const { id } = await submit(script([{ tools: [{ tool: 'lookup', input: {} }] }]), { attempts: 3 })
  let parked = await job(id)
  while (parked.status !== 'parked') parked = await job(id)
  t.equal((await call('DELETE', `/sessions/${parked.sessionId}`)).status, 200)
  t.match(await over(id), { status: 'canceled' })
})

const RECEIVERS: Record<string, Answer> = {
  down: (_received, response) => void response.socket?.destroy(),
  slow: (_received, response) => void setTimeout(() => response.writeHead(200).end(), 50),
  hanging: () => {},
  redirecting: status(307, { location: 'http://127.0.0.1:1/' }),
  resetting: (_received, response) => void response.socket?.resetAndDestroy(),
  'answering half': (_received, response) => void response.writeHead(200, { 'content-length': '100' }).write('half'),
  'refusing for ever': status(410),
}

for (const [name, answer] of Object.entries(RECEIVERS))
  t.test(`a webhook receiver that is ${name} does not hurt the run`, async (t) => {
    const sink = await WebhookSink.start(t)
    sink.answer = answer
    const { submit, over, call, worker } = await world(t, { webhookAttempts: 2, webhookRetryDelayMs: 1 })
    const jobs = await Promise.all([1, 2].map(() => submit('hello', { webhook: { url: sink.url } })))
    for (const { id } of jobs) t.match(await over(id), { status: 'succeeded' })
    await until(() => sink.received.length > 0)
    t.ok(sink.mostOpen <= 2, 'one attempt in flight per job')
    // whatever still hangs ends with the receiver
    sink.answer = undefined
    sink.stop()
    await worker.close()
    t.equal((await call('GET', '/jobs').catch(() => undefined))?.status, undefined)
  })

t.test('a job that is interrupted before its agent was given anything has failed, and gives it nothing', async (t) => {
  let start = () => {}
  const started = new Promise<void>((resolve) => (start = resolve))
  const { call, engine } = await buildServer(t, {
    queue: {},
    script: { start: (runner) => started.then(() => runner.init()) },
  })
  const { json: job } = await call('POST', '/jobs', { session: { cwd: SOME_CWD, prompt: 'go' } })
  await until(() => engine.runners.length === 1)
  const { sessionId } = (await call('GET', `/jobs/${job.id}`)).json
  await call('POST', `/sessions/${sessionId}/commands`, { type: 'interrupt' })
  await until(async () => (await call('GET', `/jobs/${job.id}`)).json.finishedAt !== undefined, 'the end of the job')
  t.match((await call('GET', `/jobs/${job.id}`)).json, { status: 'failed', error: 'The turn was interrupted.' })
  start()
  await until(() => engine.last.closed)
  t.same(engine.last.sent, [])
})
