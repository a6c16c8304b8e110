import type { EventsQuery, SessionEvent } from '../../../schemas/events.js'
import type { Session } from '../session.js'
import type { EventLog } from './event-log.js'

const DEFAULT_PAGE_EVENTS = 1_000
const PAGE_BYTES = 1024 * 1024
const COMMA = Buffer.from(',')

/** Of a `ListEventsResponse`. */
export interface EventsPage {
  events: SessionEvent[]
  nextAfterSeq: number
  lastSeq: number
}

/**
 * A page of a session's log as the JSON text of a `ListEventsResponse`, put together from the bytes that the log holds: up to `limit`
 * events (default 1,000) or about 1 MiB.
 */
export async function eventsPage(session: Session, { limit, ...position }: EventsQuery): Promise<Buffer> {
  const { log } = session
  // who was told a status finds the events that led to it
  await session.durable().catch(() => {})
  const lastSeq = log.visibleSeq
  const { replayingFrom, truncated } = session.clients.resolve(position)
  return readPage(log, { afterSeq: replayingFrom, lastSeq, limit }, (events, nextAfterSeq) => {
    const parts = events.flatMap((json, index) => (index === 0 ? [json] : [COMMA, json]))
    const rest = JSON.stringify({ nextAfterSeq, lastSeq, epoch: log.epoch, truncated })
    return Buffer.concat([Buffer.from('{"events":['), ...parts, Buffer.from(`],${rest.slice(1)}`)])
  })
}

/**
 * Reads the next events of a log up to and including `lastSeq`.
 * @param made makes something of them, each as JSON: the log's own bytes, which are written over once it has returned
 */
export async function readPage<Made>(
  log: EventLog,
  { afterSeq, lastSeq, limit = DEFAULT_PAGE_EVENTS }: { afterSeq: number; lastSeq: number; limit?: number | undefined },
  made: (events: Buffer[], nextAfterSeq: number) => Made,
): Promise<Made> {
  const events: Buffer[] = []
  let nextAfterSeq = afterSeq
  for (let bytes = 0; bytes < PAGE_BYTES && events.length < limit; ) {
    const inMemory = log.read(nextAfterSeq, lastSeq, PAGE_BYTES - bytes)
    const readBack =
      inMemory === 'evicted' && log.isJournaled
        ? await log.readBack(nextAfterSeq, lastSeq, PAGE_BYTES - bytes)
        : undefined
    const slices = readBack?.slices() ?? (inMemory && inMemory !== 'evicted' ? [inMemory] : [])
    const { throughSeq } = readBack ?? { throughSeq: lastSeq }
    if (slices.length === 0) {
      nextAfterSeq = throughSeq
      if (nextAfterSeq >= lastSeq) break
      continue
    }
    for (const slice of slices) {
      // nothing is waited for behind the log's own bytes: what is read back comes before them
      for (const { seq, json } of slice.events()) {
        if (events.length === limit) break
        events.push(json)
        nextAfterSeq = seq
      }
      bytes += slice.frames.length
    }
  }
  return made(events, nextAfterSeq)
}

/** Everything in a session's log after a place, page by page. */
export async function allEvents(session: Session, seq: number): Promise<SessionEvent[]> {
  const all: SessionEvent[] = []
  for (let afterSeq = seq; ; ) {
    const page = JSON.parse((await eventsPage(session, { afterSeq })).toString()) as EventsPage
    all.push(...page.events)
    if (page.nextAfterSeq >= page.lastSeq) return all
    afterSeq = page.nextAfterSeq
  }
}
