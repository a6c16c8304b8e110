import { setTimeout as sleep } from 'node:timers/promises'
import { toError } from '../../../errors.js'
import { type Backoff, delayAfter } from '../../../lib/backoff.js'
import type { Logger } from '../../../lib/logger.js'
import { ForwardingHost, ForwardingRunner } from '../../forwarding.js'
import type { DeferredExecution, PermissionAsk, Runner, RunnerEvent, RunnerHost } from '../../runner.js'
import type { Carrier } from './carrier.js'

const RETRY: Backoff = { firstMs: 100, longestMs: 5_000 }
/** What cannot be kept after so many tries is left to the next turn. About half a minute. */
const MOST_TRIES = 10

/** What an agent writes down. */
export interface Written {
  /** Its own name of the session; empty while it is not known. */
  sessionId: string
  /** Text that it writes down last in this turn. Absent: not known. */
  last?: string | undefined
}

/** A runner that knows what its agent writes down. */
export interface WritingRunner extends Runner {
  readonly written: Written
}

export interface CarriedRunnerOptions {
  runner: WritingRunner
  carrier: Carrier
  /** Whether the runner goes on with a session of this gateway. */
  isRestored: boolean
  sessionId: string
  logger?: Logger | undefined
}

/**
 * A runner whose agent goes on at any node: its files are brought before it starts, and what it adds is kept before the end of a turn is
 * told, and once more when it is gone.
 */
export class CarriedRunner extends ForwardingRunner {
  readonly #options: CarriedRunnerOptions
  /** One thing at a time; never rejects. */
  #carrying: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(options: CarriedRunnerOptions) {
    super(options.runner)
    this.#options = options
  }

  override async start(host: RunnerHost): Promise<void> {
    if (this.#options.isRestored) await this.#options.carrier.bring()
    await super.start(
      new CarryingHost(
        host,
        () => this.#options.runner.written.last,
        (last) => this.#carry(last),
      ),
    )
  }

  override async close(): Promise<void> {
    this.#isClosed = true
    await super.close()
    await this.#carry()
  }

  #carry(last?: string): Promise<void> {
    this.#carrying = this.#carrying.then(() => this.#tryToCarry(last))
    return this.#carrying
  }

  async #tryToCarry(last: string | undefined): Promise<void> {
    const { runner, carrier, sessionId, logger } = this.#options
    if (runner.written.sessionId === '') return
    for (let tries = 1; ; tries++) {
      try {
        const isFound = await carrier.carry(runner.written.sessionId, last)
        if (!isFound && last !== undefined)
          logger?.warn(
            { sessionId },
            'an agent has written nothing down where it is looked for: its session goes on here alone',
          )
        return
      } catch (error) {
        if (tries === MOST_TRIES || this.#isClosed) {
          const said =
            'what an agent has written down could not be kept for other nodes; it is tried again with its next turn'
          logger?.error({ sessionId, err: toError(error) }, said)
          return
        }
        await sleep(delayAfter(tries, RETRY))
      }
    }
  }
}

/** Holds the end of a turn, and what comes after it, back until what the agent wrote down is kept. */
class CarryingHost extends ForwardingHost {
  readonly #last: () => string | undefined
  readonly #carry: (last?: string) => Promise<void>
  readonly #held: { event: RunnerEvent; last: string | undefined }[] = []
  #passing: Promise<void> | undefined

  constructor(host: RunnerHost, last: () => string | undefined, carry: (last?: string) => Promise<void>) {
    super(host)
    this.#last = last
    this.#carry = carry
  }

  override emit(event: RunnerEvent): void {
    if (!this.#passing && event.type !== 'turn_completed') {
      super.emit(event)
      return
    }
    this.#held.push({ event, last: this.#last() })
    this.#passing ??= this.#pass()
  }

  override async requestPermission(
    ask: PermissionAsk,
    takenBack?: AbortSignal,
  ): ReturnType<RunnerHost['requestPermission']> {
    await this.#passing
    return super.requestPermission(ask, takenBack)
  }

  override async deferExecution(execution: DeferredExecution, takenBack?: AbortSignal): Promise<void> {
    await this.#passing
    await super.deferExecution(execution, takenBack)
  }

  override waitForExecutions(): void {
    if (this.#passing) void this.#passing.then(() => super.waitForExecutions())
    else super.waitForExecutions()
  }

  async #pass(): Promise<void> {
    for (let next = this.#held[0]; next; next = this.#held[0]) {
      if (next.event.type === 'turn_completed') await this.#carry(next.last)
      this.#held.shift()
      super.emit(next.event)
    }
    this.#passing = undefined
  }
}
