import { signal } from '@preact/signals'
import type { JobInfo, QueueStats } from '../../../client/index.js'
import { client } from '../api.js'
import { type Jobs, withEvent, withJobs } from '../model/board.js'
import { LinkState } from './link.js'
import { findOut, isUnauthorized, noteFailure } from './me.js'

const PAGE = 50
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
      for await (const frame of watched) {
        if (frame.type === 'job_event') {
          const { event } = frame
          this.jobs.value = withEvent(this.jobs.value, event)
          this.#meanwhile?.push(event.job)
          if (event.progress) this.doing.value = new Map(this.doing.value).set(event.job.id, event.progress.preview)
          continue
        }
        this.stats.value = frame.stats
        // nothing is replayed: what was before is on the pages
        if (frame.type === 'queue_attached') void this.read()
      }
    } catch (error) {
      if (isUnauthorized(error)) await findOut()
      else if (!signal.aborted) this.error.value = error
    }
  }

  /** The first page of each status. What was known and is listed no more is gone, unless it was told of meanwhile. */
  async read(): Promise<void> {
    const mine = ++this.#reading
    this.#meanwhile = []
    try {
      const pages = STATUSES.map((status) => client.jobs.list({ status, limit: PAGE }).pages()[Symbol.asyncIterator]())
      const first = await Promise.all(pages.map((page) => page.next()))
      if (mine !== this.#reading) return
      const listed = first.flatMap(({ value, done }) => (done ? [] : value))
      this.jobs.value = withJobs(withJobs(new Map(), listed), this.#meanwhile ?? [])
      this.#meanwhile = undefined
      this.#pages = pages.filter((_, at) => !first[at]!.done && first[at]!.value.length === PAGE)
      this.hasEarlier.value = this.#pages.length > 0
      this.error.value = undefined
      this.isLoaded.value = true
    } catch (error) {
      noteFailure(error)
      if (mine === this.#reading) this.error.value = error
    }
  }

  async loadEarlier(): Promise<void> {
    try {
      const next = await Promise.all(this.#pages.map((page) => page.next()))
      this.jobs.value = withJobs(
        this.jobs.value,
        next.flatMap(({ value, done }) => (done ? [] : value)),
      )
      this.#pages = this.#pages.filter((_, at) => !next[at]!.done && next[at]!.value.length === PAGE)
      this.hasEarlier.value = this.#pages.length > 0
    } catch (error) {
      noteFailure(error)
      this.error.value = error
    }
  }

  keep(job: JobInfo): void {
    this.jobs.value = withJobs(this.jobs.value, [job])
  }
}
