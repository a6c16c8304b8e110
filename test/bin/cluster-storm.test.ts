import t from 'tap'
import WebSocket from 'ws'
import { until } from '../fixtures/build.js'
import { CrashLoad } from '../fixtures/crash-load.js'
import { CrashOracle } from '../fixtures/crash-oracle.js'
import { type DaemonNode, daemonNodes, everywhere } from '../fixtures/daemon-nodes.js'
import { rounds } from '../fixtures/rounds.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'
import { hasPostgres, postgres } from '../storage/postgres-world.js'

const LEASE_MS = 3_000
const CLIENTS = 3
const SHORTEST_MS = 300
const LONGEST_MS = 1_500
const ROUNDS = Number(process.env.STORM_ROUNDS ?? rounds(1, 12))

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

/** What is done to a node; it is ready again when this resolves, or is going to be. */
const BLOWS: Record<string, (node: DaemonNode) => Promise<void>> = {
  async killed(node) {
    node.daemon.child.kill('SIGKILL')
    await node.daemon.exited
    await node.start()
  },
  async drained(node) {
    node.daemon.child.kill('SIGTERM')
    await node.daemon.exited
    await node.start()
  },
  async 'stopped for less than its lease'(node) {
    node.daemon.child.kill('SIGSTOP')
    await sleep(LEASE_MS / 4)
    node.daemon.child.kill('SIGCONT')
  },
  async 'stopped for longer than its lease'(node) {
    node.daemon.child.kill('SIGSTOP')
    await sleep(LEASE_MS * 2)
    node.daemon.child.kill('SIGCONT')
  },
}

if (hasPostgres()) {
  t.test(
    `three nodes that are killed, drained and stopped in ${ROUNDS} rounds lose nothing they confirmed`,
    async (t) => {
      const server = await postgres()
      const sink = await WebhookSink.start(t)
      const { nodes, work } = await daemonNodes(t, ['a', 'b', 'c'], {
        ...{ url: server.url(), schema: 'storm', leaseMs: LEASE_MS },
        config: {
          queue: { maxConcurrency: 10, webhookAttempts: 2, webhookRetryDelayMs: 1 },
          webhookPolicy: { allowPrivateNetworks: true },
          executions: { tools: [{ name: 'deploy', description: 'Deploys.', inputSchema: { type: 'object' } }] },
        },
      })
      const ask = everywhere(nodes, (fault) => oracle.faults.push(fault))
      let isOver = false
      const oracle: CrashOracle = new CrashOracle((...asked) =>
        isOver ? Promise.reject(new TypeError('fetch failed: the storm is over')) : ask(...asked),
      )
      const load = new CrashLoad(oracle, { cwd: work, webhook: sink.url }, Math.random)
      await load.warmUp()

      const clients = Array.from({ length: CLIENTS }, async () => {
        // one run ends when somebody did not answer
        while (!isOver) await load.run()
      })
      const follower = follow(nodes, oracle, () => isOver)
      for (let round = 1; round <= ROUNDS && oracle.faults.length === 0; round++)
        for (const [blow, strike] of Object.entries(BLOWS)) {
          const node = nodes[Math.floor(Math.random() * nodes.length)]!
          await sleep(SHORTEST_MS + Math.random() * (LONGEST_MS - SHORTEST_MS))
          await strike(node)
          await until(() => node.isReady(), `node ${node.name} to be ready after it was ${blow}`)
          t.same(oracle.faults, [], `round ${round}: ${node.name} was ${blow}`)
        }
      isOver = true
      await Promise.all([...clients, follower])
      oracle.call = ask
      await oracle.askAgain()
      await settled(oracle)
      await oracle.checkSettled()
      await oracle.checkMadeOnce()
      t.same(oracle.faults, [], 'every job has ended, every result has arrived, and nothing was made twice')
      const left = async () =>
        (
          await server.query(`SELECT 'session' AS what, owner FROM storm.sessions WHERE ended IS NULL AND owner IS NOT NULL
          UNION ALL SELECT 'job', owner FROM storm.jobs WHERE owner IS NOT NULL
          UNION ALL SELECT 'delivery', owner FROM storm.deliveries WHERE owner IS NOT NULL
          UNION ALL SELECT 'key', owner FROM storm.idempotency_keys WHERE answer IS NULL AND owner IS NOT NULL`)
        ).filter(({ owner }) => !alive.has(String(owner)))
      let alive = new Set<string>()
      await until(async () => {
        alive = new Set((await server.query('SELECT n FROM storm.members')).map(({ n }) => String(n)))
        return alive.size === nodes.length && (await left()).length === 0
      }, 'that nothing is owned by the dead')
      t.comment(`${oracle.sessions.size} sessions, ${oracle.jobs.size} jobs`)
      for (const { daemon } of nodes) daemon.child.kill('SIGTERM')
      for (const { daemon } of nodes) t.match(await daemon.exited, { code: 0 })
    },
  )
}

/** Follows sessions by socket, one after the other, each at some node from where another one has left off. */
async function follow(nodes: readonly DaemonNode[], oracle: CrashOracle, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const all = [...oracle.sessions]
    const [id, known] = all[Math.floor(Math.random() * all.length)]!
    const node = nodes[Math.floor(Math.random() * nodes.length)]!
    const afterSeq = Math.max(0, ...known.events.keys())
    const epoch = known.epoch === undefined ? '' : `&epoch=${known.epoch}`
    const socket = new WebSocket(`${node.url.replace('http', 'ws')}/sessions/${id}/ws?afterSeq=${afterSeq}${epoch}`)
    let last = afterSeq
    socket.on('message', (data) => {
      const frame = JSON.parse(String(data))
      if (frame.type === 'attached') {
        if (known.epoch !== undefined && frame.epoch !== known.epoch) oracle.faults.push(`${id} has another epoch`)
        if (frame.truncated) oracle.faults.push(`${id} is cut off for a socket after ${afterSeq}`)
      }
      if (frame.type !== 'event' || frame.event.type === 'stream_delta') return
      const { seq } = frame.event
      if (seq <= last) oracle.faults.push(`a socket of ${id} was told ${seq} after ${last}`)
      last = seq
      const text = JSON.stringify(frame.event)
      if ((known.events.get(seq) ?? text) !== text)
        oracle.faults.push(`${id}: ${seq} is ${text} and was ${known.events.get(seq)}`)
      known.events.set(seq, text)
    })
    await new Promise<void>((resolve) => {
      socket.on('error', () => {}).on('close', () => resolve())
      setTimeout(() => socket.terminate(), 700)
    })
  }
}

/** Answers everything that waits until every job has ended and nothing is parked. */
async function settled(oracle: CrashOracle): Promise<void> {
  interface Parked {
    id: string
    parked: { executions: { executionId: string }[]; permissions?: { id: string }[] }
  }
  const parked = async () => (await oracle.call('GET', '/sessions?status=parked&limit=200')).json as Parked[]
  const ask = (path: string, body: object) => oracle.call('POST', path, body).catch(() => undefined)
  await until(async () => {
    await sleep(500)
    for (const { id, parked: waits } of await parked()) {
      const result = { status: 'failed', reason: 'test', error: 'The test is over.' }
      for (const { executionId } of waits.executions) await ask(`/executions/${executionId}/result`, result)
      for (const request of waits.permissions ?? [])
        await ask(`/sessions/${id}/permissions/${request.id}`, { behavior: 'deny' })
    }
    const openJobs = await oracle.checkOpenJobs()
    return oracle.faults.length > 0 || (openJobs === 0 && (await parked()).length === 0)
  }, 'the wake of every parked session and the end of every job')
}
