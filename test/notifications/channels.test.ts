import t, { type Test } from 'tap'
import type { SessionNotification } from '../../schemas/notifications.js'
import type { ChannelOptions } from '../../src/notifications/channels/channels.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { type BuildOptions, buildGateway, buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { PushService } from '../fixtures/push-service.js'
import { status, WebhookSink } from '../fixtures/webhook-sink.js'

/** A server that tells a sink, with a session in a turn. */
async function world(t: Test, { notifications, ...more }: BuildOptions = {}) {
  const built = await buildServer(t, { ...(notifications && { notifications }), ...more })
  const { call, engine } = built
  const start = async (body: object = {}) => {
    const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'x', title: 'My session', ...body })
    const runner = engine.last
    await until(() => runner.sent.length === 1)
    return { id: String(json.id), runner }
  }
  let asks = 0
  const ask = ({ runner }: Awaited<ReturnType<typeof start>>, toolName = 'Bash') => {
    const asked = runner.host.requestPermission({ toolName, toolUseId: `t${++asks}`, input: { command: 'ls' } })
    asked.catch(() => {})
    return asked
  }
  /** Nothing is under way that a clock which is put forward would end. */
  const quiet = (channels: number) =>
    until(async () => {
      const told = (await call('GET', '/notifications')).json.at(-1)
      return (await call('GET', `/notifications/${told.id}/deliveries`)).json.length === channels
    }, 'the answers of all channels')
  return { ...built, start, ask, quiet }
}

const on = (sink: WebhookSink, path: string) => new URL(path, sink.url).href
const at = (sink: WebhookSink, path: string) => sink.received.filter((one) => one.path === path)

t.test('every channel is told what it asked for, in its format, under one id', async (t) => {
  const sink = await WebhookSink.start(t)
  const channels: ChannelOptions[] = [
    { format: 'webhook', name: 'own', url: on(sink, '/own'), secret: 's', headers: { 'x-a': 'b' } },
    { format: 'slack', url: on(sink, '/slack'), events: ['permission_requested', 'session_closed'] },
    { format: 'ntfy', url: on(sink, '/ntfy'), headers: { authorization: 'Bearer tk' }, profiles: ['scripted'] },
    { format: 'ntfy', name: 'others', url: on(sink, '/others'), profiles: ['another'] },
  ]
  const { start, ask, call } = await world(t, { notifications: { webhook: { url: on(sink, '/old') }, channels } })
  const session = await start()
  void ask(session)
  await until(() => sink.received.length === 4)
  const [own] = at(sink, '/own')
  const [old] = at(sink, '/old')
  t.same(own?.body, old?.body, 'a further webhook is told the same')
  t.match(own?.body, { id: String, type: 'permission_requested', sessionId: session.id })
  t.match(own?.headers, { 'webhook-id': `${session.id}:${own?.body.seq}`, 'webhook-signature': /^v1,/, 'x-a': 'b' })
  t.match(at(sink, '/slack')[0]?.body, { text: 'Needs an answer: My session: Bash asks to run', blocks: Array })
  t.match(at(sink, '/ntfy')[0], {
    text: /^Bash asks to run\nscripted/,
    headers: { title: 'Needs an answer: My session', authorization: 'Bearer tk', 'x-sequence-id': String },
  })
  const feed = await call('GET', '/notifications')
  const [told] = feed.json as SessionNotification[]
  t.equal(told?.id, own?.body.id, 'it is the one of the feed')
  const deliveries = await call('GET', `/notifications/${told?.id}/deliveries`)
  t.same(
    deliveries.json.map(({ channel, status }: { channel: string; status: number }) => `${channel} ${status}`).sort(),
    ['ntfy 204', 'own 204', 'slack 204', 'webhook 204'],
  )
  session.runner.complete()
  await until(() => at(sink, '/own').length === 2 && at(sink, '/ntfy').length === 2)
  t.equal(at(sink, '/slack').length, 1, 'it did not ask for turns')
  t.equal(at(sink, '/others').length, 0)
})

t.test('the deliveries of a notification are for who may see it', async (t) => {
  const sink = await WebhookSink.start(t)
  const allowedOf = (header: unknown) => (header === 'none' ? { allowedProfiles: [] } : { name: 'ann' })
  const { start, ask, call } = await world(t, {
    notifications: { channels: [{ format: 'slack', url: sink.url }] },
    authenticate: ({ headers }) => allowedOf(headers['x-who']),
  })
  void ask(await start())
  await until(() => sink.received.length === 1)
  const [told] = (await call('GET', '/notifications')).json
  const path = `/notifications/${told.id}/deliveries`
  t.equal((await call('GET', path)).status, 200)
  for (const [wrong, headers] of [
    [path, { 'x-who': 'none' }],
    ['/notifications/nothing/deliveries', {}],
    [`/notifications/${String(told.id).replace(/\d$/, '9')}/deliveries`, {}],
    [`/notifications/another-epoch:000000000001/deliveries`, {}],
  ] as const)
    t.match(await call('GET', wrong, undefined, headers), {
      status: 404,
      json: { code: 'SG_ERR_NOTIFICATION_NOT_FOUND' },
    })
})

t.test('how a request was settled takes its place where a format can replace, and nowhere else', async (t) => {
  const sink = await WebhookSink.start(t)
  const channels: ChannelOptions[] = [
    { format: 'ntfy', url: on(sink, '/ntfy'), events: ['permission_requested'] },
    { format: 'ntfy', name: 'ends', url: on(sink, '/ends'), events: ['session_closed'] },
    { format: 'slack', url: on(sink, '/slack'), events: ['permission_requested'] },
  ]
  const { start, ask, call, clock, quiet } = await world(t, {
    notifications: { channels },
    authenticate: () => ({ name: 'ann' }),
  })
  const session = await start({ approvalTimeoutMs: 60_000 })
  void ask(session)
  await until(() => sink.received.length === 2)
  const [asked] = at(sink, '/ntfy')
  const { json } = await call('GET', '/notifications')
  await call('POST', `/sessions/${session.id}/permissions/${json[0].request.id}`, { behavior: 'allow' })
  await until(() => at(sink, '/ntfy').length === 2)
  t.match(at(sink, '/ntfy')[1], {
    text: /^Allowed by ann\./,
    headers: { 'x-sequence-id': asked?.headers['x-sequence-id'], title: 'Answered: My session', priority: '2' },
  })
  void ask(session)
  await until(() => at(sink, '/ntfy').length === 3)
  await quiet(2)
  await clock.advance(60_000)
  await until(() => at(sink, '/ntfy').length === 4)
  t.match(at(sink, '/ntfy')[3]?.text, /^Nobody answered in time/)
  void ask(session)
  await until(() => at(sink, '/ntfy').length === 5)
  await call('DELETE', `/sessions/${session.id}`)
  await until(() => at(sink, '/ntfy').length === 6 && at(sink, '/ends').length === 1)
  t.match(at(sink, '/ntfy')[5]?.text, /^Denied\./, 'nothing is left on a screen that leads nowhere')
  t.equal(at(sink, '/slack').length, 3)
  const alone = await start({ questionBehavior: 'deny' })
  await ask(alone, 'AskUserQuestion')
  await call('DELETE', `/sessions/${alone.id}`)
  await until(() => at(sink, '/ends').length === 2)
  t.equal(at(sink, '/ntfy').length, 6, 'what nobody was asked nobody hears the end of')
})

t.test('a dead endpoint delays neither the other channels nor the agent', async (t) => {
  const sink = await WebhookSink.start(t)
  const held: (() => void)[] = []
  sink.answer = ({ path }, response) => {
    const answer = () => void response.writeHead(204).end()
    if (path === '/dead') held.push(answer)
    else answer()
  }
  const { start, ask, call } = await world(t, {
    notifications: {
      channels: [
        { format: 'slack', name: 'dead', url: on(sink, '/dead') },
        { format: 'ntfy', url: on(sink, '/ntfy') },
      ],
    },
    webhookPolicy: { maxConnections: { perTarget: 50, total: 64 } },
  })
  for (let n = 0; n < 20; n++) {
    const session = await start()
    const asked = ask(session)
    await until(() => at(sink, '/ntfy').length === 2 * n + 1)
    const { json } = await call('GET', '/notifications')
    await call('POST', `/sessions/${session.id}/permissions/${json.at(-1).request.id}`, { behavior: 'deny' })
    await asked
    await until(() => at(sink, '/ntfy').length === 2 * n + 2)
  }
  t.equal(at(sink, '/dead').length, 20)
  sink.answer = undefined
  for (const answer of held) answer()
})

t.test('what waits for an endpoint is bounded, that of the webhook as that of every channel', async (t) => {
  const sink = await WebhookSink.start(t)
  const channels: ChannelOptions[] = [{ format: 'slack', url: on(sink, '/slack') }]
  const { gateway } = await buildGateway(t, { notifications: { webhook: { url: on(sink, '/own') }, channels } })
  t.same(
    gateway.webhooks().map(({ channel, maxWaiting }) => [channel, maxWaiting]),
    [
      ['webhook', 10_000],
      ['slack', 10_000],
    ],
  )
})

t.test('a channel that answered 410 is left alone, and another process knows it', async (t) => {
  const sink = await WebhookSink.start(t)
  sink.answer = status(410)
  const storage = createMemoryStorage()
  const notifications = { channels: [{ format: 'slack' as const, url: sink.url }] }
  const first = await world(t, { notifications, storage })
  void first.ask(await first.start())
  await until(async () => ((await storage.outbox.gone?.()) ?? []).length === 1)
  await first.worker.close()
  const next = await world(t, { notifications, storage })
  await (await next.start()).runner.complete()
  await until(async () =>
    (await next.call('GET', '/notifications')).json.some(({ type }: { type: string }) => type === 'turn_completed'),
  )
  t.equal(sink.received.length, 1)
})

t.test('a channel that cannot be one keeps the gateway from starting, and says where', async (t) => {
  const url = 'https://hooks.example/'
  for (const [option, notifications] of [
    ['notifications.channels.0.url', { channels: [{ format: 'slack', url: 'nowhere' }] }],
    [
      'notifications.channels.1.name',
      {
        channels: [
          { format: 'slack', url },
          { format: 'slack', url },
        ],
      },
    ],
    ['notifications.channels.0.name', { channels: [{ format: 'slack', url, name: 'a/b' }] }],
    ['notifications.channels.0.headers.host', { channels: [{ format: 'ntfy', url, headers: { host: 'x' } }] }],
    ['notifications.channels.0.secret', { channels: [{ format: 'webhook', url, secret: 'whsec_$' }] }],
    ['notifications.channels.0.subject', { channels: [{ format: 'web_push' }] }],
    ['notifications.channels.0.subject', { channels: [{ format: 'web_push', subject: 'ops@example.com' }] }],
    ['notifications.reminders.0.channel', { reminders: [{ afterMs: 1, channel: 'nobody' }] }],
    ['notifications.answerLinks', { answerLinks: true }],
    ['notifications.publicUrl', { publicUrl: 'gateway.example' }],
    ['notifications.publicUrl', { publicUrl: 'https://gateway.example/?a=b' }],
  ] as const)
    await t.rejects(
      buildServer(t, { notifications: notifications as never }),
      { code: 'SG_ERR_OPTION', errors: [{ path: option }] },
      JSON.stringify(notifications),
    )
})

t.test('browsers are told by web push, each what its principal may see, until they are gone', async (t) => {
  const service = await PushService.start(t)
  const storage = createMemoryStorage()
  const options: BuildOptions = {
    storage,
    profiles: ['scripted', 'secret'].map((name) => ({ name, engine: 'provider', provider: { id: 'scripted' } })),
    notifications: { channels: [{ format: 'web_push', subject: 'mailto:ops@example.com' }] },
    webhookPolicy: { allowedHosts: [service.host] },
    authenticate: ({ headers }) => ({
      name: headers['x-who'] ?? 'ann',
      ...(headers['x-who'] === 'bob' && { allowedProfiles: ['scripted'] }),
    }),
  }
  const first = await world(t, options)
  const bob = { 'x-who': 'bob' }
  const key = await first.call('GET', '/notifications/vapid-key')
  service.publicKey = key.json.publicKey
  const [phone, laptop] = [service.subscribe(), service.subscribe()]
  const subscribed = await first.call('POST', '/notifications/subscriptions', phone.request)
  t.match(subscribed, { status: 201, json: { id: String, createdAt: Number, expiresAt: Number } })
  t.equal(
    (await first.call('POST', '/notifications/subscriptions', phone.request)).status,
    200,
    'again, as at each opening of the page',
  )
  t.equal((await first.call('POST', '/notifications/subscriptions', laptop.request, bob)).status, 201)
  const session = await first.start({ profile: 'secret' })
  void first.ask(session)
  await until(() => phone.received.length === 1)
  const other = await first.start({ profile: 'scripted' })
  void first.ask(other)
  await until(() => phone.received.length === 2 && laptop.received.length === 1)
  t.same(
    laptop.received.map(({ message }) => message.sessionId),
    [other.id],
    'bob does not hear of what he may not see',
  )
  const requestId = laptop.received[0]?.message.requestId
  await first.call('POST', `/sessions/${other.id}/permissions/${requestId}`, { behavior: 'deny' })
  await until(() => phone.received.length === 3 && laptop.received.length === 2)
  t.match(laptop.received[1]?.message, {
    type: 'permission_resolved',
    body: 'Denied by ann.',
    tag: laptop.received[0]?.message.tag,
  })
  t.equal(laptop.received[1]?.headers.topic, laptop.received[0]?.headers.topic)
  await first.worker.close()

  const next = await world(t, options)
  t.equal(
    (await next.call('GET', '/notifications/vapid-key')).json.publicKey,
    service.publicKey,
    'the same key as before',
  )
  service.unsubscribe(phone)
  void next.ask(await next.start({ profile: 'secret' }))
  await until(async () => (await storage.channels!.subscriptions()).length === 1, 'it is forgotten for good')
  const tries = service.triesOf(phone)
  void next.ask(await next.start({ profile: 'scripted' }))
  await until(() => laptop.received.length >= 3)
  t.equal(service.triesOf(phone), tries, 'nothing was sent to the one that is gone')
  const { endpoint } = laptop
  t.match(await next.call('DELETE', '/notifications/subscriptions', { endpoint }), { status: 404 }, "another caller's")
  t.match(await next.call('DELETE', '/notifications/subscriptions', { endpoint }, bob), {
    status: 200,
    json: { deleted: true },
  })
  t.match(await next.call('DELETE', '/notifications/subscriptions', { endpoint }, bob), { status: 404 })
  t.same(service.faults, [])
})

t.test('what cannot be a subscription is refused with its field; by default private addresses are none', async (t) => {
  const service = await PushService.start(t)
  const { call } = await world(t, {
    notifications: { channels: [{ format: 'web_push', subject: 'mailto:a@example.com' }] },
  })
  const { request } = service.subscribe()
  t.match(await call('POST', '/notifications/subscriptions', request), {
    status: 400,
    json: { errors: [{ path: 'endpoint' }] },
  })
  for (const body of [{}, { ...request, more: 1 }, { ...request, keys: {} }, { ...request, endpoint: 5 }, [], 'null'])
    t.match(await call('POST', '/notifications/subscriptions', body), { status: 400 }, JSON.stringify(body))
  t.equal((await call('PUT', '/notifications/subscriptions', request)).status, 405)
  const without = await world(t)
  for (const [method, path] of [
    ['POST', 'subscriptions'],
    ['DELETE', 'subscriptions'],
    ['GET', 'vapid-key'],
  ] as const)
    t.equal((await without.call(method, `/notifications/${path}`)).status, 404, 'there are none without such a channel')
})
