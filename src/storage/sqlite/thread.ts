import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { ended } from '../../lib/sentence.js'
import { type Call, CallQueue, type Pending } from '../sql/call-queue.js'
import type { CallDatabase } from '../sql/operations.js'
import { StorageError } from '../storage.js'
import type { BatchOutcome } from './batch.js'
import type { ConnectionOptions } from './connection.js'
import { EventTexts } from './event-texts.js'
import type { Failure } from './failures.js'
import { holdExit, InUse } from './in-use.js'

/** Run from its source by a loader, the threads are TypeScript as well. */
const EXTENSION = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
export const threadFile = (name: string): URL => new URL(`./${name}${EXTENSION}`, import.meta.url)

export function startThread(file: URL, workerData: object): Worker {
  // Loaders that the host has for its own code are needed for ours only when it is TypeScript, and take a second to start.
  const execArgv = file.pathname.endsWith('.ts') ? process.execArgv : []
  return new Worker(file, { workerData, execArgv, name: 'sqlite' })
}

type OnBatch = (names: readonly Call[0][]) => void

/** Memory that both threads have. */
interface Shared {
  inUse: InUse
  texts: EventTexts
}

/** The main thread's end of a database. */
export class DatabaseThread {
  readonly #worker: Worker
  readonly #path: string
  readonly #queue: CallQueue
  #ended: StorageError | undefined

  private constructor(worker: Worker, path: string, { inUse, texts }: Shared, onBatch: OnBatch | undefined) {
    this.#worker = worker
    this.#path = path
    const send = (batch: readonly Pending[]) => {
      // A process ends when nothing is left to do, but not before it knows what became of its writes.
      worker.ref()
      const calls = batch.map(({ call }) => call)
      onBatch?.(calls.map(([name]) => name))
      inUse.begin()
      worker.postMessage(texts.put(calls))
    }
    this.#queue = new CallQueue(send, () => this.#ended)
    worker.on('message', (outcome: BatchOutcome) => this.#settle(outcome))
    worker.on('error', (error) => this.#end(error.message))
    worker.on('exit', () => this.#end('it exited'))
    worker.unref()
  }

  /** @throws StorageError when the database cannot be opened */
  static async start(
    options: ConnectionOptions,
    file = threadFile('worker'),
    onBatch?: OnBatch,
  ): Promise<DatabaseThread> {
    const inUse = new InUse()
    const texts = new EventTexts()
    inUse.begin()
    const worker = startThread(file, { ...options, inUse: inUse.memory, texts: texts.memory })
    worker.once('exit', holdExit(inUse))
    const [{ failure }] = (await once(worker, 'message')) as [{ failure?: Failure }]
    if (!failure) return new DatabaseThread(worker, options.path, { inUse, texts }, onBatch)
    await worker.terminate()
    throw new StorageError(failure.code, failure.message)
  }

  get call(): CallDatabase {
    return this.#queue.call
  }

  get atTurnsEnd(): CallQueue['atTurnsEnd'] {
    return this.#queue.atTurnsEnd
  }

  /** Resolves when all that was asked for is done and the database is closed. */
  async close(): Promise<void> {
    await this.#queue.idle()
    if (this.#ended) return
    const exit = new Promise((resolve) => this.#worker.once('exit', resolve))
    this.#worker.ref()
    this.#worker.postMessage(null)
    await exit
  }

  #settle({ results, failures }: BatchOutcome): void {
    const settled = this.#queue.underWay
    for (const { index, failure } of failures) settled[index]!.reject(new StorageError(failure.code, failure.message))
    for (const [index, { resolve }] of settled.entries()) resolve(results[index] as never)
    this.#queue.next()
    if (this.#queue.underWay.length === 0) this.#worker.unref()
  }

  #end(why: string): void {
    if (this.#ended) return
    this.#ended = new StorageError('STORAGE_ENDED', `The thread of ${this.#path} has ended: ${ended(why)}`)
    for (const { reject } of this.#queue.underWay) reject(this.#ended)
    this.#queue.refuse(this.#ended)
    this.#queue.next()
  }
}
