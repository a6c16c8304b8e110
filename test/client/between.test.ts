import t from 'tap'
import { attached, eventFrame, eventStream, problem, said } from '../fixtures/client-platform.js'
import { BASE, follow, startsWith } from '../fixtures/followed.js'

t.test('where sockets are blocked it follows the event stream, and leaves sockets alone for a while', async (t) => {
  const world = follow({ options: { token: 'secret' } })
  let stream = eventStream()
  world.answer = () => stream.response
  await world.settle()
  world.socket.drop(1006)
  await world.settle()
  const [request] = world.requests
  t.equal(request?.url.href, `${BASE}/sessions/s1/events?afterSeq=0`)
  t.equal(request?.headers.get('accept'), 'text/event-stream')
  t.equal(request?.headers.get('authorization'), 'Bearer secret')
  stream.say(attached(), eventFrame(said(1)))
  // a message may come in pieces
  stream.write('id: e1:2\ndata: {"type":"event","event":')
  await world.settle()
  stream.write(`${JSON.stringify(said(2))}}\n\n: still here\n\n`)
  await world.settle()
  t.strictSame(world.seqs(), [1, 2])
  t.strictSame(world.attachment.connection, { state: 'live', transport: 'event-stream', isSynced: false })
  const cut = stream
  stream = eventStream()
  cut.cut()
  await world.settle()
  await world.clock.advance(500)
  t.equal(world.sockets.length, 1, 'the event stream at once')
  t.equal(world.requests[1]?.url.search, '?afterSeq=2&epoch=e1')
  stream.say(attached({ replayingFrom: 2 }))
  for (let waited = 0; waited < 60_000; waited += 15_000) {
    stream.write(': still here\n\n')
    await world.clock.advance(15_000)
  }
  stream.end()
  await world.settle()
  await world.clock.advance(500)
  t.equal(world.sockets.length, 2, 'sockets are tried again')
  world.attachment.close()
})

t.test('a socket that is let in and says nothing counts as blocked', async (t) => {
  const world = follow()
  const stream = eventStream()
  world.answer = () => stream.response
  await world.settle()
  await world.clock.advance(10_000)
  t.ok(world.socket.isClosed)
  stream.say(attached(), eventFrame(said(1)))
  await world.settle()
  t.strictSame(world.seqs(), [1])
  world.attachment.close()
})

t.test('the answer to a refused upgrade is told, which browsers hide', async (t) => {
  for (const [status, code] of [
    [404, 'SG_ERR_SESSION_NOT_FOUND'],
    [403, 'SG_ERR_PROFILE_FORBIDDEN'],
    [401, 'SG_ERR_UNAUTHENTICATED'],
  ] as const) {
    const world = follow()
    world.answer = () => problem(status, code)
    await world.settle()
    world.socket.drop(1006)
    const over = await world.over
    t.match(over, { status, code })
  }
})

t.test('what a proxy says while the gateway is away ends nothing', async (t) => {
  const world = follow()
  await world.settle()
  await startsWith(world, 1)
  for (const status of [404, 502, 503, 403]) {
    world.answer = () => new Response('<h1>Nobody home</h1>', { status })
    world.socket.drop(1006)
    await world.settle()
    await world.clock.advance(60_000)
    world.socket.drop(1006)
    await world.settle()
    await world.clock.advance(60_000)
    t.not(world.attachment.connection.state, 'ended', String(status))
    world.socket.say(attached({ replayingFrom: 1 }))
    await world.settle()
  }
  world.attachment.close()
})

t.test('nor what answers for the gateway before that was ever there', async (t) => {
  const world = follow()
  const page = { headers: { 'content-type': 'text/html' } }
  const answers = [
    () => new Response('<title>Welcome!</title>', page),
    () => new Response(null, { status: 204 }),
    ...[401, 403, 404, 500, 502, 503, 504].map((status) => () => new Response('Nobody home', { status })),
  ]
  for (const [tries, answer] of answers.entries()) {
    world.answer = answer
    await world.settle()
    world.socket.drop(1006)
    await world.settle()
    const { connection } = world.attachment
    if (connection.state !== 'reconnecting') return t.fail(connection.state)
    t.match(connection, { tries: tries + 1, error: { code: 'SG_CLIENT_UNREACHABLE' } })
    await world.clock.advance(connection.retryAt - world.clock.now())
  }
  await startsWith(world, 1)
  t.strictSame(world.seqs(), [1])
  world.attachment.close()
})

t.test('whoever knows where the log ends is told that there is nothing more', async (t) => {
  const world = follow({ attach: { afterSeq: 3, epoch: 'e1' } })
  world.answer = () => new Response(null, { status: 204 })
  await world.settle()
  world.socket.drop(1006)
  t.equal(await world.over, 'ended')
})

t.test('who asks from beyond the end of a log is shown it once', async (t) => {
  const world = follow({ attach: { afterSeq: 9, epoch: 'e1' } })
  const snapshot = attached({ truncated: true, replayingFrom: 0 })
  await world.settle()
  world.socket.say(
    { ...snapshot, session: { ...snapshot.session, lastSeq: 2 } },
    ...[1, 2].map((seq) => eventFrame(said(seq))),
  )
  await world.settle()
  world.socket.drop(1006)
  await world.settle()
  await world.clock.advance(500)
  t.equal(world.socket.url.search, '?afterSeq=2&epoch=e1')
  world.socket.say(attached({ replayingFrom: 2 }), eventFrame(said(10)))
  await world.settle()
  t.strictSame(world.seqs(), [10])
  world.attachment.close()
})

t.test('of a session that has not ended nobody is told that there is nothing more', async (t) => {
  const world = follow()
  await world.settle()
  await startsWith(world, 1)
  world.answer = () => new Response(null, { status: 204 })
  const isLost = async () => {
    world.socket.drop(1006)
    await world.settle()
    await world.clock.advance(500)
    world.socket.drop(1006)
    await world.settle()
    return world.attachment.connection
  }
  const error = { code: 'SG_CLIENT_UNREACHABLE' }
  const connection = await isLost()
  if (connection.state !== 'reconnecting') return t.fail(connection.state)
  t.match(connection, { error }, 'it is what stands between that says so')
  await world.clock.advance(connection.retryAt - world.clock.now())
  world.socket.say(
    attached({ replayingFrom: 1 }),
    eventFrame({ type: 'session_closed', reason: 'client', seq: 2, ts: 2 }),
  )
  await world.settle()
  t.match(await isLost(), { state: 'ended', error: undefined })
  t.equal(await world.over, 'ended')
})

t.test('a refusal that names its time is waited for', async (t) => {
  const world = follow()
  world.answer = () => problem(503, 'SG_ERR_SHUTTING_DOWN', { 'retry-after': '7' })
  await world.settle()
  world.socket.drop(1006)
  await world.settle()
  const { connection } = world.attachment
  t.equal(connection.state === 'reconnecting' && connection.retryAt - world.clock.now(), 7000)
  world.attachment.close()
})

t.test('a socket that fails and is never said to have closed, as on Node 22, is not waited for', async (t) => {
  const world = follow({})
  const stream = eventStream()
  world.answer = () => stream.response
  await world.settle()
  world.socket.fail()
  await world.clock.advance(100)
  t.equal(world.requests.length, 1, 'the event stream is asked')
  stream.say(attached())
  await world.settle()
  t.match(world.attachment.connection, { state: 'live', transport: 'event-stream' })
  world.attachment.close()
})

t.test('one that fails and then closes has ended with its code', async (t) => {
  const world = follow({})
  await world.settle()
  await startsWith(world, 1)
  world.socket.fail()
  world.socket.drop(4404)
  await world.clock.advance(1_000)
  t.match(await world.over, { code: 'SG_ERR_SESSION_NOT_FOUND' })
  t.equal(world.clock.pendingTimers, 0)
})
