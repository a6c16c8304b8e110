import t from 'tap'
import { forwardToOwner } from '../../plugins/forwarding.js'
import { Splices } from '../../plugins/splices.js'
import { hostProblems } from '../../src/daemon/host-problems.js'
import type { EffectiveConfig } from '../../src/daemon/load-config.js'
import { redactConfig } from '../../src/daemon/redact.js'
import { createGateway } from '../../src/gateway.js'
import { resolveOptions, type WorkerServerOptions } from '../../src/options.js'
import { createMemoryStorage } from '../../src/storage/memory/storage.js'
import { createPostgresStorage } from '../../src/storage/postgres/storage.js'
import { CLUSTER_SECRET } from '../fixtures/cluster.js'
import fastify from '../fixtures/host.js'
import { NODE_TLS, STRANGERS_TLS } from '../fixtures/tls.js'

const storage = createPostgresStorage({ url: 'postgres://nobody@127.0.0.1:1/nothing' })
const cluster = {
  node: 'a',
  url: 'http://10.0.0.5:8788',
  listen: { host: '10.0.0.5', port: 8788 },
  secret: CLUSTER_SECRET,
}
const resolved = (options: object) =>
  resolveOptions({ allowUnauthenticated: true, storage, cluster, ...options } as WorkerServerOptions)

t.test('a node has defaults', async (t) => {
  t.match(resolved({}).cluster, { leaseMs: 10_000, agentState: 'node', secrets: [CLUSTER_SECRET] })
})

t.test('what cannot be a node is refused by the name of the option', async (t) => {
  const refused = (given: object, path: string) =>
    t.throws(() => resolved(given), { code: 'SG_ERR_OPTION', errors: [{ path }] }, path)
  refused({ storage: undefined }, 'cluster')
  refused({ storage: createMemoryStorage() }, 'cluster')
  refused({ cluster: { ...cluster, node: 'a b' } }, 'cluster.node')
  refused({ cluster: { ...cluster, node: 'a'.repeat(65) } }, 'cluster.node')
  refused({ cluster: { ...cluster, url: 'ftp://10.0.0.5' } }, 'cluster.url')
  refused({ cluster: { ...cluster, url: 'http://10.0.0.5:99999' } }, 'cluster.url')
  refused({ cluster: { ...cluster, secret: 'short' } }, 'cluster.secret')
  refused({ cluster: { ...cluster, leaseMs: 10 } }, 'cluster.leaseMs')
  refused({ cluster: { ...cluster, listen: { host: '', port: 1 } } }, 'cluster.listen.host')
  refused({ cluster: { ...cluster, tls: NODE_TLS } }, 'cluster.url')
  const secured = { ...cluster, url: 'https://10.0.0.5:8788' }
  refused({ cluster: { ...secured, tls: { ...NODE_TLS, key: STRANGERS_TLS.key } } }, 'cluster.tls')
  refused({ cluster: { ...secured, tls: { ...NODE_TLS, cert: 'none' } } }, 'cluster.tls')
  t.match(resolved({ cluster: { ...secured, tls: NODE_TLS } }).cluster, { tls: NODE_TLS })
})

t.test('the same in a file, with its place there', async (t) => {
  const listen = { host: '10.0.0.5', port: 8788 }
  const problems = hostProblems({ cluster, listen, storage: { sqlite: '/tmp/x.db' } } as unknown as EffectiveConfig)
  t.same(
    problems.map(({ path }) => path),
    ['cluster', 'cluster.listen'],
  )
  t.match(problems[0], { message: /storage\.postgres/ })
})

t.test('no output shows the secret', async (t) => {
  const shown = JSON.stringify(
    redactConfig({ cluster: { ...cluster, secret: [CLUSTER_SECRET, `${CLUSTER_SECRET}2`] } }),
  )
  t.notOk(shown.includes(CLUSTER_SECRET))
  t.ok(shown.includes('10.0.0.5'))
})

t.test('a route with a parameter says whose it is', async (t) => {
  const app = fastify()
  const gateway = createGateway({ allowUnauthenticated: true, profiles: [] })
  t.teardown(() => gateway.close())
  forwardToOwner(app, { host: app, gateway, splices: new Splices() })
  t.throws(() => app.get('/things/:id', async () => 'thing'), {
    message: /\/things\/:id: say in its config whose it is/,
  })
  app.get('/others/:id', { config: { owner: 'any' } }, async () => 'thing')
})
