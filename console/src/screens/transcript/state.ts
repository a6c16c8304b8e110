import { batch, computed, signal } from '@preact/signals'
import {
  type AttachItem,
  type Attachment,
  emptyTranscript,
  foldTranscript,
  GatewayError,
  type SessionInfo,
  type Transcript,
} from '../../../../client/index.js'
import { client, request } from '../../api.js'
import { LogChanged, type LogPage, LogWindow } from '../../model/log-window.js'
import { nextFrame } from '../../model/next-frame.js'
import { LinkState } from '../../state/link.js'
import { noteEnd } from '../../state/me.js'
import { keepSession } from '../../state/sessions.js'
import { OutgoingMessages } from './outgoing.js'

type LogPart = Pick<LogWindow, 'transcript' | 'epoch' | 'after' | 'through' | 'atStart' | 'atEnd' | 'isCut' | 'isFull'>
const NOTHING: LogPart = {
  transcript: emptyTranscript,
  epoch: undefined,
  after: 0,
  through: 0,
  atStart: false,
  atEnd: false,
  isCut: false,
  isFull: false,
}

/** The line of an event, or the end. */
type Place = number | 'end'

/** What the beginning of a log says of the whole session. */
const HEAD_EVENTS = 50

/** One session as it is looked at: a window into its log, and what is true of it now. */
export class TranscriptState {
  readonly id: string
  readonly #window: LogWindow
  readonly #aborter = new AbortController()
  readonly #link = new LinkState()
  #attachment: Attachment | undefined
  /** What failed last of what can be tried again from where somebody is, and what `error` was by it. */
  #failed: { error: unknown; again: () => Promise<void>; isStep: boolean } | undefined
  /** How often somebody has said where to be: what became of a move before the last is of no interest. */
  #attempts = 0
  /** How many moves are under way. */
  readonly #moves = signal(0)

  readonly session = signal<SessionInfo | undefined>(undefined)
  /** What is shown of the log. */
  readonly view = signal<LogPart>(NOTHING)
  /** Where somebody has asked to be, for as long as they are not there. */
  readonly wanted = signal<Place | undefined>(undefined)
  /** What is true now, wherever the window is: without items. */
  readonly now = signal<Transcript>(emptyTranscript)
  readonly isLoaded = signal(false)
  readonly error = signal<unknown>(undefined)
  readonly outgoing: OutgoingMessages
  /** Events that came while the window was elsewhere. */
  readonly unseen = signal(0)

  /** The API of the session, whose commands wait for the connection and are sent again under their id. */
  readonly handle: ReturnType<typeof client.session>

  constructor(id: string) {
    this.id = id
    this.handle = client.session(id)
    this.outgoing = new OutgoingMessages(this.handle, () => this.#window.atEnd)
    this.#window = new LogWindow((query) =>
      request<LogPage>('GET', `/sessions/${encodeURIComponent(id)}/events`, { query, signal: this.#aborter.signal }),
    )
  }

  get link() {
    return this.#link.link
  }

  /** Of the last event, as far as anything has told: a session that is quiet tells of none. */
  get #lastSeq(): number {
    return Math.max(this.#window.through, this.now.value.lastSeq, this.session.value?.lastSeq ?? 0)
  }

  /** It was removed, or is not for this caller any more: there is none to try again, to answer, or to say anything. */
  readonly isGone = signal(false)
  readonly status = computed(() =>
    this.isGone.value ? 'closed' : (this.now.value.status ?? this.session.value?.status),
  )

  /** @param seq to begin at; undefined: at the end */
  async open(seq: number | undefined): Promise<void> {
    this.wanted.value = seq ?? 'end'
    const error = await this.#attempt(async () => {
      const session = await client.sessions.get(this.id, { signal: this.#aborter.signal })
      this.session.value = session
      keepSession(session)
      this.now.value = {
        ...emptyTranscript,
        lastSeq: session.lastSeq,
        status: session.status,
        statusDetail: session.statusDetail,
        model: session.model,
        permissionMode: session.permissionMode,
        numTurns: session.numTurns,
        totalCostUsd: session.cost,
        usage: session.usage,
      }
      await this.#moved(() =>
        seq === undefined ? this.#window.openEnd(session.lastSeq) : this.#window.openAt(this.#within(seq)),
      )
      this.isLoaded.value = true
      void this.#follow()
      void this.#learn()
    })
    if (error !== undefined) this.wanted.value = undefined
  }

  /** Goes on where a sign-in that ended, or a gateway that was away, has stopped it. */
  resume(seq: number | undefined): void {
    const link = this.#link.link.value
    if (!this.isLoaded.value) {
      if (this.error.value !== undefined) void this.open(seq)
    } else if (link.state === 'ended' && link.error !== undefined) {
      this.error.value = undefined
      void this.#follow()
    }
  }

  close(): void {
    this.#aborter.abort()
    this.#attachment?.close()
  }

  /** @param seq as for `open` */
  async tryAgain(seq: number | undefined): Promise<void> {
    const failed = this.#failed
    // where somebody is, and not where they began
    await (failed && failed.error === this.error.value ? failed.again() : this.open(seq))
  }

  readonly earlier = (): Promise<void> => this.#step(() => this.#window.earlier())
  readonly later = (): Promise<void> => this.#step(() => this.#window.later())
  /** What scrolling asks for meanwhile is not done. */
  get isBusy(): boolean {
    return this.#window.isBusy
  }
  readonly toEnd = (): Promise<void> => this.#move('end', () => this.#window.reachEnd(this.#lastSeq))
  readonly toStart = (): Promise<void> => this.#move(0, () => this.#window.openAt(0))
  /** Moves to an event, if it is not in the window. */
  readonly to = (seq: number): Promise<void> => this.#move(seq, () => this.#window.reach(this.#within(seq)))

  /** An address may name a place that the log has not come to. */
  #within(seq: number): number {
    return Math.min(seq, this.#lastSeq)
  }

  /** Whether what is shown has a line, or would have it if there were one, and is not about to be left. */
  reaches(place: Place): boolean {
    const { after, through, atStart, atEnd } = this.view.value
    if (this.#moves.value > 0) return false
    return place === 'end' || place > through ? atEnd : place > after || atStart
  }

  /** Somebody is where they asked to be. */
  arrive(): void {
    this.wanted.value = undefined
  }

  /** @returns what it failed with, unless nobody wants to know */
  async #attempt(act: () => Promise<unknown>): Promise<unknown> {
    const mine = ++this.#attempts
    try {
      this.error.value = undefined
      await act()
    } catch (error) {
      if (this.#aborter.signal.aborted || mine !== this.#attempts) return
      this.#fail(error)
      return error
    }
  }

  async #move(wanted: Place | undefined, act: () => Promise<unknown>): Promise<void> {
    this.wanted.value = wanted
    const error = await this.#attempt(() => this.#moved(act))
    if (error === undefined) return
    this.wanted.value = undefined
    this.#failed = { error, again: () => this.#move(wanted, act), isStep: false }
  }

  /** What scrolling asks for: the failure of anything else stays said, and can be tried again. */
  async #step(step: () => Promise<boolean>): Promise<void> {
    const attempts = this.#attempts
    const isOurs = (): boolean => {
      const error = this.error.value
      const isOfStep = this.#failed?.isStep === true && this.#failed.error === error
      return attempts === this.#attempts && (error === undefined || isOfStep)
    }
    try {
      if ((await this.#stepped(step)) && isOurs()) this.error.value = undefined
    } catch (error) {
      if (this.#aborter.signal.aborted || !isOurs()) return
      this.#failed = { error, again: () => this.#step(step), isStep: true }
      this.#fail(error)
    }
  }

  async #stepped(step: () => Promise<boolean>): Promise<boolean> {
    try {
      const isStep = await step()
      this.#show()
      return isStep
    } catch (error) {
      if (!(error instanceof LogChanged)) throw error
      await this.#moved(() => this.#window.openEnd(this.#lastSeq))
      return false
    }
  }

  /** Takes the window elsewhere, and shows it once it is there, or where it was. */
  async #moved(act: () => Promise<unknown>): Promise<void> {
    this.#moves.value++
    try {
      await act().catch((error: unknown) => {
        if (!(error instanceof LogChanged)) throw error
        return this.#window.openEnd(this.#lastSeq)
      })
    } finally {
      batch(() => {
        this.#moves.value--
        this.#show()
        const wanted = this.wanted.value
        // of a log that has become another one, or of one that runs away
        if (wanted !== undefined && this.#moves.value === 0 && !this.reaches(wanted)) this.wanted.value = undefined
      })
    }
  }

  #show(): void {
    // of a window that is half way nothing is
    if (this.#moves.value > 0) return
    const { transcript, epoch, after, through, atStart, atEnd, isCut, isFull } = this.#window
    batch(() => {
      this.view.value = { transcript, epoch, after, through, atStart, atEnd, isCut, isFull }
      if (atEnd) this.unseen.value = 0
      this.outgoing.taken(this.#window.events)
    })
  }

  /** From where `now` is: the window may have read what has happened since, of which only events tell. */
  async #follow(): Promise<void> {
    const { epoch } = this.view.value
    const attachment = this.handle.attach({
      afterSeq: this.now.value.lastSeq,
      ...(epoch !== undefined && { epoch }),
      signal: this.#aborter.signal,
    })
    const before = this.#attachment
    this.#attachment = attachment
    // opened again after something else went wrong
    before?.close()
    attachment.onConnection((connection) => {
      if (attachment !== this.#attachment) return
      this.#link.onConnection(connection)
      const { snapshot } = attachment
      if (connection.state !== 'live' || !snapshot) return
      this.isGone.value = false
      this.session.value = snapshot.session
      keepSession(snapshot.session)
      const { pendingPermissions: permissions, pendingExecutions: executions } = snapshot
      if (!connection.isSynced) this.now.value = { ...this.now.value, waitingFor: { permissions, executions } }
    })
    try {
      for await (const items of attachment.batches()) {
        if (attachment !== this.#attachment) return
        this.#take(items)
        await nextFrame()
      }
    } catch (error) {
      if (this.#aborter.signal.aborted) return
      await noteEnd(error)
      this.#fail(error)
    }
  }

  /** What is gone stays so while it is looked for again: nothing that it asked comes back meanwhile. */
  #fail(error: unknown): void {
    batch(() => {
      this.error.value = error
      if (error instanceof GatewayError && error.code === 'SG_ERR_SESSION_NOT_FOUND') this.isGone.value = true
    })
  }

  #take(items: readonly AttachItem[]): void {
    const events = items.flatMap((item) => (item.type === 'gap' ? [] : [item]))
    const gap = items.some(({ type }) => type === 'gap')
    batch(() => {
      const known = this.now.value
      const folded = foldTranscript(items, known)
      this.now.value = {
        ...folded,
        items: emptyTranscript.items,
        deliverables: [],
        // an init of which only the beginning of the log tells
        init: folded.init ?? known.init,
        capabilities: folded.capabilities ?? known.capabilities,
        usage: sumAtLeast(folded, known),
      }
      if (gap) {
        this.#link.onGap()
        const wanted = this.wanted.value
        // whoever is on their way goes on
        void this.#move(wanted, () =>
          typeof wanted === 'number' ? this.#window.openAt(this.#within(wanted)) : this.#window.openEnd(this.#lastSeq),
        )
      } else if (this.#window.append(events)) this.#show()
      else if (!this.#window.atEnd) this.unseen.value += events.filter(({ type }) => type !== 'stream_delta').length
      this.outgoing.taken(events)
    })
  }

  /** What an agent said of itself at the beginning: its models, its modes, its commands. */
  async #learn(): Promise<void> {
    if (this.now.value.init && this.now.value.capabilities) return
    try {
      const query = { afterSeq: 0, limit: HEAD_EVENTS }
      const path = `/sessions/${encodeURIComponent(this.id)}/events`
      const page = await request<LogPage>('GET', path, { query, signal: this.#aborter.signal })
      const { init, capabilities } = foldTranscript(page.events)
      const { context, plan } = this.view.value.transcript
      const now = this.now.value
      this.now.value = {
        ...now,
        init: now.init ?? init,
        capabilities: now.capabilities ?? capabilities,
        context: now.context ?? context,
        plan: now.plan.length > 0 ? now.plan : plan,
      }
    } catch {
      // the choice of models is then to be typed
    }
  }
}

/** A gap begins the sums anew: they never shrink. */
const sumAtLeast = (folded: Transcript, known: Transcript): Transcript['usage'] =>
  folded.usage.inputTokens + folded.usage.outputTokens >= known.usage.inputTokens + known.usage.outputTokens
    ? folded.usage
    : known.usage
