import type { WebhookDelivery } from '../../schemas/jobs.js'

/** Attempts that are kept of each lane, and of all lanes together; the oldest go first. */
export const ATTEMPTS_PER_LANE = 100
export const MAX_ATTEMPTS = 1_000_000
/** Targets that are remembered as gone; the oldest go first. */
export const MAX_GONE = 10_000

/**
 * Whose attempts go when they are old: of a notification, of calls of a tool. The others are of jobs, whose lanes have their ids, and are
 * forgotten with them.
 */
export const isOfPassing = (lane: string): boolean => lane.includes(' ')

/** A delivery as it is kept until it was made or given up. */
export interface KeptDelivery {
  /** The delivery's own id, sent as `webhook-id`. */
  id: string
  /** Deliveries of one lane go out in the order in which they were added. */
  lane: string
  /** Whatever the deliverer needs to make the delivery again; survives JSON. */
  delivery: object
}

/**
 * Where deliveries wait, so that a crash does not lose them. What is asked of it is done in that order; `deliveryOutboxConformance` says
 * what each method does.
 */
export interface DeliveryOutbox {
  /** Resolves when it is durable. An id that is kept already in that lane is left as it is. */
  add(kept: KeptDelivery): Promise<void>
  /** Keeps what has become of a delivery, in its place. Does nothing when it is not kept. Absent: after a crash it is as it was added. */
  change?(kept: KeptDelivery): Promise<void>
  /** The delivery was made or given up. Does nothing when it is not kept. */
  remove(lane: string, id: string): Promise<void>
  /**
   * Everything that this process has to make, in the order in which it was added.
   * @param lanes only those; may be left out of account
   * @param onUnreadable told of each one that is there and cannot be read; it is left in place
   */
  list(lanes?: readonly string[], onUnreadable?: (error: Error) => void): Promise<KeptDelivery[]>
  /**
   * Whether another process, which is alive or whose deliveries are about to be taken over, has to make deliveries of that lane before
   * this one's. Absent: nobody else makes any.
   * @param ids of those that this one still has to make there; where none of them is kept, all that another one has comes before
   */
  readonly isHeldUp?: ((lane: string, ids: readonly string[]) => Promise<boolean>) | undefined
  /** Adds to the log of attempts of a lane; each lane keeps its last hundred. */
  log(lane: string, attempt: WebhookDelivery): Promise<void>
  /** The attempts of a lane, newest first, at most a hundred. */
  attempts(lane: string): Promise<WebhookDelivery[]>
  /** Forgets the attempts of a lane, and that a target with its name is gone. */
  forget(lane: string): Promise<void>
  /** Forgets, a few at a time, the attempts of before a time of lanes with a blank in their name. Absent: they go as all others. */
  prune?(before: number): Promise<void>
  /** A target has answered that nothing is to be sent to it any more; at least the last ten thousand are kept. */
  rememberGone?(target: string): Promise<void>
  /** The targets that are gone. */
  gone?(): Promise<string[]>
}
