import type { SessionEventBody } from '../../schemas/events.js'
import type { NotificationType, SessionNotification } from '../../schemas/notifications.js'
import type { SessionInfo } from '../../schemas/sessions.js'
import { toError } from '../errors.js'
import { previewOfRequest } from '../jobs/progress.js'
import type { Logger } from '../lib/logger.js'
import { oneLine } from '../lib/one-line.js'
import type { WebhookDeliverer } from '../webhooks/deliverer.js'
import type { PlannedDelivery } from '../webhooks/delivery.js'
import type { WebhookTarget } from '../webhooks/target.js'

export interface NotifierOptions {
  deliverer: WebhookDeliverer
  logger: Logger
  /** Absent: there is no webhook. `events`: default all four. */
  webhook: { target: WebhookTarget; events: readonly NotificationType[] | undefined } | undefined
  /** Hears of every notification, whatever the webhook is interested in. */
  onNotification: ((notification: SessionNotification) => unknown) | undefined
}

/** Where an event stands in the log of its session. */
interface Place {
  seq: number
  ts: number
}

/** What is to be told of an event, to be kept with it; undefined when it is none of the four. */
export type Notify = (body: SessionEventBody, place: Place, info: () => SessionInfo) => PlannedDelivery | undefined

/**
 * Tells of four moments of every session: it needs an approval, finished a turn, failed, or ended. A notification is a prompt to look,
 * not the record of what happened.
 */
export function createNotifier({ deliverer, logger, webhook, onNotification }: NotifierOptions): Notify {
  const observe = async (notification: SessionNotification) => {
    try {
      await onNotification?.(notification)
    } catch (error) {
      logger.error({ err: toError(error), sessionId: notification.sessionId }, 'onNotification failed')
    }
  }
  return (body, place, info) => {
    const notification = notificationOf(body, place, info)
    if (!notification) return undefined
    const { type, sessionId, seq } = notification
    const delivery =
      webhook && (!webhook.events || webhook.events.includes(type))
        ? deliverer.plan(sessionId, {
            id: `${sessionId}:${seq}`,
            type,
            payload: notification,
            origin: { kind: 'notification' },
            target: webhook.target,
            importance: type === 'session_closed' ? 'last' : 'normal',
          })
        : undefined
    return {
      kept: delivery?.kept,
      keep: () => delivery?.keep(),
      withdraw: () => delivery?.withdraw(),
      send: () => {
        if (onNotification) void observe(notification)
        delivery?.send()
      },
    }
  }
}

/** The notification that an event calls for. */
function notificationOf(
  event: SessionEventBody,
  { seq, ts }: Place,
  info: () => SessionInfo,
): SessionNotification | undefined {
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
