import t, { type Test } from 'tap'
import WebSocket from 'ws'
import { createMemoryProfileStore } from '../../src/storage/memory/profile-store.js'
import { type BuildOptions, buildServer, SOME_CWD, until } from '../fixtures/build.js'
import { attach, refusedUpgrade, type TestClient } from '../fixtures/client.js'
import { ScriptedCluster } from '../fixtures/scripted-cluster.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'

const LEASE_MS = 10_000
const CLUSTER = {
  node: 'a',
  url: 'http://127.0.0.1:1',
  listen: { host: '127.0.0.1', port: 0 },
  secret: 'x'.repeat(40),
  leaseMs: LEASE_MS,
}
const MOVED = { code: 1012, reason: 'session_moved' }

/** A server that is one node of several, as the test decides about it. */
async function build(t: Test, options: BuildOptions = {}) {
  const clock = new VirtualClock()
  const node = new ScriptedCluster({ now: () => clock.now() })
  const world = await buildServer(t, {
    clock,
    storage: node.storage,
    cluster: CLUSTER,
    queue: {},
    health: true,
    metrics: true,
    ...options,
  })
  const open = async () => {
    const { json } = await world.call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
    const client = await attach(t, world.api, json.id)
    await client.untilFrame('synced')
    return { id: json.id as string, client, runner: world.engine.last }
  }
  return { ...world, clock, node, open }
}

/** A socket of everybody's, such as the queue's. */
function follow(t: Test, url: string) {
  const socket = new WebSocket(url.replace('http', 'ws'))
  const frames: { type: string }[] = []
  let closed: unknown
  socket.on('message', (data) => frames.push(JSON.parse(data.toString())))
  socket.on('close', (code, reason) => {
    closed = { code, reason: String(reason) }
  })
  socket.on('error', () => {})
  t.teardown(() => socket.terminate())
  return { frames, closed: () => closed }
}

const saidTo = ({ events }: TestClient) =>
  events.flatMap((event) => (event.type === 'assistant_message' ? event.uuid : []))
const typedTo = ({ events }: TestClient) => events.filter(({ type }) => type === 'stream_delta').length
/** Time for what is not to happen; how long does not matter to what is. */
const turns = async () => {
  for (let n = 0; n < 50; n++) await new Promise((resolve) => setTimeout(resolve, 1))
}

t.test('frozen, it answers nothing but that it lives, and lets nobody in', async (t) => {
  const { call, url, api, node, open } = await build(t)
  const { id } = await open()
  node.freeze()
  for (const [method, path] of [
    ['GET', '/sessions'],
    ['GET', `/sessions/${id}`],
    ['POST', '/sessions'],
    ['DELETE', `/sessions/${id}`],
    ['GET', '/queue'],
    ['GET', '/profiles'],
    ['GET', '/notifications/events'],
    ['GET', '/openapi.json'],
    ['GET', '/no/such/path'],
  ] as const) {
    const { status, json, headers } = await call(method, path, method === 'POST' ? { cwd: SOME_CWD } : undefined)
    t.match({ status, code: json?.code }, { status: 503, code: 'SG_ERR_STORE_UNAVAILABLE' }, path)
    t.ok(Number(headers.get('retry-after')) > 0)
  }
  t.match(await refusedUpgrade(`${api.replace('http', 'ws')}/sessions/${id}/ws`), { status: 503 })
  t.match(await refusedUpgrade(`${api.replace('http', 'ws')}/queue/ws`), { status: 503 })
  const outside = async (path: string) => (await fetch(`${url}${path}`)).status
  t.same([await outside('/healthz'), await outside('/readyz'), await outside('/metrics')], [200, 503, 503])
  node.thaw()
  t.same([await outside('/healthz'), await outside('/readyz'), await outside('/metrics')], [200, 200, 200])
  t.equal((await call('GET', `/sessions/${id}`)).status, 200)
})

t.test('frozen while it refuses something, it says nothing of that either, and as a problem', async (t) => {
  const { call, node } = await build(t)
  node.placeOfSession = async () => {
    node.freeze()
    return undefined
  }
  const { status, json, headers } = await call('GET', '/sessions/unknown')
  t.match({ status, code: json?.code }, { status: 503, code: 'SG_ERR_STORE_UNAVAILABLE' })
  t.match(headers.get('content-type'), /^application\/problem\+json/)
  t.ok(Number(headers.get('retry-after')) > 0)
})

t.test('frozen, clients are told nothing, not even typing; thawed, all of it, without a gap', async (t) => {
  const { node, open, api } = await build(t)
  const { id, client, runner } = await open()
  const queue = follow(t, `${api}/queue/ws`)
  const feed = follow(t, `${api}/notifications/ws`)
  await until(() => queue.frames.length > 0 && feed.frames.length > 1)
  runner.say('before', 'a')
  await client.until(() => saidTo(client).includes('a'))
  await turns()
  const told = { queue: queue.frames.length, feed: feed.frames.length, client: client.frames.length }
  node.freeze()
  runner.delta('typ', 'b')
  runner.delta('ing', 'b')
  runner.say('meanwhile', 'c')
  void runner.host.requestPermission({ toolName: 'Bash', toolUseId: 'u', input: {} })
  client.send({ type: 'user_message', text: 'from me', id: 'mine' })
  await turns()
  t.same({ queue: queue.frames.length, feed: feed.frames.length, client: client.frames.length }, told)
  t.notOk(client.closed)
  node.thaw()
  await client.until(() => client.frames.some((frame) => frame.type === 'ack'))
  await until(() => feed.frames.length > told.feed, 'the notification of the request')
  t.same(saidTo(client), ['a', 'c'])
  const seqs = client.events.map(({ seq }) => seq)
  t.same(
    seqs,
    [...new Set(seqs)].sort((a, b) => a - b),
  )
  t.equal(typedTo(client) <= 2, true)
  const again = await attach(t, api, id)
  await again.untilFrame('synced')
  t.same(saidTo(again), ['a', 'c'])
})

t.test('frozen, no timer acts; thawed, what came due does', async (t) => {
  const { node, clock, call, open } = await build(t, {
    sessionRetentionMs: 3_000,
    queue: { maxConcurrency: 1 },
  })
  const { id, client, runner } = await open()
  runner.complete()
  client.send({ type: 'close' })
  await client.untilClosed()
  node.freeze()
  const before = node.calls.length
  await clock.advance(5_000)
  t.same(
    node.calls.slice(before).map(({ part, name }) => `${part}.${name}`),
    [],
    'nothing is asked of the storage',
  )
  node.thaw()
  await clock.advance(1)
  await until(async () => (await call('GET', `/sessions/${id}`)).status === 404, 'the end of the retention')
})

t.test('frozen, no job is claimed and nothing is delivered; thawed, both', async (t) => {
  const sink = await WebhookSink.start(t)
  const { node, clock, engine, call } = await build(t, { queue: { maxConcurrency: 1 } })
  const job = (prompt: string) => ({ session: { prompt, cwd: SOME_CWD }, webhook: { url: sink.url } })
  await call('POST', '/jobs', job('first'))
  await call('POST', '/jobs', job('second'))
  await until(() => engine.runners.length === 1 && engine.last.sent.length === 1)
  await until(() => sink.open === 0)
  await turns()
  const told = sink.received.length
  node.freeze()
  t.ok(engine.last.paused)
  engine.last.complete()
  await turns()
  t.equal(engine.runners.length, 1)
  t.equal(sink.received.length, told)
  node.thaw()
  await until(async () => {
    await clock.advance(1)
    return engine.runners.length === 2 && sink.received.length > told
  })
  t.notOk(engine.runners[0]!.paused && !engine.runners[0]!.closed)
})

t.test('a session that is about to begin when it freezes begins when it thaws', async (t) => {
  const gate = { open: () => {} }
  const opened = new Promise<void>((resolve) => {
    gate.open = resolve
  })
  const { node, engine, call } = await build(t, {
    buildRunnerConfig: async (config) => {
      await opened
      return config
    },
  })
  const creating = call('POST', '/sessions', { cwd: SOME_CWD, prompt: 'go' })
  await turns()
  node.freeze()
  gate.open()
  await turns()
  t.equal(engine.runners.length, 0)
  node.thaw()
  t.equal((await creating).status, 201)
  t.same(
    engine.last.sent.map(({ text }) => text),
    ['go'],
  )
})

t.test('frozen for longer than the lease, clients are sent elsewhere', async (t) => {
  const { node, clock, open, api, call } = await build(t)
  const { id, client, runner } = await open()
  const queue = follow(t, `${api}/queue/ws`)
  const feed = follow(t, `${api}/notifications/ws`)
  await until(() => queue.frames.length > 0 && feed.frames.length > 0)
  node.freeze()
  await clock.advance(LEASE_MS - 1)
  await turns()
  t.notOk(client.closed)
  await clock.advance(1)
  t.same(await client.untilClosed(), MOVED)
  await until(() => queue.closed() && feed.closed())
  t.same([queue.closed(), feed.closed()], [MOVED, MOVED])
  t.equal((await call('GET', `/sessions/${id}`)).status, 503)
  t.ok(runner.paused)
  node.thaw()
  t.notOk(runner.paused)
  const again = await attach(t, api, id)
  await again.untilFrame('synced')
})

t.test('lost: engines are ended, nothing is told or written, and what was refused never takes effect', async (t) => {
  let lost = 0
  const lines: { level: string; text: string }[] = []
  const log = (level: string) => (_fields: object, text?: string) => lines.push({ level, text: text ?? '' })
  const logger = { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') }
  const { node, clock, worker, call, open, api, url, engine } = await build(t, {
    logger,
    queue: { maxConcurrency: 1 },
  } as BuildOptions)
  await call('POST', '/jobs', { session: { prompt: 'job', cwd: SOME_CWD } })
  await until(() => engine.runners.length === 1)
  const { id, client, runner } = await open()
  const events: string[] = []
  worker.registry.on('session_event', ({ event }) => events.push(event.type))
  worker.registry.on('session_removed', () => lost++)
  node.freeze()
  runner.say('too late', 'z')
  node.lose()
  t.same(await client.untilClosed(), MOVED)
  t.notOk(saidTo(client).includes('z'))
  await until(() => engine.runners.every(({ closed }) => closed))
  t.ok(
    engine.runners.every(({ paused }) => paused),
    'they do not act again at their end',
  )
  t.same(worker.registry.unended(), [])
  const before = node.calls.length
  runner.say('much too late', 'y')
  runner.complete()
  await clock.advance(120_000)
  await turns()
  t.same(
    node.calls.slice(before).map(({ part, name }) => `${part}.${name}`),
    [],
    'nothing is asked of the storage any more',
  )
  t.same(events, [])
  t.equal(lost, 0)
  t.match(await call('GET', `/sessions/${id}`), { status: 503 })
  t.same(await (await fetch(`${url}/readyz`)).json(), { status: 'lost' })
  t.match(await refusedUpgrade(`${api.replace('http', 'ws')}/sessions/${id}/ws`), { status: 503 })
  t.equal(lines.filter(({ level }) => level === 'error').length, 1)
  t.match(lines.find(({ level }) => level === 'error')?.text, /another one has taken over.*anew/)
  const from = Date.now()
  await worker.close()
  t.ok(Date.now() - from < 10_000, 'nobody is waited for')
})

t.test('lost: an engine that cannot be held up is ended like the others, also one that says so later', async (t) => {
  const { node, open } = await build(t)
  const first = await open()
  const second = await open()
  first.runner.pause = () => {
    throw new Error('not now')
  }
  second.runner.pause = async () => {
    throw new Error('not now')
  }
  node.freeze()
  node.lose()
  for (const { client, runner } of [first, second]) {
    t.same(await client.untilClosed(), MOVED)
    await until(() => runner.closed, 'its end')
  }
})

t.test('lost out of the blue: what was asked for is refused', async (t) => {
  const { node, call, open } = await build(t)
  const { id } = await open()
  let goOn = () => {}
  const held = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const { journal } = node.storage
  const deposit = journal.deposit
  journal.deposit = async (...given) => {
    await held
    return deposit.apply(journal, given)
  }
  const renaming = call('PATCH', `/sessions/${id}`, { title: 'new' })
  await turns()
  node.lose()
  goOn()
  t.match(await renaming, { status: 503 })
})

t.test('lost: the storage is left also when a store of the host cannot be closed', async (t) => {
  const node = new ScriptedCluster()
  let isClosed = false
  const close = async () => {
    isClosed = true
  }
  const profileStore = Object.assign(createMemoryProfileStore(), {
    close: () => Promise.reject(new Error('stale handle')),
  })
  const { worker } = await build(t, { storage: { ...node.storage, close }, profileStore })
  node.lose()
  await worker.close()
  t.ok(isClosed)
})

t.test('closed, it is none any more also when its storage cannot be closed', async (t) => {
  const node = new ScriptedCluster()
  const close = () => Promise.reject(new Error('stale handle'))
  const told: string[] = []
  const say = (_fields: object, message: string) => void told.push(message)
  const logger = { info() {}, warn: say, error: say }
  const { worker } = await build(t, { storage: { ...node.storage, close }, logger })
  await worker.close()
  node.freeze()
  t.strictSame(told, ['something could not be closed'])
  t.notOk(worker.server.listening)
})

t.test('a node that leaves says so before anything else', async (t) => {
  const { node, worker, open } = await build(t)
  const { client } = await open()
  await worker.close()
  t.same(client.closed ?? (await client.untilClosed()), { code: 1001, reason: 'server_shutdown' })
  t.equal(node.drained, 1)
})

t.test('one that was itself stopped knows it before any timer says so', async (t) => {
  const { node, call } = await build(t)
  node.beat(60_000)
  t.equal((await call('GET', '/profiles')).status, 200)
  node.beat(-1)
  t.equal((await call('GET', '/profiles')).status, 503)
  node.beat(60_000)
  t.equal((await call('GET', '/profiles')).status, 200)
})
