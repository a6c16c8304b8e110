import t from 'tap'
import { clientOn } from '../../client/client.js'
import type { ConnectionState } from '../../client/stream.js'
import { attached, eventFrame, fakePlatform, said } from '../fixtures/client-platform.js'

const BASE = 'http://gateway.test/v1'
const refused = {
  code: 'SG_CLIENT_NO_STREAM',
  message: 'This fetch has no streams: give createClient one that has, or a WebSocket.',
}

/** A fetch whose answers come whole, as React Native's do; the body of node-fetch is a stream of another kind. */
function withoutStreams(body?: object) {
  const world = fakePlatform()
  const headers = { 'content-type': 'text/event-stream' }
  world.answer = () => Object.defineProperty(new Response('', { headers }), 'body', { value: body })
  return world
}

t.test('what cannot be followed without a stream is refused with what to do, and not tried for ever', async (t) => {
  for (const body of [undefined, { on() {} }]) {
    const { platform, requests, clock } = withoutStreams(body)
    // no socket has these
    const client = clientOn(platform, { baseUrl: BASE, headers: { 'x-user': 'ada' } })
    await t.rejects(client.session('s1').attach()[Symbol.asyncIterator]().next(), refused)
    await t.rejects(client.jobs.wait('j1'), refused)
    t.equal(requests.length, 2)
    t.equal(clock.pendingTimers, 0)
  }
})

t.test('where a socket can stand in for it the next one does, and until then it is said', async (t) => {
  const world = withoutStreams()
  const attachment = clientOn(world.platform, { baseUrl: BASE }).session('s1').attach()
  const told: ConnectionState[] = []
  attachment.onConnection((connection) => told.push(connection))
  await world.settle()
  world.socket.drop(1006)
  await world.settle()
  t.match(told, [{ state: 'reconnecting', error: refused }])
  await world.clock.advance(500)
  world.socket.say(attached(), eventFrame(said(1)))
  t.match((await attachment[Symbol.asyncIterator]().next()).value, { seq: 1 })
  t.match(attachment.connection, { state: 'live', transport: 'socket' })
  attachment.close()
})

t.test('a session is followed also where signals throw nothing by themselves, as those of React Native', async (t) => {
  t.intercept(AbortSignal.prototype, 'throwIfAborted', { value: undefined })
  const world = fakePlatform()
  const attachment = clientOn(world.platform, { baseUrl: BASE }).session('s1').attach()
  await world.settle()
  world.socket.say(attached(), eventFrame(said(1)))
  t.match((await attachment[Symbol.asyncIterator]().next()).value, { seq: 1 })
  world.socket.drop(1006)
  await world.settle()
  t.match(attachment.connection, { state: 'reconnecting' })
  attachment.close()
})
