import { toError } from '../errors.js'
import type { Clock } from '../lib/clock.js'
import type { Logger } from '../lib/logger.js'
import type { Standstill } from '../lib/standstill.js'
import type { Delivery } from './delivery.js'
import { type GoneTargets, saysGone } from './gone-targets.js'
import { type PostError, post, type Tried, timed } from './post.js'
import { deliveryHeaders } from './signing.js'
import type { Slots } from './slots.js'
import type { WebhookTarget, WriteRequest } from './target.js'

export interface AttemptsOptions {
  clock: Clock
  logger: Logger
  gone: GoneTargets
  slots: Slots
  /** Nothing is sent while it stands still; absent: it never does. */
  standstill: Standstill | undefined
  /** Ends what is under way. */
  signal: AbortSignal
}

const signedJson =
  ({ id, payload }: Delivery, { signingKeys }: WebhookTarget): WriteRequest =>
  (now) => {
    const body = Buffer.from(JSON.stringify(payload))
    return { body, headers: deliveryHeaders(id, body, signingKeys, Math.floor(now / 1000)) }
  }

/** Failures of a receiver that is not there, whatever it is sent. */
const AWAY: ReadonlySet<PostError | undefined> = new Set<PostError>(['dns', 'connect', 'timeout'])

/** Single attempts of deliveries: written, given a connection, sent. */
export class Attempts {
  readonly #options: AttemptsOptions
  /** Receivers that were not there since `leaveAway`. */
  #away: Set<string> | undefined

  constructor(options: AttemptsOptions) {
    this.#options = options
  }

  /** From now on one that is not there is asked no more: what waits for it is left to the next process. */
  leaveAway(): void {
    this.#away ??= new Set()
  }

  /**
   * @param isWithdrawn asked last before it is sent: what waits for its turn may wait for long
   * @returns undefined when it was not made, as this process is ending; 'unwanted' when the target is gone or may not be told it, or when it
   *   is withdrawn
   */
  async make(delivery: Delivery, isWithdrawn: () => boolean): Promise<Tried | 'unwanted' | undefined> {
    const { clock, gone, slots, signal } = this.#options
    const { id, target } = delivery
    const unwritten = () => timed(clock, () => ({ error: 'unwritten' }))
    const namedBy = target.name === undefined ? 'caller' : 'operator'
    const receiver = target.slot ?? (URL.canParse(target.url) ? new URL(target.url).origin : target.url)
    await this.#goesOn()
    if (signal.aborted) return undefined
    // what has to be read for it is read before it takes a connection from others
    const write = await this.#tried(id, () => target.write?.(delivery) ?? signedJson(delivery, target))
    if (!write) return unwritten()
    if (!(await slots.take(receiver, namedBy))) return undefined
    try {
      // another delivery to it was told so while this one waited for its turn
      if (gone.has(target.key)) return 'unwanted'
      if (this.#away?.has(receiver)) return undefined
      // before it says when it was signed: receivers take nothing that is minutes old
      await this.#goesOn()
      const written = await this.#tried(id, () => write(clock.now()))
      if (!written) return await unwritten()
      // meanwhile it may have been called off
      if (signal.aborted) return undefined
      if (isWithdrawn() || target.mayBeTold?.(delivery.payload) === false) return 'unwanted'
      const outcome = await timed(clock, () => post(target, written, clock, signal))
      if (AWAY.has(outcome.error)) this.#away?.add(receiver)
      // before the next one may ask
      if (saysGone(target, outcome.status)) gone.add(target)
      return outcome
    } finally {
      slots.give(receiver, namedBy)
    }
  }

  async #goesOn(): Promise<void> {
    const { standstill, signal } = this.#options
    if (standstill?.stands) await standstill.passed(signal)
  }

  /** @returns undefined when it failed, which is logged */
  async #tried<T>(delivery: string, step: () => T | Promise<T>): Promise<T | undefined> {
    try {
      return await step()
    } catch (error) {
      this.#options.logger.error({ err: toError(error), delivery }, 'a delivery could not be written')
      return undefined
    }
  }
}
