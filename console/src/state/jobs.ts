import { batch, signal } from '@preact/signals'
import type { JobInfo, QueueFrame, QueueStats } from '../../../client/index.js'
import { client } from '../api.js'
import { isOver, type Jobs, withJobs } from '../model/board.js'
import { nextFrame } from '../model/next-frame.js'
import { LinkState } from './link.js'
import { noteEnd } from './me.js'

const PAGE = 50
const MAX_KEPT = 1_000
const REREAD_MS = 5_000
const STATUSES: readonly JobInfo['status'][] = ['queued', 'running', 'parked', 'succeeded', 'failed', 'canceled']

/** The queue as it is, followed for as long as somebody looks at it. */
export class QueueState {
  readonly jobs = signal<Jobs>(new Map())
  readonly stats = signal<QueueStats | undefined>(undefined)
  readonly isLoaded = signal(false)
  readonly error = signal<unknown>(undefined)
  /** Whether there are earlier ones that are over. */
  readonly hasEarlier = signal(false)
  /** What each running job is doing, one line, by its id. */
  readonly doing = signal<ReadonlyMap<string, string>>(new Map())
  readonly #linkState = new LinkState()
  #pages: AsyncIterator<JobInfo[]>[] = []
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
      const pages = STATUSES.map((status) => client.jobs.list({ status, limit: PAGE }).pages()[Symbol.asyncIterator]())
      const first = await Promise.all(pages.map((page) => page.next()))
      if (mine !== this.#reading) return
      const listed = first.flatMap(({ value, done }) => (done ? [] : value))
      this.jobs.value = withJobs(withJobs(new Map(), listed), this.#meanwhile ?? [])
      this.#meanwhile = undefined
      this.#most = MAX_KEPT
      this.#pages = pages.filter((_, at) => !first[at]!.done && first[at]!.value.length === PAGE)
      this.hasEarlier.value = this.#pages.length > 0
      this.error.value = undefined
      this.isLoaded.value = true
    } catch (error) {
      if (mine === this.#reading) this.error.value = error
    }
  }

  async loadEarlier(): Promise<void> {
    try {
      const next = await Promise.all(this.#pages.map((page) => page.next()))
      const earlier = next.flatMap(({ value, done }) => (done ? [] : value))
      this.jobs.value = withJobs(this.jobs.value, earlier)
      this.#most += earlier.length
      this.#pages = this.#pages.filter((_, at) => !next[at]!.done && next[at]!.value.length === PAGE)
      this.hasEarlier.value = this.#pages.length > 0
    } catch (error) {
      this.error.value = error
    }
  }

  keep(job: JobInfo): void {
    this.jobs.value = withJobs(this.jobs.value, [job])
  }
}
