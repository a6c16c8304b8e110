import type { Following } from './attachment.js'
import { GatewayError, unreachable } from './errors.js'
import type { Http } from './http.js'
import { backoffMs, sleep, stopIfAborted } from './platform.js'
import { type ConnectionState, isFinal, Stream } from './stream.js'
import type { Wire } from './transport.js'
import type { JobInfo, QueueFrame, QueueStats } from './types.js'

/** Follows the queue. There is no replay: at every `queue_attached`, the first included, jobs are to be listed again. */
export function watchQueue(http: Http, signal?: AbortSignal): Following<QueueFrame> {
  let known: QueueStats | undefined
  const stream: Stream<QueueFrame> = new Stream(
    http,
    {
      path: '/queue',
      query: () => ({}),
      onFrame(frame: QueueFrame, wire: Wire) {
        if ('stats' in frame) known = frame.stats
        if (frame.type === 'queue_attached') stream.live(wire.name, true)
        stream.push(frame)
      },
      // the socket is one-way: that it is still there shows in knowing the same as the gateway
      probe: (_wire, signal) =>
        http.json<QueueStats>('GET', '/queue', { signal }).then((stats) => countsOf(stats) === countsOf(known)),
      onDown: () => false,
    },
    signal,
  )
  return stream
}

const countsOf = (stats: QueueStats | undefined): string =>
  stats ? [stats.queued, stats.running, stats.parked, stats.paused].join() : ''

const TERMINAL = new Set<JobInfo['status']>(['succeeded', 'failed', 'canceled'])

export interface WaitForJob {
  signal?: AbortSignal | undefined
  /** Called back at every change of the connection by which the end is awaited. */
  onConnection?: ((state: ConnectionState) => void) | undefined
}

/** Resolves to the job once it has ended, whatever becomes of the connection until then. */
export async function waitForJob(http: Http, id: string, { signal, onConnection }: WaitForJob = {}): Promise<JobInfo> {
  const following = watchQueue(http, signal)
  if (onConnection) following.onConnection(onConnection)
  for await (const frame of following) {
    if (frame.type === 'queue_stats') continue
    if (frame.type === 'job_event' && (frame.event.job.id !== id || frame.event.type !== 'job_completed')) continue
    const job = await readJob(http, id, signal)
    if (TERMINAL.has(job.status)) return job
  }
  stopIfAborted(signal)
  throw unreachable('The queue can no longer be followed.')
}

/** A gateway may be away for longer than one request is worth. */
async function readJob(http: Http, id: string, signal?: AbortSignal): Promise<JobInfo> {
  for (let tries = 0; ; tries++)
    try {
      return await http.json<JobInfo>('GET', `/jobs/${encodeURIComponent(id)}`, { signal, has: 'id' })
    } catch (error) {
      if (!(error instanceof GatewayError) || isFinal(error, true)) throw error
      await sleep(http.platform, Math.max(backoffMs(http.platform, tries), error.retryAfterMs ?? 0), signal)
    }
}
