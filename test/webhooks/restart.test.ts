import t from 'tap'
import { buildGateway, SOME_CWD, until } from '../fixtures/build.js'
import { settle } from '../fixtures/job-world.js'
import { buildJournaled, testStorage } from '../fixtures/journaled.js'
import { native } from '../fixtures/parked.js'
import { status, WebhookSink } from '../fixtures/webhook-sink.js'

const deploy = { name: 'deploy', description: 'Deploys.', inputSchema: { type: 'object' } }

const idsOf = ({ received }: WebhookSink) => received.map(({ headers }) => headers['webhook-id'])

t.test('deliveries of every kind survive a crash under their ids, without the secrets that sign them', async (t) => {
  const [hook, notified, dispatched] = [
    await WebhookSink.start(t),
    await WebhookSink.start(t),
    await WebhookSink.start(t),
  ]
  const sinks = [hook, notified, dispatched]
  for (const sink of sinks) sink.answer = () => {}
  const options = {
    queue: { webhookSecret: 'canary-queue' },
    notifications: { webhook: { url: notified.url, secret: 'canary-notifications' } },
    executions: { tools: [{ ...deploy, dispatch: { url: dispatched.url, secret: 'canary-dispatch' } }] },
    script: native,
  }
  const { gateway, engine, clock, storage, again } = await buildJournaled(t, options)
  const webhook = { url: hook.url, headers: { 'x-team': 'blue' } }
  const job = await gateway.queue!.submit({ session: { cwd: SOME_CWD, prompt: 'go' }, webhook })
  await until(() => engine.runners.length === 1 && engine.last.sent.length === 1)
  void engine.last.host.requestPermission({ toolName: 'Bash', toolUseId: 't', input: {} })
  await engine.last.host.deferExecution({ executionId: 'e1', toolName: 'deploy', input: { to: 'production' } })
  await until(() => sinks.every(({ received }) => received.length === 1))
  const before = sinks.map((sink) => ({ id: idsOf(sink)[0], text: sink.received[0]?.text }))
  t.notMatch(JSON.stringify(await storage.outbox.list()), /canary/)
  for (const sink of sinks) {
    sink.received.length = 0
    sink.answer = undefined
  }
  const next = await again()
  await until(async () => (await storage.outbox.list()).length === 0, 'an empty outbox')
  for (const [index, { id, text }] of before.entries())
    t.match(sinks[index]?.received[0], { text, headers: { 'webhook-id': id, 'webhook-signature': /^v1,/ } })
  t.equal(hook.received[0]?.headers['x-team'], 'blue')
  t.match(hook.types.at(-1), 'job_completed', 'and the job is told to its end')
  t.match(await next.gateway.queue?.deliveries(job.id), [{ type: 'job_completed' }, {}])
  // nothing that the first one waits for comes any more
  const closed = gateway.close()
  await clock.advance(gateway.options.shutdownTimeoutMs)
  await closed
})

t.test('a dispatch is kept in the write of its execution, also behind one that is under way', async (t) => {
  const dispatched = await WebhookSink.start(t)
  const { registry, engine, storage, journal } = await buildJournaled(t, {
    executions: { tools: [{ ...deploy, dispatch: { url: dispatched.url } }] },
    script: native,
  })
  const { id } = await registry.create({ cwd: SOME_CWD, prompt: 'go' })
  await until(() => engine.last.sent.length === 1)
  await registry.durable(id)
  let answer = () => {}
  dispatched.answer = (_received, response) => {
    answer = () => void response.writeHead(204).end()
  }
  const idsKept = async () => (await storage.outbox.list()).map((kept) => kept.id)
  const loggedOf = (type: string) =>
    journal.writes.flatMap(({ events = [] }) => events).filter(({ json }) => json.includes(type))
  journal.hold()
  engine.last.say('I am')
  await settle()
  const deferred = engine.last.host.deferExecution({ executionId: 'e1', toolName: 'deploy', input: {} })
  await settle()
  t.same([await idsKept(), dispatched.received, loggedOf('execution_dispatched')], [[], [], []])
  journal.release()
  await deferred
  t.same([await idsKept(), loggedOf('execution_dispatched').length], [['e1'], 1])
  await until(() => dispatched.received.length === 1)

  journal.broken = true
  await t.rejects(engine.last.host.deferExecution({ executionId: 'e2', toolName: 'deploy', input: {} }), {
    code: 'SG_ERR_STORE_UNAVAILABLE',
  })
  journal.broken = false
  await registry.durable(id)
  t.same(await idsKept(), ['e1'])
  t.equal(dispatched.received.length, 1, 'one that was refused is not dispatched')
  answer()
})

t.test(
  'a receiver that is down while the gateway restarts in order; a webhook that the operator removed',
  async (t) => {
    const sink = await WebhookSink.start(t)
    const storage = testStorage()
    const notifications = { webhook: { url: sink.url } }
    const warnings: object[] = []
    const logger = { info() {}, warn: (fields: object) => warnings.push(fields), error() {} }
    sink.answer = status(503)
    const first = await buildGateway(t, { storage, notifications })
    const { clock } = first
    const { id } = await first.registry.create({ cwd: SOME_CWD, prompt: 'go' })
    await until(() => first.engine.last.sent.length === 1)
    first.engine.last.complete()
    await until(() => sink.received.length === 1)
    const { seq } = sink.received[0]?.body ?? {}
    await first.gateway.close()
    t.equal(first.gateway.deliverer.counts.lost, 0)
    const down = await buildGateway(t, { storage, notifications, clock })
    await until(() => sink.received.length === 2)
    await down.gateway.close()
    sink.answer = undefined
    const up = await buildGateway(t, { storage, notifications, clock })
    await until(() => up.gateway.deliverer.counts.delivered > 0 && up.gateway.deliverer.pending === 0)
    t.same(idsOf(sink).slice(0, 3), [`${id}:${seq}`, `${id}:${seq}`, `${id}:${seq}`])
    t.same(await storage.outbox.list(), [])

    sink.answer = status(503)
    await up.registry.send(id, { type: 'user_message', text: 'again' })
    await until(() => up.engine.runners.length === 1 && up.engine.last.sent.length === 1)
    up.engine.last.complete()
    await until(() => up.gateway.deliverer.counts.failedAttempts > 0)
    await up.gateway.close()
    t.not((await storage.outbox.list()).length, 0)
    const without = await buildGateway(t, { storage, clock, logger })
    t.same(await storage.outbox.list(), [])
    t.equal(without.gateway.deliverer.pending, 0)
    t.match(warnings, [{ lane: id, type: 'turn_completed' }])
  },
)

t.test('what a job has told waits, as the job itself, while a gateway has no queue', async (t) => {
  const sink = await WebhookSink.start(t)
  const storage = testStorage()
  const queue = { webhookSecret: 'abcdef', webhookAttempts: 1_000 }
  const warnings: [fields: object, message: string][] = []
  const logger = { info() {}, warn: (...warning: [object, string]) => void warnings.push(warning), error() {} }
  sink.answer = status(503)
  const { gateway, engine, clock } = await buildGateway(t, { storage, queue })
  const { id } = await gateway.queue!.submit({ session: { cwd: SOME_CWD, prompt: 'go' }, webhook: { url: sink.url } })
  await until(() => engine.runners.length === 1 && engine.last.sent.length === 1)
  engine.last.complete()
  await until(async () => (await gateway.queue!.get(id))?.finishedAt !== undefined)
  await gateway.close()
  const left = (await storage.outbox.list()).map((kept) => kept.id)
  t.equal(left.length, 2)

  const without = await buildGateway(t, { storage, clock, logger })
  t.same(
    (await storage.outbox.list()).map((kept) => kept.id),
    left,
  )
  t.match(warnings, [[{ deliveries: 2 }, /wait for a gateway with a queue/]])
  t.equal(without.gateway.deliverer.counts.lost, 0)
  await without.gateway.close()

  sink.received.length = 0
  sink.answer = undefined
  await buildGateway(t, { storage, clock, queue })
  await until(async () => (await storage.outbox.list()).length === 0, 'an empty outbox')
  t.same(idsOf(sink), left)
  t.match(sink.received, [
    { body: { type: 'job_started' }, headers: { 'webhook-signature': /^v1,/ } },
    { body: { type: 'job_completed' } },
  ])
})
