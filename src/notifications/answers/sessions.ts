import type { SessionEvent } from '../../../schemas/events.js'
import { UNLIMITED } from '../../principal.js'
import { type EventsPage, eventsPage } from '../../sessions/log/events-page.js'
import type { SessionRegistry } from '../../sessions/registry.js'
import type { AnswerableSessions, Resolved } from './answer-links.js'

/** How far behind a request its settlement is looked for: as a rule the very next events are of it. */
const PAGES = 5

/** The sessions of a registry, for whoever holds a link: it may answer one request, whatever profile it is of. */
export const answerableSessions = (registry: SessionRegistry): AnswerableSessions => ({
  async waiting(sessionId, requestId) {
    const info = await registry.visibleInfo(sessionId, UNLIMITED)
    if (!info.parked && info.pendingPermissions === 0) return undefined
    // what is asked of a parked session is in its record, which is read for nobody else
    const waiting =
      info.parked?.permissions?.find(({ id }) => id === requestId) ??
      (info.parked
        ? undefined
        : (await registry.open(sessionId, UNLIMITED)).pendingPermissions.find(({ id }) => id === requestId))
    return waiting && { request: waiting, session: info }
  },
  resolve: (sessionId, requestId, answer) =>
    registry.resolvePermission(sessionId, requestId, answer, UNLIMITED, { channel: 'link' }),
  profileOf: async (sessionId) => (await registry.visibleInfo(sessionId, UNLIMITED)).profile,
  async resolution(sessionId, requestId, seq) {
    const session = await registry.open(sessionId, UNLIMITED)
    for (let page = 0, afterSeq = seq; page < PAGES; page++) {
      const { events, nextAfterSeq, lastSeq } = JSON.parse(
        (await eventsPage(session, { afterSeq })).toString(),
      ) as EventsPage
      const found = events.find((event): event is SessionEvent & Resolved => isResolution(event, requestId))
      if (found || nextAfterSeq >= lastSeq) return found
      afterSeq = nextAfterSeq
    }
    return undefined
  },
})

const isResolution = (event: SessionEvent, requestId: string): boolean =>
  event.type === 'permission_resolved' && event.requestId === requestId
