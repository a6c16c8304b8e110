import { get } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { queueRelay } from '../../plugins/queue-relay.js'
import type { JobQueue } from '../../src/jobs/queue.js'
import { RELAY_PATH } from '../../src/jobs/queue-relay.js'
import { deferred } from '../../src/lib/deferred.js'
import fastify from '../fixtures/host.js'
import { turns } from '../fixtures/turns.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

t.test(
  'what happens to jobs after the last words of a node that leaves is told to nobody, and ends nothing',
  async (t) => {
    const tell: Record<string, (told: object) => void> = {}
    const queue = {
      on(event: string, listener: (told: object) => void) {
        tell[event] = listener
        return () => {}
      },
    } as unknown as JobQueue
    const server = fastify()
    t.teardown(() => server.close())
    await server.register(queueRelay, { queue, clock: new VirtualClock() })
    const response = await fetch(`${await server.listen({ host: '127.0.0.1', port: 0 })}${RELAY_PATH}`)
    tell.job_event!({ event: { id: 'before' } })
    tell.draining!({})
    tell.job_event!({ event: { id: 'after' } })
    t.equal(await response.text(), '\n{"id":"before"}\n')
  },
)

t.test('a node that has gone before it is told anything is not told for ever', async (t) => {
  let listening = 0
  const queue = {
    on() {
      listening++
      return () => void listening--
    },
  } as unknown as JobQueue
  const server = fastify()
  t.teardown(() => server.close())
  const came = deferred<void>()
  const gone = deferred<void>()
  server.addHook('onRequest', async ({ raw }) => {
    came.resolve()
    await new Promise<void>((resolve) => raw.socket.once('close', () => resolve()))
    gone.resolve()
  })
  await server.register(queueRelay, { queue, clock: new VirtualClock() })
  await server.listen({ host: '127.0.0.1', port: 0 })
  const { port } = server.server.address() as AddressInfo
  const request = get({ host: '127.0.0.1', port, path: RELAY_PATH }).on('error', () => {})
  await came.promise
  request.destroy()
  await gone.promise
  // the route comes in the turn after it
  await turns(3)
  t.equal(listening, 0)
})
