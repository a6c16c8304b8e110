import { batch, signal } from '@preact/signals'
import { GatewayError, type JobInfo, type Pages, type QueueFrame, type QueueStats } from '../../../client/index.js'
import { client } from '../api.js'
import { type Column, columnOf, isOver, type Jobs, type Turns, withJobs } from '../model/board.js'
import { nextFrame } from '../model/next-frame.js'
import { LinkState } from './link.js'
import { noteEnd } from './me.js'
import { Rereading } from './reread.js'

const PAGE = 50
const MAX_KEPT = 1_000
const REREAD_MS = 2_000
/** As many of a column are shown, and as many more as were asked for. */
const SHOWN = 200
const STATUSES: readonly JobInfo['status'][] = ['queued', 'running', 'parked', 'succeeded', 'failed', 'canceled']

/** What has pages to come, by the column that they are for. */
type Pending = { column: Column; pages: Pages<JobInfo> }[]

/** The next page of each, and those that go on; one that could not be read, as `error` says, is the next still. */
async function turned(turns: Pending): Promise<{ found: JobInfo[]; rest: Pending; error?: unknown }> {
  const found: JobInfo[] = []
  const rest: Pending = []
  let error: unknown
  const next = await Promise.allSettled(turns.map(({ pages }) => pages.next()))
  for (const [at, turn] of next.entries()) {
    if (turn.status === 'rejected') error = turn.reason
    else if (!turn.value.done) found.push(...turn.value.value)
    if (!turns[at]!.pages.isAtEnd) rest.push(turns[at]!)
  }
  return { found, rest, error }
}

/** None of a gateway that is older than this page. @returns undefined: that cannot be read now; why is said of the pages */
const nextJobs = (): Promise<JobInfo[] | undefined> =>
  client.queue.next().catch((error) => (error instanceof GatewayError && error.status === 404 ? [] : undefined))

const turnsOf = (next: readonly JobInfo[]): Turns => new Map(next.map(({ id }, at) => [id, at]))

/** The queue as it is, followed for as long as somebody looks at it. */
export class QueueState {
  readonly jobs = signal<Jobs>(new Map())
  readonly stats = signal<QueueStats | undefined>(undefined)
  readonly isLoaded = signal(false)
  readonly error = signal<unknown>(undefined)
  /** The columns of which there is more than was loaded. */
  readonly more = signal<ReadonlySet<Column>>(new Set())
  /** What begins next of all that is queued, which may be on no page that was loaded. */
  readonly turns = signal<Turns>(new Map())
  readonly #nextAnew = new Rereading(() => this.#readNext(), { gapMs: REREAD_MS })
  /** As many of a column are shown. */
  readonly shown = signal(SHOWN)
  /** What each running job is doing, one line, by its id. */
  readonly doing = signal<ReadonlyMap<string, string>>(new Map())
  readonly #linkState = new LinkState()
  /** How often the pages have begun anew. */
  readonly begun = signal(0)
  #turns: Pending = []
  #reading = 0
  #readAt = 0
  /** So many jobs are kept, until they are read anew. */
  #most = MAX_KEPT
  /** What was told while pages are read, which may be older: of each reading. */
  readonly #meanwhile = new Set<JobInfo[]>()

  get link() {
    return this.#linkState.link
  }

  /** Of whoever follows it now. */
  #signal: AbortSignal | undefined
  /** The stream that is open. */
  #watched: { close(): void } | undefined

  /** @returns a function that ends it */
  follow = (): (() => void) => {
    const aborter = new AbortController()
    this.#signal = aborter.signal
    void this.#watch(aborter.signal)
    return () => aborter.abort()
  }

  /** Follows it by a new stream where the last one is away, or has ended, without the pause of its next try. @returns whether it does */
  resume(): boolean {
    const signal = this.#signal
    const { state } = this.link.value
    if (!signal || signal.aborted || (state !== 'away' && state !== 'ended')) return false
    void this.#watch(signal)
    return true
  }

  /** For whoever has seen that it could not be read. A stream that begins anew has it read. */
  async again(): Promise<void> {
    if (!this.resume()) await this.read()
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const watched = client.queue.watch({ signal })
    const before = this.#watched
    this.#watched = watched
    before?.close()
    watched.onConnection((connection) => {
      if (signal.aborted || watched !== this.#watched) return
      this.#linkState.onConnection(connection)
      // nothing is read before it is there: why is said in the place of the jobs
      if (connection.state === 'reconnecting' && !this.isLoaded.value) this.error.value = connection.error
    })
    try {
      for await (const frames of watched.batches()) {
        batch(() => this.#take(frames))
        // a queue that is quick tells more than can be drawn
        await nextFrame()
      }
    } catch (error) {
      await noteEnd(error)
      if (!signal.aborted) this.error.value = error
    }
  }

  #take(frames: readonly QueueFrame[]): void {
    const told: JobInfo[] = []
    const doing = new Map(this.doing.value)
    let isAttached = false
    let isMoved = false
    for (const frame of frames) {
      if (frame.type !== 'job_event') {
        this.stats.value = frame.stats
        isAttached ||= frame.type === 'queue_attached'
        continue
      }
      const { job, progress } = frame.event
      told.push(job)
      isMoved ||= progress === undefined
      if (progress) doing.set(job.id, progress.preview)
      if (isOver(job)) doing.delete(job.id)
    }
    this.doing.value = doing
    this.jobs.value = withJobs(this.jobs.value, told)
    for (const heard of this.#meanwhile) heard.push(...told)
    // nothing is replayed: what was before is on the pages; and what has ended long ago is let go
    const isFull = this.jobs.value.size > this.#most && Date.now() - this.#readAt > REREAD_MS
    if (isAttached || isFull) void this.read()
    else if (isMoved) this.#nextAnew.again()
  }

  /** The first page of each status. What was known and is listed no more is gone, unless it was told of meanwhile. */
  async read(): Promise<void> {
    const mine = ++this.#reading
    this.#readAt = Date.now()
    const heard: JobInfo[] = []
    this.#meanwhile.add(heard)
    try {
      const turns = STATUSES.map((status) => ({
        column: columnOf({ status, attempt: 1 }),
        pages: client.jobs.list({ status, limit: PAGE }).pages()[Symbol.asyncIterator](),
      }))
      const [{ found, rest, error }, next] = await Promise.all([turned(turns), nextJobs()])
      if (error !== undefined) throw error
      if (mine !== this.#reading) return
      this.jobs.value = withJobs(withJobs(withJobs(new Map(), next ?? []), found), heard)
      // what was known of the order stands until it can be read
      if (next) this.turns.value = turnsOf(next)
      this.#most = MAX_KEPT
      this.shown.value = SHOWN
      this.begun.value++
      this.#keepTurns(rest)
      this.error.value = undefined
      this.isLoaded.value = true
    } catch (error) {
      if (mine === this.#reading) this.error.value = error
    } finally {
      this.#meanwhile.delete(heard)
    }
  }

  async #readNext(): Promise<void> {
    const heard: JobInfo[] = []
    this.#meanwhile.add(heard)
    const begun = this.begun.value
    const next = await nextJobs()
    this.#meanwhile.delete(heard)
    if (begun !== this.begun.value) return
    batch(() => {
      this.jobs.value = withJobs(withJobs(this.jobs.value, next ?? []), heard)
      if (next) this.turns.value = turnsOf(next)
    })
  }

  async loadMore(column: Column): Promise<void> {
    const heard: JobInfo[] = []
    this.#meanwhile.add(heard)
    const begun = this.begun.value
    const { found, rest, error } = await turned(this.#turns.filter((one) => one.column === column))
    this.#meanwhile.delete(heard)
    // what was read meanwhile begins anew: between it and this page there would be a hole
    if (begun !== this.begun.value) return
    this.jobs.value = withJobs(withJobs(this.jobs.value, found), heard)
    this.#most += found.length
    this.shown.value += found.length
    this.#keepTurns([...this.#turns.filter((one) => one.column !== column), ...rest])
    this.error.value = error
  }

  #keepTurns(turns: Pending): void {
    this.#turns = turns
    this.more.value = new Set(turns.map(({ column }) => column))
  }

  keep(job: JobInfo): void {
    this.jobs.value = withJobs(this.jobs.value, [job])
  }
}
