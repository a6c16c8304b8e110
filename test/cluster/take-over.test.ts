import t from 'tap'
import type { TakenKind, TakeUp } from '../../src/cluster/cluster.js'
import { OwnNode, type OwnNodeOptions } from '../../src/cluster/own-node.js'
import { goOnWithOthers, type TakeOverParts } from '../../src/gateway-take-over.js'
import { silentLogger } from '../../src/lib/logger.js'

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
      outward: { takeOver: ({ id }: { id: string }) => reminded.push(id) },
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
