import type { SessionEvent, SessionEventBody } from '../../schemas/events.js'
import { newId } from '../lib/clock.js'
import { frameHeaderLength, framePayloadStart, writeFrameHeader } from './frames.js'

/** How much of a session's log is kept in memory; the oldest events go first. */
export interface EventLogLimits {
  /** Default 100,000. */
  maxEvents: number
  /** Bytes as sent. Default 16 MiB. */
  maxBytes: number
}

export const DEFAULT_EVENT_LOG_LIMITS: EventLogLimits = { maxEvents: 100_000, maxBytes: 16 * 1024 * 1024 }

const FIRST_SEGMENT_BYTES = 512
const SEGMENT_BYTES = 64 * 1024
/** How much may wait as text until somebody reads it. */
const MAX_UNWRITTEN_EVENTS = 16
const MAX_UNWRITTEN_CHARS = 4 * 1024
const BEFORE_EVENT = '{"type":"event","event":'
const AFTER_EVENT = '}'

/**
 * A run of events as the bytes that go on a socket, one WebSocket text message after the other. Bytes once handed out are never
 * written again, so a slice of `bytes` is what every client at that place is sent, without a copy.
 */
interface Segment {
  bytes: Buffer
  used: number
  /** Index of the first event still kept. */
  first: number
  seqs: number[]
  /** End offset of each event's frame. */
  ends: number[]
  /** uuid of the message that a `stream_delta` belongs to, by index; sparse. */
  deltas: Map<number, string> | undefined
}

/** Events as they stand in the log, ready to send. */
export interface LogSlice {
  /** WebSocket frames, back to back. */
  frames: Buffer
  firstSeq: number
  lastSeq: number
  /** The events of the slice as JSON, one by one, for transports that frame differently. */
  events(): Iterable<{ seq: number; json: Buffer }>
}

/**
 * The append-only log of one session. `append` gives an event its `seq` and serialises it to its final bytes once; clients are cursors
 * that `read` from where they stand.
 */
export class EventLog {
  readonly #limits: EventLogLimits
  readonly #segments: Segment[] = []
  /**
   * The newest events, as JSON. They become bytes when somebody reads or when they are many: what an idle session has said, or one that
   * ends before anybody looks, needs no segment.
   */
  #unwritten: string[] = []
  #unwrittenChars = 0
  #epoch: string | undefined
  #lastSeq: number
  /** Highest seq that was dropped for lack of room. */
  #evictedThrough: number
  #events = 0
  #bytes = 0
  #deltaSegments: Map<string, Set<Segment>> | undefined
  #lastRead: { afterSeq: number; untilSeq: number; maxBytes: number; slice: LogSlice } | undefined

  /**
   * @param epoch of a log that is rebuilt; a new one gets its own when it is first asked for
   * @param lastSeq where the numbering goes on, for a log that is rebuilt; the events up to it are not kept here
   */
  constructor(epoch?: string, limits: EventLogLimits = DEFAULT_EVENT_LOG_LIMITS, lastSeq = 0) {
    this.#epoch = epoch
    this.#limits = limits
    this.#lastSeq = lastSeq
    this.#evictedThrough = lastSeq
  }

  /** This log's identity: a `seq` means something only together with it. */
  get epoch(): string {
    this.#epoch ??= newId()
    return this.#epoch
  }

  /** Highest seq so far; 0 before the first event. */
  get lastSeq(): number {
    return this.#lastSeq
  }

  /** A cursor below `oldestSeq - 1` has missed events that are no longer kept. */
  get oldestSeq(): number {
    this.#writeOut()
    return this.#evictedThrough + 1
  }

  /** @throws TypeError or RangeError when the body is not JSON; nothing is appended then */
  append(body: SessionEventBody, ts: number): SessionEvent {
    const seq = this.#lastSeq + 1
    const event = { seq, ts, ...body } as SessionEvent
    const json = JSON.stringify(event)
    if (body.type === 'stream_delta') this.#writeOut()
    this.#lastSeq = seq
    this.#unwritten.push(json)
    this.#unwrittenChars += json.length
    if (body.type === 'stream_delta') this.#writeOut(body.uuid)
    else if (this.#unwritten.length > MAX_UNWRITTEN_EVENTS || this.#unwrittenChars > MAX_UNWRITTEN_CHARS)
      this.#writeOut()
    return event
  }

  /** @param deltaOf uuid of the message that they belong to, when they are deltas */
  #writeOut(deltaOf?: string): void {
    if (this.#unwritten.length === 0) return
    let seq = this.#lastSeq - this.#unwritten.length
    for (const json of this.#unwritten) this.#write(++seq, json, deltaOf)
    this.#unwritten = []
    this.#unwrittenChars = 0
    this.#evict()
  }

  /** Everything that is kept, one event as JSON per line. */
  toText(): string {
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
    return JSON.stringify({ seq: this.#lastSeq + 1, ts, ...body })
  }

  /** A log as `toText` and its place left it. @param lastSeq where the numbering goes on */
  static fromText(
    { epoch, oldestSeq, events }: { epoch: string; oldestSeq: number; events: string },
    limits: EventLogLimits,
    lastSeq: number,
  ): EventLog {
    const log = new EventLog(epoch, limits, oldestSeq - 1)
    for (const line of events === '' ? [] : events.split('\n')) {
      const { seq, type, uuid } = JSON.parse(line) as { seq: number; type: string; uuid?: string }
      log.#write(seq, line, type === 'stream_delta' ? uuid : undefined)
    }
    log.#lastSeq = lastSeq
    log.#evict()
    return log
  }

  /**
   * The next events after `afterSeq` up to and including `untilSeq`: at most `maxBytes` of them, but at least one.
   * `undefined` when there are none; `'evicted'` when events after `afterSeq` are no longer kept.
   */
  read(afterSeq: number, untilSeq: number, maxBytes: number): LogSlice | 'evicted' | undefined {
    this.#writeOut()
    if (afterSeq < this.#evictedThrough) return 'evicted'
    const last = this.#lastRead
    if (last && last.afterSeq === afterSeq && last.untilSeq === untilSeq && last.maxBytes === maxBytes)
      return last.slice
    const segment = this.#segmentAfter(afterSeq)
    if (!segment) return undefined
    const from = Math.max(segment.first, firstAbove(segment.seqs, afterSeq))
    if (segment.seqs[from]! > untilSeq) return undefined
    const startByte = from === 0 ? 0 : segment.ends[from - 1]!
    let to = firstAbove(segment.seqs, untilSeq) - 1
    if (segment.ends[to]! - startByte > maxBytes)
      to = Math.max(from, firstAbove(segment.ends, startByte + maxBytes) - 1)
    const slice = sliceOf(segment, from, to, startByte)
    this.#lastRead = { afterSeq, untilSeq, maxBytes, slice }
    return slice
  }

  #segmentAfter(afterSeq: number): Segment | undefined {
    let low = 0
    let high = this.#segments.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#segments[middle]!.seqs.at(-1)! > afterSeq) high = middle
      else low = middle + 1
    }
    return this.#segments[low]
  }

  #write(seq: number, event: string, deltaOf: string | undefined): void {
    const json = BEFORE_EVENT + event + AFTER_EVENT
    const payloadBytes = Buffer.byteLength(json)
    const frameBytes = frameHeaderLength(payloadBytes) + payloadBytes
    const segment = this.#roomFor(frameBytes)
    segment.bytes.write(json, writeFrameHeader(segment.bytes, segment.used, payloadBytes))
    segment.used += frameBytes
    segment.ends.push(segment.used)
    if (deltaOf !== undefined) {
      segment.deltas ??= new Map()
      segment.deltas.set(segment.seqs.length, deltaOf)
      this.#deltaSegments ??= new Map()
      const segments = this.#deltaSegments.get(deltaOf)
      if (segments) segments.add(segment)
      else this.#deltaSegments.set(deltaOf, new Set([segment]))
    }
    segment.seqs.push(seq)
    this.#events++
    this.#bytes += frameBytes
    this.#lastRead = undefined
  }

  #roomFor(frameBytes: number): Segment {
    const last = this.#segments.at(-1)
    if (last && last.used + frameBytes <= last.bytes.length) return last
    if (last && last.used + frameBytes <= SEGMENT_BYTES) {
      const grown = Buffer.allocUnsafeSlow(
        Math.min(SEGMENT_BYTES, Math.max(last.bytes.length * 2, last.used + frameBytes)),
      )
      last.bytes.copy(grown, 0, 0, last.used)
      last.bytes = grown
      return last
    }
    const size = last ? SEGMENT_BYTES : FIRST_SEGMENT_BYTES
    const segment: Segment = {
      bytes: Buffer.allocUnsafeSlow(Math.max(size, frameBytes)),
      used: 0,
      first: 0,
      seqs: [],
      ends: [],
      deltas: undefined,
    }
    this.#segments.push(segment)
    return segment
  }

  hasDeltas(uuid: string): boolean {
    return this.#deltaSegments?.has(uuid) ?? false
  }

  /** Takes the deltas of a finished message out; slices that were handed out keep the old bytes. */
  dropDeltas(uuid: string): void {
    const segments = this.#deltaSegments?.get(uuid)
    if (!segments) return
    this.#deltaSegments?.delete(uuid)
    for (const segment of segments) this.#rewrite(segment, uuid)
    this.#lastRead = undefined
  }

  #rewrite(segment: Segment, droppedUuid: string): void {
    const position = this.#segments.indexOf(segment)
    if (position === -1) return
    const isLast = position === this.#segments.length - 1
    const kept: Segment = {
      bytes: isLast ? Buffer.allocUnsafeSlow(segment.bytes.length) : segment.bytes,
      used: 0,
      first: 0,
      seqs: [],
      ends: [],
      deltas: undefined,
    }
    const runs: Buffer[] = []
    for (let index = segment.first; index < segment.seqs.length; index++) {
      const start = index === 0 ? 0 : segment.ends[index - 1]!
      const end = segment.ends[index]!
      const uuid = segment.deltas?.get(index)
      if (uuid === droppedUuid) {
        this.#events--
        this.#bytes -= end - start
        continue
      }
      runs.push(segment.bytes.subarray(start, end))
      kept.used += end - start
      if (uuid !== undefined) {
        kept.deltas ??= new Map()
        kept.deltas.set(kept.seqs.length, uuid)
      }
      kept.seqs.push(segment.seqs[index]!)
      kept.ends.push(kept.used)
    }
    if (kept.seqs.length === 0) {
      this.#segments.splice(position, 1)
      return
    }
    if (!isLast) kept.bytes = Buffer.allocUnsafeSlow(kept.used)
    let at = 0
    for (const run of runs) at += run.copy(kept.bytes, at)
    Object.assign(segment, kept)
  }

  #evict(): void {
    const { maxEvents, maxBytes } = this.#limits
    while ((this.#events > maxEvents || this.#bytes > maxBytes) && this.#events > 1) {
      const segment = this.#segments[0]!
      const index = segment.first++
      const start = index === 0 ? 0 : segment.ends[index - 1]!
      this.#evictedThrough = segment.seqs[index]!
      this.#events--
      this.#bytes -= segment.ends[index]! - start
      if (segment.first === segment.seqs.length) {
        this.#segments.shift()
        for (const [uuid, segments] of this.#deltaSegments ?? [])
          if (segments.delete(segment) && segments.size === 0) this.#deltaSegments?.delete(uuid)
      }
    }
  }
}

/** Index of the first number above `value` in an ascending list. */
function firstAbove(ascending: number[], value: number): number {
  let low = 0
  let high = ascending.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (ascending[middle]! > value) high = middle
    else low = middle + 1
  }
  return low
}

function sliceOf(segment: Segment, from: number, to: number, startByte: number): LogSlice {
  const { bytes, seqs, ends } = segment
  const endByte = ends[to]!
  return {
    frames: bytes.subarray(startByte, endByte),
    firstSeq: seqs[from]!,
    lastSeq: seqs[to]!,
    *events() {
      let start = startByte
      for (let index = from; index <= to; index++) {
        const end = ends[index]!
        const eventStart = framePayloadStart(bytes, start) + BEFORE_EVENT.length
        yield { seq: seqs[index]!, json: bytes.subarray(eventStart, end - AFTER_EVENT.length) }
        start = end
      }
    },
  }
}
