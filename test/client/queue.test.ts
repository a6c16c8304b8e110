import t from 'tap'
import { type ClientOptions, clientOn } from '../../client/client.js'
import type { GatewayError } from '../../client/errors.js'
import type { JobInfo, JobStatus, QueueFrame, QueueStats } from '../../client/types.js'
import { eventStream, fakePlatform, problem } from '../fixtures/client-platform.js'

const BASE = 'http://gateway.test/v1'

const stats = (counts: Partial<QueueStats> = {}): QueueStats => ({
  maxConcurrency: 2,
  queued: 0,
  running: 0,
  parked: 0,
  paused: false,
  dailyTokensUsed: 0,
  ...counts,
})
const start = (counts?: Partial<QueueStats>) => ({ type: 'queue_attached', protocolVersion: 1, stats: stats(counts) })
const job = (status: JobStatus, id = 'j1') => ({ id, status }) as JobInfo
const told = (type: string, about: JobInfo) => ({
  type: 'job_event',
  event: { id: `${type}-${about.id}`, type, job: about, ts: 0 },
})

/** What becomes of a promise, without waiting for it. */
function fateOf<T>(promise: Promise<T>) {
  const fate: { value?: T; error?: GatewayError } = {}
  promise.then(
    (value) => Object.assign(fate, { value }),
    (error) => Object.assign(fate, { error }),
  )
  return fate
}

/** A client whose gateway knows one job, and how the queue stands. */
function world(options: Partial<ClientOptions> = {}) {
  const platform = fakePlatform()
  const client = clientOn(platform.platform, { baseUrl: BASE, ...options })
  const w = Object.assign(platform, {
    client,
    job: job('running'),
    stats: stats(),
    paths: () => platform.requests.map(({ url }) => url.pathname.slice('/v1'.length)),
  })
  platform.answer = ({ url }) => {
    if (url.pathname.endsWith('/jobs/j1')) return Response.json(w.job)
    if (url.pathname.endsWith('/queue')) return Response.json(w.stats)
    throw new TypeError('fetch failed')
  }
  return w
}

/** Waits for a job and reads the queue beside it: both stand on the same stream, and are held to the same. */
function both(options: Partial<ClientOptions> = {}, signal?: AbortSignal) {
  const w = world(options)
  const watching = w.client.queue.watch({ signal })
  const frames: QueueFrame[] = []
  const read = async () => {
    for await (const frame of watching) frames.push(frame)
  }
  return Object.assign(w, {
    watching,
    frames,
    watched: fateOf(read().then(() => 'ended')),
    waited: fateOf(w.client.jobs.wait('j1', { signal })),
  })
}

t.test('a job that ended while the connection was lost is found at the next', async (t) => {
  const w = world()
  const waited = fateOf(w.client.jobs.wait('j1'))
  await w.settle()
  t.equal(w.socket.url.href, 'ws://gateway.test/v1/queue/ws')
  w.socket.say(start())
  await w.settle()
  w.socket.say(told('job_progress', w.job), told('job_completed', job('failed', 'j2')))
  await w.settle()
  t.strictSame(w.paths(), ['/jobs/j1'], 'it asks at the start, and not for what others do')
  w.job = job('succeeded')
  w.socket.drop(1006)
  await w.settle()
  t.strictSame(waited, {})
  await w.clock.advance(500)
  w.socket.say(start())
  await w.settle()
  t.strictSame(waited, { value: w.job })
  t.ok(
    w.sockets.every(({ isClosed }) => isClosed),
    'it lets go of the queue',
  )
  t.equal(w.clock.pendingTimers, 0)
})

t.test('a gateway that is away for long while the job is read is waited for, longer each time', async (t) => {
  const w = world()
  const waited = fateOf(w.client.jobs.wait('j1'))
  const { answer } = w
  const down = [() => new Response('not there', { status: 502 }), () => problem(503, 'SG_ERR_STORE_UNAVAILABLE')]
  w.answer = () => {
    const next = down[w.requests.length % 3]
    if (next) return next()
    throw new TypeError('fetch failed')
  }
  await w.settle()
  w.socket.say(start())
  for (let minutes = 0; minutes < 10; minutes++) await w.clock.advance(60_000)
  t.strictSame(waited, {}, 'not given up')
  t.ok(w.requests.length < 150, `${w.requests.length} requests in ten minutes`)
  w.answer = answer
  w.job = job('canceled')
  await w.clock.advance(60_000)
  t.match(waited, { value: { status: 'canceled' } })
})

t.test('a job that is not there, or not to be seen, is not waited for', async (t) => {
  for (const [status, code] of [
    [404, 'SG_ERR_JOB_NOT_FOUND'],
    [401, 'SG_ERR_UNAUTHENTICATED'],
  ] as const) {
    const w = world()
    const waited = fateOf(w.client.jobs.wait('j1'))
    w.answer = () => problem(status, code)
    await w.settle()
    w.socket.say(start())
    await w.settle()
    t.match(waited.error, { status, code })
    t.ok(w.socket.isClosed)
    t.equal(w.clock.pendingTimers, 0)
  }
})

t.test('every connection begins with how the queue stands, and nothing is told twice', async (t) => {
  const w = both()
  for (const [lost, code] of [1001, 1006, 1011, 1013].entries()) {
    await w.settle()
    const [first, second] = w.sockets.slice(-2)
    for (const socket of [first!, second!]) {
      socket.say(start({ queued: lost }), told('job_progress', w.job))
      socket.drop(code)
    }
    await w.settle()
    t.match(w.watching.connection, { state: 'reconnecting', tries: 1, retryAt: w.clock.now() + 500 }, String(code))
    await w.clock.advance(500)
  }
  t.equal(w.sockets.length, 10)
  t.strictSame(
    w.frames.map((frame) => (frame.type === 'queue_attached' ? frame.stats.queued : frame.type)),
    [0, 'job_event', 1, 'job_event', 2, 'job_event', 3, 'job_event'],
  )
  w.watching.close()
  await w.settle()
  t.equal(w.watched.value, 'ended')
})

t.test('an end that is said to be one ends both; a refusal is told as what it is', async (t) => {
  for (const [code, expected] of [
    [1000, undefined],
    [1008, 'SG_ERR_ORIGIN_REFUSED'],
    [4401, 'SG_ERR_UNAUTHENTICATED'],
    [4404, 'SG_ERR_SESSION_NOT_FOUND'],
  ] as const) {
    const w = both({ token: 'secret' })
    await w.settle()
    for (const socket of w.sockets) {
      t.same(socket.protocols, ['session-gateway', 'session-gateway.bearer.secret'])
      socket.say(start())
    }
    await w.settle()
    for (const socket of w.sockets) socket.drop(code)
    await w.settle()
    t.equal(w.watched.error?.code, expected, String(code))
    t.equal(w.watched.value, expected ? undefined : 'ended')
    t.equal(w.waited.error?.code, expected ?? 'SG_CLIENT_UNREACHABLE', 'a wait has no result then')
    t.equal(w.clock.pendingTimers, 0)
    t.equal(w.sockets.length, 2)
  }
})

t.test('a gateway without a queue is told, and not asked again', async (t) => {
  const w = both()
  w.answer = () => problem(404, 'SG_ERR_NOT_FOUND')
  await w.settle()
  for (const socket of w.sockets) socket.drop(1006)
  await w.settle()
  t.match([w.watched.error, w.waited.error], [{ code: 'SG_ERR_NOT_FOUND' }, { code: 'SG_ERR_NOT_FOUND' }])
})

t.test('new credentials are asked for once for both, and a gateway that takes none is believed', async (t) => {
  const asked: unknown[] = []
  const w = both({ getToken: (question) => `token-${asked.push(question)}` })
  await w.settle()
  for (const socket of w.sockets) socket.say(start())
  await w.settle()
  for (const socket of w.sockets) socket.drop(4401)
  for (let turn = 0; turn < 5; turn++) await w.settle()
  t.strictSame(asked, [{}, { rejected: 'token-1' }])
  const renewed = w.sockets.slice(2)
  t.strictSame(
    renewed.map(({ protocols }) => protocols[1]),
    ['session-gateway.bearer.token-2', 'session-gateway.bearer.token-2'],
  )
  w.job = job('succeeded')
  for (const socket of renewed) socket.say(start())
  await w.settle()
  t.match(w.waited.value, { status: 'succeeded' })
  t.equal(w.requests.at(-1)?.headers.get('authorization'), 'Bearer token-2')
  for (let tries = 0; tries < 3; tries++) {
    w.sockets.find(({ isClosed }) => !isClosed)?.drop(4401)
    for (let turn = 0; turn < 5; turn++) await w.settle()
  }
  t.match(w.watched.error, { code: 'SG_ERR_UNAUTHENTICATED' })
})

t.test('waits longer each time up to half a minute, by chance over the whole of it', async (t) => {
  const w = world()
  const watching = w.client.queue.watch()
  const waits: number[] = []
  const lose = async () => {
    await w.settle()
    w.socket.drop(1006)
    await w.settle()
    const { connection } = watching
    return connection.state === 'reconnecting' ? connection.retryAt - w.clock.now() : Number.NaN
  }
  for (const chance of [1, 1, 0.5, 0, 1, 1, 1, 0.1]) {
    w.chance = chance
    waits.push(await lose())
    await w.clock.advance(waits.at(-1)!)
  }
  t.strictSame(waits, [500, 1000, 1000, 0, 8000, 16_000, 30_000, 3000])
  w.socket.say(start())
  w.chance = 1
  t.equal(await lose(), 500, 'from the beginning, once something came')
  watching.close()
})

t.test('where upgrades are blocked both follow the event stream', async (t) => {
  const w = both()
  const { answer } = w
  const streams: ReturnType<typeof eventStream>[] = []
  w.answer = (request) => {
    if (!request.url.pathname.endsWith('/queue/events')) return answer(request)
    streams.push(eventStream(request.signal))
    return streams.at(-1)!.response
  }
  await w.settle()
  for (const socket of w.sockets) socket.drop(1006)
  await w.settle()
  t.equal(streams.length, 2)
  for (const stream of streams) stream.say(start())
  await w.settle()
  t.strictSame(w.watching.connection, { state: 'live', transport: 'event-stream', isSynced: true })
  for (const stream of streams) stream.cut()
  await w.settle()
  await w.clock.advance(500)
  t.equal(w.sockets.length, 2, 'the event stream at once')
  w.job = job('succeeded')
  for (const stream of streams.slice(2)) stream.say(start(), told('job_completed', w.job))
  await w.settle()
  t.match(w.waited.value, { status: 'succeeded' })
  t.strictSame(
    w.frames.map(({ type }) => type),
    ['queue_attached', 'queue_attached', 'job_event'],
  )
  w.watching.close()
})

t.test('that there is nothing to tell is not said by the gateway: both go on when it is back', async (t) => {
  const w = both()
  await w.settle()
  for (const socket of w.sockets) socket.say(start())
  await w.settle()
  const { answer } = w
  w.answer = (request) =>
    request.url.pathname.endsWith('/events') ? new Response(null, { status: 204 }) : answer(request)
  for (const socket of w.sockets) socket.drop(1006)
  for (let seconds = 0; seconds < 5; seconds++) {
    await w.clock.advance(1000)
    for (const socket of w.sockets) if (!socket.isClosed) socket.drop(1006)
  }
  await w.settle()
  t.match(w.watching.connection, { state: 'reconnecting', error: { status: 200, code: 'SG_CLIENT_UNREACHABLE' } })
  t.strictSame([w.watched, w.waited], [{}, {}])
  w.job = job('succeeded')
  for (let seconds = 0; seconds < 40; seconds++) {
    await w.clock.advance(1000)
    for (const socket of w.sockets) if (!socket.isClosed) socket.say(start())
    await w.settle()
  }
  t.match(w.waited.value, { status: 'succeeded' })
  t.match(w.watching.connection, { state: 'live' })
  w.watching.close()
})

t.test('a silent socket is one on which the counts are those of the gateway', async (t) => {
  const w = world({ WebSocket: undefined })
  const watching = w.client.queue.watch()
  await w.settle()
  w.socket.say(start({ queued: 1 }))
  w.stats = stats({ queued: 1, dailyTokensUsed: 5 })
  for (let quiet = 0; quiet < 10; quiet++) await w.clock.advance(16_000)
  t.equal(w.sockets.length, 1, 'nothing has happened')
  t.ok(w.paths().length > 2, 'it looked')
  w.stats = stats({ running: 1 })
  for (let seconds = 0; seconds < 32 && !w.sockets[0]!.isClosed; seconds++) await w.clock.advance(1000)
  t.ok(w.sockets[0]!.isClosed, 'the gateway told it nothing of that')
  await w.clock.advance(1000)
  t.equal(w.sockets.length, 2)
  watching.close()
})

t.test('an abort ends both at every moment', async (t) => {
  const moments: Record<string, (w: ReturnType<typeof both>) => Promise<unknown>> = {
    'before anything': async () => {},
    connecting: (w) => w.settle(),
    'reading the job': async (w) => {
      await w.settle()
      w.answer = () => new Promise(() => {})
      for (const socket of w.sockets) socket.say(start())
      await w.settle()
    },
    'between two tries to read it': async (w) => {
      await w.settle()
      w.answer = () => new Response('', { status: 502 })
      for (const socket of w.sockets) socket.say(start())
      await w.clock.advance(20_000)
    },
    live: async (w) => {
      await w.settle()
      for (const socket of w.sockets) socket.say(start())
      await w.settle()
    },
    reconnecting: async (w) => {
      await w.settle()
      for (const socket of w.sockets) socket.drop(1006)
      await w.settle()
    },
  }
  for (const [moment, reach] of Object.entries(moments)) {
    const aborter = new AbortController()
    const w = both({}, aborter.signal)
    await reach(w)
    const reason = new Error('enough')
    aborter.abort(reason)
    await w.settle()
    await w.settle()
    t.equal(w.watched.value, 'ended', moment)
    t.equal(w.waited.error, reason, moment)
    t.ok(
      w.sockets.every(({ isClosed, onclose }) => isClosed || onclose === null),
      moment,
    )
    t.equal(w.clock.pendingTimers, 0, moment)
    const late = both({}, aborter.signal)
    await late.settle()
    t.equal(late.watched.value, 'ended')
    t.equal(late.waited.error, reason)
    t.equal(late.sockets.length, 0)
  }
})

t.test('what a silent connection is asked about is given up with it', async (t) => {
  const w = world()
  const watching = w.client.queue.watch()
  await w.settle()
  w.socket.say(start())
  await w.settle()
  w.answer = () => new Promise<Response>(() => {})
  await w.clock.advance(60_000)
  t.ok(w.socket.isClosed || w.sockets.length > 1, 'it is taken for dead')
  const asked = w.requests.filter(({ url }) => url.pathname.endsWith('/queue'))
  t.ok(asked.length > 0)
  t.ok(
    asked.every(({ signal }) => signal?.aborted),
    'and nobody waits for the answer',
  )
  watching.close()
  await w.settle()
  t.equal(w.clock.pendingTimers, 0)
})
