import t from 'tap'
import type { PermissionDecision } from '../../src/index.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { native } from '../fixtures/parked.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'

/** What a host does that hides something before it passes on what it was told. */
function redact(told: unknown): void {
  if (typeof told !== 'object' || told === null) return
  for (const [name, member] of Object.entries(told)) {
    redact(member)
    if (typeof member !== 'object') Object.assign(told, { [name]: 'hidden' })
  }
}

t.test('what a host makes of what it is told stays with the host', async (t) => {
  const sink = await WebhookSink.start(t)
  const decisions: PermissionDecision[] = []
  let heard = 0
  const hide = (told: unknown) => {
    heard++
    redact(told)
  }
  const { call, registry } = await buildServer(t, {
    script: {
      async send(runner) {
        const ask = { toolName: 'Bash', toolUseId: 'use', input: { command: 'deploy' } }
        decisions.push(await runner.host.requestPermission(ask))
        await runner.host.deferExecution({ executionId: 'deployment', toolName: 'deploy', input: { version: '1' } })
        runner.complete({ result: 'done' })
      },
    },
    notifications: { onNotification: hide, webhook: { url: sink.url } },
    queue: { onEvent: hide },
    executions: {
      onDispatch: hide,
      tools: [
        { name: 'deploy', description: 'Deploys.', inputSchema: { type: 'object' }, dispatch: { url: sink.url } },
      ],
    },
  })
  for (const event of ['session_created', 'session_event', 'session_removed'] as const) registry.on(event, hide)
  const session = { cwd: SOME_CWD, prompt: 'go' }
  const { json: job } = await call('POST', '/jobs', { session, meta: { ticket: 1 }, webhook: { url: sink.url } })
  await until(async () => (await call('GET', '/inbox')).json.length === 1)
  await until(() => sink.types.includes('permission_requested') && sink.types.includes('job_progress'))
  const [{ request, session: asking }] = (await call('GET', '/inbox')).json
  t.match(request, { toolName: 'Bash', input: { command: 'deploy' } })
  t.equal((await call('POST', `/sessions/${asking.id}/permissions/${request.id}`, { behavior: 'allow' })).status, 200)
  await until(async () => (await call('GET', `/jobs/${job.id}`)).json.finishedAt)
  t.same(decisions, [{ behavior: 'allow', updatedInput: { command: 'deploy' } }], 'what runs is what was shown')
  t.match((await call('GET', `/jobs/${job.id}`)).json, { status: 'succeeded', meta: { ticket: 1 } })
  await until(() => ['job_completed', 'turn_completed'].every((type) => sink.types.includes(type)))
  t.ok(heard > 5)
  t.notMatch(sink.received.map(({ text }) => text).join('\n'), /hidden/)
  t.match(
    sink.received.map(({ body }) => body).find(({ resultPath }) => resultPath),
    { input: { version: '1' } },
  )
})

t.test('a listener for an event that there is none of is refused, and would never be told', async (t) => {
  const { worker, registry } = await buildServer(t, { queue: {} })
  const on = (of: { on(event: never, listener: () => void): unknown }, event: string) => of.on(event as never, () => {})
  t.throws(() => on(registry, 'session_evnt'), {
    code: 'SG_ERR_OPTION',
    message: /registry\.on.*did you mean session_event\?/,
  })
  t.throws(() => on(worker.queue!, 'progress'), { code: 'SG_ERR_OPTION', message: /queue\.on.*: unknown event\.$/ })
  for (const event of ['session_created', 'session_event', 'session_removed']) t.doesNotThrow(() => on(registry, event))
})

t.test('a host may use a request again once it has handed it in', async (t) => {
  const { worker, registry, engine } = await buildServer(t, { queue: {} })
  const request = { cwd: SOME_CWD, title: 'one', meta: { of: { host: 1 } } }
  const creating = registry.create(request)
  request.title = 'two'
  request.meta.of.host = 2
  const { id, ...created } = await creating
  t.match(created, { title: 'one', meta: { of: { host: 1 } } })
  request.meta.of.host = 3
  t.match(await registry.get(id), { title: 'one', meta: { of: { host: 1 } } })

  const job = { session: { cwd: SOME_CWD, prompt: 'one' }, meta: { of: { host: 1 } } }
  const submitting = worker.queue!.submit(job)
  job.session.prompt = 'two'
  job.meta.of.host = 2
  t.match(await submitting, { prompt: 'one', meta: { of: { host: 1 } } })
  await until(() => engine.runners.at(-1)?.sent.length)
  t.match(engine.last.sent, [{ text: 'one' }])
})

t.test('what a host makes of a session or a job that it asked for stays with the host', async (t) => {
  const clock = new VirtualClock()
  const { worker, registry, call } = await buildServer(t, {
    ...{ clock, queue: {}, parking: { parkDelayMs: 0 } },
    script: { ...native, send: (runner) => runner.defer(`work of ${runner.context.sessionId}`) },
  })
  const queue = worker.queue!
  const meta = { of: { host: 'ours' } }
  const session = await registry.create({ cwd: SOME_CWD, prompt: 'go', meta })
  const job = await queue.submit({ session: { cwd: SOME_CWD, prompt: 'go' }, meta })
  await until(async () => {
    await clock.advance(1)
    return (await registry.get(session.id))?.status === 'parked' && (await queue.get(job.id))?.status === 'parked'
  })
  const paths = [`/sessions/${session.id}`, `/jobs/${job.id}`]
  const shown = async () => Promise.all(paths.map(async (path) => (await call('GET', path)).json))
  const before = await shown()
  const { id: jobId } = job
  t.match(before, [{ meta, parked: { executions: [{ executionId: `work of ${session.id}` }] } }, { meta }])
  const given = [session, await registry.get(session.id), await registry.list(), job, await queue.get(job.id)]
  for (const one of [...given, await queue.page({})]) redact(one)
  t.strictSame(await shown(), before)
  redact(await queue.cancel(jobId))
  t.match(await queue.get(jobId), { status: 'canceled', meta })
})

t.test('what a host hook writes into a request is not what was asked', async (t) => {
  const { call, registry, engine, clock } = await buildServer(t, {
    buildRunnerConfig(request) {
      request.disallowedTools?.push('rm')
      return request
    },
    script: { ...native, send: (runner) => runner.defer('e1') },
    parking: { parkDelayMs: 0 },
  })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go', disallowedTools: [] })
  await until(async () => {
    await clock.advance(1)
    return (await registry.get(id))?.status === 'parked'
  })
  await call('POST', '/executions/e1/result', { status: 'ok', output: { type: 'text', value: 'done' } })
  await until(() => engine.runners.length === 2)
  t.same(engine.last.context.config.disallowedTools, ['rm'], 'once, each time that it is asked')
})

t.test('what an engine makes of its objects after it has told them counts for nobody', async (t) => {
  const usage = { inputTokens: 5, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 }
  const { call } = await buildServer(t, {
    queue: {},
    script: {
      send(runner) {
        runner.complete({ result: 'done', usage })
        usage.inputTokens = 0
      },
    },
  })
  const { json: job } = await call('POST', '/jobs', { session: { cwd: SOME_CWD, prompt: 'go' } })
  await until(async () => (await call('GET', `/jobs/${job.id}`)).json.finishedAt)
  t.match((await call('GET', `/jobs/${job.id}`)).json, { status: 'succeeded', usage: { tokens: 5, inputTokens: 5 } })
})
