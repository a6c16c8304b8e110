import t from 'tap'
import { createClient } from '../../client/index.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { problem } from '../fixtures/client-platform.js'
import { world } from '../fixtures/client-requests.js'
import { PushService } from '../fixtures/push-service.js'

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
    queue.next(),
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
