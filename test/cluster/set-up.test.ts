import t from 'tap'
import { OwnNode } from '../../src/cluster/own-node.js'
import { silentLogger } from '../../src/lib/logger.js'
import { VERSION } from '../../src/lib/package-root.js'
import type { ClusterNode, ClusterStorage } from '../../src/storage/cluster.js'
import { until } from '../fixtures/build.js'
import { clusterOf } from '../fixtures/cluster.js'
import { hasPostgres } from '../storage/postgres-world.js'

const node = (n: number, config: string, version = VERSION): ClusterNode => ({
  ...{ n, config, name: `node-${n}`, url: `http://127.0.0.1:${n}`, protocol: 1, version, slots: 0 },
  draining: false,
})

t.test('a node that is set up differently is told of, once', async (t) => {
  let nodes = [node(1, 'ours'), node(2, 'ours'), node(3, 'theirs')]
  let changed = () => {}
  const storage = {
    n: 1,
    nodes: () => nodes,
    on: (event: string, listener: () => void) => {
      if (event === 'nodes') changed = listener
    },
  } as unknown as ClusterStorage
  const told: unknown[] = []
  const own = new OwnNode({
    ...{ storage, digest: 'ours', slots: 0 },
    options: { url: 'http://127.0.0.1:1' },
    hops: { keep: () => {} },
    logger: { warn: ({ node }: { node: string }) => told.push(node) },
  } as unknown as ConstructorParameters<typeof OwnNode>[0])
  own.started()
  changed()
  t.same(told, ['node-3'])
  nodes = [...nodes, node(4, 'others')]
  changed()
  t.same(told, ['node-3', 'node-4'])
  nodes = [...nodes, node(5, 'of what that version compares', '0.0.1')]
  changed()
  t.same(told, ['node-3', 'node-4'], 'one of another version is not, while a cluster is upgraded node by node')
})

if (hasPostgres())
  t.test('so is one without a channel that another one has: what it takes over for that is not told', async (t) => {
    const told: string[] = []
    const warn = ({ node }: { node?: string }, message: string) => {
      if (/set up differently.*notifications\.channels/.test(message)) told.push(node!)
    }
    const channels = (name: string) => ({ channels: [{ name, format: 'slack' as const, url: 'http://127.0.0.1:9/' }] })
    const { join } = await clusterOf(t, ['a'], { notifications: channels('ops') })
    await join('b', { notifications: channels('ops'), logger: { ...silentLogger, warn } })
    await join('c', { notifications: channels('night') })
    await join('d', { notifications: {} })
    await until(() => told.length === 2, 'those that are set up differently')
    t.same(told, ['c', 'd'])
  })
