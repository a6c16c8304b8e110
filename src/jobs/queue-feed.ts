import { PROTOCOL_VERSION } from '../../schemas/frames.js'
import type { JobEvent, QueueFrame, QueueStats } from '../../schemas/jobs.js'
import type { Clock } from '../lib/clock.js'
import { type Principal, seeTheSame, visible } from '../principal.js'
import { JobOrder } from './job-order.js'
import type { JobQueue } from './queue.js'
import type { QueueRelay } from './queue-relay.js'

/** One client of the queue's stream. */
export interface QueueSink {
  /** @param frame one JSON text */
  send(frame: string): void
  /** The queue shuts down, or cannot say how it stands, or the client sees other jobs by now: come back. */
  leave(): void
}

/** Other nodes, and the order of what they and this one tell. */
interface OtherNodes {
  relay: Pick<QueueRelay, 'start' | 'stop'>
  order: JobOrder
}

/** No other node has that number. */
const HERE = 0

interface Client {
  sink: QueueSink
  principal: Principal
  /** The stats it was sent last; `undefined`: it was not sent its first frame yet. */
  stats: string | undefined
  /** Whether the counts may be others by now. */
  stale: boolean
  asking: boolean
}

/**
 * The queue as a stream of frames: `queue_attached` first, then job events and, after those that change counts, the stats; each client
 * hears of what it may see. Nothing is replayed.
 */
export class QueueFeed {
  readonly #queue: JobQueue
  readonly #clients = new Set<Client>()
  #refreshing = false
  readonly #others: OtherNodes | undefined

  /** @param others other nodes, whose queue this one is too */
  constructor(queue: JobQueue, others?: Pick<OtherNodes, 'relay'> & { clock: Clock }) {
    this.#queue = queue
    if (others) this.#others = { relay: others.relay, order: new JobOrder(others.clock, (event) => this.#tell(event)) }
    queue.on('job_event', ({ event }) => this.#onJobEvent(event, HERE))
    queue.on('draining', () => {
      for (const { sink } of this.#clients) sink.leave()
    })
    queue.on('budget_changed', () => this.#refresh(() => true))
  }

  attach(sink: QueueSink, principal: Principal): { detach(): void; becomes(principal: Principal): void } {
    const client: Client = { sink, principal, stats: undefined, stale: true, asking: false }
    this.#clients.add(client)
    if (this.#clients.size === 1) this.#hearOthers()
    void this.#catchUp(client)
    return {
      detach: () => {
        if (!this.#clients.delete(client) || this.#clients.size > 0) return
        this.#others?.relay.stop()
        this.#others?.order.clear()
      },
      becomes: (principal) => {
        const isOther = !seeTheSame(principal, client.principal)
        client.principal = principal
        // nothing is replayed, and nothing takes a job back that was told of: it comes back, and lists them again
        if (isOther) sink.leave()
      },
    }
  }

  #hearOthers(): void {
    this.#others?.order.begin()
    this.#others?.relay.start({
      onEvent: (event, by) => {
        this.#queue.changedElsewhere()
        this.#onJobEvent(event, by)
      },
      onGap: () => {
        this.#queue.changedElsewhere()
        this.#refresh(() => true)
      },
    })
  }

  #onJobEvent(event: JobEvent, by: number): void {
    if (this.#clients.size === 0) return
    if (this.#others) this.#others.order.take(event, by)
    else this.#tell(event)
  }

  #tell(event: JobEvent): void {
    const sees = ({ principal }: Client) => visible(principal, event.job.profile)
    let frame: string | undefined
    for (const client of this.#clients) {
      // who is not told yet how things stand is told of this with it
      if (client.stats === undefined || !sees(client)) continue
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
      for (const client of this.#clients) void this.#catchUp(client)
    })
  }

  /** Sends the stats, in the first frame or when they are others than before. Never rejects. */
  async #catchUp(client: Client): Promise<void> {
    if (client.asking) return
    client.asking = true
    while (client.stale && this.#clients.has(client)) {
      client.stale = false
      const stats = await this.#queue.stats(client.principal).catch(() => undefined)
      if (stats) this.#sendStats(client, stats)
      else client.sink.leave()
    }
    client.asking = false
  }

  #sendStats(client: Client, stats: QueueStats): void {
    const told = JSON.stringify(stats)
    if (told === client.stats || !this.#clients.has(client)) return
    const isFirst = client.stats === undefined
    client.stats = told
    client.sink.send(
      text(
        isFirst ? { type: 'queue_attached', protocolVersion: PROTOCOL_VERSION, stats } : { type: 'queue_stats', stats },
      ),
    )
  }
}

const text = (frame: QueueFrame): string => JSON.stringify(frame)
