import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import WebSocket from 'ws'
import { BlackHole } from '../fixtures/black-hole.js'
import { BLOWS } from '../fixtures/blows.js'
import { until } from '../fixtures/build.js'
import { CrashLoad } from '../fixtures/crash-load.js'
import { CrashOracle } from '../fixtures/crash-oracle.js'
import { type DaemonNode, daemonNodes, everywhere } from '../fixtures/daemon-nodes.js'
import { DEMO } from '../fixtures/daemon-process.js'
import { MutatedValues } from '../fixtures/mutated-values.js'
import { processesOf } from '../fixtures/processes.js'
import { rounds } from '../fixtures/rounds.js'
import { RunWitness } from '../fixtures/run-witness.js'
import { checkAlike, checkDeliveries, checkLogs, disowned, settled, TermWatch } from '../fixtures/storm-end.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'
import { hasPostgres, postgres } from '../storage/postgres-world.js'

const LEASE_MS = 3_000
const CLIENTS = 3
const SHORTEST_MS = 300
const LONGEST_MS = 1_500
const SLOWEST_ANSWER_MS = 2_500
const AGENT = fileURLToPath(new URL('../fixtures/scripted-acp-agent.mjs', import.meta.url))
/** A round is one blow, about ten seconds; STORM_ROUNDS=200 is the whole storm. */
const ROUNDS = Number(process.env.STORM_ROUNDS ?? rounds(4, 48))
const SEED = Number(process.env.STORM_SEED ?? Math.floor(Math.random() * 2 ** 32))

/** The command line of another revision (scripts/storm-beside.mjs): two nodes begin with it, and each start may bring any node to the other one. */
const BESIDE = process.env.STORM_BESIDE

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

if (hasPostgres()) {
  const chance = new MutatedValues(SEED)
  const agentState = chance.chance(0.5) ? 'shared' : 'node'
  t.test(
    `three nodes lose nothing they confirmed in a storm of ${ROUNDS} rounds, agentState ${agentState}, STORM_SEED=${SEED}`,
    async (t) => {
      const server = await postgres()
      const sink = await WebhookSink.start(t)
      const patience = new MutatedValues(SEED + 3)
      // one that takes its time: what other nodes tell of a job meanwhile waits for it
      sink.answer = (_received, response) => {
        const answer = () => void response.writeHead(204).end()
        if (patience.chance(0.4)) setTimeout(answer, patience.random() * SLOWEST_ANSWER_MS)
        else answer()
      }
      const names = ['a', 'b', 'c']
      const holes = new Map<string, BlackHole>()
      for (const name of names) holes.set(name, await BlackHole.start(t, server))
      const runs = new RunWitness(join(t.testdir({}), 'witness'))
      const started = new Set<string>()
      const versions = new MutatedValues(SEED + 2)
      /** First two of that revision and one of this one, then any of both. */
      const revision = (name: string) => {
        const isFirst = !started.has(name)
        started.add(name)
        return (isFirst ? name !== 'c' : versions.chance(0.5)) ? BESIDE : undefined
      }
      const { nodes, work } = await daemonNodes(t, names, {
        ...{ url: (name) => holes.get(name)!.url, schema: 'storm', leaseMs: LEASE_MS, agentState, revision },
        config: {
          agents: [{ name: 'scripted', command: process.execPath, args: [AGENT], modes: { default: 'ask' } }],
          profiles: [DEMO, { name: 'watched', engine: 'cli', agent: 'scripted' }],
          queue: { maxConcurrency: 10, webhookAttempts: 5, webhookRetryDelayMs: 1 },
          webhookPolicy: { allowPrivateNetworks: true },
          executions: { tools: [{ name: 'deploy', description: 'Deploys.', inputSchema: { type: 'object' } }] },
        },
      })
      const gateways = new Set(nodes.map(({ daemon }) => daemon.child.pid!))
      const ask = everywhere(nodes, (fault) => oracle.faults.push(fault))
      let isOver = false
      const terms = new TermWatch()
      const oracle: CrashOracle = new CrashOracle((...asked) =>
        isOver ? Promise.reject(new TypeError('fetch failed: the storm is over')) : ask(...asked),
      )
      const witness = { runs, profile: 'watched' }
      const load = new CrashLoad(oracle, { cwd: work, webhook: sink.url, witness }, () => chance.random())
      await load.warmUp()

      const clients = Array.from({ length: CLIENTS }, async () => {
        // one run ends when somebody did not answer
        while (!isOver) await load.run()
      })
      const follower = follow(nodes, oracle, () => isOver)
      const storm = { nodes, server, holes, leaseMs: LEASE_MS, onFault: (fault: string) => oracle.faults.push(fault) }
      // of its own: how often the clients ask depends on the machine
      const weather = new MutatedValues(SEED + 1)
      for (let round = 1; round <= ROUNDS && oracle.faults.length === 0; round++) {
        const [blow, strike] = weather.pick(Object.entries(BLOWS))
        const node = weather.pick(nodes)
        await sleep(SHORTEST_MS + weather.random() * (LONGEST_MS - SHORTEST_MS))
        await strike(storm, node)
        for (const each of nodes)
          await until(() => each.isReady(), `${each.name} to be ready after ${node.name} was ${blow}`)
        for (const { daemon } of nodes) gateways.add(daemon.child.pid!)
        oracle.faults.push(...runs.faults())
        await terms.look(server, 'storm', oracle)
        t.same(oracle.faults, [], `round ${round}: ${node.name} was ${blow}`)
      }
      isOver = true
      await Promise.all([...clients, follower])
      oracle.call = ask
      await oracle.askAgain()
      await settled(oracle)
      await oracle.checkSettled()
      await oracle.checkMadeOnce()
      await checkAlike(nodes, oracle)
      await checkLogs(nodes, oracle)
      oracle.faults.push(...runs.faults())
      t.same(oracle.faults, [], 'every job has ended, every result has arrived, and nothing was made twice')
      await disowned(server, 'storm', nodes.length)
      await until(
        async () => Number((await server.query('SELECT count(*) FROM storm.deliveries'))[0]!.count) === 0,
        'every delivery',
      )
      checkDeliveries(sink.received, oracle)
      t.same(oracle.faults, [], 'everybody was told')
      t.comment(`${oracle.sessions.size} sessions, ${oracle.jobs.size} jobs, ${runs.lines().length} lines of agents`)
      for (const { daemon } of nodes) daemon.child.kill('SIGTERM')
      for (const { daemon } of nodes) t.match(await daemon.exited, { code: 0 })
      await until(
        () => [...gateways].every((pid) => processesOf(undefined, pid).length === 0),
        'the end of every agent',
      )
      t.same(await server.query(`SELECT * FROM pg_locks WHERE locktype = 'advisory'`), [], 'no lock is left')
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
