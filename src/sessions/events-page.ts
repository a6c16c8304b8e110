import type { EventsQuery } from '../../schemas/events.js'
import type { Session } from './session.js'

const DEFAULT_PAGE_EVENTS = 1_000
const PAGE_BYTES = 1024 * 1024
const COMMA = Buffer.from(',')

/**
 * A page of a session's log as the JSON text of a `ListEventsResponse`, put together from the bytes that the log holds: up to `limit`
 * events (default 1,000) or about 1 MiB.
 */
export function eventsPage(session: Session, { limit = DEFAULT_PAGE_EVENTS, ...position }: EventsQuery): Buffer {
  const { log } = session
  const { replayingFrom, truncated } = session.clients.resolve(position)
  const events: Buffer[] = []
  let nextAfterSeq = replayingFrom
  for (let bytes = 0; bytes < PAGE_BYTES && events.length < limit; ) {
    const slice = log.read(nextAfterSeq, log.lastSeq, PAGE_BYTES - bytes)
    if (slice === undefined || slice === 'evicted') {
      nextAfterSeq = log.lastSeq
      break
    }
    for (const { seq, json } of slice.events()) {
      if (events.length === limit) break
      events.push(json)
      nextAfterSeq = seq
    }
    bytes += slice.frames.length
  }
  const parts = events.flatMap((json, index) => (index === 0 ? [json] : [COMMA, json]))
  const rest = JSON.stringify({ nextAfterSeq, lastSeq: log.lastSeq, epoch: log.epoch, truncated })
  return Buffer.concat([Buffer.from('{"events":['), ...parts, Buffer.from(`],${rest.slice(1)}`)])
}
