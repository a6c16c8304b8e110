import type { CallDatabase, Operations } from './operations.js'

/** A batch takes whole turns until it has about so many calls. */
const CALLS_PER_BATCH = 500

/** An operation and its arguments. */
export type Call = [name: keyof Operations, ...args: unknown[]]

/** A call that waits for its answer. */
export interface Pending {
  call: Call
  resolve(result: never): void
  reject(error: Error): void
}

/**
 * Calls on their way to a database. Those of one turn of the event loop travel together; while a batch is under way, the next one
 * gathers. So the disk is asked to sync once for all who wait, at once when it is idle.
 */
export class CallQueue {
  readonly #send: (batch: readonly Pending[]) => void
  /** Why nothing is taken, when nothing is. */
  readonly #refusal: () => Error | undefined
  #turn: Pending[] = []
  /** To be done at the end of the turn. */
  #lastWork: (() => void)[] = []
  #turns: Pending[][] = []
  #underWay: readonly Pending[] = []
  #onIdle = () => {}

  /** @param send is to call `next` once each call of the batch has its answer */
  constructor(send: (batch: readonly Pending[]) => void, refusal: () => Error | undefined) {
    this.#send = send
    this.#refusal = refusal
  }

  /** Resolves after the commit. Rejects with a StorageError when nothing of it was done. */
  readonly call: CallDatabase = (name, ...args) =>
    new Promise((resolve, reject) => {
      const refusal = this.#refusal()
      if (refusal) return reject(refusal)
      this.#beginTurn()
      this.#turn.push({ call: [name, ...args], resolve, reject })
    })

  /** Runs `work` when this turn of the event loop is over: what it calls goes with the turn's calls. */
  readonly atTurnsEnd = (work: () => void): void => {
    this.#beginTurn()
    this.#lastWork.push(work)
  }

  get underWay(): readonly Pending[] {
    return this.#underWay
  }

  /** The batch that was under way is answered. */
  next(): void {
    this.#underWay = []
    this.#sendNext()
    if (!this.#isBusy) this.#onIdle()
  }

  /** What was not sent yet is not going to be. */
  refuse(error: Error): void {
    for (const { reject } of [...this.#turns.flat(), ...this.#turn]) reject(error)
    this.#turn = []
    this.#turns = []
    if (!this.#isBusy) this.#onIdle()
  }

  /** Resolves when everything that was asked for is answered. */
  async idle(): Promise<void> {
    if (this.#isBusy) await new Promise<void>((resolve) => (this.#onIdle = resolve))
  }

  get #isBusy(): boolean {
    return this.#lastWork.length + this.#turn.length + this.#turns.length + this.#underWay.length > 0
  }

  #beginTurn(): void {
    if (this.#turn.length + this.#lastWork.length === 0) setImmediate(() => this.#endTurn())
  }

  #endTurn(): void {
    // while it is in the list no other turn begins
    for (const work of this.#lastWork) work()
    this.#lastWork = []
    if (this.#turn.length > 0) this.#turns.push(this.#turn)
    this.#turn = []
    this.#sendNext()
    if (!this.#isBusy) this.#onIdle()
  }

  #sendNext(): void {
    if (this.#underWay.length > 0 || this.#turns.length === 0) return
    let taken = 0
    for (let calls = 0; taken < this.#turns.length && calls < CALLS_PER_BATCH; taken++)
      calls += this.#turns[taken]!.length
    this.#underWay = this.#turns.splice(0, taken).flat()
    this.#send(this.#underWay)
  }
}
