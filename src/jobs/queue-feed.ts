import { PROTOCOL_VERSION } from '../../schemas/frames.js'
import type { JobEvent, QueueFrame } from '../../schemas/jobs.js'
import { type Principal, visible } from '../principal.js'
import type { JobQueue } from './queue.js'

/** One client of the queue's stream. */
export interface QueueSink {
  /** @param frame one JSON text */
  send(frame: string): void
  /** The queue shuts down. */
  leave(): void
}

interface Client {
  sink: QueueSink
  principal: Principal
  /** The stats it was sent last. */
  stats: string
  stale: boolean
}

/**
 * The queue as a stream of frames: `queue_attached` first, then job events and, after those that change counts, the stats; each client
 * hears of what it may see. Nothing is replayed.
 */
export class QueueFeed {
  readonly #queue: JobQueue
  readonly #clients = new Set<Client>()
  #refreshing = false

  constructor(queue: JobQueue) {
    this.#queue = queue
    queue.on('job_event', ({ event }) => this.#onJobEvent(event))
    queue.on('draining', () => {
      for (const { sink } of this.#clients) sink.leave()
    })
    queue.on('budget_changed', () => this.#refresh(() => true))
  }

  attach(sink: QueueSink, principal: Principal): { detach(): void; becomes(principal: Principal): void } {
    const client: Client = { sink, principal, stats: '', stale: false }
    const stats = this.#queue.stats(principal)
    client.stats = JSON.stringify(stats)
    sink.send(text({ type: 'queue_attached', protocolVersion: PROTOCOL_VERSION, stats }))
    this.#clients.add(client)
    return {
      detach: () => void this.#clients.delete(client),
      becomes: (principal) => {
        client.principal = principal
      },
    }
  }

  #onJobEvent(event: JobEvent): void {
    if (this.#clients.size === 0) return
    const sees = ({ principal }: Client) => visible(principal, event.job.profile)
    let frame: string | undefined
    for (const client of this.#clients) {
      if (!sees(client)) continue
      // serialised once, and only for somebody
      frame ??= text({ type: 'job_event', event })
      client.sink.send(frame)
    }
    if (event.type !== 'job_progress') this.#refresh(sees)
  }

  /** Sends the stats once for all that happens in one go. */
  #refresh(concerns: (client: Client) => boolean): void {
    for (const client of this.#clients) client.stale ||= concerns(client)
    if (this.#refreshing) return
    this.#refreshing = true
    setImmediate(() => {
      this.#refreshing = false
      for (const client of this.#clients) if (client.stale) this.#sendStats(client)
    })
  }

  #sendStats(client: Client): void {
    client.stale = false
    const stats = this.#queue.stats(client.principal)
    const told = JSON.stringify(stats)
    if (told === client.stats) return
    client.stats = told
    client.sink.send(text({ type: 'queue_stats', stats }))
  }
}

const text = (frame: QueueFrame): string => JSON.stringify(frame)
