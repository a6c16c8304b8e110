import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { toError } from '../errors.js'
import { type Backoff, delayAfter } from '../lib/backoff.js'
import type { WorkerServer } from '../server.js'
import type { SessionRegistry } from '../sessions/registry.js'
import { StorageError } from '../storage/storage.js'

const RETRY: Backoff = { firstMs: 500, longestMs: 10_000 }
/** What this program can never use, however often it is tried. */
const HOPELESS: ReadonlySet<string> = new Set(['STORAGE_NEWER', 'STORAGE_FOREIGN'])

/** @param why what the log is to say */
export type OnLost = (why: string) => void

interface Lost {
  server: WorkerServer
  why: string
}

/**
 * The server of a node. When the node was declared dead it is closed as it stands, and another one is built in this process that joins as a
 * new member, at the same address.
 */
export class RejoiningServer implements Omit<WorkerServer, 'queue'> {
  readonly #build: (onLost: OnLost) => WorkerServer
  readonly #logger: Logger
  readonly #closed = new AbortController()
  /** Resolves when it cannot join again, with why; nothing is served then. */
  readonly failed: Promise<Error>
  #fail: (error: Error) => void = () => {}
  #current: WorkerServer
  /** The last one that was declared dead, and why. */
  #lost: Lost | undefined
  #address: { port: number; host: string } | undefined
  /** One building after the other. */
  #rejoining: Promise<void> = Promise.resolve()

  constructor(build: (onLost: OnLost) => WorkerServer, logger: Logger) {
    this.#build = build
    this.#logger = logger
    this.failed = new Promise((resolve) => {
      this.#fail = resolve
    })
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
    // it began to listen all the same
    if (this.#lost) this.#rejoin(this.#lost)
    return listening
  }

  async close(): Promise<void> {
    this.#closed.abort()
    await this.#current.close()
    await this.#rejoining
  }

  #next(): WorkerServer {
    const server = this.#build((why) => {
      this.#lost = { server, why }
      this.#rejoin(this.#lost)
    })
    return server
  }

  #rejoin(lost: Lost): void {
    if (!this.#closed.signal.aborted) this.#rejoining = this.#rejoining.then(() => this.#replace(lost))
  }

  async #replace({ server, why }: Lost): Promise<void> {
    // lost while it was starting: that has failed, and is tried again
    if (server !== this.#current || !this.#address) return
    const { signal } = this.#closed
    this.#logger.error({}, `${why}. It joins again, with nothing of that`)
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
        const hopeless = hopelessIn(error)
        if (hopeless) return this.#fail(hopeless)
        const retryInMs = delayAfter(tries, RETRY)
        this.#logger.error({ err: toError(error), retryInMs }, 'could not join again; it is tried again')
        await sleep(retryInMs, undefined, { signal }).catch(() => {})
      }
    }
  }
}

function hopelessIn(error: unknown): Error | undefined {
  for (let one = error; one instanceof Error; one = one.cause)
    if (one instanceof StorageError && HOPELESS.has(one.code)) return one
  return undefined
}
