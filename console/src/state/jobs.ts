import { batch, signal } from '@preact/signals'
import type { JobInfo, QueueFrame, QueueStats } from '../../../client/index.js'
import { client } from '../api.js'
import { type Column, columnOf, isOver, type Jobs, withJobs } from '../model/board.js'
import { nextFrame } from '../model/next-frame.js'
import { LinkState } from './link.js'
import { noteEnd } from './me.js'

const PAGE = 50
const MAX_KEPT = 1_000
const REREAD_MS = 2_000
/** As many of a column are shown, and as many more as were asked for. */
const SHOWN = 200
const STATUSES: readonly JobInfo['status'][] = ['queued', 'running', 'parked', 'succeeded', 'failed', 'canceled']

/** What has pages to come, by the column that they are for. */
type Pages = { column: Column; page: AsyncIterator<JobInfo[]> }[]

/** The next page of each, and those that go on; one that could not be read, as `error` says, is the next still. */
async function turned(pages: Pages): Promise<{ found: JobInfo[]; rest: Pages; error?: unknown }> {
  const found: JobInfo[] = []
  const rest: Pages = []
  let error: unknown
  const next = await Promise.allSettled(pages.map(({ page }) => page.next()))
  for (const [at, turn] of next.entries()) {
    if (turn.status === 'rejected') error = turn.reason
    else if (!turn.value.done) found.push(...turn.value.value)
    if (turn.status === 'rejected' || turn.value.value?.length === PAGE) rest.push(pages[at]!)
  }
  return { found, rest, error }
}

/** The queue as it is, followed for as long as somebody looks at it. */
export class QueueState {
  readonly jobs = signal<Jobs>(new Map())
  readonly stats = signal<QueueStats | undefined>(undefined)
  readonly isLoaded = signal(false)
  readonly error = signal<unknown>(undefined)
  /** The columns of which there is more than was loaded. */
  readonly more = signal<ReadonlySet<Column>>(new Set())
  /** As many of a column are shown. */
  readonly shown = signal(SHOWN)
  /** What each running job is doing, one line, by its id. */
  readonly doing = signal<ReadonlyMap<string, string>>(new Map())
  readonly #linkState = new LinkState()
  #pages: Pages = []
  #reading = 0
  #readAt = 0
  /** So many jobs are kept, until they are read anew. */
  #most = MAX_KEPT
  /** What was told while pages were read, which may be older. */
  #meanwhile: JobInfo[] | undefined

  get link() {
    return this.#linkState.link
  }

  /** @returns a function that ends it */
  follow = (): (() => void) => {
    const aborter = new AbortController()
    void this.#watch(aborter.signal)
    return () => aborter.abort()
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const watched = client.queue.watch({ signal })
    watched.onConnection((connection) => !signal.aborted && this.#linkState.onConnection(connection))
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
    for (const frame of frames) {
      if (frame.type !== 'job_event') {
        this.stats.value = frame.stats
        isAttached ||= frame.type === 'queue_attached'
        continue
      }
      const { job, progress } = frame.event
      told.push(job)
      if (progress) doing.set(job.id, progress.preview)
      if (isOver(job)) doing.delete(job.id)
    }
    this.doing.value = doing
    this.jobs.value = withJobs(this.jobs.value, told)
    this.#meanwhile?.push(...told)
    // nothing is replayed: what was before is on the pages; and what has ended long ago is let go
    const isFull = this.jobs.value.size > this.#most && Date.now() - this.#readAt > REREAD_MS
    if (isAttached || isFull) void this.read()
  }

  /** The first page of each status. What was known and is listed no more is gone, unless it was told of meanwhile. */
  async read(): Promise<void> {
    const mine = ++this.#reading
    this.#readAt = Date.now()
    this.#meanwhile = []
    try {
      const pages = STATUSES.map((status) => ({
        column: columnOf({ status, attempt: 1 }),
        page: client.jobs.list({ status, limit: PAGE }).pages()[Symbol.asyncIterator](),
      }))
      const { found, rest, error } = await turned(pages)
      if (error !== undefined) throw error
      if (mine !== this.#reading) return
      this.jobs.value = withJobs(withJobs(new Map(), found), this.#meanwhile ?? [])
      this.#meanwhile = undefined
      this.#most = MAX_KEPT
      this.shown.value = SHOWN
      this.#keepPages(rest)
      this.error.value = undefined
      this.isLoaded.value = true
    } catch (error) {
      if (mine === this.#reading) this.error.value = error
    }
  }

  async loadMore(column: Column): Promise<void> {
    const { found, rest, error } = await turned(this.#pages.filter((one) => one.column === column))
    this.jobs.value = withJobs(this.jobs.value, found)
    this.#most += found.length
    this.shown.value += found.length
    this.#keepPages([...this.#pages.filter((one) => one.column !== column), ...rest])
    this.error.value = error
  }

  #keepPages(pages: Pages): void {
    this.#pages = pages
    this.more.value = new Set(pages.map(({ column }) => column))
  }

  keep(job: JobInfo): void {
    this.jobs.value = withJobs(this.jobs.value, [job])
  }
}
