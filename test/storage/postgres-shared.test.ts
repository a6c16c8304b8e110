import t, { type Test } from 'tap'
import type { KeptKey, StoredAnswer } from '../../src/idempotency/store.js'
import { systemClock } from '../../src/lib/clock.js'
import { silentLogger } from '../../src/lib/logger.js'
import type { Taken } from '../../src/storage/cluster.js'
import { createPostgresStorage } from '../../src/storage/postgres/storage.js'
import { WebhookDeliverer } from '../../src/webhooks/deliverer.js'
import type { LeftDelivery, StoredDelivery } from '../../src/webhooks/delivery.js'
import { EgressGuard } from '../../src/webhooks/egress.js'
import type { WebhookTarget } from '../../src/webhooks/target.js'
import { until } from '../fixtures/build.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'
import { cuttable, hasPostgres, postgres } from './postgres-world.js'
import { firstWrite, jobOf } from './sqlite-records.js'

const ANSWER: StoredAnswer = { status: 201, headers: { 'content-type': 'application/json' }, body: '{}' }
let schemas = 0

const nodeNamed = (name: string) => ({
  ...{ name, url: `http://${name}.test`, protocol: 1, version: '1', slots: 1, config: '', profiles: [] },
})

/** Two members of one schema, and what the second one is told to have taken over. */
async function members(t: Test, { url }: { url?: string } = {}) {
  const server = await postgres()
  const schema = `shared_${++schemas}`
  const joined = async (name: string) => {
    const storage = createPostgresStorage({ url: name === 'b' && url ? url : server.url(), schema })
    storage.cluster.announce(nodeNamed(name), 10_000)
    await storage.open()
    t.teardown(() => storage.close())
    return storage
  }
  const [a, b] = [await joined('a'), await joined('b')]
  await until(() => b.cluster.nodes().length === 2, 'they know each other')
  const taken = new Promise<Taken>((resolve) => b.cluster.on('taken', resolve))
  return { a, b, taken }
}

if (hasPostgres()) {
  t.test('of changes of jobs that share a statement, one that is wrong hurts no other', async (t) => {
    const { a } = await members(t)
    await Promise.all(['one', 'wrong', 'two'].map((id) => a.queue.add(jobOf(id))))
    const isNoTime = 'soon' as unknown as number
    const changed = await Promise.allSettled([
      a.queue.update('one', { nextRunAt: 10 }),
      a.queue.update('wrong', { nextRunAt: isNoTime }),
      a.queue.update('two', { nextRunAt: 20 }),
    ])
    t.same(
      changed.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    )
    const times = await Promise.all(['one', 'wrong', 'two'].map(async (id) => (await a.queue.get(id))!.info.nextRunAt))
    t.same(times, [10, undefined, 20])
  })

  t.test('what one has done and did not hear of is not done again over what others did since', async (t) => {
    const server = await postgres()
    const proxy = await cuttable(t, server)
    const schema = `shared_${++schemas}`
    const joined = async (name: string, url: string) => {
      const storage = createPostgresStorage({ url, listenUrl: server.url(), schema, namedStatements: false })
      storage.cluster.announce(nodeNamed(name), 10_000)
      await storage.open()
      t.teardown(() => storage.close())
      return storage
    }
    const [a, b] = [await joined('a', proxy.url), await joined('b', server.url())]
    /** Has `b` act after what `a` does and before `a` hears of it. */
    const unheard = async <T>(text: RegExp, work: () => T, since: () => Promise<unknown>): Promise<Awaited<T>> => {
      const cut = proxy.cut('answered', text)
      const done = work()
      await cut
      void proxy.shut()
      await since()
      proxy.open()
      return await done
    }
    const profile = (description: string) => ({ name: 'p', engine: 'cli' as const, description })
    await unheard(
      /INTO .*profiles/,
      () => a.profiles.save(profile('former')),
      async () => b.profiles.save(profile('latter')),
    )
    t.match(await a.profiles.list(), [{ name: 'p', description: 'latter' }])

    await a.idempotency.begin('key', 'f')
    await unheard(
      /DELETE FROM .*idempotency_keys/,
      () => a.idempotency.release('key'),
      () => b.idempotency.begin('key', 'f'),
    )
    t.same(await a.idempotency.begin('key', 'f'), { state: 'in_flight' })

    await b.idempotency.begin('other', 'f')
    const found = await unheard(
      /INTO .*idempotency_keys/,
      () => a.idempotency.begin('other', 'f'),
      () => b.idempotency.release('other'),
    )
    t.same(found, { state: 'new' }, 'free by now')
    t.same(await b.idempotency.begin('other', 'f'), { state: 'in_flight' }, 'and taken')

    await b.journal.write(firstWrite('one'))
    const isThere = await unheard(
      /INTO .*news/,
      () => a.journal.deposit('one', [{ key: 'k', type: 'close' }]),
      () => b.journal.write({ id: 'one', taken: ['k'] }),
    )
    t.equal(isThere, true)
    t.notOk((await b.journal.get('one'))?.news)
  })

  t.test('keys', async (t) => {
    t.test('one that is in use at a node is in use at each', async (t) => {
      const { a, b } = await members(t)
      const states = await Promise.all([a, b, a, b].map(({ idempotency }) => idempotency.begin('k', 'f')))
      t.strictSame(states.map(({ state }) => state).sort(), ['in_flight', 'in_flight', 'in_flight', 'new'])
      const [holder, other] = (await a.idempotency.begin('k', 'g')).state === 'mismatch' ? [a, b] : [b, a]
      t.match(await other.idempotency.begin('k', 'g'), { state: 'mismatch' })
      const first = states.findIndex(({ state }) => state === 'new') % 2 === 0 ? a : b
      await first.idempotency.complete('k', ANSWER)
      for (const { idempotency } of [holder, other]) {
        t.strictSame(await idempotency.begin('k', 'f'), { state: 'answered', answer: ANSWER })
        t.strictSame(await idempotency.begin('k', 'g'), { state: 'mismatch' })
      }
    })

    t.test('one that is let go of is free at each', async (t) => {
      const { a, b } = await members(t)
      await a.idempotency.begin('k', 'f')
      t.match(await b.idempotency.begin('k', 'f'), { state: 'in_flight' })
      await a.idempotency.release('k')
      t.match(await b.idempotency.begin('k', 'g'), { state: 'new' })
      t.match(await a.idempotency.begin('k', 'g'), { state: 'in_flight' })
    })

    t.test('those of a dead node are free, or the one that took over answers them', async (t) => {
      const { a, b, taken } = await members(t)
      const made: KeptKey = { key: 'made', fingerprint: 'f', made: { kind: 'job', id: '1', location: '/v1/jobs/1' } }
      for (const key of ['open', 'made', 'done']) await a.idempotency.begin(key, 'f')
      await a.idempotency.keep!(made)
      await a.idempotency.complete('done', ANSWER)
      await b.idempotency.begin('mine', 'f')
      await b.idempotency.keep!({ ...made, key: 'mine' })
      t.match(await b.idempotency.begin('made', 'f'), { state: 'in_flight' })
      await a.close()
      const { keys } = await taken
      t.strictSame(keys, ['made'])
      t.match(await b.idempotency.begin('open', 'g'), { state: 'new' })
      t.match(await b.idempotency.begin('done', 'f'), { state: 'answered' })
      // not what is under way here
      t.strictSame(await b.idempotency.left!(keys), [made])
      t.match(await b.idempotency.begin('made', 'f'), { state: 'in_flight' })
      await b.idempotency.complete('made', ANSWER)
      t.match(await b.idempotency.begin('made', 'f'), { state: 'answered' })
    })
  })

  t.test('deliveries', async (t) => {
    const sink = await WebhookSink.start(t)
    const target: WebhookTarget = {
      ...{
        key: 'k',
        url: sink.url,
        headers: undefined,
        guard: new EgressGuard({ allowPrivateNetworks: true }),
        signingKeys: [],
      },
      ...{ attempts: 3, retryDelayMs: 1 },
    }
    const stored = (n: number): StoredDelivery => ({
      ...{ type: 'job_event', payload: { n }, importance: 'normal' },
      origin: { kind: 'notification' },
    })
    const delivererOn = (t: Test, { outbox }: Awaited<ReturnType<typeof members>>['a']) => {
      const deliverer = new WebhookDeliverer({ clock: systemClock, logger: silentLogger, outbox, outlasts: true })
      t.teardown(() => deliverer.close())
      return deliverer
    }

    t.test('those of a dead node go on before what the next one tells in the same lane, under their ids', async (t) => {
      const { a, b, taken } = await members(t)
      for (const n of [1, 2]) await a.outbox.add({ id: `a${n}`, lane: 'l', delivery: stored(n) })
      const deliverer = delivererOn(t, b)
      await deliverer.restore(async () => target)
      await b.outbox.add({ id: 'other', lane: 'm', delivery: stored(0) })
      const later = { ...stored(9), dueAt: 1 }
      await a.outbox.add({ id: 'later', lane: 'reminders', delivery: later })
      const next = deliverer.prepare('l', { ...stored(3), id: 'b3', target })
      next.send()
      t.equal(await b.outbox.isHeldUp!('l', []), true)
      t.equal(await b.outbox.isHeldUp!('m', ['other']), false)
      t.strictSame(
        (await b.outbox.list()).map(({ id }) => id),
        ['other', 'b3'],
      )
      await a.close()
      const { lanes } = await taken
      t.strictSame([...lanes].sort(), ['l', 'reminders'])
      const due: LeftDelivery[] = []
      await deliverer.takeUp(lanes, (left) => due.push(left))
      t.match(due, [{ id: 'later', stored: later }])
      await until(() => sink.received.length === 3, 'all are delivered')
      t.strictSame(
        sink.received.map(({ headers }) => headers['webhook-id']),
        ['a1', 'a2', 'b3'],
      )
      await until(async () => (await b.outbox.list()).length === 2, 'they are kept no more')
    })

    t.test('nothing is told before who has taken something over knows of what', async (t) => {
      const { b } = await members(t)
      const server = await postgres()
      const takeovers = `shared_${schemas}.takeovers`
      t.equal(await b.outbox.isHeldUp!('l', []), false)
      await server.query(`INSERT INTO ${takeovers} (taker, victim, taken) VALUES ($1, 999, '{}')`, [b.cluster.n])
      t.equal(await b.outbox.isHeldUp!('l', []), true)
      await server.query(`DELETE FROM ${takeovers}`)
      t.equal(await b.outbox.isHeldUp!('l', []), false)
    })

    t.test('what is told before they are taken up waits for those of a dead node', async (t) => {
      const { a, b, taken } = await members(t)
      await a.outbox.add({ id: 'a1', lane: 'l', delivery: stored(1) })
      const deliverer = delivererOn(t, b)
      await deliverer.restore(async () => target)
      b.cluster.on('taken', ({ lanes }) => deliverer.expect(lanes))
      await a.close()
      const { lanes } = await taken
      const before = sink.received.length
      const told = [...lanes, 'another'].map((lane) =>
        deliverer.prepare(lane, { ...stored(2), id: `b ${lane}`, target }),
      )
      for (const one of told) one.send()
      await until(() => sink.received.length > before, 'what nothing comes before')
      await deliverer.takeUp(lanes)
      await until(() => sink.received.length === before + 3, 'all are delivered')
      t.strictSame(
        sink.received.slice(before).map(({ headers }) => headers['webhook-id']),
        ['b another', 'a1', 'b l'],
      )
    })

    t.test('those of very many lanes are read without naming all lanes again and again', async (t) => {
      const proxy = await cuttable(t, await postgres())
      const { a, b, taken } = await members(t, { url: proxy.url })
      const lanes = Array.from(
        { length: 1_000 },
        (_, n) => `channel phone ${n % 2 ? 'a' : 'b'} ${String(n).padStart(40, '0')}`,
      )
      const deliveries = lanes.map((lane, n) => ({ id: `d${n}`, lane, delivery: stored(n) }))
      await Promise.all(deliveries.map((delivery) => a.outbox.add(delivery)))
      await a.close()
      t.equal((await taken).lanes.length, lanes.length)
      await b.outbox.add({ id: 'own', lane: 'of this node', delivery: stored(0) })
      const before = proxy.sent
      t.strictSame(await b.outbox.list((await taken).lanes), deliveries, 'in the order in which they were added')
      t.ok(proxy.sent - before < 3 * lanes.join('').length, `${proxy.sent - before} bytes are asked with`)
    })

    t.test('what a receiver has told a node that is dead, the one that took over does not ask again', async (t) => {
      const { a, b, taken } = await members(t)
      const deliverer = delivererOn(t, b)
      await deliverer.restore(async () => ({ ...target, key: 'refused' }))
      await a.outbox.rememberGone!('refused')
      await a.outbox.add({ id: 'left', lane: 'l', delivery: stored(1) })
      await a.close()
      const { lanes } = await taken
      const received = sink.received.length
      await deliverer.takeUp(lanes)
      await until(async () => (await b.outbox.list()).length === 0, 'it is kept no more')
      t.equal(sink.received.length, received)
    })
  })
}
