import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Operations } from '../sql/operations.js'
import { StorageError } from '../storage.js'
import type { BatchOutcome, Call } from './batch.js'
import type { ConnectionOptions } from './connection.js'
import type { Failure } from './failures.js'

/** A batch takes whole turns until it has about so many calls. */
const CALLS_PER_BATCH = 500

/** Run from its source by a loader, the threads are TypeScript as well. */
const EXTENSION = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
export const threadFile = (name: string): URL => new URL(`./${name}${EXTENSION}`, import.meta.url)

export function startThread(file: URL, workerData: object): Worker {
  // Loaders that the host has for its own code are needed for ours only when it is TypeScript, and take a second to start.
  const execArgv = file.pathname.endsWith('.ts') ? process.execArgv : []
  return new Worker(file, { workerData, execArgv, name: 'sqlite' })
}

type Arguments<Name extends keyof Operations> = Parameters<Operations[Name]>
type Result<Name extends keyof Operations> = ReturnType<Operations[Name]>

interface Pending {
  call: Call
  resolve(result: never): void
  reject(error: Error): void
}

type OnBatch = (names: readonly Call[0][]) => void

/**
 * The main thread's end of a database. The calls of one turn of the event loop travel together; while a batch is under way, the next
 * one gathers. So the disk is asked to sync once for all who wait, at once when it is idle.
 */
export class DatabaseThread {
  readonly #worker: Worker
  readonly #path: string
  #turn: Pending[] = []
  /** To be done at the end of the turn. */
  #lastWork: (() => void)[] = []
  #turns: Pending[][] = []
  #underWay: Pending[] = []
  #ended: StorageError | undefined
  #onIdle = () => {}
  readonly #onBatch: OnBatch | undefined

  private constructor(worker: Worker, path: string, onBatch: OnBatch | undefined) {
    this.#worker = worker
    this.#path = path
    this.#onBatch = onBatch
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
    const worker = startThread(file, options)
    const [{ failure }] = (await once(worker, 'message')) as [{ failure?: Failure }]
    if (!failure) return new DatabaseThread(worker, options.path, onBatch)
    await worker.terminate()
    throw new StorageError(failure.code, failure.message)
  }

  /** Resolves after the commit. @throws StorageError when nothing of it was done */
  call<Name extends keyof Operations>(name: Name, ...args: Arguments<Name>): Promise<Result<Name>> {
    return new Promise((resolve, reject) => {
      if (this.#ended) return reject(this.#ended)
      this.#beginTurn()
      this.#turn.push({ call: [name, ...args], resolve, reject })
    })
  }

  /** Runs `work` when this turn of the event loop is over: what it calls goes with the turn's calls. */
  atTurnsEnd(work: () => void): void {
    this.#beginTurn()
    this.#lastWork.push(work)
  }

  #beginTurn(): void {
    if (this.#turn.length + this.#lastWork.length === 0) setImmediate(() => this.#endTurn())
  }

  /** Resolves when all that was asked for is done and the database is closed. */
  async close(): Promise<void> {
    if (this.#isBusy) await new Promise<void>((resolve) => (this.#onIdle = resolve))
    if (this.#ended) return
    const exit = new Promise((resolve) => this.#worker.once('exit', resolve))
    this.#worker.ref()
    this.#worker.postMessage(null)
    await exit
  }

  get #isBusy(): boolean {
    return this.#lastWork.length + this.#turn.length + this.#turns.length + this.#underWay.length > 0
  }

  #endTurn(): void {
    // while it is in the list no other turn begins
    for (const work of this.#lastWork) work()
    this.#lastWork = []
    if (this.#turn.length > 0) this.#turns.push(this.#turn)
    this.#turn = []
    this.#send()
    if (!this.#isBusy) this.#onIdle()
  }

  #send(): void {
    if (this.#underWay.length > 0 || this.#turns.length === 0) return
    let taken = 0
    for (let calls = 0; taken < this.#turns.length && calls < CALLS_PER_BATCH; taken++)
      calls += this.#turns[taken]!.length
    this.#underWay = this.#turns.splice(0, taken).flat()
    // A process ends when nothing is left to do, but not before it knows what became of its writes.
    this.#worker.ref()
    const calls = this.#underWay.map(({ call }) => call)
    this.#onBatch?.(calls.map(([name]) => name))
    this.#worker.postMessage(calls)
  }

  #settle({ results, failures }: BatchOutcome): void {
    const settled = this.#underWay
    this.#underWay = []
    for (const { index, failure } of failures) settled[index]!.reject(new StorageError(failure.code, failure.message))
    for (const [index, { resolve }] of settled.entries()) resolve(results[index] as never)
    this.#send()
    if (this.#underWay.length === 0) this.#worker.unref()
    if (!this.#isBusy) this.#onIdle()
  }

  #end(why: string): void {
    if (this.#ended) return
    this.#ended = new StorageError('STORAGE_ENDED', `The thread of ${this.#path} has ended: ${why}.`)
    for (const { reject } of [...this.#underWay, ...this.#turns.flat(), ...this.#turn]) reject(this.#ended)
    this.#underWay = this.#turn = []
    this.#turns = []
    this.#onIdle()
  }
}
