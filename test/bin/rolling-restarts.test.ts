import t from 'tap'
import WebSocket from 'ws'
import { createClient, foldTranscript } from '../../client/index.js'
import { Balancer } from '../fixtures/balancer.js'
import { until } from '../fixtures/build.js'
import { daemonNodes } from '../fixtures/daemon-nodes.js'
import { rounds } from '../fixtures/rounds.js'
import { consume, plain } from '../fixtures/stream-consumer.js'
import { hasPostgres, postgres } from '../storage/postgres-world.js'

const RESTARTS = rounds(3, 20)
const SENDS = 8
const LONG = `@@[{"text":"${'One word after the other. '.repeat(60)}"}]@@`

if (hasPostgres()) {
  t.test(`clients that know nothing of nodes miss nothing in ${RESTARTS} rolling restarts`, async (t) => {
    const server = await postgres()
    const { nodes, work } = await daemonNodes(t, ['a', 'b', 'c'], {
      ...{ url: server.url(), schema: 'rolling', leaseMs: 10_000, config: { shutdownTimeoutMs: 500 } },
    })
    const balancers = [await Balancer.start(t, nodes), await Balancer.start(t, nodes, { upgrades: false })]
    const client = createClient({ baseUrl: balancers[0]!.url })
    const { id } = await client.sessions.create({ cwd: work, profile: 'demo' })
    // one that fails leaves nobody who comes back for ever
    const over = new AbortController()
    t.teardown(() => over.abort())
    const live = new Set<string>()
    const following = balancers.map(({ url }, i) => {
      const task = { baseUrl: url, token: '', sessionId: id, name: `c${i}`, sends: SENDS }
      return consume(task, { WebSocket }, over.signal, (transport) => live.add(transport))
    })
    for (const report of following) report.catch(() => {})
    await until(() => live.size === following.length, 'a socket and an event stream')
    for (let restart = 0; restart < RESTARTS; restart++) {
      await client.session(id).send(LONG)
      const node = nodes[restart % nodes.length]!
      node.daemon.child.kill('SIGTERM')
      t.match(await node.daemon.exited, { code: 0 })
      await node.start()
      await until(() => node.isReady(), `node ${node.name} to be ready`)
    }
    await until(async () => {
      const said = (await client.sessions.events(id).toArray()).filter(({ type }) => type === 'user_message')
      return said.length >= RESTARTS + following.length * SENDS && (await client.sessions.get(id)).status === 'idle'
    }, 'everything that was said')
    await client.session(id).close()
    const told = (await client.sessions.events(id).toArray()).filter(({ type }) => type !== 'stream_delta')
    const ids = told.flatMap((event) => (event.type === 'user_message' && event.commandId ? [event.commandId] : []))
    t.equal(new Set(ids).size, ids.length, 'no message was taken twice')
    for (const [i, report] of (await Promise.all(following)).entries()) {
      t.strictSame(report.faults, [], 'no event twice, none out of order')
      t.equal(report.gaps, 0)
      t.strictSame(report.events, told, 'every event of the log')
      t.strictSame(report.transcript, plain(foldTranscript(told)))
      t.strictSame(
        report.confirmed,
        ids.filter((said) => said.startsWith(`c${i}-`)),
      )
      t.ok(nodes.every(({ name }) => (balancers[i]!.counts.get(name) ?? 0) > 1))
    }
  })
}
