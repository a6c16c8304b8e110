import t from 'tap'
import { silentLogger } from '../../src/lib/logger.js'
import { Reminders } from '../../src/notifications/reminders.js'
import { createMemoryDeliveryOutbox } from '../../src/storage/memory/delivery-outbox.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import type { StoredDelivery } from '../../src/webhooks/delivery.js'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { PushService } from '../fixtures/push-service.js'
import { notification } from '../fixtures/told.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'

const MINUTE = 60_000

t.test('what nobody answers is told again, to whom it says, and what is answered is not', async (t) => {
  const sink = await WebhookSink.start(t)
  const storage = createMemoryStorage()
  const clock = new VirtualClock()
  const at = (path: string) => sink.received.filter((one) => one.path === path)
  const options = {
    ...{ storage, clock },
    notifications: {
      channels: [
        { format: 'webhook' as const, name: 'phone', url: new URL('/phone', sink.url).href },
        { format: 'webhook' as const, name: 'team', url: new URL('/team', sink.url).href, events: [] },
      ],
      reminders: [
        { afterMs: 5 * MINUTE, channel: 'phone' },
        { afterMs: 30 * MINUTE, channel: 'team' },
      ],
    },
  }
  const first = await buildServer(t, options)
  const ask = async () => {
    const { json } = await first.call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'x', approvalTimeoutMs: 0 })
    const runner = first.engine.last
    await until(() => runner.sent.length === 1)
    const told = at('/phone').length
    runner.host.requestPermission({ toolName: 'Bash', toolUseId: 't', input: {} }).catch(() => {})
    await until(() => at('/phone').length === told + 1)
    return { id: String(json.id), requestId: String(at('/phone')[told]?.body.request.id) }
  }
  const delivered = () => until(async () => (await storage.outbox.list()).every(({ lane }) => lane === 'reminders'))
  const [answered, waiting] = [await ask(), await ask()]
  await delivered()
  t.equal((await storage.outbox.list()).length, 4, 'kept from the beginning')
  await first.call('POST', `/sessions/${answered.id}/permissions/${answered.requestId}`, { behavior: 'deny' })
  await until(async () => (await storage.outbox.list()).length === 2)
  await clock.advance(5 * MINUTE)
  await until(() => at('/phone').length === 3)
  t.match(at('/phone')[2], {
    body: { type: 'permission_requested', sessionId: waiting.id, reminder: 1, request: { id: waiting.requestId } },
    headers: { 'webhook-id': `${waiting.id}:${waiting.requestId}:1` },
  })
  await delivered()
  await clock.advance(25 * MINUTE)
  await until(() => at('/team').length === 1)
  t.match(at('/team')[0]?.body, { sessionId: waiting.id, reminder: 2 })
  await until(async () => (await storage.outbox.list()).length === 0)
  await clock.advance(60 * MINUTE)
  t.equal(at('/phone').filter(({ body }) => body.reminder !== undefined).length, 1, 'each once')
  t.equal(at('/team').length, 1)
})

t.test(
  'a channel that hears of no request is told how one ended that it was reminded of, and of no other',
  async (t) => {
    const sink = await WebhookSink.start(t)
    const storage = createMemoryStorage()
    const clock = new VirtualClock()
    const options = {
      ...{ storage, clock },
      profiles: ['scripted', 'secret'].map(
        (name) => ({ name, engine: 'provider', provider: { id: 'scripted' } }) as const,
      ),
      notifications: {
        channels: [
          {
            format: 'ntfy' as const,
            name: 'lead',
            url: new URL('/lead', sink.url).href,
            events: [],
            profiles: ['scripted'],
          },
          { format: 'ntfy' as const, name: 'team', url: new URL('/team', sink.url).href },
        ],
        reminders: [{ afterMs: 5 * MINUTE, channel: 'lead' }],
      },
    }
    const { call, engine } = await buildServer(t, options)
    const titles = (path: string) =>
      sink.received.filter((one) => one.path === path).map(({ headers }) => headers.title)
    const ask = async (title: string, profile: string) => {
      const body = { cwd: SOME_CWD, prompt: 'x', title, profile, approvalTimeoutMs: 60 * MINUTE }
      const { json } = await call('POST', '/sessions', body)
      const runner = engine.last
      await until(() => runner.sent.length === 1)
      runner.host.requestPermission({ toolName: 'Bash', toolUseId: 't', input: {} }).catch(() => {})
      await until(() => titles('/team').includes(`Needs an answer: ${title}`))
      const [{ request }] = (await call('GET', `/inbox?sessionId=${json.id}`)).json
      return async () => {
        await call('POST', `/sessions/${json.id}/permissions/${request.id}`, { behavior: 'deny' })
        await until(() => titles('/team').includes(`Answered: ${title}`))
      }
    }
    const delivered = () => until(async () => (await storage.outbox.list()).every(({ lane }) => lane === 'reminders'))
    const early = await ask('early', 'scripted')
    await early()
    const [late, hidden] = [await ask('late', 'scripted'), await ask('hidden', 'secret')]
    await delivered()
    await clock.advance(5 * MINUTE)
    await until(async () => (await storage.outbox.list()).length === 0)
    await late()
    await hidden()
    // the next process finds one that it has not reminded of yet
    await ask('cut off', 'scripted')
    await delivered()
    await buildServer(t, options)
    await until(() => titles('/team').includes('Answered: cut off'))
    await until(async () => (await storage.outbox.list()).length === 0)
    t.same(titles('/lead'), ['Still waiting: late', 'Answered: late'])
  },
)

t.test('browsers are reminded of what they chose to hear of', async (t) => {
  const service = await PushService.start(t)
  const storage = createMemoryStorage()
  const clock = new VirtualClock()
  const { call, engine } = await buildServer(t, {
    ...{ storage, clock, webhookPolicy: { allowedHosts: [service.host] } },
    notifications: {
      channels: [{ format: 'web_push', subject: 'mailto:ops@example.com' }],
      reminders: [{ afterMs: 5 * MINUTE, channel: 'web_push' }],
    },
  })
  service.publicKey = (await call('GET', '/notifications/vapid-key')).json.publicKey
  const [all, ends, elsewhere] = [service.subscribe(), service.subscribe(), service.subscribe()]
  await call('POST', '/notifications/subscriptions', all.request)
  await call('POST', '/notifications/subscriptions', { ...ends.request, events: ['session_closed'] })
  await call('POST', '/notifications/subscriptions', { ...elsewhere.request, profiles: ['another'] })
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'x', approvalTimeoutMs: 60 * MINUTE })
  await until(() => engine.last.sent.length === 1)
  engine.last.host.requestPermission({ toolName: 'Bash', toolUseId: 't', input: {} }).catch(() => {})
  await until(() => all.received.length === 1)
  await until(async () => (await storage.outbox.list()).every(({ lane }) => lane === 'reminders'))
  await clock.advance(5 * MINUTE)
  await until(() => all.received.length === 2)
  t.match(all.received[1]?.message, { type: 'permission_requested', tag: all.received[0]?.message.tag })
  await call('DELETE', `/sessions/${json.id}`)
  await until(() => ends.received.length > 0)
  await until(async () => (await storage.outbox.list()).length === 0)
  t.same(
    ends.received.map(({ message }) => message.type),
    ['session_closed'],
  )
  t.same(elsewhere.received, [])
})

t.test('a process that dies forgets no reminder, and the next one repeats none', async (t) => {
  const outbox = createMemoryDeliveryOutbox()
  const clock = new VirtualClock()
  const told: string[] = []
  const answered = new Set<string>()
  const life = async () => {
    const reminders = new Reminders({
      ...{ clock, outbox, outlasts: true, logger: silentLogger, retryAfter: clock.after.bind(clock) },
      reminders: [1, 2, 3].map((minutes) => ({ afterMs: minutes * MINUTE, channel: 'phone' })),
      isWaiting: async (_sessionId, requestId) => !answered.has(requestId),
      tell: (message, id, channel) => told.push(`${id} ${channel} ${message.reminder}`),
    })
    for (const { id, lane, delivery } of await outbox.list())
      reminders.takeOver({ id, lane, stored: delivery as StoredDelivery })
    reminders.start()
    return reminders
  }
  const first = await life()
  for (const planned of first.plan({ ...notification({}), ts: clock.now() })) {
    planned.keep()
    planned.send()
  }
  await clock.advance(MINUTE)
  await until(() => told.length === 1)
  first.stop()
  await clock.advance(MINUTE)
  t.same(told, ['s:r:1 phone 1'], 'nothing comes of the dead')
  const next = await life()
  await clock.advance(0)
  await until(() => told.length === 2, 'what fell due meanwhile')
  t.same(told, ['s:r:1 phone 1', 's:r:2 phone 2'])
  answered.add('r')
  await clock.advance(MINUTE)
  await until(async () => (await outbox.list()).length === 0, 'what was answered is put away')
  t.equal(told.length, 2)
  next.stop()
})

t.test(
  'a reminder that was told and could not be put away is put away later, so that the next process does not repeat it',
  async (t) => {
    const memory = createMemoryDeliveryOutbox()
    let refusals = 0
    const remove = (lane: string, id: string) =>
      refusals++ < 3 ? Promise.reject(new Error('no space left')) : memory.remove(lane, id)
    const outbox = { ...memory, remove }
    const clock = new VirtualClock()
    const told: string[] = []
    const reminders = new Reminders({
      ...{ clock, outbox, outlasts: true, logger: silentLogger, retryAfter: clock.after.bind(clock) },
      reminders: [{ afterMs: MINUTE, channel: 'phone' }],
      isWaiting: async () => true,
      tell: (_message, id) => told.push(id),
    })
    reminders.start()
    for (const planned of reminders.plan({ ...notification({}), ts: clock.now() })) {
      planned.keep()
      planned.send()
    }
    await clock.advance(MINUTE)
    await until(() => refusals > 0)
    await clock.advance(MINUTE)
    await until(async () => (await memory.list()).length === 0, 'it is put away')
    t.same(told, ['s:r:1'])
    reminders.stop()
  },
)
