import t, { type Test } from 'tap'
import { silentLogger } from '../../src/lib/logger.js'
import { createPostgresStorage } from '../../src/storage/postgres/storage.js'
import { WebhookDeliverer } from '../../src/webhooks/deliverer.js'
import { EgressGuard } from '../../src/webhooks/egress.js'
import type { DeliveryOutbox } from '../../src/webhooks/outbox.js'
import { until } from '../fixtures/build.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'
import { hasPostgres, postgres } from '../storage/postgres-world.js'

const LOOK_AGAIN_MS = 250
let schemas = 0

/** Two nodes of one schema, each with a deliverer, and their receiver. */
async function nodesWith(t: Test) {
  const server = await postgres()
  const schema = `order_${++schemas}`
  const sink = await WebhookSink.start(t)
  const guard = new EgressGuard({ allowPrivateNetworks: true })
  t.teardown(() => guard.close())
  const nodeNamed = async (name: string) => {
    const storage = createPostgresStorage({ url: server.url(), schema })
    const node = { url: `http://${name}.test`, protocol: 1, version: '1', slots: 1, config: '', profiles: [] }
    storage.cluster.announce({ ...node, name }, 60_000)
    await storage.open()
    t.teardown(() => storage.close())
    const clock = new VirtualClock()
    let looks = 0
    const outbox: DeliveryOutbox = {
      ...storage.outbox,
      async isHeldUp(...asked) {
        const isHeldUp = await storage.outbox.isHeldUp!(...asked)
        looks++
        return isHeldUp
      },
      /** Replaced by tests. */
      remove: (lane, id) => storage.outbox.remove(lane, id),
    }
    const deliverer = new WebhookDeliverer({ clock, logger: silentLogger, outbox, outlasts: true })
    t.teardown(() => deliverer.close())
    const target = { key: 'k', url: sink.url, headers: undefined, signingKeys: [], attempts: 3, retryDelayMs: 1, guard }
    await deliverer.restore(async () => target)
    return {
      ...{ outbox, deliverer },
      get looks() {
        return looks
      },
      plan: (id: string) =>
        deliverer.prepare('job', {
          ...{ id, type: 'job_started', payload: {}, target, importance: 'normal' },
          origin: { kind: 'job', url: sink.url },
        }),
      kept: async () => (await storage.outbox.list()).map(({ id }) => id),
      /** Resolves when it has looked once more whether it may go on. */
      async looked() {
        const before = looks
        await this.until(async () => looks > before, 'a look')
      },
      /** While its time goes on. */
      until: (isSo: () => Promise<boolean>, what: string) =>
        until(async () => {
          await clock.advance(LOOK_AGAIN_MS)
          return isSo()
        }, what),
      over() {
        return this.until(async () => deliverer.pending === 0, 'the end of all that waits')
      },
    }
  }
  const [a, b] = [await nodeNamed('a'), await nodeNamed('b')]
  const received = () => sink.received.map(({ headers }) => headers['webhook-id'])
  /** Has the receiver keep the next one waiting. @returns answers it */
  const held = () => {
    let answer = () => {}
    sink.answer = (_received, response) => {
      sink.answer = undefined
      answer = () => void response.writeHead(204).end()
    }
    return () => answer()
  }
  return { a, b, held, received }
}

if (hasPostgres()) {
  t.test('what is told while the lane is at work comes after what another node has kept by then', async (t) => {
    const { a, b, held, received } = await nodesWith(t)
    const answer = held()
    a.plan('a1').send()
    await until(() => received().length === 1, 'the first')
    b.plan('b1').send()
    await b.looked()
    a.plan('a2').send()
    await until(async () => (await a.kept()).length === 2, 'the third is kept')
    answer()
    await until(async () => !(await a.kept()).includes('a1'), 'the first is done')
    await b.over()
    await a.over()
    t.strictSame(received(), ['a1', 'b1', 'a2'])
  })

  t.test('one that was made and is still kept lets what comes after it overtake nothing', async (t) => {
    const { a, b, received } = await nodesWith(t)
    const { remove } = a.outbox
    let isAway = true
    a.outbox.remove = async (lane, id) => {
      if (isAway) throw new Error('the database is away')
      return remove(lane, id)
    }
    a.plan('a1').send()
    await until(() => a.deliverer.pending === 0, 'the first')
    b.plan('b1').send()
    await b.looked()
    a.plan('a2').send()
    await until(async () => (await a.kept()).length === 2, 'the third is kept')
    isAway = false
    await a.until(async () => received().length === 2 || a.looks > 2, 'the third is made or held up')
    await a.until(async () => !(await a.kept()).includes('a1'), 'the first is kept no more')
    await b.over()
    await a.over()
    t.strictSame(received(), ['a1', 'b1', 'a2'])
  })

  t.test('one that waits and comes to nothing is not made after what follows it at another node', async (t) => {
    const { a, b, held, received } = await nodesWith(t)
    const answer = held()
    a.plan('a1').send()
    await until(() => received().length === 1, 'the first')
    const nothing = b.plan('b1')
    nothing.send()
    await b.looked()
    nothing.withdraw()
    await until(async () => (await b.kept()).length === 0, 'it is kept no more')
    a.plan('a2').send()
    answer()
    await a.over()
    await b.over()
    t.strictSame(received(), ['a1', 'a2'])
  })

  t.test(
    'one that comes to nothing while it is made holds up what follows it at another node until then',
    async (t) => {
      const { a, b, held, received } = await nodesWith(t)
      const answer = held()
      const nothing = b.plan('b1')
      nothing.send()
      await until(() => received().length === 1, 'the first')
      nothing.withdraw()
      a.plan('a1').send()
      await until(async () => (await a.kept()).length === 1, 'what follows it is kept')
      await a.until(async () => received().length === 2 || a.looks > 1, 'it is made or held up')
      t.strictSame(received(), ['b1'])
      answer()
      await b.over()
      await a.over()
      t.strictSame(received(), ['b1', 'a1'])
    },
  )
}
