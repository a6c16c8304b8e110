import t from 'tap'
import { clientOn } from '../../client/client.js'
import type { ConnectionState } from '../../client/stream.js'
import { attached, eventStream, fakePlatform } from '../fixtures/client-platform.js'

t.test('a proxy that holds an event stream back is told of as that', async (t) => {
  const world = fakePlatform()
  world.answer = ({ signal }) =>
    new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
  const options = { baseUrl: 'http://gateway.test/v1', headers: { 'x-user': 'ada' } }
  const attachment = clientOn(world.platform, options).session('s1').attach()
  const told: ConnectionState[] = []
  attachment.onConnection((connection) => told.push(connection))
  await world.settle()
  await world.clock.advance(10_000)
  const message = /something in between holds event streams back/
  t.match(told, [{ state: 'reconnecting', error: { code: 'SG_CLIENT_UNREACHABLE', message } }])
  attachment.close()
})

for (const transport of ['socket', 'event-stream'])
  t.test(`that nothing comes over a dead ${transport} is found out where the clock was set back, too`, async (t) => {
    const world = fakePlatform()
    world.answer = ({ signal }) => {
      const stream = eventStream(signal)
      stream.say(attached())
      return stream.response
    }
    const headers = { 'x-user': 'ada' }
    const baseUrl = 'http://gateway.test/v1'
    const client = clientOn(world.platform, { baseUrl, ...(transport === 'event-stream' && { headers }) })
    const attachment = client.session('s1').attach()
    await world.settle()
    if (transport === 'socket') world.socket.say(attached())
    await world.settle()
    t.match(attachment.connection, { state: 'live', transport })
    const told: ConnectionState[] = []
    attachment.onConnection((connection) => told.push(connection))
    world.clock.set(-3_600_000)
    await world.clock.advance(75_000)
    t.match(told[0], { state: 'reconnecting' })
    attachment.close()
  })

t.test('what a listener throws is thrown where a program hears of it, and breaks no connection', async (t) => {
  const world = fakePlatform()
  const attachment = clientOn(world.platform, { baseUrl: 'http://gateway.test/v1' }).session('s1').attach()
  const failure = new Error('no such element')
  const thrown: unknown[] = []
  const listeners = process.rawListeners('uncaughtException')
  process.removeAllListeners('uncaughtException').on('uncaughtException', (error) => thrown.push(error))
  t.teardown(() => {
    process.removeAllListeners('uncaughtException')
    for (const listener of listeners) process.on('uncaughtException', listener as () => void)
  })
  attachment.onConnection(() => {
    throw failure
  })
  await world.settle()
  world.socket.say(attached(), { type: 'synced', seq: 0 })
  await world.settle()
  t.match(attachment.connection, { state: 'live', isSynced: true })
  const next = attachment[Symbol.asyncIterator]().next()
  attachment.close()
  t.match(await next, { done: true })
  t.ok(thrown.length === 3 && thrown.every((error) => error === failure))
})
