import type { SessionNotification } from '../../schemas/notifications.js'
import type { PlannedDelivery } from '../webhooks/delivery.js'
import type { NotificationFeed, Placed } from './feed.js'
import type { KeptTelling } from './store.js'

/** What is told of an event outside its session; whoever writes the event down keeps it in the same write. */
export interface PlannedNotification {
  /** What a write that begins now is to keep: once for each try, `written` or `unwritten` follows. */
  write(): KeptTelling
  written(): void
  unwritten(): void
  /** Has it kept in a write of its own: for what is not written down, or elsewhere. */
  keep(): void
  /** Whether it was written down. */
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

/** It gets its place, and with it its id, when it is written down: who has read one has read all that were there before. */
export function planNotification(
  told: Omit<SessionNotification, 'id'>,
  { feed, deliveriesOf, tell }: PlanParts,
): PlannedNotification {
  let placed: Placed | undefined
  let deliveries: PlannedDelivery[] = []
  let isKept = false
  const place = () => {
    placed = feed.place(told)
    deliveries = deliveriesOf(placed.notification)
    return placed
  }
  return {
    write() {
      const { kept } = place()
      return {
        ...(feed.ridesAlong && { notification: kept }),
        deliveries: deliveries.flatMap((delivery) => delivery.kept ?? []),
      }
    },
    written() {
      isKept = true
      if (feed.ridesAlong) feed.commit(placed!)
      else feed.add(placed!)
    },
    unwritten() {
      feed.renounce(placed!)
      placed = undefined
    },
    keep() {
      isKept = true
      feed.add(place())
      for (const delivery of deliveries) delivery.keep()
    },
    get isKept() {
      return isKept
    },
    send() {
      if (!placed) return
      tell(placed.notification)
      for (const delivery of deliveries) delivery.send()
    },
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

  /** It came to nothing: nobody is told, also when a write that has it is still under way. */
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
