import { emptyTranscript, foldTranscript, type SessionEvent, type Transcript } from '../../../client/index.js'
import { charsOf, compacted } from './held-events.js'

/** A page of a session's log, as the gateway gives it. */
export interface LogPage {
  events: SessionEvent[]
  nextAfterSeq: number
  lastSeq: number
  epoch: string
  /** Some of what came after the place that was asked for is not kept any more. */
  truncated: boolean
}
export type ReadPage = (query: { afterSeq: number; limit: number; epoch?: string }) => Promise<LogPage>

export interface WindowLimits {
  /** As many events are held. */
  maxEvents: number
  /** Of the text in them, characters, about. */
  maxChars: number
  /** So many events, about, come with each step. */
  step: number
}
const LIMITS: WindowLimits = { maxEvents: 900, maxChars: 8_000_000, step: 80 }
const MAX_PAGE = 1000
/** So many are held whatever their size. */
const MIN_EVENTS = 12
/** A step that finds fewer goes on: much of the range was typing that is not kept. */
const ENOUGH = 30
/** As often it goes on to an end that goes on itself. */
const MAX_STEPS = 10

/**
 * The part of a session's log that is looked at: everything between two places in it, and nothing else, however long it is. It moves by
 * steps, and lets go at the far end what is too much.
 */
export class LogWindow {
  readonly #read: ReadPage
  readonly #limits: WindowLimits
  #events: SessionEvent[] = []
  #transcript: Transcript = emptyTranscript
  #after = 0
  #through = 0
  /** The last event that has been heard of, as it happened. */
  #head = 0
  /** The last event that a page told of. */
  #told = 0
  #epoch: string | undefined
  #busy: Promise<unknown> | undefined
  /** What has happened since a page was asked for; undefined: too much to be held. */
  #heard: SessionEvent[] | undefined = []
  /** Nothing comes before it. */
  atStart = false
  /** Nothing comes after it, but what happens from now on. */
  atEnd = false
  /** It has let go of something with the last step. */
  isFull = false
  /** The log does not reach back to the beginning of the session. */
  isCut = false

  constructor(read: ReadPage, limits: Partial<WindowLimits> = {}) {
    this.#read = read
    this.#limits = { ...LIMITS, ...limits }
  }

  get events(): readonly SessionEvent[] {
    return this.#events
  }
  /** What the window shows. */
  get transcript(): Transcript {
    return this.#transcript
  }
  /** Of the last event before it. */
  get after(): number {
    return this.#after
  }
  /** Of the last event in it. */
  get through(): number {
    return this.#through
  }
  get epoch(): string | undefined {
    return this.#epoch
  }
  /** A step or a move is under way. */
  get isBusy(): boolean {
    return this.#busy !== undefined
  }

  /** Begins anew at the end of the log. @param lastSeq of the session, as far as is known */
  openEnd(lastSeq: number): Promise<void> {
    return this.#once(() => this.#toEnd(lastSeq))
  }

  /** As `openEnd`, unless it is there once what is under way is done. */
  reachEnd(lastSeq: number): Promise<void> {
    return this.#once(async () => {
      if (!this.atEnd) await this.#toEnd(lastSeq)
    })
  }

  /** Begins anew around an event. */
  openAt(seq: number): Promise<void> {
    return this.#once(() => this.#around(seq))
  }

  /** As `openAt`, unless the event is in it once what is under way is done. */
  reach(seq: number): Promise<void> {
    return this.#once(async () => {
      if (seq <= this.#after || seq > this.#through) await this.#around(seq)
    })
  }

  /** @returns whether there was anything more */
  earlier(): Promise<boolean> {
    if (this.atStart || this.#busy) return Promise.resolve(false)
    return this.#once(async () => {
      await this.#stepBack()
      return true
    })
  }

  later(): Promise<boolean> {
    if (this.atEnd || this.#busy) return Promise.resolve(false)
    return this.#once(async () => {
      await this.#stepOn()
      return true
    })
  }

  /** Takes what happens, where the window is at the end. @returns whether it shows any of it */
  append(events: readonly SessionEvent[]): boolean {
    const last = events.at(-1)
    if (!last) return false
    this.#head = Math.max(this.#head, last.seq)
    if (!this.atEnd) {
      if (this.#busy) this.#hear(events)
      return false
    }
    if (last.seq <= this.#through) return false
    // a step that takes long holds no more than another: what comes meanwhile is read after it
    if (this.#busy) this.#weigh()
    if (this.#busy && this.isFull) {
      this.atEnd = false
      return false
    }
    const fresh = this.#take(events)
    // well below the limit, so that not all is folded anew with the next; a step that is on its way goes on from where the window begins
    if (!this.#busy && this.#trim('head', 0.75)) this.#refold()
    else this.#transcript = foldTranscript(fresh, this.#transcript)
    return true
  }

  /** One step at a time: whoever comes meanwhile waits for it. */
  async #once<T>(act: () => Promise<T>): Promise<T> {
    const before = this.#busy?.catch(() => {})
    const busy = before ? before.then(act) : act()
    this.#busy = busy
    try {
      return await busy
    } finally {
      if (this.#busy === busy) this.#busy = undefined
    }
  }

  #toEnd(lastSeq: number): Promise<void> {
    return this.#anew(lastSeq, async () => {
      await this.#stepBack()
      // what was read may have told that nothing follows
      this.atEnd = this.#events.length > 0 && Math.max(this.#told, this.#head) <= this.#through
      if (this.atEnd) this.#through = Math.max(this.#told, this.#events.at(-1)!.seq)
      for (let steps = 0; !this.atEnd && steps < MAX_STEPS; steps++) await this.#stepOn()
    })
  }

  #around(seq: number): Promise<void> {
    return this.#anew(Math.max(0, seq), async () => {
      await this.#stepBack()
      await this.#stepOn()
    })
  }

  /** Moves it elsewhere; where what is there cannot be read, it stays where it was. */
  async #anew(place: number, read: () => Promise<void>): Promise<void> {
    const back = this.#mark()
    this.#reset(place)
    try {
      await read()
    } catch (error) {
      back()
      throw error
    }
  }

  /** @returns a function that takes the window back to what it is now */
  #mark(): () => void {
    const events = this.#events
    const [transcript, epoch, told] = [this.#transcript, this.#epoch, this.#told]
    const [after, through, head] = [this.#after, this.#through, this.#head]
    const { atStart, atEnd, isFull, isCut } = this
    return () => {
      this.#events = events
      this.#transcript = transcript
      this.#epoch = epoch
      this.#after = after
      this.#through = through
      this.#told = Math.max(this.#told, told)
      this.#head = Math.max(this.#head, head)
      // what happened meanwhile is not in it
      Object.assign(this, { atStart, atEnd: atEnd && this.#head <= through, isFull, isCut })
    }
  }

  #reset(place: number): void {
    this.#events = []
    this.#after = this.#through = place
    this.#head = this.#told = 0
    this.#epoch = undefined
    this.atStart = this.atEnd = this.isCut = false
    this.#transcript = emptyTranscript
  }

  async #stepBack(): Promise<void> {
    const found: SessionEvent[] = []
    let end = this.#after
    for (let span = this.#limits.step; end > 0; span *= 4) {
      const from = Math.max(0, end - span)
      const { events, isCut } = await this.#range(from, end)
      // a wide range can turn out to be full: what is nearest is taken, so that none is passed over
      const near = events.slice(-this.#limits.step)
      const first = near[0]
      found.unshift(...near)
      if (near.length < events.length && first) {
        end = first.seq - 1
        break
      }
      end = isCut ? 0 : from
      if (isCut) this.isCut = true
      if (found.filter(({ type }) => type !== 'stream_delta').length >= ENOUGH) break
    }
    this.#after = end
    this.atStart = end === 0
    this.#events = [...found, ...this.#events]
    if (this.#trim('tail')) this.atEnd = false
    this.#refold()
  }

  /** What comes after `from`, up to and with `end`. */
  async #range(from: number, end: number): Promise<{ events: SessionEvent[]; isCut: boolean }> {
    const events: SessionEvent[] = []
    let isCut = false
    for (let after = from; after < end; ) {
      const page = await this.#page(after, Math.min(MAX_PAGE, end - after))
      isCut ||= page.truncated
      for (const event of page.events) if (event.seq <= end) events.push(event)
      if (page.events.length === 0 || page.nextAfterSeq <= after) break
      after = page.nextAfterSeq
    }
    return { events, isCut }
  }

  async #stepOn(): Promise<void> {
    const head = this.#head
    this.#heard = []
    const page = await this.#page(this.#through, this.#limits.step)
    if (this.atStart && page.truncated) this.isCut = true
    this.#events.push(...page.events.filter(({ seq }) => seq > this.#through))
    const isLast = page.events.length === 0 || page.nextAfterSeq >= page.lastSeq
    this.#through = isLast ? Math.max(page.lastSeq, this.#events.at(-1)?.seq ?? 0) : page.nextAfterSeq
    // what happened while the page was on its way comes after it, or is read with the next
    if (isLast && this.#through >= head) this.#take(this.#heard ?? [])
    this.#heard = []
    this.atEnd = isLast && this.#through >= this.#head
    if (this.#trim('head')) this.atStart = false
    this.#refold()
  }

  /** What happens while a page is on its way. */
  #hear(events: readonly SessionEvent[]): void {
    this.#heard?.push(...events)
    const { step, maxChars } = this.#limits
    const chars = this.#heard?.reduce((sum, event) => sum + this.#weightOf(event), 0) ?? 0
    if ((this.#heard?.length ?? 0) > step || chars > maxChars / 4) this.#heard = undefined
  }

  /** Takes what comes after what is in it. @returns what was not in it */
  #take(events: readonly SessionEvent[]): readonly SessionEvent[] {
    const fresh = events.filter(({ seq }) => seq > this.#through)
    this.#events.push(...fresh)
    this.#through = fresh.at(-1)?.seq ?? this.#through
    return fresh
  }

  async #page(afterSeq: number, limit: number): Promise<LogPage> {
    const page = await this.#read({ afterSeq, limit, ...(this.#epoch !== undefined && { epoch: this.#epoch }) })
    this.#epoch ??= page.epoch
    if (page.epoch !== this.#epoch) throw new LogChanged()
    this.#told = Math.max(this.#told, page.lastSeq)
    return page
  }

  /** Lets go of what is too much, at one end. @param share of the limits to go down to @returns whether there was any */
  #trim(where: 'head' | 'tail', share = 1): boolean {
    const { maxEvents, maxChars } = this.#limits
    let chars = this.#weigh()
    if (!this.isFull) return false
    let keep = this.#events.length
    const at = (index: number): SessionEvent =>
      this.#events[where === 'head' ? index : this.#events.length - 1 - index]!
    for (let gone = 0; keep > MIN_EVENTS && (keep > maxEvents * share || chars > maxChars * share); gone++, keep--)
      chars -= this.#weightOf(at(gone))
    if (where === 'head') {
      this.#after = this.#events[this.#events.length - keep - 1]?.seq ?? this.#after
      this.#events = this.#events.slice(-keep)
      this.atStart = false
    } else {
      this.#events = this.#events.slice(0, keep)
      this.#through = this.#events.at(-1)?.seq ?? this.#after
    }
    return true
  }

  /** Finds whether it is full. @returns the characters in it, about */
  #weigh(): number {
    const { maxEvents, maxChars } = this.#limits
    if (this.#events.length > maxEvents) this.#events = compacted(this.#events)
    let chars = 0
    for (const event of this.#events) chars += this.#weightOf(event)
    this.isFull = this.#events.length > maxEvents || (chars > maxChars && this.#events.length > MIN_EVENTS)
    return chars
  }

  #weightOf(event: SessionEvent): number {
    return Math.min(charsOf(event), this.#limits.maxChars / 4)
  }

  #refold(): void {
    this.#events = compacted(this.#events)
    this.#transcript = foldTranscript(this.#events)
  }
}

/** The log is another one than it was: what is shown is to be read anew. */
export class LogChanged extends Error {}
