import type { SessionNotification } from '../../schemas/notifications.js'
import type { PlannedDelivery } from '../webhooks/delivery.js'
import type { NotificationFeed, Placed } from './feed.js'
import type { KeptTelling } from './store.js'

/** A request that was told of. */
export interface ToldRequest {
  requestId: string
  /** Epoch milliseconds of when it was asked; absent: nobody knows. */
  since?: number | undefined
}

/** What is told of an event outside its session; whoever writes the event down keeps it in the same write. */
export interface PlannedNotification {
  /** What a write that begins now is to keep: once for each try, `written` or `unwritten` follows. */
  write(): KeptTelling
  written(): void
  unwritten(): void
  /** Has it kept in a write of its own: for what is not written down, or elsewhere. */
  keep(): void
  /** Whether the notification was written down. */
  readonly isKept: boolean
  /** The event is durable: tells of it. Does nothing when it was never to be kept. */
  readonly send: () => void
}

export interface PlanParts {
  feed: NotificationFeed
  /** What is to be delivered of it. */
  deliveriesOf(notification: SessionNotification): PlannedDelivery[]
  /** Who in this process hears of it. */
  tell(notification: SessionNotification): void
}

/** A notification that gets its place, and so its id, when it is written down: who has read one has read all that were there before. */
export class PlannedInFeed implements PlannedNotification {
  readonly #told: Omit<SessionNotification, 'id'>
  readonly #parts: PlanParts
  #placed: Placed | undefined
  #deliveries: readonly PlannedDelivery[] = []
  #isKept = false

  constructor(told: Omit<SessionNotification, 'id'>, parts: PlanParts) {
    this.#told = told
    this.#parts = parts
  }

  get isKept(): boolean {
    return this.#isKept
  }

  #place(): Placed {
    const { feed, deliveriesOf } = this.#parts
    const placed = feed.place(this.#told)
    this.#placed = placed
    this.#deliveries = deliveriesOf(placed.notification)
    return placed
  }

  write(): KeptTelling {
    const { kept } = this.#place()
    const deliveries = this.#deliveries.flatMap((delivery) => delivery.kept ?? [])
    return this.#parts.feed.ridesAlong ? { notification: kept, deliveries } : { deliveries }
  }

  written(): void {
    const { feed } = this.#parts
    this.#isKept = true
    if (feed.ridesAlong) feed.commit(this.#placed!)
    else feed.add(this.#placed!)
  }

  unwritten(): void {
    this.#parts.feed.renounce(this.#placed!)
    this.#placed = undefined
  }

  keep(): void {
    this.#isKept = true
    this.#parts.feed.add(this.#place())
    for (const delivery of this.#deliveries) delivery.keep()
  }

  readonly send = (): void => {
    if (!this.#placed) return
    this.#parts.tell(this.#placed.notification)
    for (const delivery of this.#deliveries) delivery.send()
  }
}

/** What is told, once, of something that may come to nothing, whichever of several writes keeps it first. */
export class PlannedOnce implements PlannedNotification {
  readonly #deliveries: readonly PlannedDelivery[]
  readonly #onSend: () => void
  #isKept = false
  #isSent = false
  #isWithdrawn = false

  /** @param onSend who else is told, with or without deliveries */
  constructor(deliveries: readonly PlannedDelivery[], onSend: () => void = () => {}) {
    this.#deliveries = deliveries
    this.#onSend = onSend
  }

  get isKept(): boolean {
    return this.#isKept
  }

  write(): KeptTelling {
    return { deliveries: this.#isKept || this.#isWithdrawn ? [] : this.#deliveries.flatMap(({ kept }) => kept ?? []) }
  }

  written(): void {
    this.#isKept = true
    if (this.#isWithdrawn) this.#takeBack()
  }

  unwritten(): void {}

  keep(): void {
    if (this.#isKept || this.#isWithdrawn) return
    this.#isKept = true
    for (const delivery of this.#deliveries) delivery.keep()
  }

  readonly send = (): void => {
    if (!this.#isKept || this.#isSent || this.#isWithdrawn) return
    this.#isSent = true
    this.#onSend()
    for (const delivery of this.#deliveries) delivery.send()
  }

  /** What it tells of came to nothing: nobody is told, also when a write that has it is still under way. */
  withdraw(): void {
    this.#isWithdrawn = true
    if (this.#isKept) this.#takeBack()
  }

  #takeBack(): void {
    for (const delivery of this.#deliveries) delivery.withdraw()
  }
}

/** What a write keeps of what is told of its events. */
export function along(told: readonly PlannedNotification[]) {
  const kept = told.map((planned) => planned.write())
  return {
    deliveries: kept.flatMap(({ deliveries }) => deliveries),
    notifications: kept.flatMap(({ notification }) => notification ?? []),
    usage: kept.flatMap(({ usage }) => usage ?? []),
  }
}
