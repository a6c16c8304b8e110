import t from 'tap'
import type { SessionNotification } from '../../schemas/notifications.js'
import { previewOfRequest } from '../../src/jobs/progress.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { attach } from '../fixtures/client.js'
import { status, WebhookSink } from '../fixtures/webhook-sink.js'

t.test('the four moments are told, each with the session as the event left it', async (t) => {
  const sink = await WebhookSink.start(t)
  const seen: SessionNotification[] = []
  const { call, engine, api, worker } = await buildServer(t, {
    notifications: { webhook: { url: sink.url, headers: { 'x-a': 'b' } }, onNotification: (one) => seen.push(one) },
  })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'x', title: 'My session' })
  await until(() => engine.last.sent.length === 1)
  engine.last.say('not worth a notification')
  const asked = engine.last.host.requestPermission({ toolName: 'Bash', toolUseId: 't', input: { command: 'a secret' } })
  await until(() => sink.received.length === 1)
  t.match(sink.received[0]?.body, {
    type: 'permission_requested',
    sessionId: json.id,
    ts: Number,
    preview: 'Bash asks to run',
    session: { status: 'awaiting_approval', pendingPermissions: 1, title: 'My session' },
    request: { toolName: 'Bash', input: { command: 'a secret' } },
  })
  const { id } = sink.received[0]?.body.request ?? {}
  await call('POST', `/sessions/${json.id}/permissions/${id}`, { behavior: 'allow' })
  t.match(await asked, { behavior: 'allow' }, 'its consumer can answer')
  engine.last.complete({ result: 'All\n\u001b[31m done', totalCostUsd: 2 })
  await until(() => sink.received.length === 2)
  t.match(sink.received[1]?.body, {
    type: 'turn_completed',
    preview: 'All [31m done',
    session: { status: 'idle', cost: 2, numTurns: 1 },
    result: { isError: false, durationMs: 1, numTurns: 1, totalCostUsd: 2 },
  })
  engine.last.host.emit({ type: 'session_error', message: 'it broke' })
  await until(() => sink.received.length === 4)
  t.match(sink.received[2]?.body, { type: 'session_error', preview: 'it broke', session: { status: 'failed' } })
  t.match(sink.received[3]?.body, { type: 'session_closed', reason: 'error', session: { status: 'failed' } })
  t.same(
    seen,
    sink.received.map(({ body }) => body),
  )
  for (const { body, headers } of sink.received) {
    t.equal(headers['webhook-id'], `${json.id}:${body.seq}`)
    t.equal(headers['x-a'], 'b')
    const client = await attach(t, api, json.id, `?afterSeq=${body.seq - 1}`)
    await client.until(() => client.events.length > 0)
    t.match(client.events[0], { seq: body.seq, type: body.type }, 'seq - 1 lands on the event')
    client.socket.terminate()
  }
  t.equal(worker.queue, undefined)
})

t.test('the end of a session that is kept is told with the place that its event has', async (t) => {
  const seen: SessionNotification[] = []
  const { call, engine, api } = await buildServer(t, {
    storage: createMemoryStorage(),
    notifications: { onNotification: (one) => seen.push(one) },
  })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'x' })
  await until(() => engine.last.sent.length === 1)
  const client = await attach(t, api, json.id)
  // told with the removal already, before what the end itself brings
  void engine.last.host.requestPermission({ toolName: 'Bash', toolUseId: 't', input: {} }).catch(() => {})
  await until(() => seen.length === 1)
  await call('DELETE', `/sessions/${json.id}`)
  await client.until(() => client.events.some(({ type }) => type === 'session_closed'))
  await until(() => seen.some(({ type }) => type === 'session_closed'))
  t.equal(client.events.at(-1)?.seq, seen.at(-1)?.seq)
  t.match(seen.at(-1), { type: 'session_closed', reason: 'client' })
})

t.test('the end of a session that two remove at once is told once', async (t) => {
  const sink = await WebhookSink.start(t)
  const seen: SessionNotification[] = []
  const { call, worker } = await buildServer(t, {
    storage: createMemoryStorage(),
    notifications: { webhook: { url: sink.url }, onNotification: (one) => seen.push(one) },
  })
  const { id } = (await call('POST', '/sessions', { cwd: SOME_CWD })).json
  const { registry } = worker
  const [removed, late] = await Promise.allSettled([registry.close(id, 'client'), registry.close(id, 'client')])
  t.match(removed, { value: { status: 'closed' } })
  t.match(late, { reason: { code: 'SG_ERR_SESSION_NOT_FOUND' } })
  await until(() => seen.length > 0 && sink.received.length > 0, 'word of it')
  await worker.close()
  t.match(seen, [{ type: 'session_closed', sessionId: id, reason: 'client' }])
  t.match(sink.received, [{ body: { type: 'session_closed', sessionId: id } }])
  t.equal(sink.received.length, 1)
})

t.test('a request is told in words, also when its title or its question has none', (t) => {
  const preview = (toolName: string, question: string, title?: string) =>
    previewOfRequest({
      ...{ id: 'r', toolUseId: 't', toolName, input: { questions: [{ question }] } },
      ...(title !== undefined && { title }),
    })
  t.equal(preview('Bash', '', 'Run\nit?'), 'Run it?')
  t.equal(preview('Bash', 'Which?', ' \u2028'), 'Bash asks to run')
  t.equal(preview('AskUserQuestion', 'Which?', ''), 'Which?')
  t.equal(preview('AskUserQuestion', '\n'), 'AskUserQuestion asks to run')
  t.end()
})

t.test('the webhook hears of what it asked for, the observer of everything', async (t) => {
  const sink = await WebhookSink.start(t)
  const seen: string[] = []
  const { call, engine, worker } = await buildServer(t, {
    queue: {},
    notifications: {
      webhook: { url: sink.url, events: ['session_closed'], secret: 'x' },
      onNotification: ({ type }) => {
        seen.push(type)
        throw new Error('an observer that throws breaks nothing')
      },
    },
  })
  const hook = await WebhookSink.start(t)
  await call('POST', '/jobs', { session: { cwd: SOME_CWD, prompt: 'x' }, webhook: { url: hook.url } })
  await until(() => engine.runners.length === 1 && engine.last.sent.length === 1)
  engine.last.complete()
  await until(() => sink.received.length === 1 && hook.received.length === 2)
  t.match(sink.received[0]?.body, { type: 'session_closed', reason: 'server', session: { jobId: String } })
  t.match(sink.received[0]?.headers, { 'webhook-signature': /^v1,/ })
  t.same(seen, ['turn_completed', 'session_closed'], 'a job is told on both channels')
  t.same(hook.types, ['job_started', 'job_completed'])
  t.equal((await worker.queue?.stats())?.running, 0)
})

t.test('deliveries of one session keep their order while the receiver is down', async (t) => {
  const sink = await WebhookSink.start(t)
  const { call, engine, clock } = await buildServer(t, {
    notifications: { webhook: { url: sink.url }, attempts: 2, retryDelayMs: 100 },
  })
  sink.answer = status(500)
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'x' })
  await until(() => engine.last.sent.length === 1)
  engine.last.complete()
  await call('DELETE', `/sessions/${json.id}`)
  await until(() => sink.received.length === 1)
  sink.answer = undefined
  await until(async () => {
    await clock.advance(100)
    return sink.received.length === 3
  }, 'what came after the retry')
  t.same(sink.types, ['turn_completed', 'turn_completed', 'session_closed'])
  t.match(sink.received[2]?.body, { reason: 'client' })
})

t.test('a webhook that cannot be one keeps the gateway from starting', async (t) => {
  for (const webhook of [
    { url: 'nowhere' },
    { url: 'http://169.254.169.254/' },
    { url: 'http://x/', headers: { host: 'y' } },
    { url: 'http://x/', secret: 'whsec_$' },
  ])
    await t.rejects(buildServer(t, { notifications: { webhook } }), { code: 'SG_ERR_OPTION' }, JSON.stringify(webhook))
  await t.rejects(buildServer(t, { queue: { webhookSecret: 'whsec_$' } }), { code: 'SG_ERR_OPTION' })
})

t.test('what is told of a turn that somebody interrupted says so', async (t) => {
  const previews: string[] = []
  const onNotification = ({ preview }: { preview: string }) => void previews.push(preview)
  const { call, engine } = await buildServer(t, { notifications: { onNotification } })
  await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'x' })
  await until(() => engine.runners.length === 1 && engine.last.sent.length === 1)
  engine.last.complete({ subtype: 'interrupted', isError: false })
  await until(() => previews.length > 0)
  t.strictSame(previews, ['The turn was interrupted.'])
})
