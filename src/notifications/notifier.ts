import type { SessionEvent } from '../../schemas/events.js'
import type { NotificationType, SessionNotification } from '../../schemas/notifications.js'
import type { SessionInfo } from '../../schemas/sessions.js'
import { toError } from '../errors.js'
import { previewOfRequest } from '../jobs/progress.js'
import type { Logger } from '../lib/logger.js'
import { oneLine } from '../lib/one-line.js'
import type { SessionRegistry } from '../sessions/registry.js'
import type { WebhookDeliverer } from '../webhooks/deliverer.js'
import type { WebhookTarget } from '../webhooks/target.js'

export interface NotifierOptions {
  registry: Pick<SessionRegistry, 'on'>
  deliverer: WebhookDeliverer
  logger: Logger
  /** Absent: there is no webhook. `events`: default all four. */
  webhook: { target: WebhookTarget; events: readonly NotificationType[] | undefined } | undefined
  /** Hears of every notification, whatever the webhook is interested in. */
  onNotification: ((notification: SessionNotification) => unknown) | undefined
}

/**
 * Tells of four moments of every session: it needs an approval, finished a turn, failed, or ended. A notification is a prompt to look,
 * not the record of what happened.
 * @returns a function that ends it
 */
export function startNotifier({ registry, deliverer, logger, webhook, onNotification }: NotifierOptions): () => void {
  const observe = async (notification: SessionNotification) => {
    try {
      await onNotification?.(notification)
    } catch (error) {
      logger.error({ err: toError(error), sessionId: notification.sessionId }, 'onNotification failed')
    }
  }
  return registry.on('session_event', ({ event, session }) => {
    const notification = notificationOf(event, session)
    if (!notification) return
    if (onNotification) void observe(notification)
    const { type, sessionId, seq } = notification
    if (!webhook || (webhook.events && !webhook.events.includes(type))) return
    deliverer.enqueue(sessionId, {
      id: `${sessionId}:${seq}`,
      type,
      payload: notification,
      origin: { kind: 'notification' },
      target: webhook.target,
      importance: type === 'session_closed' ? 'last' : 'normal',
    })
  })
}

/** The notification that an event calls for. */
function notificationOf(event: SessionEvent, session: SessionInfo): SessionNotification | undefined {
  const { seq, ts } = event
  const common = { sessionId: session.id, seq, ts, session }
  switch (event.type) {
    case 'permission_requested': {
      const { type, request } = event
      return { type, ...common, preview: previewOfRequest(request), request }
    }
    case 'turn_completed': {
      const { type, isError, durationMs, numTurns, totalCostUsd } = event
      const text = isError ? (event.errors?.[0] ?? event.result) : event.result
      const preview = oneLine(text ?? '') || (isError ? 'The turn failed.' : 'The turn is finished.')
      return { type, ...common, preview, result: { isError, durationMs, numTurns, totalCostUsd } }
    }
    case 'session_error':
      return { type: event.type, ...common, preview: oneLine(event.message) || 'The session failed.' }
    case 'session_closed':
      return { type: event.type, ...common, preview: `The session ended (${event.reason}).`, reason: event.reason }
    default:
      return undefined
  }
}
