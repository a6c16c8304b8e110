import type { SessionEventOf } from '../../schemas/events.js'
import type { SessionNotification } from '../../schemas/notifications.js'
import type { SessionInfo } from '../../schemas/sessions.js'
import type { MomentEvent } from '../engines/event-types.js'
import { previewOfRequest } from '../jobs/progress.js'
import { copyOf } from '../lib/json-value.js'
import { Listeners } from '../lib/listeners.js'
import type { Logger } from '../lib/logger.js'
import { oneLine } from '../lib/one-line.js'
import type { NotificationFeed } from './feed.js'
import type { Outward } from './outward.js'
import { PlannedInFeed, type PlannedNotification, PlannedOnce, type PlanParts, type ToldRequest } from './planned.js'

/** Where an event stands in the log of its session. */
interface Place {
  seq: number
  ts: number
}

export interface NotifierOptions {
  feed: NotificationFeed
  logger: Logger
  outward: Pick<Outward, 'deliveriesOf' | 'settlementOf' | 'onAsked' | 'onRestored'>
}

/**
 * Tells of four moments of every session: it needs an approval, finished a turn, failed, or ended. A notification is a prompt to look,
 * not the record of what happened.
 */
export class Notifier {
  readonly #parts: PlanParts
  readonly #listeners: Listeners<{ notification: SessionNotification }>
  readonly #outward: NotifierOptions['outward']

  constructor({ feed, logger, outward }: NotifierOptions) {
    const { deliveriesOf } = outward
    this.#outward = outward
    this.#listeners = new Listeners((error) => logger.error({ err: error }, 'onNotification failed'))
    const tell = (notification: SessionNotification) => this.#listeners.emit('notification', notification)
    this.#parts = { feed, deliveriesOf, tell }
  }

  /** What is to be told of an event, to be kept with it; undefined when it is none of the four. */
  readonly notify = (body: MomentEvent, place: Place, info: () => SessionInfo): PlannedNotification | undefined => {
    if (body.type === 'permission_resolved') {
      const deliveries = this.#outward.settlementOf(body, place, info)
      return deliveries.length > 0 ? new PlannedOnce(deliveries) : undefined
    }
    const told = notificationOf(body, place, info)
    if (told?.request) this.#outward.onAsked(told.sessionId, { requestId: told.request.id, since: told.ts })
    return told && new PlannedInFeed(told, this.#parts)
  }

  /** A session was read into memory: these of its requests were told of before. */
  onRestored(sessionId: string, requests: readonly ToldRequest[]): void {
    this.#outward.onRestored(sessionId, requests)
  }

  /**
   * For a host, which may write into what it is told.
   * @returns a function that ends it; a listener that fails is logged and breaks nothing
   */
  on(listener: (notification: SessionNotification) => unknown): () => void {
    return this.#listeners.on('notification', (notification) => listener(copyOf(notification)))
  }
}

/** The notification that an event calls for. */
function notificationOf(
  event: MomentEvent,
  { seq, ts }: Place,
  info: () => SessionInfo,
): Omit<SessionNotification, 'id'> | undefined {
  // written out: V8 makes a hash table of an object that several spreads fill
  const { type } = event
  switch (type) {
    case 'permission_requested': {
      const session = info()
      const { request } = event
      return { type, sessionId: session.id, seq, ts, session, preview: previewOfRequest(request), request }
    }
    case 'turn_completed': {
      const session = info()
      const { isError, durationMs, numTurns, totalCostUsd } = event
      const text = isError ? (event.errors?.[0] ?? event.result) : event.result
      const preview = oneLine(text ?? '') || wordsOf(event)
      const result = { isError, durationMs, numTurns, totalCostUsd }
      return { type, sessionId: session.id, seq, ts, session, preview, result }
    }
    case 'session_error': {
      const session = info()
      const preview = oneLine(event.message) || 'The session failed.'
      return { type, sessionId: session.id, seq, ts, session, preview }
    }
    case 'session_closed': {
      const session = info()
      const { reason } = event
      return { type, sessionId: session.id, seq, ts, session, preview: `The session ended (${reason}).`, reason }
    }
    default:
      return undefined
  }
}

const wordsOf = ({ subtype, isError }: SessionEventOf<'turn_completed'>): string =>
  isError ? 'The turn failed.' : subtype === 'interrupted' ? 'The turn was interrupted.' : 'The turn is finished.'
