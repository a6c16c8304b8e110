const FIRST_SEGMENT_BYTES = 512
export const SEGMENT_BYTES = 64 * 1024
const BEFORE_EVENT = Buffer.from('{"type":"event","event":')
const AFTER_EVENT = Buffer.from('}')
const FIN_TEXT = 0x81
const LENGTH_16 = 126
const LENGTH_64 = 127

/**
 * A run of events as the bytes that go on a socket, one WebSocket text message after the other. Bytes once handed out are not written
 * again while anybody may read them, so a slice of `bytes` is what every client at that place is sent, without a copy.
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
  lastSeq: number
  /** The events of the slice as JSON, one by one, for transports that frame differently. */
  events(): Iterable<{ seq: number; json: Buffer }>
}

/** Those whom slices were handed to. */
export interface LogReaders {
  /** Whether one of them may still read from a slice. */
  readonly hold: boolean
}

/** The events of a log that are in memory, as bytes: appended at one end, evicted at the other, read from anywhere. */
export class LogSegments {
  readonly #segments: Segment[] = []
  readonly #firstBytes: number
  #deltaSegments: Map<string, Set<Segment>> | undefined
  #lastRead: { afterSeq: number; untilSeq: number; maxBytes: number; slice: LogSlice } | undefined
  /** For the next segments, as that of one that was evicted: a log that is full needs no more memory, and nothing has to be collected. */
  #spares: Buffer[] | undefined
  events = 0
  bytes = 0

  /**
   * @param firstBytes that the first segment has room for at once; default 512
   * @param spares memory that may be written to, those of `SEGMENT_BYTES` are
   */
  constructor(firstBytes = FIRST_SEGMENT_BYTES, spares?: readonly Buffer[]) {
    this.#firstBytes = firstBytes
    this.#spares = spares?.filter(({ length }) => length === SEGMENT_BYTES)
  }

  /** `undefined`: none. */
  get oldestSeq(): number | undefined {
    const segment = this.#segments[0]
    return segment?.seqs[segment.first]
  }

  /** The next events after `afterSeq` up to `untilSeq`: at most `maxBytes` of them, but at least one when there is one. */
  read(afterSeq: number, untilSeq: number, maxBytes: number): LogSlice | undefined {
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

  /** Everything, as few slices as there can be. */
  readAll(): LogSlice[] {
    return this.#segments.map((segment) => {
      const { first, ends, seqs } = segment
      return sliceOf(segment, first, seqs.length - 1, first === 0 ? 0 : ends[first - 1]!)
    })
  }

  /** Seq of the oldest event after which at most so many events and bytes follow; `undefined` when that is all of them. */
  seqBefore(events: number, bytes: number): number | undefined {
    if (this.events <= events && this.bytes <= bytes) return undefined
    let eventsLeft = events
    let bytesLeft = bytes
    for (let at = this.#segments.length - 1; at >= 0; at--) {
      const { seqs, ends, first, used } = this.#segments[at]!
      const segmentEvents = seqs.length - first
      const segmentBytes = used - (first === 0 ? 0 : ends[first - 1]!)
      if (segmentEvents > eventsLeft || segmentBytes > bytesLeft) {
        const fewEnough = seqs.length - 1 - eventsLeft
        const smallEnough = firstAbove(ends, used - bytesLeft - 1)
        return seqs[Math.max(fewEnough, smallEnough)]
      }
      eventsLeft -= segmentEvents
      bytesLeft -= segmentBytes
    }
    return undefined
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

  /**
   * @param event as JSON
   * @param deltaOf uuid of the message that it belongs to, when it is a delta
   */
  append(seq: number, event: string | Buffer, deltaOf: string | undefined): void {
    const payloadBytes = BEFORE_EVENT.length + Buffer.byteLength(event) + AFTER_EVENT.length
    const frameBytes = frameHeaderLength(payloadBytes) + payloadBytes
    const segment = this.#roomFor(frameBytes)
    const { bytes } = segment
    // not as one text first, which would be one copy more
    const at = writeFrameHeader(bytes, segment.used, payloadBytes)
    bytes.set(BEFORE_EVENT, at)
    if (typeof event === 'string') bytes.write(event, at + BEFORE_EVENT.length)
    else bytes.set(event, at + BEFORE_EVENT.length)
    segment.used += frameBytes
    bytes.set(AFTER_EVENT, segment.used - AFTER_EVENT.length)
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
    this.events++
    this.bytes += frameBytes
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
    const size = Math.max(last ? SEGMENT_BYTES : this.#firstBytes, frameBytes)
    const segment: Segment = {
      bytes: this.#take(size),
      used: 0,
      first: 0,
      seqs: [],
      ends: [],
      deltas: undefined,
    }
    this.#segments.push(segment)
    return segment
  }

  #take(size: number): Buffer {
    return (size === SEGMENT_BYTES ? this.#spares?.pop() : undefined) ?? Buffer.allocUnsafeSlow(size)
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
        this.events--
        this.bytes -= end - start
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

  /**
   * Takes the oldest event out; there must be one.
   * @param readers asked before memory is used again
   * @returns its seq
   */
  evict(readers: LogReaders | undefined): number {
    const segment = this.#segments[0]!
    const index = segment.first++
    const start = index === 0 ? 0 : segment.ends[index - 1]!
    this.events--
    this.bytes -= segment.ends[index]! - start
    if (segment.first === segment.seqs.length) {
      this.#segments.shift()
      if (segment.bytes.length === SEGMENT_BYTES && readers?.hold === false) this.#spares = [segment.bytes]
      for (const [uuid, segments] of this.#deltaSegments ?? [])
        if (segments.delete(segment) && segments.size === 0) this.#deltaSegments?.delete(uuid)
    }
    return segment.seqs[index]!
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

/** Bytes that the header of an unmasked server frame takes for a payload of that many bytes. */
const frameHeaderLength = (payloadBytes: number): number =>
  payloadBytes < LENGTH_16 ? 2 : payloadBytes < 65_536 ? 4 : 10

/** Writes the header of one whole text message (RFC 6455, section 5.2) and returns where the payload begins. */
function writeFrameHeader(target: Buffer, at: number, payloadBytes: number): number {
  target[at] = FIN_TEXT
  if (payloadBytes < LENGTH_16) {
    target[at + 1] = payloadBytes
    return at + 2
  }
  if (payloadBytes < 65_536) {
    target[at + 1] = LENGTH_16
    target.writeUInt16BE(payloadBytes, at + 2)
    return at + 4
  }
  target[at + 1] = LENGTH_64
  target.writeUInt32BE(0, at + 2)
  target.writeUInt32BE(payloadBytes, at + 6)
  return at + 10
}

/** Where the payload of the frame that starts at `at` begins. */
function framePayloadStart(source: Buffer, at: number): number {
  const length = source[at + 1]!
  return at + (length < LENGTH_16 ? 2 : length === LENGTH_16 ? 4 : 10)
}

/** One text message as the bytes that go on a socket. */
export function encodeTextFrame(text: string): Buffer {
  const payloadBytes = Buffer.byteLength(text)
  const frame = Buffer.allocUnsafe(frameHeaderLength(payloadBytes) + payloadBytes)
  frame.write(text, writeFrameHeader(frame, 0, payloadBytes))
  return frame
}
