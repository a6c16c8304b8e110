import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { LOST_REASON } from '../cluster/standing.js'
import { toError } from '../errors.js'
import { type Backoff, delayAfter } from '../lib/backoff.js'
import type { WorkerServer } from '../server.js'
import type { SessionRegistry } from '../sessions/registry.js'

const RETRY: Backoff = { firstMs: 500, longestMs: 10_000 }

/**
 * The server of a node. When the node was declared dead it is closed as it stands, and another one is built in this process that joins as a
 * new member, at the same address.
 */
export class RejoiningServer implements Omit<WorkerServer, 'queue'> {
  readonly #build: (onLost: () => void) => WorkerServer
  readonly #logger: Logger
  readonly #closed = new AbortController()
  #current: WorkerServer
  #address: { port: number; host: string } | undefined
  /** One building after the other. */
  #rejoining: Promise<void> = Promise.resolve()

  constructor(build: (onLost: () => void) => WorkerServer, logger: Logger) {
    this.#build = build
    this.#logger = logger
    this.#current = this.#next()
  }

  get server(): Server {
    return this.#current.server
  }

  get registry(): SessionRegistry {
    return this.#current.registry
  }

  async listen(port: number, host?: string): Promise<{ port: number; host: string; url: string }> {
    const listening = await this.#current.listen(port, host)
    this.#address = { port: listening.port, host: host ?? listening.host }
    return listening
  }

  async close(): Promise<void> {
    this.#closed.abort()
    await this.#current.close()
    await this.#rejoining
  }

  #next(): WorkerServer {
    const server = this.#build(() => {
      if (!this.#closed.signal.aborted) this.#rejoining = this.#rejoining.then(() => this.#replace(server))
    })
    return server
  }

  async #replace(lost: WorkerServer): Promise<void> {
    // lost while it was starting: that has failed, and is tried again
    if (lost !== this.#current || !this.#address) return
    const { signal } = this.#closed
    this.#logger.error({}, `${LOST_REASON}. It joins again, with nothing of that`)
    for (let tries = 1; ; tries++) {
      await this.#current.close().catch((error) => {
        this.#logger.error({ err: toError(error) }, 'what there was could not be closed')
      })
      if (signal.aborted) return
      try {
        this.#current = this.#next()
        const { url } = await this.#current.listen(this.#address.port, this.#address.host)
        this.#logger.info({ url }, 'joined again')
        return
      } catch (error) {
        if (signal.aborted) return
        const retryInMs = delayAfter(tries, RETRY)
        this.#logger.error({ err: toError(error), retryInMs }, 'could not join again; it is tried again')
        await sleep(retryInMs, undefined, { signal }).catch(() => {})
      }
    }
  }
}
