import { GatewayError } from '../errors.js'
import type { Clock, Timer } from '../lib/clock.js'
import { Listeners } from '../lib/listeners.js'
import type { Logger } from '../lib/logger.js'
import type { Standstill } from '../lib/standstill.js'
import type { ClusterStorage } from '../storage/cluster.js'

export interface StandingEvents extends Record<string, unknown> {
  /** Nothing may be said or done until `thawed`. */
  frozen: Record<string, never>
  /** All goes on where it was. */
  thawed: Record<string, never>
  /** Frozen for so long that clients had better look elsewhere. */
  moved: Record<string, never>
  /** It is no node any more: what it had is others', and nothing of it may be said, done or written. */
  lost: Record<string, never>
}

export interface StandingParts {
  cluster: ClusterStorage
  standstill: Standstill
  /** One that goes on while nothing may be done. */
  clock: Clock
  /** Milliseconds, as counted by whatever nobody sets. */
  monotonic?: () => number
  logger: Logger
  leaseMs: number
  /** The engines of all sessions. */
  engines: { pause(): void; resume(): void; abandon(): Promise<void> }
  /** Tells whoever outlives this process for how long agents may work; `undefined`: for as long as it works. */
  leaseAgents(leftMs: number | undefined): void
  /** What is done about it; absent: an operator has to. */
  onLost: ((why: string) => void) | undefined
}

const LOST =
  'this node did not reach the database for longer than its lease, and another one has taken over what it had'
const FORGOTTEN =
  'the database has come back without what it had confirmed to this node last, as a restored backup does or a standby that lagged: that is gone'

/**
 * Whether this node may go on. A node whose lease may have run out stands still, since another one may have taken over: it says nothing and
 * does nothing until the database tells which. Then either all goes on, or it is no node any more.
 */
export class Standing {
  readonly listeners: Listeners<StandingEvents>
  readonly #parts: StandingParts
  readonly #monotonic: () => number
  #state: 'serving' | 'frozen' | 'lost' = 'serving'
  /** By when the lease has to be renewed. */
  #until = Number.POSITIVE_INFINITY
  #moves: Timer | undefined
  /** Resolves when the engines of a node that was lost are gone. */
  gone: Promise<void> = Promise.resolve()
  readonly #unsubscribe: (() => void)[]

  constructor(parts: StandingParts) {
    this.#parts = parts
    this.#monotonic = parts.monotonic ?? (() => performance.now())
    const { cluster, standstill, logger } = parts
    this.listeners = new Listeners<StandingEvents>((error, event) =>
      logger.error({ err: error, event }, 'an observer of the node failed'),
    )
    this.#unsubscribe = [
      cluster.on('beat', ({ leftMs }) => this.#onBeat(leftMs)),
      cluster.on('frozen', ({ reason }) => this.#freeze(reason)),
      cluster.on('thawed', () => this.#thaw()),
      cluster.on('lost', ({ reason }) => this.#lose(reason)),
    ]
    // after the process itself was stopped what waits for it may be looked at before any timer
    standstill.look = () => {
      if (this.#monotonic() > this.#until) this.#freeze()
    }
  }

  /** Whether nothing may be said or done now. */
  get stands(): boolean {
    return this.#parts.standstill.stands
  }

  /** Present while it stands still; resolves when it goes on. */
  get goesOn(): Promise<void> | undefined {
    return this.#parts.standstill.goesOn
  }

  get isLost(): boolean {
    return this.#state === 'lost'
  }

  /** What whoever asks for something is told meanwhile. */
  get refusal(): GatewayError {
    return new GatewayError('SG_ERR_STORE_UNAVAILABLE', {
      detail: 'This gateway has lost touch with the others. Try again shortly, or at another one.',
      retryAfterS: 2,
    })
  }

  /** It leaves by itself. */
  close(): void {
    for (const end of this.#unsubscribe) end()
    this.#moves?.cancel()
    this.#until = Number.POSITIVE_INFINITY
    // of one that was lost nothing works again, whatever is left of it
    if (!this.isLost) this.#parts.leaseAgents(undefined)
  }

  #onBeat(leftMs: number): void {
    if (this.isLost) return
    this.#until = this.#monotonic() + leftMs
    // before they are let go, or they would be stopped again
    this.#parts.leaseAgents(leftMs)
    if (this.#parts.cluster.state === 'serving') this.#thaw()
  }

  #freeze(reason?: Error): void {
    if (this.#state !== 'serving') return
    const { standstill, engines, clock, leaseMs, logger } = this.#parts
    this.#state = 'frozen'
    standstill.stop()
    engines.pause()
    logger.warn(
      { leaseMs, ...(reason && { err: reason }) },
      'the database does not renew the lease of this node in time; nothing is served or done until it does',
    )
    this.listeners.emit('frozen', {})
    this.#moves = clock.after(leaseMs, () => this.listeners.emit('moved', {}))
  }

  #thaw(): void {
    if (this.#state !== 'frozen') return
    const { standstill, engines, logger } = this.#parts
    this.#state = 'serving'
    this.#moves?.cancel()
    standstill.goOn()
    engines.resume()
    logger.warn({}, 'the database answers again, and nothing was taken over meanwhile: all goes on')
    this.listeners.emit('thawed', {})
  }

  #lose(reason?: Error): void {
    if (this.isLost) return
    const { standstill, engines, logger, onLost } = this.#parts
    this.#state = 'lost'
    this.#moves?.cancel()
    standstill.end()
    this.listeners.emit('lost', {})
    this.gone = engines.abandon()
    const why = reason ? FORGOTTEN : LOST
    if (onLost) onLost(why)
    else
      logger.error(
        { ...(reason && { err: reason }) },
        `${why}. Nothing is served here any more: start this process, or its gateway, anew`,
      )
  }
}
