import t from 'tap'
import { clientOn } from '../../client/client.js'
import type { ConnectionState } from '../../client/stream.js'
import { fakePlatform } from '../fixtures/client-platform.js'

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
