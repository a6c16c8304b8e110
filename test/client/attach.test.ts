import t from 'tap'
import type { AttachItem } from '../../client/attachment.js'
import { clientOn } from '../../client/client.js'
import { attached, eventFrame, eventStream, fakePlatform, problem, said, typed } from '../fixtures/client-platform.js'
import { BASE, follow, read, startsWith } from '../fixtures/followed.js'

t.test('goes on after a lost connection where it was, and yields no event twice', async (t) => {
  const world = follow()
  await world.settle()
  t.equal(world.socket.url.href, 'ws://gateway.test/v1/sessions/s1/ws?afterSeq=0')
  t.same(world.socket.protocols, [])
  await startsWith(world, 1, 2)
  t.strictSame(world.attachment.connection, { state: 'live', transport: 'socket', isSynced: true })
  world.socket.drop(1006)
  await world.settle()
  t.strictSame(world.attachment.connection, {
    state: 'reconnecting',
    retryAt: world.clock.now() + 500,
    tries: 1,
  })
  await world.clock.advance(500)
  t.equal(world.socket.url.search, '?afterSeq=2&epoch=e1')
  world.socket.say(attached({ replayingFrom: 2 }), eventFrame(said(2)), eventFrame(said(3)))
  await world.settle()
  t.strictSame(world.seqs(), [1, 2, 3])
  t.strictSame(world.states, ['live', 'live', 'reconnecting', 'live'])
  world.attachment.close()
  t.equal(await world.over, 'ended')
  t.ok(world.socket.isClosed)
})

t.test('who lets go before there is a connection leaves none behind', async (t) => {
  for (const options of [{}, { headers: { 'x-key': 'k' } }])
    for (const ticks of [0, 1, 2, 3, 4, 5, 6]) {
      const world = follow({ options })
      world.answer = ({ signal }) => eventStream(signal).response
      for (let tick = 0; tick < ticks; tick++) await Promise.resolve()
      world.attachment.close()
      await world.settle()
      t.equal(await world.over, 'ended')
      t.ok(
        world.sockets.every(({ isClosed }) => isClosed),
        `sockets after ${ticks}`,
      )
      t.ok(
        world.requests.every(({ signal }) => signal?.aborted),
        `event streams after ${ticks}`,
      )
      t.equal(world.clock.pendingTimers, 0, 'nothing is left running')
    }
})

t.test('a session that ends ends the iteration; a refusal is thrown', async (t) => {
  for (const [code, expected] of [
    [1000, 'ended'],
    [1008, 'SG_ERR_ORIGIN_REFUSED'],
    [4401, 'SG_ERR_UNAUTHENTICATED'],
    [4404, 'SG_ERR_SESSION_NOT_FOUND'],
  ] as const) {
    const world = follow({ options: { token: 'secret' } })
    await world.settle()
    t.same(world.socket.protocols, ['session-gateway', 'session-gateway.bearer.secret'])
    await startsWith(world, 1)
    world.socket.drop(code)
    const over = await world.over
    t.equal(over === 'ended' ? over : over.code, expected, String(code))
    t.equal(world.attachment.connection.state, 'ended')
    t.equal(world.clock.pendingTimers, 0, 'nothing is left running')
    t.equal(world.sockets.length, 1)
  }
})

t.test('every other close code means: come back', async (t) => {
  for (const code of [1001, 1006, 1009, 1011, 1013, 1005]) {
    const world = follow()
    await world.settle()
    await startsWith(world, 1)
    world.socket.drop(code)
    await world.settle()
    await world.clock.advance(500)
    t.equal(world.sockets.length, 2, String(code))
    t.equal(world.socket.url.search, '?afterSeq=1&epoch=e1')
    world.attachment.close()
  }
})

t.test(
  'a session that has moved is followed there at once, and with a pause when it is not there either',
  async (t) => {
    const world = follow()
    await world.settle()
    await startsWith(world, 1)
    for (const sockets of [2, 3]) {
      world.socket.drop(1012)
      await world.settle()
      await world.clock.advance(0)
      t.equal(world.sockets.length, 2)
      await world.clock.advance(1_000)
      t.equal(world.sockets.length, sockets)
      t.equal(world.socket.url.search, '?afterSeq=1&epoch=e1')
      world.socket.say(attached({ replayingFrom: 1 }))
      await world.settle()
    }
    t.strictSame(world.seqs(), [1])
    world.attachment.close()
  },
)

t.test('a session that closed and was removed has ended, also when the connection was lost in between', async (t) => {
  const world = follow()
  await world.settle()
  world.socket.say(attached(), eventFrame({ type: 'session_closed', reason: 'client', seq: 1, ts: 1 }))
  world.socket.drop(1006)
  world.answer = () => problem(404, 'SG_ERR_SESSION_NOT_FOUND')
  await world.settle()
  await world.clock.advance(500)
  world.socket.drop(1006)
  t.equal(await world.over, 'ended')
})

t.test('waits longer each time, never longer than half a minute, and not at all once something came', async (t) => {
  const world = follow()
  const waits: number[] = []
  for (let tries = 0; tries < 9; tries++) {
    await world.settle()
    world.socket.drop(1006)
    await world.settle()
    const { connection } = world.attachment
    if (connection.state !== 'reconnecting') return t.fail(connection.state)
    t.equal(connection.error?.code, 'SG_CLIENT_UNREACHABLE')
    waits.push(connection.retryAt - world.clock.now())
    await world.clock.advance(waits.at(-1)!)
  }
  t.strictSame(waits, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000])
  await startsWith(world, 1)
  world.chance = 0.25
  world.socket.drop(1006)
  await world.settle()
  const { connection } = world.attachment
  t.equal(
    connection.state === 'reconnecting' && connection.retryAt - world.clock.now(),
    125,
    'jitter over the whole wait',
  )
  world.attachment.close()
})

t.test('a device that is online again does not wait', async (t) => {
  const world = follow()
  await world.settle()
  world.socket.drop(1006)
  await world.settle()
  for (const listener of world.online) listener()
  await world.settle()
  t.equal(world.sockets.length, 2)
  world.attachment.close()
  await world.settle()
  t.equal(world.online.size, 0)
})

t.test('tells a gap with the snapshot, and goes on with what the log still has', async (t) => {
  const world = follow()
  await world.settle()
  await startsWith(world, 1, 2)
  world.socket.drop(1001)
  await world.settle()
  await world.clock.advance(500)
  const snapshot = attached({ truncated: true, epoch: 'e2', replayingFrom: 0, oldestSeq: 1 })
  world.socket.say(snapshot, eventFrame(said(1)), eventFrame(said(2)))
  await world.settle()
  t.strictSame(world.seqs(), [1, 2, 'gap', 1, 2])
  t.strictSame(world.items[2], { type: 'gap', snapshot })
  t.strictSame(world.attachment.snapshot, snapshot)
  world.attachment.close()
})

t.test('typing that a crash took back is no gap, and nothing comes twice', async (t) => {
  const world = follow()
  await world.settle()
  world.socket.say(attached(), eventFrame(said(1)), eventFrame(typed(2, 'm4', 'He')), eventFrame(typed(3, 'm4', 'llo')))
  world.socket.drop(1006)
  await world.settle()
  await world.clock.advance(500)
  t.equal(world.socket.url.search, '?afterSeq=1&epoch=e1', 'asks from what no crash can take back')
  world.socket.say(attached({ replayingFrom: 1 }), eventFrame(typed(3, 'm4', 'llo')), eventFrame(said(4)))
  await world.settle()
  t.strictSame(world.seqs(), [1, 2, 3, 4])
  world.attachment.close()

  const resumed = follow({ attach: { afterSeq: 3, epoch: 'e1' } })
  await resumed.settle()
  resumed.socket.say(attached({ truncated: true, replayingFrom: 0 }), eventFrame(said(1)), eventFrame(said(5)))
  await resumed.settle()
  t.strictSame(resumed.seqs(), [5])
  resumed.attachment.close()
})

t.test('a connection that died without a word is found out', async (t) => {
  const world = follow()
  await world.settle()
  await startsWith(world, 1)
  const [first] = world.sockets
  await world.clock.advance(16_000)
  t.strictSame(first!.sent, [{ type: 'ping' }])
  first!.say({ type: 'pong' })
  await world.clock.advance(10_000)
  t.notOk(first!.isClosed)
  await world.clock.advance(40_000)
  t.ok(first!.isClosed, 'nobody answered')
  t.equal(first!.sent.length, 2)
  t.equal(world.socket.url.search, '?afterSeq=1&epoch=e1')
  world.attachment.close()
})

t.test('an event stream that is silent is given up', async (t) => {
  const world = follow({ options: { headers: { 'x-user': 'ada' } } })
  const streams: ReturnType<typeof eventStream>[] = []
  world.answer = ({ signal }) => {
    streams.push(eventStream(signal))
    return streams.at(-1)!.response
  }
  await world.settle()
  t.equal(world.sockets.length, 0, 'a socket could not say who the client is')
  t.equal(world.requests[0]?.headers.get('x-user'), 'ada')
  streams[0]!.say(attached(), eventFrame(said(1)))
  await world.settle()
  await world.clock.advance(30_000)
  t.equal(streams.length, 1)
  await world.clock.advance(20_000)
  t.equal(streams.length, 2)
  world.attachment.close()
})

t.test('a token that is no longer taken is asked for again, once the gateway says so', async (t) => {
  const asked: unknown[] = []
  const getToken = (question: { rejected?: string }) => {
    asked.push(question)
    return `token-${asked.length}`
  }
  const world = follow({ options: { getToken } })
  await world.settle()
  t.same(world.socket.protocols, ['session-gateway', 'session-gateway.bearer.token-1'])
  await startsWith(world, 1)
  world.socket.drop(4401)
  await world.settle()
  await world.settle()
  t.strictSame(asked, [{}, { rejected: 'token-1' }])
  t.same(world.socket.protocols[1], 'session-gateway.bearer.token-2')
  await startsWith(world, 2)
  t.strictSame(world.seqs(), [1, 2])
  for (let tries = 0; tries < 2; tries++) {
    world.socket.drop(4401)
    await world.settle()
    await world.settle()
  }
  world.socket.drop(4401)
  t.match(await world.over, { code: 'SG_ERR_UNAUTHENTICATED' }, 'a gateway that takes none is believed')
})

t.test('what is not read is not kept without end', async (t) => {
  const world = fakePlatform()
  const attachment = clientOn(world.platform, { baseUrl: BASE }).session('s1').attach()
  await world.settle()
  const all = Array.from({ length: 25_000 }, (_, index) => said(index + 1))
  const [first] = world.sockets
  first!.say(attached(), ...all.map(eventFrame))
  await world.settle()
  t.ok(first!.isClosed)
  t.equal(world.sockets.length, 1, 'nothing is fetched for a reader who does not read')
  const seqs: number[] = []
  for await (const batch of attachment.batches()) {
    for (const item of batch) if (item.type !== 'gap') seqs.push(item.seq)
    if (seqs.length === all.length) break
    await world.settle()
    const after = Number(world.socket.url.searchParams.get('afterSeq'))
    world.socket.say(attached({ replayingFrom: after }), ...all.slice(after).map(eventFrame))
  }
  t.strictSame(
    seqs,
    all.map(({ seq }) => seq),
  )
  t.equal(attachment.connection.state, 'ended', 'leaving the loop lets go')
})

t.test('a second loop over what is being read is refused, and takes nothing from the first', async (t) => {
  const world = follow()
  await world.settle()
  await startsWith(world, 1)
  const second: AttachItem[] = []
  t.match(await read(world.attachment, second), { message: /is being read already/ })
  await startsWith(world, 2)
  t.strictSame(second, [])
  t.strictSame(world.seqs(), [1, 2])
  world.attachment.close()
  t.equal(await world.over, 'ended')
  t.equal(await read(world.attachment, second), 'ended', 'one after the other is fine')
})

t.test('who lets go when the connection is lost leaves nothing that waits', async (t) => {
  const world = follow()
  world.attachment.onConnection(({ state }) => state === 'reconnecting' && world.attachment.close())
  await world.settle()
  await startsWith(world, 1)
  world.socket.drop(1006)
  await world.settle()
  t.equal(await world.over, 'ended')
  t.equal(world.clock.pendingTimers, 0)
})

t.test('an abort ends the iteration', async (t) => {
  const aborter = new AbortController()
  const world = follow({ attach: { signal: aborter.signal } })
  await world.settle()
  await startsWith(world, 1)
  aborter.abort()
  t.equal(await world.over, 'ended')
  t.ok(world.socket.isClosed)
  const late = follow({ attach: { signal: aborter.signal } })
  t.equal(await late.over, 'ended')
  t.equal(late.sockets.length, 0)
})
