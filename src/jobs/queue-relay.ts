import type { JobEvent } from '../../schemas/jobs.js'
import type { Cluster } from '../cluster/cluster.js'
import { type Backoff, delayAfter } from '../lib/backoff.js'
import type { Clock, Timer } from '../lib/clock.js'
import type { ClusterNode } from '../storage/cluster.js'

/** Where a node tells others what happens to the jobs that it runs and takes in: one event per line, an empty line when there is none. */
export const RELAY_PATH = '/cluster/v1/queue-events'
/** A node from which nothing comes for so long is asked anew. */
export const RELAY_BEAT_MS = 10_000

const SILENT_MS = 3 * RELAY_BEAT_MS
const RETRY: Backoff = { firstMs: 200, longestMs: 5_000 }

export interface QueueRelayOptions {
  cluster: Pick<Cluster, 'others' | 'ask'> & { onNodes(listener: () => void): void }
  /** `RELAY_PATH` with what stands before it. */
  path: string
  clock: Clock
}

export interface RelayListener {
  /** @param by the node that tells it */
  onEvent(event: JobEvent, by: number): void
  /** Something may have happened that nobody told. */
  onGap(): void
}

/** What happens to jobs at all other nodes, for as long as somebody here listens. */
export class QueueRelay {
  readonly #options: QueueRelayOptions
  readonly #lines = new Map<number, AbortController>()
  #listener: RelayListener | undefined

  constructor(options: QueueRelayOptions) {
    this.#options = options
    options.cluster.onNodes(() => this.#follow())
  }

  start(listener: RelayListener): void {
    this.#listener = listener
    this.#follow()
  }

  stop(): void {
    this.#listener = undefined
    for (const line of this.#lines.values()) line.abort()
    this.#lines.clear()
  }

  /** One line to each that is there, none to those that are not. */
  #follow(): void {
    if (!this.#listener) return
    const others = this.#options.cluster.others()
    const alive = new Set(others.map(({ n }) => n))
    for (const [n, line] of this.#lines)
      if (!alive.has(n)) {
        line.abort()
        this.#lines.delete(n)
      }
    for (const node of others) if (!this.#lines.has(node.n)) void this.#hear(node)
  }

  /** Never rejects. */
  async #hear(node: ClusterNode): Promise<void> {
    const { clock } = this.#options
    const over = new AbortController()
    this.#lines.set(node.n, over)
    for (let tries = 1; !over.signal.aborted; tries++) {
      const heard = await this.#read(node, over.signal)
      if (over.signal.aborted) return
      if (heard) tries = 1
      // what happened meanwhile was told to nobody here
      this.#listener?.onGap()
      await new Promise<void>((resolve) => clock.after(delayAfter(tries, RETRY), resolve))
    }
  }

  /** Until the other node ends it, or says nothing any more. @returns whether it has said anything; never rejects */
  async #read(node: ClusterNode, over: AbortSignal): Promise<boolean> {
    const { cluster, clock, path } = this.#options
    const silent = new AbortController()
    let timer: Timer | undefined
    const listen = () => {
      timer?.cancel()
      timer = clock.after(SILENT_MS, () => silent.abort())
    }
    let heard = false
    try {
      listen()
      const signal = AbortSignal.any([over, silent.signal])
      const { body, ok } = await cluster.ask(node, { method: 'GET', path, signal, isStream: true })
      if (!ok || !body) return false
      let rest = ''
      for await (const text of body.pipeThrough(new TextDecoderStream())) {
        listen()
        if (!heard) this.#listener?.onGap()
        heard = true
        const lines = `${rest}${text}`.split('\n')
        rest = lines.pop()!
        for (const line of lines) if (line !== '') this.#listener?.onEvent(JSON.parse(line) as JobEvent, node.n)
      }
    } catch {
      // it is asked again, unless it is gone
    } finally {
      timer?.cancel()
    }
    return heard
  }
}
