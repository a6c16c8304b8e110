import t from 'tap'
import { Exchange } from '../../src/cluster/exchange.js'
import { keepInStep } from '../../src/cluster/in-step.js'
import { silentLogger } from '../../src/lib/logger.js'
import { Inbox } from '../../src/notifications/inbox.js'
import { UNLIMITED } from '../../src/principal.js'
import type { ClusterNode } from '../../src/storage/cluster.js'
import { ScriptedCluster } from '../fixtures/scripted-cluster.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

t.test(
  'what a node says late that is gone counts for nothing, and one that is not known yet says it again',
  async (t) => {
    const clock = new VirtualClock()
    let others: ClusterNode[] = []
    const peers = { others: () => others, ask: async () => Response.json({}) }
    const shared = { clock, logger: silentLogger }
    const exchange = new Exchange({ ...shared, peers, n: () => 1, waiting: () => ({}), basePath: '/v1' })
    const inbox = new Inbox({ logger: silentLogger, find: () => undefined })
    const parts = { feed: {} as never, signIns: undefined, subscriptions: undefined }
    t.teardown(keepInStep({ ...shared, ...parts, exchange, storage: new ScriptedCluster(), peers, inbox }))

    const told = { from: 2, changed: ['inbox'], waiting: { p: [1, 2] } } as const
    await t.rejects(exchange.told(told), { code: 'SG_ERR_WRONG_NODE' }, 'so that it is told again')
    t.same(inbox.count(UNLIMITED), { permissions: 0, questions: 0 })
    others = [{ n: 2, name: 'two' } as ClusterNode]
    await exchange.told(told)
    t.same(inbox.count(UNLIMITED), { permissions: 1, questions: 2 })
  },
)

t.test('a node that has joined tries those that were there before, once', async (t) => {
  const clock = new VirtualClock()
  const asked: string[] = []
  const peers = {
    others: () => [{ n: 2, name: 'two' } as ClusterNode],
    async ask({ name }: ClusterNode) {
      asked.push(name)
      return Response.json({})
    },
  }
  const shared = { clock, logger: silentLogger }
  const exchange = new Exchange({ ...shared, peers, n: () => 1, waiting: () => ({}), basePath: '/v1' })
  const inbox = new Inbox({ logger: silentLogger, find: () => undefined })
  const parts = { feed: {} as never, signIns: undefined, subscriptions: undefined }
  t.teardown(keepInStep({ ...shared, ...parts, exchange, storage: new ScriptedCluster(), peers, inbox }))
  for (let times = 0; times < 3; times++) await clock.advance(5_000)
  t.same(asked, ['two'])
})
