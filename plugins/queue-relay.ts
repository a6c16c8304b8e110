import type { FastifyPluginAsync } from 'fastify'
import type { JobQueue } from '../src/jobs/queue.js'
import { RELAY_BEAT_MS, RELAY_PATH } from '../src/jobs/queue-relay.js'
import type { Clock, Timer } from '../src/lib/clock.js'

/** A node that leaves this much unread is cut off; it asks again. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024

/** Tells other nodes what happens to the jobs of this one. */
export const queueRelay: FastifyPluginAsync<{ queue: JobQueue; clock: Clock }> = async (scope, { queue, clock }) => {
  scope.get(RELAY_PATH, { config: { forNodes: true } }, async (_request, reply) => {
    const { raw } = reply
    reply.hijack()
    // a node that went meanwhile does not go once more
    if (raw.destroyed) return
    raw.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' })
    let beat: Timer | undefined
    const write = (line: string) => {
      // the last words are said, and not all of them may have been heard yet
      if (raw.writableEnded) return
      raw.write(`${line}\n`)
      if (raw.writableLength > MAX_UNREAD_BYTES) raw.destroy()
      beat?.cancel()
      beat = clock.after(RELAY_BEAT_MS, () => write(''))
    }
    const unsubscribe = [
      queue.on('job_event', ({ event }) => write(JSON.stringify(event))),
      queue.on('draining', () => raw.end()),
    ]
    raw.once('close', () => {
      beat?.cancel()
      for (const end of unsubscribe) end()
    })
    write('')
  })
}
