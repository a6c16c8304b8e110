import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { NotificationOptions } from '../../../src/options.js'
import { createSqliteStorage } from '../../../src/storage/sqlite/storage.js'
import { type BuildOptions, buildServer, SOME_CWD, until } from '../../fixtures/build.js'
import { PushService } from '../../fixtures/push-service.js'
import type { Script } from '../../fixtures/scripted-engine.js'
import { status, WebhookSink } from '../../fixtures/webhook-sink.js'

/** Asks whenever it begins, and waits. */
const script: Script = {
  capabilities: { parking: 'native' },
  start: (runner) => {
    runner.init()
    if (runner.context.restore) void ask(runner)
  },
  send: (runner) => void ask(runner),
}
const ask = (runner: Parameters<NonNullable<Script['send']>>[0]) =>
  runner.host.requestPermission({ toolName: 'Bash', toolUseId: 't', input: {} }).catch(() => {})

/** A server over a database file. */
async function world(t: Test, folder: string, options: BuildOptions) {
  const storage = createSqliteStorage({ path: join(folder, 'gateway.db') })
  const built = await buildServer(t, { storage, script, ...options })
  /** A session that is parked with its request. */
  const start = async (profile: string) => {
    const { id } = await built.registry.create({ cwd: SOME_CWD, prompt: 'x', profile, approvalTimeoutMs: 0 })
    await until(() => built.registry.here(id)?.status === 'parked', 'a parked session')
  }
  const isAllTold = () => until(async () => (await storage.outbox.list()).length === 0, 'an empty outbox')
  return { ...built, start, isAllTold }
}

const PROFILES = ['open', 'secret'].map((name) => ({
  ...{ name, engine: 'provider' as const, provider: { id: 'scripted' } },
}))

t.test('what waits for a browser to be reached is not told to one that has unsubscribed meanwhile', async (t) => {
  const service = await PushService.start(t)
  const { call, start, clock, isAllTold } = await world(t, t.testdir(), {
    profiles: PROFILES,
    notifications: { channels: [{ format: 'web_push', subject: 'mailto:ops@example.com' }], retryDelayMs: 1_000 },
    webhookPolicy: { allowedHosts: [service.host] },
  })
  const [lost, kept] = [service.subscribe(), service.subscribe()]
  for (const { request } of [lost, kept]) await call('POST', '/notifications/subscriptions', request)
  service.answer = (_browser, response) => response.writeHead(503).end() !== undefined
  await start('open')
  const attempts = async () => {
    const [told] = (await call('GET', '/notifications')).json
    return told ? (await call('GET', `/notifications/${told.id}/deliveries`)).json.length : 0
  }
  await until(async () => (await attempts()) === 2, 'an attempt to reach each')
  service.answer = undefined
  const { endpoint } = lost
  t.equal((await call('DELETE', '/notifications/subscriptions', { endpoint })).status, 200)
  await clock.advance(1_000)
  await until(() => kept.received.length === 1, 'the other one')
  await isAllTold()
  t.equal(service.triesOf(lost), 1)
})

t.test(
  'a channel that is taken away from a profile is told nothing that waits, and its links answer nothing',
  async (t) => {
    const folder = t.testdir()
    const sink = await WebhookSink.start(t)
    const told = (profiles: string[]): NotificationOptions => ({
      ...{ publicUrl: 'https://gateway.example', answerLinks: true, retryDelayMs: 60_000 },
      channels: [{ format: 'webhook', name: 'team', url: sink.url, profiles, events: ['permission_requested'] }],
    })
    const first = await world(t, folder, { profiles: PROFILES, notifications: told(['open', 'secret']) })
    await first.start('secret')
    await until(() => sink.received.length === 1)
    const link = String(sink.received[0]?.body.answerUrl)
    sink.answer = status(503)
    await first.start('secret')
    await first.start('open')
    await until(() => sink.received.length === 3)
    await first.worker.close()

    sink.answer = undefined
    sink.received.length = 0
    const next = await world(t, folder, { profiles: PROFILES, notifications: told(['open']) })
    await next.isAllTold()
    t.same(
      sink.received.map(({ body }) => body.session.profile),
      ['open'],
    )
    const here = link.replace('https://gateway.example', next.url)
    const form = new URLSearchParams({ behavior: 'allow' })
    for (const answer of [await fetch(here), await fetch(here, { method: 'POST', body: form })])
      t.equal(answer.status, 404)
    t.equal((await next.call('GET', '/inbox')).json.length, 3, 'they wait as before')
  },
)
