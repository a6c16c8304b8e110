import t, { type Test } from 'tap'
import type { QueueFrame } from '../../schemas/jobs.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { clusterOf, type TestNode } from '../fixtures/cluster.js'
import type { ScriptedRunner } from '../fixtures/scripted-engine.js'
import { hasPostgres } from '../storage/postgres-world.js'

const JOB = { session: { cwd: SOME_CWD, prompt: 'do it' } }

/** Follows the queue at a node until the end of the test. */
async function follow(t: Test, node: TestNode): Promise<QueueFrame[]> {
  const frames: QueueFrame[] = []
  const over = new AbortController()
  t.teardown(() => over.abort())
  const { body } = await fetch(`${node.api}/queue/events`, { signal: over.signal })
  const read = async () => {
    let rest = ''
    for await (const text of body!.pipeThrough(new TextDecoderStream())) {
      const lines = `${rest}${text}`.split('\n')
      rest = lines.pop()!
      for (const line of lines) if (line.startsWith('data:')) frames.push(JSON.parse(line.slice(5)))
    }
  }
  read().catch(() => {})
  await until(() => frames.length > 0, 'attached')
  return frames
}

const told = (frames: readonly QueueFrame[], id: string) =>
  frames.flatMap((frame) =>
    frame.type === 'job_event' && frame.event.job.id === id && frame.event.type !== 'job_progress'
      ? frame.event.type
      : [],
  )

const submitted = async (node: TestNode, headers = {}): Promise<string> =>
  (await node.call('POST', '/jobs', JOB, headers)).json.id

/** The node at which a job runs. */
async function runnerOf(nodes: readonly TestNode[], id: string): Promise<TestNode> {
  let owner: string | undefined
  await until(async () => {
    owner = (await nodes[0]!.storage.cluster!.placeOfJob(id))?.owner?.name
    return owner !== undefined
  }, 'it runs')
  return nodes.find(({ name }) => name === owner)!
}

const completed = new WeakSet<ScriptedRunner>()

function complete(runner: ScriptedRunner): void {
  completed.add(runner)
  runner.complete()
}

/** The runner of a node whose turn has begun. */
async function turnOf({ engine }: TestNode): Promise<ScriptedRunner> {
  const isBegun = (runner: ScriptedRunner) => runner.sent.length === 1 && !completed.has(runner)
  await until(() => engine.runners.some(isBegun), 'its turn has begun')
  return engine.runners.find(isBegun)!
}

if (hasPostgres()) {
  t.test('the queue is told at every node as one, once each, for as long as somebody listens', async (t) => {
    const { nodes, join } = await clusterOf(t, ['a', 'b'], { queue: {} })
    const [a, b] = nodes
    const streams = [await follow(t, a), await follow(t, b)]
    const jobs = [await submitted(a), await submitted(b)]
    for (const id of jobs) {
      complete(await turnOf(await runnerOf(nodes, id)))
    }
    const whole = ['job_submitted', 'job_started', 'job_completed']
    for (const frames of streams)
      for (const id of jobs) await until(() => told(frames, id).length === 3, 'all of it is told')
    for (const frames of streams) for (const id of jobs) t.strictSame([...told(frames, id)].sort(), [...whole].sort())
    for (const frames of streams)
      await until(() => {
        const stats = frames.findLast((frame) => 'stats' in frame)
        return stats !== undefined && 'stats' in stats && stats.stats.running + stats.stats.queued === 0
      }, 'the counts are those of all nodes')
    const c = await join('c')
    await until(() => b.storage.cluster!.nodes().length === 3, 'it is known')
    // the stream to the new node is opened by then or a moment later: what was told before is not repeated
    const ofNew: string[] = []
    await until(async () => {
      const id = await submitted(c)
      ofNew.push(id)
      await new Promise((resolve) => setTimeout(resolve, 50))
      await a.call('DELETE', `/jobs/${id}`)
      return ofNew.some((id) => streams.every((frames) => told(frames, id).includes('job_submitted')))
    }, 'a node that came is heard')
  })

  t.test('a job is seen and canceled at any node, and its key is everywhere the same', async (t) => {
    const { nodes } = await clusterOf(t, ['a', 'b', 'c'], { queue: {} })
    const key = { 'idempotency-key': 'k1' }
    const first = await nodes[0].call('POST', '/jobs', JOB, key)
    for (const node of nodes) {
      const again = await node.call('POST', '/jobs', JOB, key)
      t.match(again, { status: 201, json: { id: first.json.id } })
      t.match(await node.call('POST', '/jobs', { ...JOB, priority: 3 }, key), { status: 422 })
    }
    const { id } = first.json
    const runner = await runnerOf(nodes, id)
    for (const node of nodes) t.match((await node.call('GET', `/jobs/${id}`)).json, { status: 'running' })
    const other = nodes.find((node) => node !== runner)!
    t.match(await other.call('DELETE', `/jobs/${id}`), { status: 200, json: { status: 'canceled' } })
    for (const node of nodes) t.match((await node.call('GET', `/jobs/${id}`)).json, { status: 'canceled' })
    await until(() => runner.engine.runners.every(({ closed }) => closed), 'its engine has ended')
  })

  t.test('a job goes on elsewhere when its node is gone', async (t) => {
    const { nodes } = await clusterOf(t, ['a', 'b'], { queue: {} })
    const { json } = await nodes[0].call('POST', '/jobs', { ...JOB, attempts: 2, retryDelayMs: 1 })
    const { id } = json
    const runner = await runnerOf(nodes, id)
    await turnOf(runner)
    const other = nodes.find((node) => node !== runner)!
    // as far as the others can tell, it is dead
    await runner.storage.close()
    await until(async () => (await other.call('GET', `/jobs/${id}`)).json.status === 'running', 'it is taken up')
    const again = await turnOf(other)
    t.match((await other.call('GET', `/jobs/${id}`)).json, { status: 'running', attempt: 2 })
    complete(again)
    await until(async () => (await other.call('GET', `/jobs/${id}`)).json.status === 'succeeded', 'it has ended')
    t.match((await other.call('GET', '/queue')).json, { queued: 0, running: 0, maxConcurrency: 1 })
  })

  const CLI = { queue: {}, profiles: [{ name: 'agent', engine: 'cli' as const }] }
  const statusAt = async (node: TestNode, id: string) => (await node.call('GET', `/jobs/${id}`)).json.status
  /** Runs one at a node, which so has a slot, and looks at what waits. */
  async function runs(t: Test, node: TestNode, nodes: readonly TestNode[]): Promise<void> {
    const id = await submitted(node)
    t.equal((await runnerOf(nodes, id)).name, node.name)
    complete(await turnOf(node))
    await until(async () => (await statusAt(node, id)) === 'succeeded', 'it is over')
  }

  t.test('a job of a command-line agent waits for the node that has what its agent needs', async (t) => {
    const { nodes, join } = await clusterOf(t, ['a', 'b'], CLI)
    const [a, b] = nodes
    const [first, second] = [await submitted(a), await submitted(a)]
    t.equal((await runnerOf(nodes, first)).name, 'a')
    const turn = await turnOf(a)
    for (let n = 0; n < 3; n++) await runs(t, b, nodes)
    t.equal(await statusAt(b, second), 'queued', 'beside a node with a free slot')
    complete(turn)
    t.equal((await runnerOf(nodes, second)).name, 'a')
    await turnOf(a)

    const [third, fourth] = [await submitted(a), await submitted(a)]
    await a.stop()
    await runs(t, b, [b])
    t.same([await statusAt(b, third), await statusAt(b, fourth)], ['queued', 'queued'])
    t.match(await b.call('DELETE', `/jobs/${fourth}`), { status: 200, json: { status: 'canceled' } })
    const back = await join('a', CLI)
    t.equal((await runnerOf([b, back], third)).name, 'a')
  })

  t.test('a job whose profile not every node has yet is run by one that has it', async (t) => {
    const queue = { maxConcurrency: 4 }
    const { nodes, join } = await clusterOf(t, ['before'], { queue })
    const profiles = ['scripted', 'new'].map((name) => ({ name, engine: 'provider' as const, provider: { id: name } }))
    const after = await join('after', { queue: { maxConcurrency: 1 }, profiles })
    await until(() => nodes[0].storage.cluster!.nodes().length === 2, 'both')
    const submit = async (profile: string) =>
      (await after.call('POST', '/jobs', { session: { ...JOB.session, profile } })).json.id
    const jobs = [await submit('new'), await submit('new'), await submit('new')]
    for (const id of jobs) {
      // beside a node with free slots, which go to what it has
      t.equal((await runnerOf([after], id)).name, 'after')
      t.equal((await runnerOf(nodes, await submitted(nodes[0]))).name, 'before')
      complete(await turnOf(after))
      await until(async () => (await statusAt(nodes[0], id)) === 'succeeded', 'it is done')
    }
  })

  t.test('a job that is left to a node fails when that comes back without its profile', async (t) => {
    const { nodes, join } = await clusterOf(t, ['a', 'b'], CLI)
    const [a, b] = nodes
    const [first, second] = [await submitted(a), await submitted(a)]
    t.equal((await runnerOf(nodes, first)).name, 'a')
    await turnOf(a)
    await a.stop()
    await join('a', { queue: {}, profiles: [{ name: 'other', engine: 'cli' }] })
    await until(async () => (await statusAt(b, second)) === 'failed', 'it has failed')
    t.match((await b.call('GET', `/jobs/${second}`)).json.error, /no longer exists/)
  })

  t.test('it goes anywhere where agents share what they keep', async (t) => {
    const { nodes } = await clusterOf(t, ['a', 'b'], { ...CLI, agentState: 'shared' })
    const jobs = [await submitted(nodes[0]), await submitted(nodes[0])]
    const places = [await runnerOf(nodes, jobs[0]!), await runnerOf(nodes, jobs[1]!)]
    t.same(places.map(({ name }) => name).sort(), ['a', 'b'])
  })
}
