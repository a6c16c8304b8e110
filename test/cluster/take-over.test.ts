import t from 'tap'
import type { TakenKind, TakeUp } from '../../src/cluster/cluster.js'
import { OwnNode, type OwnNodeOptions } from '../../src/cluster/own-node.js'
import { goOnWithOthers, type TakeOverParts } from '../../src/gateway/take-over.js'
import { silentLogger } from '../../src/lib/logger.js'
import { Reminders } from '../../src/notifications/reminders.js'
import type { Taken } from '../../src/storage/cluster.js'
import { createMemoryDeliveryOutbox } from '../../src/storage/memory/delivery-outbox.js'
import type { LeftDelivery, StoredDelivery } from '../../src/webhooks/delivery.js'
import { notification } from '../fixtures/told.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

t.test('deliveries and keys of another node are gone on with once the storage gives them again', async (t) => {
  const takeUps = new Map<TakenKind, TakeUp>()
  const cluster = { onResidence() {}, onTaken: (kind: TakenKind, takeUp: TakeUp) => takeUps.set(kind, takeUp) }
  const asked: string[] = []
  const failsOnce = (what: string) => {
    asked.push(what)
    if (asked.filter((one) => one === what).length === 1) throw new Error('the database is away')
  }
  const reminded: string[] = []
  goOnWithOthers(
    cluster as never,
    {
      queue: undefined,
      deliverer: {
        async takeUp(_lanes: readonly string[], takeOver: (left: { id: string }) => void) {
          takeOver({ id: 'later' })
          failsOnce('lanes')
        },
      },
      outward: { takeOver: ({ id }: { id: string }) => reminded.push(id), hasReminder: () => false },
      idempotency: {
        async left() {
          failsOnce('keys')
          return []
        },
      },
      findMade: () => undefined,
      logger: silentLogger,
      retryAfter: (_delayMs: number, run: () => void) => {
        setImmediate(run)
        return { cancel() {} }
      },
    } as unknown as TakeOverParts,
  )
  const taken = { sessionIds: [], jobIds: [], lanes: ['lane'], keys: ['key'] }
  for (const kind of ['lanes', 'reminders', 'keys'] as const) await takeUps.get(kind)!(taken)
  t.same(asked, ['lanes', 'lanes', 'keys', 'keys'])
  t.same(reminded, ['later'], 'what is due later is told of once')
})

t.test('a reminder of its own that a node tells while it takes over is told once', async (t) => {
  const takeUps = new Map<TakenKind, TakeUp>()
  const outbox = createMemoryDeliveryOutbox()
  const clock = new VirtualClock()
  const told: string[] = []
  const reminders = new Reminders({
    ...{ clock, outbox, outlasts: true, logger: silentLogger, retryAfter: clock.after.bind(clock) },
    reminders: [{ afterMs: 1_000, channel: 'phone' }],
    isWaiting: async () => true,
    tell: (_message, id) => told.push(id),
  })
  reminders.start()
  t.teardown(() => reminders.stop())
  goOnWithOthers(
    { onResidence() {}, onTaken: (kind: TakenKind, takeUp: TakeUp) => takeUps.set(kind, takeUp) } as never,
    {
      deliverer: {
        async takeUp(_lanes: readonly string[], takeOver: (left: LeftDelivery) => void) {
          for (const { id, lane, delivery } of await outbox.list())
            takeOver({ id, lane, stored: delivery as StoredDelivery })
        },
      },
      outward: {
        takeOver: (left: LeftDelivery) => reminders.takeOver(left),
        hasReminder: ({ id }: LeftDelivery) => reminders.has(id),
      },
      logger: silentLogger,
    } as unknown as TakeOverParts,
  )
  for (const planned of reminders.plan({ ...notification({}), ts: clock.now() })) {
    planned.keep()
    planned.send()
  }
  const [own] = await outbox.list()
  await outbox.add({ ...own!, id: 'of the other', delivery: own!.delivery })
  const taken = { sessionIds: [], jobIds: [], lanes: ['reminders'], keys: [] }
  await takeUps.get('lanes')!(taken)
  await clock.advance(1_000)
  t.same(told, [own!.id])
  await takeUps.get('reminders')!(taken)
  await clock.advance(0)
  t.same(told, [own!.id, 'of the other'])
})

t.test('nobody is taken over from before what was left is read: a job would be without its session', async (t) => {
  const heard = new Set<string>()
  const node = new OwnNode({
    options: { node: 'a', url: 'http://127.0.0.1:1' },
    storage: { n: 1, on: (event: string) => heard.add(event), nodes: () => [] },
  } as unknown as OwnNodeOptions)
  t.notOk(heard.has('taken'), 'a storage takes over for whoever listens')
  node.started()
  t.ok(heard.has('taken'))
})

t.test('lanes are expected as soon as they are known to be taken over, while others are still taken up', async (t) => {
  const heard = new Map<string, (taken: Taken) => void>()
  const node = new OwnNode({
    options: { node: 'a', url: 'http://127.0.0.1:1' },
    storage: { n: 1, on: (event: string, listener: never) => heard.set(event, listener), nodes: () => [] },
  } as unknown as OwnNodeOptions)
  const expected: string[] = []
  const takenUp: string[] = []
  const deliverer = {
    expect: (lanes: readonly string[]) => expected.push(...lanes),
    takeUp: (lanes: readonly string[]) => new Promise<void>(() => takenUp.push(...lanes)),
  }
  goOnWithOthers(node, { deliverer, logger: silentLogger } as unknown as TakeOverParts)
  node.started()
  for (const lane of ['first', 'next']) heard.get('taken')!({ sessionIds: [], jobIds: [], lanes: [lane], keys: [] })
  t.same(expected, ['first', 'next'])
  await new Promise(setImmediate)
  t.same(takenUp, ['first'])
})
