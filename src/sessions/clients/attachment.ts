import { CLOSE, type Close } from '../../../schemas/close-codes.js'
import type { AttachedFrame, ServerFrame } from '../../../schemas/frames.js'
import type { EventLog, LogSlice } from '../log/event-log.js'

/** What a client is written to: a socket or a stream of server-sent events. */
export interface ClientSink {
  /**
   * Writes everything in one go, in order.
   * @param epoch of the log that the events are of
   * @returns false when the client should be given time; `Attachment.resume` is then called once it has taken what was written
   */
  tell(parts: readonly (LogSlice | ServerFrame)[], epoch: string): boolean
  close(close: Close): void
  /** Whether some of the bytes that it was given are not written yet; they must not change until then. */
  readonly holds: boolean
}

/** The part of a session that a cursor moves over. */
export interface LogSource {
  readonly log: EventLog
  /** True when no event will follow. */
  readonly ended: boolean
}

/** Most bytes of events per client and turn: enough to keep a socket busy, small enough that nobody else waits long. */
const BATCH_BYTES = 64 * 1024
/** Of events that are read back at once, as JSON: four batches, with what a frame has beside its event. */
const READ_BACK_BYTES = (4 * BATCH_BYTES * 7) / 8
/** Direct frames that a client may leave unread before it is cut off. */
const MAX_UNSENT_FRAMES = 1_000

/**
 * One client of a session: a cursor over its log and the pump that moves it. Replay and live are the same loop: write from the cursor
 * while the client takes bytes, stop when it does not, go on when it does. At most one write per turn of the event loop,
 * and one more where something in it does not wait.
 */
export class Attachment {
  readonly #source: LogSource
  readonly #sink: ClientSink
  readonly #attachedNow: () => AttachedFrame
  #cursor = 0
  /** The head at attach time, until it was reached and told. */
  #syncSeq: number | undefined
  #frames: ServerFrame[]
  #blocked = false
  /** Events that left the memory are being read back. */
  #reading = false
  /** What came of that. */
  #readBack: Awaited<ReturnType<EventLog['readBack']>> | undefined
  /** What was read back, as bytes that are still to be written, and the place up to which that is all. */
  #slices: LogSlice[] = []
  #throughSeq = 0
  /** The memory of the slices that were written last, for the next ones. */
  #spares: Buffer[] | undefined
  /** What comes after that: read while it is being written. */
  #next: { afterSeq: number; read: ReturnType<EventLog['readBack']> } | undefined
  #scheduled = false
  #closed = false
  /** Somebody waits for it to come this far. */
  #awaited: { seq: number; then: () => void } | undefined

  /**
   * @param attached the first frame; its `replayingFrom` is where the cursor starts
   * @param attachedNow the same as of the moment in which it is called
   */
  constructor(source: LogSource, sink: ClientSink, attached: AttachedFrame, attachedNow: () => AttachedFrame) {
    this.#source = source
    this.#sink = sink
    this.#attachedNow = attachedNow
    this.#frames = [attached]
    this.#stand(attached)
    this.schedule()
  }

  get closed(): boolean {
    return this.#closed
  }

  get holds(): boolean {
    return this.#sink.holds
  }

  /** Seq of the last event that it was written. */
  get cursor(): number {
    return this.#cursor
  }

  /** Calls `then` when it has come that far; only the last one who asks is told. */
  onceAt(seq: number, then: () => void): void {
    this.#awaited = { seq, then }
  }

  /** Sends one frame that is not in the log, after the events that are. A client that leaves too many unread is cut off. */
  send(frame: ServerFrame): void {
    if (this.#closed) return
    if (this.#frames.push(frame) > MAX_UNSENT_FRAMES) this.close(CLOSE.tooSlow)
    else this.schedule()
  }

  /** Something may be there to send: look at the end of this turn. */
  schedule(): void {
    if (this.#scheduled || this.#blocked || this.#reading || this.#closed) return
    this.#scheduled = true
    setImmediate(runPump, this)
  }

  /** The client has taken what was written. */
  resume(): void {
    this.#blocked = false
    this.schedule()
  }

  close(close: Close): void {
    if (this.#closed) return
    this.#closed = true
    this.#frames = []
    this.#sink.close(close)
  }

  /** The client is gone; nothing more is written. */
  detach(): void {
    this.#closed = true
    this.#frames = []
  }

  /** Writes what is due; called at the end of a turn. */
  pump(): void {
    this.#scheduled = false
    if (this.#closed || this.#blocked || this.#reading) return
    const parts: (LogSlice | ServerFrame)[] = []
    if (this.#frames[0]?.type === 'attached') parts.push(this.#toldNow(this.#frames.shift() as AttachedFrame))
    const atHead = this.#collectEvents(parts)
    if (atHead === 'evicted') {
      this.close(CLOSE.tooSlow)
      return
    }
    if (atHead && this.#frames.length > 0) {
      parts.push(...this.#frames)
      this.#frames = []
    }
    if (parts.length > 0) this.#blocked = !this.#sink.tell(parts, this.#source.log.epoch)
    if (this.#awaited && this.#cursor >= this.#awaited.seq) this.#arrive(this.#awaited)
    if (!atHead) this.schedule()
    else if (this.#source.ended && this.#cursor >= this.#source.log.headSeq) this.close(CLOSE.sessionEnded)
  }

  #stand({ replayingFrom }: AttachedFrame): void {
    this.#cursor = replayingFrom
    this.#syncSeq = this.#source.log.visibleSeq
  }

  /** A log that is full may have dropped what was to be replayed first, before the client could read anything. */
  #toldNow(attached: AttachedFrame): AttachedFrame {
    if (this.#cursor >= this.#source.log.oldestSeq - 1) return attached
    const now = this.#attachedNow()
    this.#stand(now)
    return now
  }

  #arrive({ then }: { then: () => void }): void {
    this.#awaited = undefined
    then()
  }

  /** Reads on from where the log is kept; the pump goes on with what came. */
  #fetch(untilSeq: number): void {
    this.#reading = true
    const next = this.#next?.afterSeq === this.#cursor ? this.#next.read : this.#read(this.#cursor, untilSeq)
    this.#next = undefined
    next.then(
      (read) => {
        const { throughSeq } = read
        this.#reading = false
        this.#readBack = read
        // before this becomes bytes: the storage is at it meanwhile
        if (!this.#closed && throughSeq < untilSeq && this.#source.log.isEvicted(throughSeq + 1))
          this.#next = { afterSeq: throughSeq, read: this.#read(throughSeq, untilSeq) }
        this.schedule()
      },
      () => this.close(CLOSE.internal),
    )
  }

  #read(afterSeq: number, untilSeq: number): ReturnType<EventLog['readBack']> {
    const read = this.#source.log.readBack(afterSeq, untilSeq, READ_BACK_BYTES)
    // told to whoever comes for it
    read.catch(() => {})
    return read
  }

  /** Moves the cursor over the next events; true when it stands at the head. */
  #collectEvents(parts: (LogSlice | ServerFrame)[]): boolean | 'evicted' {
    const { log } = this.#source
    if (this.#readBack) {
      this.#slices = this.#readBack.slices(this.#sink.holds ? undefined : this.#spares)
      this.#spares = this.#slices.map(({ frames }) => Buffer.from(frames.buffer))
      this.#throughSeq = this.#readBack.throughSeq
      this.#readBack = undefined
      if (this.#slices.length === 0) this.#cursor = this.#throughSeq
    }
    const next = this.#slices.shift()
    if (next) {
      parts.push(next)
      this.#cursor = this.#slices.length > 0 ? next.lastSeq : this.#throughSeq
      if (this.#slices.length > 0) return false
    }
    // a slice that nearly fills the batch goes alone: one write, and the next one starts where a segment does
    for (let room = BATCH_BYTES; room > BATCH_BYTES / 4; ) {
      const untilSeq = this.#syncSeq ?? log.visibleSeq
      if (this.#cursor < untilSeq) {
        const slice = log.read(this.#cursor, untilSeq, room)
        if (slice === 'evicted') {
          if (!log.isJournaled) return 'evicted'
          // what is in hand goes out first
          if (parts.length > 0) return false
          this.#fetch(untilSeq)
          return false
        }
        if (slice) {
          this.#spares = undefined
          parts.push(slice)
          room -= slice.frames.length
        }
        this.#cursor = slice ? slice.lastSeq : untilSeq
      } else if (this.#syncSeq !== undefined) {
        parts.push({ type: 'synced', seq: this.#syncSeq })
        this.#syncSeq = undefined
      } else return true
    }
    return this.#syncSeq === undefined && this.#cursor >= log.visibleSeq
  }
}

const runPump = (attachment: Attachment): void => attachment.pump()
