import { defaultsOf, GatewayConfig } from '../../../schemas/config.js'
import type { SessionEventBody } from '../../../schemas/events.js'
import { EVENT_TYPES } from '../../engines/event-types.js'
import { toError } from '../../errors.js'
import { newId } from '../../lib/new-id.js'
import type { ReadEvents } from '../kept/journal.js'
import { type LogReaders, LogSegments, type LogSlice, SEGMENT_BYTES } from './log-segments.js'

export type { LogSlice } from './log-segments.js'

/** How much of a session's log is kept in memory; the oldest events go first. */
export interface EventLogLimits {
  /** Default 100,000. */
  maxEvents: number
  /** Bytes as sent. Default 16 MiB. */
  maxBytes: number
}

export const DEFAULT_EVENT_LOG_LIMITS: EventLogLimits = defaultsOf(GatewayConfig.properties.eventLog)

/** Where the events of a log outlive its memory. */
export interface LogJournal {
  /** Of the events that it has, or will have. */
  readonly oldestSeq: number
  /** @param json absent for an event that is live only */
  onAppended(seq: number, json: string | undefined, bytes: number): void
  /** The next events with `afterSeq < seq <= untilSeq`: about `maxBytes`, but at least one when there is one. */
  read(afterSeq: number, untilSeq: number, maxBytes: number): Promise<ReadEvents>
}

/** An event that is no bytes yet: as JSON, or one of our own, of which nobody has asked for the text. */
type Unwritten = { seq: number; json: string } | { seq: number; ts: number; body: SessionEventBody }

/** How much may wait until somebody reads it; the gateway's own events are not counted in characters. */
const MAX_UNWRITTEN_EVENTS = 16
const MAX_UNWRITTEN_CHARS = 4 * 1024

/**
 * The append-only log of one session. `append` gives an event its `seq` and serialises it to its final bytes once; clients are cursors
 * that `read` from where they stand, up to `visibleSeq`.
 */
export class EventLog {
  readonly #limits: EventLogLimits
  readonly #journal: LogJournal | undefined
  readonly #readers: LogReaders | undefined
  readonly #segments = new LogSegments()
  /**
   * The newest events. They become bytes when somebody reads or when they are many: what an idle session has said, or one that ends
   * before anybody looks, needs no segment.
   */
  #unwritten: Unwritten[] = []
  #unwrittenChars = 0
  #epoch: string | undefined
  #lastSeq: number
  /** Where the numbering began here; what the log held by then ends at `#heldBefore`. */
  #numberedFrom: number
  #heldBefore: number
  /** Highest seq that was dropped for lack of room. */
  #evictedThrough: number
  /** `undefined`: everything may be read at once. */
  #shownThrough: number | undefined

  /**
   * @param epoch of a log that is rebuilt; a new one gets its own when it is first asked for
   * @param lastSeq where the numbering goes on, for a log that is rebuilt; the events up to it are not in memory
   * @param journal keeps what is appended; an event is then visible once the journal's writer says so
   * @param readers without them no memory is used again
   * @param heldSeq the newest event that a rebuilt log has; numbers between it and `lastSeq` may have been used and are lost
   */
  constructor(
    epoch?: string,
    limits: EventLogLimits = DEFAULT_EVENT_LOG_LIMITS,
    lastSeq = 0,
    journal?: LogJournal,
    readers?: LogReaders,
    heldSeq = lastSeq,
  ) {
    this.#epoch = epoch
    this.#numberedFrom = lastSeq
    this.#heldBefore = heldSeq
    this.#readers = readers
    this.#limits = limits
    this.#lastSeq = lastSeq
    this.#evictedThrough = lastSeq
    this.#journal = journal
    if (journal) this.#shownThrough = lastSeq
  }

  /** This log's identity: a `seq` means something only together with it. */
  get epoch(): string {
    this.#epoch ??= newId()
    return this.#epoch
  }

  /** Highest number so far, used or reserved: the next event's is above it. */
  get lastSeq(): number {
    return this.#lastSeq
  }

  /** Seq of the newest event; 0 before the first. */
  get headSeq(): number {
    return this.#held(this.#lastSeq)
  }

  #held(seq: number): number {
    return seq <= this.#numberedFrom ? Math.min(seq, this.#heldBefore) : seq
  }

  /** Highest seq that a client may be shown: what a crash could take back is not. */
  get visibleSeq(): number {
    return this.#held(this.#shownThrough ?? this.#lastSeq)
  }

  /** @param seq undefined: nothing is held back any more */
  show(seq: number | undefined): void {
    this.#shownThrough = seq
  }

  /** A cursor below `oldestSeq - 1` has missed events that are no longer kept. */
  get oldestSeq(): number {
    if (this.#journal) return this.#journal.oldestSeq
    this.#writeOut()
    return this.#evictedThrough + 1
  }

  /** @returns its seq @throws TypeError when the body is not JSON; nothing is appended then */
  append(body: SessionEventBody, ts: number): number {
    const seq = this.#lastSeq + 1
    if (!this.#journal && EVENT_TYPES[body.type].isPlain) {
      this.#lastSeq = seq
      this.#unwritten.push({ seq, ts, body })
    } else {
      // one text for the log and for the journal: it is put together once
      const json = eventJson(seq, ts, body)
      const isDelta = body.type === 'stream_delta'
      if (isDelta) this.#writeOut()
      this.#lastSeq = seq
      this.#unwritten.push({ seq, json })
      this.#unwrittenChars += json.length
      if (isDelta) this.#writeOut(body.uuid)
      this.#journal?.onAppended(seq, EVENT_TYPES[body.type].isLive ? undefined : json, json.length)
    }
    if (this.#unwritten.length > MAX_UNWRITTEN_EVENTS || this.#unwrittenChars > MAX_UNWRITTEN_CHARS) this.#writeOut()
    return seq
  }

  /** @param deltaOf uuid of the message that they belong to, when they are deltas */
  #writeOut(deltaOf?: string): void {
    if (this.#unwritten.length === 0) return
    for (const event of this.#unwritten) {
      const json = 'json' in event ? event.json : eventJson(event.seq, event.ts, event.body)
      this.#segments.append(event.seq, json, deltaOf)
    }
    this.#unwritten = []
    this.#unwrittenChars = 0
    this.#evict()
  }

  /** Leaves out the numbers up to and including `seq`, as far as they are not used. */
  skipTo(seq: number): void {
    this.#lastSeq = Math.max(this.#lastSeq, seq)
  }

  /** Everything that is kept nowhere but here, one event as JSON per line. */
  toText(): string {
    if (this.#journal) return ''
    this.#writeOut()
    const lines: string[] = []
    for (let cursor = this.#evictedThrough; cursor < this.#lastSeq; ) {
      const slice = this.read(cursor, this.#lastSeq, SEGMENT_BYTES)
      if (!slice || slice === 'evicted') break
      for (const { json } of slice.events()) lines.push(json.toString())
      cursor = slice.lastSeq
    }
    return lines.join('\n')
  }

  /** The event that `append` would make of a body now, as JSON; nothing is appended. */
  previewText(body: SessionEventBody, ts: number): string {
    return eventJson(this.#lastSeq + 1, ts, body)
  }

  /** A log as `toText` and its place left it. @param lastSeq where the numbering goes on */
  static fromText(
    { epoch, oldestSeq, events }: { epoch: string; oldestSeq: number; events: string },
    limits: EventLogLimits,
    lastSeq: number,
    readers?: LogReaders,
  ): EventLog {
    const log = new EventLog(epoch, limits, oldestSeq - 1, undefined, readers)
    let heldSeq = oldestSeq - 1
    for (const line of events === '' ? [] : events.split('\n')) {
      const { seq, type, uuid } = JSON.parse(line) as { seq: number; type: string; uuid?: string }
      log.#segments.append(seq, line, type === 'stream_delta' ? uuid : undefined)
      heldSeq = seq
    }
    log.#lastSeq = lastSeq
    log.#numberedFrom = lastSeq
    log.#heldBefore = heldSeq
    log.#evict()
    return log
  }

  /**
   * The next events after `afterSeq` up to and including `untilSeq`: at most `maxBytes` of them, but at least one.
   * `undefined` when there are none; `'evicted'` when events after `afterSeq` are not in memory any more.
   */
  read(afterSeq: number, untilSeq: number, maxBytes: number): LogSlice | 'evicted' | undefined {
    this.#writeOut()
    if (afterSeq < this.#evictedThrough) return 'evicted'
    return this.#segments.read(afterSeq, untilSeq, maxBytes)
  }

  /** Whether it may drop what a reader has not been given, and no journal has: it keeps more than half of what it may. */
  get mayOutrun(): boolean {
    const { events, bytes } = this.#segments
    return !this.#journal && (events > this.#limits.maxEvents / 2 || bytes > this.#limits.maxBytes / 2)
  }

  /** Seq after which half of what may be kept follows; `undefined` when less is kept. */
  get halfwaySeq(): number | undefined {
    this.#writeOut()
    return this.#segments.seqBefore(Math.ceil(this.#limits.maxEvents / 2), this.#limits.maxBytes / 2)
  }

  /** Whether an event has left the memory. */
  isEvicted(seq: number): boolean {
    return seq <= this.#evictedThrough
  }

  /** Whether what left the memory can be read back. */
  get isJournaled(): boolean {
    return this.#journal !== undefined
  }

  /**
   * Reads back what left the memory: as `read`, of a log that `isJournaled`.
   * @returns what there is, as bytes once somebody wants them, which is to be once, in `spares` as far as these go; and the place up to
   * which that is all
   */
  async readBack(
    afterSeq: number,
    untilSeq: number,
    maxBytes: number,
  ): Promise<{ slices: (spares?: readonly Buffer[]) => LogSlice[]; throughSeq: number }> {
    const end = Math.min(untilSeq, this.#evictedThrough)
    const events: ReadEvents = (await this.#journal?.read(afterSeq, end, maxBytes)) ?? []
    const slices = (spares?: readonly Buffer[]) => {
      const segments = new LogSegments(SEGMENT_BYTES, spares)
      for (const { seq, json } of events) segments.append(seq, json, undefined)
      events.release?.()
      return segments.readAll()
    }
    return { slices, throughSeq: events.at(-1)?.seq ?? end }
  }

  hasDeltas(uuid: string): boolean {
    return this.#segments.hasDeltas(uuid)
  }

  /** Takes the deltas of a finished message out; slices that were handed out keep the old bytes. */
  dropDeltas(uuid: string): void {
    this.#segments.dropDeltas(uuid)
  }

  /** What was not shown yet has not been kept anywhere else yet. */
  #evict(): void {
    const { maxEvents, maxBytes } = this.#limits
    const segments = this.#segments
    while ((segments.events > maxEvents || segments.bytes > maxBytes) && segments.events > 1) {
      if (this.#shownThrough !== undefined && segments.oldestSeq! > this.#shownThrough) return
      this.#evictedThrough = segments.evict(this.#readers)
    }
  }
}

/** The event as JSON; its place is the log's to say, whatever an engine says of it. @throws TypeError when it is none */
function eventJson(seq: number, ts: number, body: SessionEventBody): string {
  const json = jsonOf('seq' in body || 'ts' in body ? { ...body, seq: undefined, ts: undefined } : body)
  if (json?.[0] !== '{' || json === '{}') throw new TypeError('An event is an object with a type.')
  return `{"seq":${seq},"ts":${ts},${json.slice(1)}`
}

function jsonOf(body: object): string | undefined {
  try {
    return JSON.stringify(body)
  } catch (error) {
    throw new TypeError(`It is not JSON: ${toError(error).message}`, { cause: error })
  }
}
