import fastify from 'fastify'
import t from 'tap'
import { queueRelay } from '../../plugins/queue-relay.js'
import type { JobQueue } from '../../src/jobs/queue.js'
import { RELAY_PATH } from '../../src/jobs/queue-relay.js'
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
