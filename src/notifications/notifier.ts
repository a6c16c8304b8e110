import type { SessionEventBody } from '../../schemas/events.js'
import type { NotificationType, SessionNotification } from '../../schemas/notifications.js'
import type { SessionInfo } from '../../schemas/sessions.js'
import { previewOfRequest } from '../jobs/progress.js'
import { Listeners } from '../lib/listeners.js'
import type { Logger } from '../lib/logger.js'
import { oneLine } from '../lib/one-line.js'
import type { WebhookDeliverer } from '../webhooks/deliverer.js'
import type { PlannedDelivery } from '../webhooks/delivery.js'
import type { WebhookTarget } from '../webhooks/target.js'
import type { NotificationFeed } from './feed.js'
import { type PlannedNotification, type PlanParts, planNotification } from './planned.js'

/** Where an event stands in the log of its session. */
interface Place {
  seq: number
  ts: number
}

export interface NotifierOptions {
  feed: NotificationFeed
  logger: Logger
  /** What is to be delivered of a notification, to whichever channels want it. */
  deliveriesOf(notification: SessionNotification): PlannedDelivery[]
}

/**
 * Tells of four moments of every session: it needs an approval, finished a turn, failed, or ended. A notification is a prompt to look,
 * not the record of what happened.
 */
export class Notifier {
  readonly #parts: PlanParts
  readonly #listeners: Listeners<{ notification: SessionNotification }>

  constructor({ feed, logger, deliveriesOf }: NotifierOptions) {
    this.#listeners = new Listeners((error) => logger.error({ err: error }, 'onNotification failed'))
    const tell = (notification: SessionNotification) => this.#listeners.emit('notification', notification)
    this.#parts = { feed, deliveriesOf, tell }
  }

  /** What is to be told of an event, to be kept with it; undefined when it is none of the four. */
  readonly notify = (
    body: SessionEventBody,
    place: Place,
    info: () => SessionInfo,
  ): PlannedNotification | undefined => {
    const told = notificationOf(body, place, info)
    return told && planNotification(told, this.#parts)
  }

  /** @returns a function that ends it; a listener that fails is logged and breaks nothing */
  on(listener: (notification: SessionNotification) => unknown): () => void {
    return this.#listeners.on('notification', listener)
  }
}

/** The notification that an event calls for. */
function notificationOf(
  event: SessionEventBody,
  { seq, ts }: Place,
  info: () => SessionInfo,
): Omit<SessionNotification, 'id'> | undefined {
  const common = () => {
    const session = info()
    return { sessionId: session.id, seq, ts, session }
  }
  switch (event.type) {
    case 'permission_requested': {
      const { type, request } = event
      return { type, ...common(), preview: previewOfRequest(request), request }
    }
    case 'turn_completed': {
      const { type, isError, durationMs, numTurns, totalCostUsd } = event
      const text = isError ? (event.errors?.[0] ?? event.result) : event.result
      const preview = oneLine(text ?? '') || (isError ? 'The turn failed.' : 'The turn is finished.')
      return { type, ...common(), preview, result: { isError, durationMs, numTurns, totalCostUsd } }
    }
    case 'session_error':
      return { type: event.type, ...common(), preview: oneLine(event.message) || 'The session failed.' }
    case 'session_closed':
      return { type: event.type, ...common(), preview: `The session ended (${event.reason}).`, reason: event.reason }
    default:
      return undefined
  }
}

/** The operator's webhook: a lane for each session. @param events absent: all of them */
export const webhookDeliveries =
  (deliverer: WebhookDeliverer, target: WebhookTarget, events: readonly NotificationType[] | undefined) =>
  (notification: SessionNotification): PlannedDelivery[] => {
    const { type, sessionId, seq } = notification
    if (events && !events.includes(type)) return []
    const delivery = deliverer.plan(sessionId, {
      id: `${sessionId}:${seq}`,
      ...{ type, payload: notification, target },
      origin: { kind: 'notification' },
      importance: type === 'session_closed' ? 'last' : 'normal',
    })
    return [delivery]
  }
