import { setMaxListeners } from 'node:events'
import type { SessionNotification } from '../../schemas/notifications.js'
import { toError } from '../errors.js'
import type { Clock } from '../lib/clock.js'
import { type Due, DueTimes } from '../lib/due-times.js'
import { type Persistence, persistently } from '../lib/patience.js'
import type { LeftDelivery, PlannedDelivery, StoredDelivery } from '../webhooks/delivery.js'
import type { DeliveryOutbox } from '../webhooks/outbox.js'
import type { ToldNotification } from './channels/message.js'

/** Tells a channel again of a request that nobody has answered. */
export interface ReminderOptions {
  /** After the request. */
  afterMs: number
  /** Name of the channel. */
  channel: string
}

export interface RemindersOptions extends Omit<Persistence, 'signal'> {
  reminders: readonly ReminderOptions[]
  clock: Clock
  outbox: DeliveryOutbox
  /** Whether the next process finds in the outbox what this one leaves there. */
  outlasts: boolean
  /** Whether a request has no answer yet, live or asleep. */
  isWaiting(sessionId: string, requestId: string): Promise<boolean>
  /** Hands it to the channel; it is kept before this returns. */
  tell(message: ToldNotification, id: string, channel: string): void
}

interface Reminder {
  id: string
  sessionId: string
  requestId: string
  channel: string
  dueAt: number
  message: ToldNotification
}

const LANE = 'reminders'
const idOf = (sessionId: string, requestId: string, index: number): string => `${sessionId}:${requestId}:${index + 1}`
/** Before it is looked again whether a request waits, when that could not be read. */
const RETRY_MS = 5_000

/**
 * Reminders of requests that wait. Each stands in the outbox from the moment of the request on, kept in the same write, until it was
 * handed to its channel or the request was answered: so a restart forgets none and repeats none.
 */
export class Reminders {
  readonly #options: RemindersOptions
  readonly #byId = new Map<string, Reminder>()
  readonly #due: DueTimes
  #started = false
  readonly #stop = new AbortController()

  constructor(options: RemindersOptions) {
    this.#options = options
    this.#due = new DueTimes(options.clock, (fallen) => this.#onDue(fallen))
    // each removal that is tried again listens to it
    setMaxListeners(0, this.#stop.signal)
  }

  /** What is to be kept with a request. */
  plan(notification: SessionNotification): PlannedDelivery[] {
    const { request, sessionId, ts } = notification
    if (notification.type !== 'permission_requested' || !request) return []
    return this.#options.reminders.map(({ afterMs, channel }, index) =>
      this.#planned({
        ...{ id: idOf(sessionId, request.id, index), sessionId, requestId: request.id, channel },
        dueAt: ts + afterMs,
        message: { ...notification, reminder: index + 1 },
      }),
    )
  }

  #planned(reminder: Reminder): PlannedDelivery {
    const { outbox, outlasts } = this.#options
    const { id, channel, dueAt, message } = reminder
    const delivery: StoredDelivery = {
      ...{ type: message.type, payload: message, importance: 'normal', dueAt },
      origin: { kind: 'reminder', channel },
    }
    const kept = outlasts ? { id, lane: LANE, delivery } : undefined
    return {
      kept,
      keep: () => kept && void outbox.add(kept).catch((error) => this.#onUnkept(error)),
      send: () => this.#await(reminder),
      withdraw: () => this.#drop(id),
    }
  }

  /** Whether requests are reminded of. */
  get any(): boolean {
    return this.#options.reminders.length > 0
  }

  /** A request was answered: it is not reminded of any more. */
  onSettled(sessionId: string, requestId: string): void {
    for (const index of this.#options.reminders.keys()) {
      const id = idOf(sessionId, requestId, index)
      if (this.#byId.has(id)) this.#drop(id)
    }
  }

  /**
   * The channels that have been reminded of a request.
   * @param since when it was asked, if that is known: before one is due that another node may have, nobody was told it
   */
  toldOf(sessionId: string, requestId: string, since = Number.NEGATIVE_INFINITY): ReadonlySet<string> {
    const { clock, reminders } = this.#options
    const told = reminders.filter(
      ({ afterMs }, index) => since + afterMs <= clock.now() && !this.#byId.has(idOf(sessionId, requestId, index)),
    )
    return new Set(told.map(({ channel }) => channel))
  }

  /** Whether this process is to tell one. */
  has(id: string): boolean {
    return this.#byId.has(id)
  }

  /** Takes one over that an earlier process left. */
  takeOver({ id, stored }: LeftDelivery): void {
    const message = stored.payload as ToldNotification
    if (stored.origin.kind !== 'reminder' || !message.request) return
    const { channel } = stored.origin
    const { sessionId, request } = message
    this.#await({ id, sessionId, requestId: request.id, channel, dueAt: stored.dueAt!, message })
  }

  /** From now on `isWaiting` says the truth. */
  start(): void {
    this.#started = true
    for (const { id, dueAt } of this.#byId.values()) this.#due.set(id, dueAt)
  }

  stop(): void {
    this.#stop.abort()
    this.#due.stop()
  }

  #await(reminder: Reminder): void {
    this.#byId.set(reminder.id, reminder)
    if (this.#started) this.#due.set(reminder.id, reminder.dueAt)
  }

  #onDue(fallen: readonly Due[]): void {
    for (const { id } of fallen) {
      const reminder = this.#byId.get(id)
      if (reminder) void this.#remind(reminder)
    }
  }

  async #remind(reminder: Reminder): Promise<void> {
    const { isWaiting, tell, clock } = this.#options
    const { id, sessionId, requestId, message, channel } = reminder
    try {
      const waits = await isWaiting(sessionId, requestId)
      if (!this.#byId.has(id) || this.#stop.signal.aborted) return
      // asked for in one turn, so that one of the two is there at any time
      if (waits) tell(message, id, channel)
      this.#drop(id)
    } catch (error) {
      this.#onFault(error)
      if (!this.#stop.signal.aborted) this.#due.set(id, clock.now() + RETRY_MS)
    }
  }

  /** One that stayed in the outbox would be told once more by the next process. */
  #drop(id: string): void {
    const { outbox, outlasts, logger, retryAfter } = this.#options
    this.#byId.delete(id)
    this.#due.delete(id)
    if (!outlasts) return
    const how = { logger, retryAfter, signal: this.#stop.signal }
    persistently(() => outbox.remove(LANE, id), how).catch((error) => this.#onUnkept(error))
  }

  #onUnkept(error: unknown): void {
    this.#options.logger.warn({ err: toError(error) }, 'the outbox of reminders failed')
  }

  #onFault(error: unknown): void {
    this.#options.logger.warn({ err: toError(error) }, 'a reminder could not be looked after; it is tried again')
  }
}
