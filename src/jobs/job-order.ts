import type { JobEvent, JobInfo } from '../../schemas/jobs.js'
import type { Clock, Timer } from '../lib/clock.js'
import { isTerminal } from './job.js'

/** So long is waited for what another node is still to tell: the line to it is some milliseconds behind, and longer only when it is lost. */
const PATIENCE_MS = 500
/** Clocks of nodes may be off by so much. */
const SKEW_MS = 30_000
/** Jobs of which it is known what was told last; those that were told of longest ago go first. */
const MAX_KNOWN = 10_000

interface Standing extends Pick<JobInfo, 'status' | 'attempt'> {
  /** The node that has told that it goes on, when another one had not told yet that it was parked. */
  resumedBy?: number | undefined
}

interface Told {
  event: JobEvent
  /** The node that tells it. */
  by: number
}

interface Held {
  events: Told[]
  timer: Timer
}

/**
 * Brings what several nodes tell of one job into the order in which it happened: one takes a job in, or puts it back, and the next one
 * has begun it before that is heard here. What is missing too long is given up, and told no more when it comes after all.
 */
export class JobOrder {
  readonly #clock: Clock
  readonly #tell: (event: JobEvent) => void
  readonly #known = new Map<string, Standing>()
  readonly #held = new Map<string, Held>()
  /** Since when somebody listens. */
  #since: number | undefined

  constructor(clock: Clock, tell: (event: JobEvent) => void) {
    this.#clock = clock
    this.#tell = tell
  }

  /** Somebody listens from now on. */
  begin(): void {
    this.#since = this.#clock.now()
  }

  /** @param by the node that tells it */
  take(event: JobEvent, by: number): void {
    const { id } = event.job
    const told = { event, by }
    const held = this.#held.get(id)
    if (held) {
      held.events.push(told)
      this.#passHeld(id, held)
    } else if (this.#follows(event)) this.#pass(told)
    else {
      const timer = this.#clock.after(PATIENCE_MS, () => this.#giveUp(id))
      this.#held.set(id, { events: [told], timer })
    }
  }

  /** Nobody listens any more. */
  clear(): void {
    for (const { timer } of this.#held.values()) timer.cancel()
    this.#held.clear()
    this.#known.clear()
  }

  #passHeld(id: string, { events, timer }: Held): void {
    while (events.length > 0) {
      const next = events[0]!.event
      if (!this.#follows(next)) {
        const at = events.findIndex(({ event }) => isAwaited(event, next))
        if (at < 0) return
        events.unshift(...events.splice(at, 1))
      }
      this.#pass(events.shift()!)
    }
    timer.cancel()
    this.#held.delete(id)
  }

  #giveUp(id: string): void {
    const { events } = this.#held.get(id)!
    this.#held.delete(id)
    for (const told of events) this.#pass(told)
  }

  #follows(event: JobEvent): boolean {
    // a job that seems older may be of a node whose clock is behind, unless it would be from before somebody listened
    const heardForMs = this.#since === undefined ? 0 : Math.max(this.#clock.now() - this.#since, 0)
    const isOld = event.ts - event.job.createdAt >= PATIENCE_MS + Math.min(heardForMs, SKEW_MS)
    return follows(event, this.#known.get(event.job.id), isOld)
  }

  #pass({ event, by }: Told): void {
    const { type, job } = event
    const { id, status, attempt } = job
    const known = this.#known.get(id)
    if (known && (isLate(job, known) || (type === 'job_parked' && isOfBefore(by, known)))) return
    const isGivenUp = type === 'job_resumed' && known?.status !== 'parked'
    const resumedBy = isGivenUp ? by : type === 'job_progress' ? known?.resumedBy : undefined
    this.#known.delete(id)
    this.#known.set(id, { status, attempt, resumedBy })
    if (this.#known.size > MAX_KNOWN) this.#known.delete(this.#known.keys().next().value!)
    this.#tell(event)
  }
}

/** Whether nothing has to be told before it. */
function follows({ type, job }: JobEvent, known: Standing | undefined, isOld: boolean): boolean {
  if (type === 'job_submitted' || (known && isTerminal(known.status))) return true
  if (type === 'job_resumed') return known?.status !== 'running'
  // what was taken in so long ago was told before anybody listened here, or is given up
  if (!known && isOld) return true
  if (type === 'job_started') return known !== undefined && known.attempt >= job.attempt
  // of one that has begun, whoever tells this has told the beginning, or was not heard then
  return known !== undefined || job.startedAt !== undefined
}

/** Whether an event is the one that has to be told before `next`. */
function isAwaited({ type, job }: JobEvent, next: JobEvent): boolean {
  if (next.type === 'job_resumed') return type === 'job_parked'
  return (type === 'job_submitted' || type === 'job_retrying') && job.attempt === next.job.attempt
}

/** Whether a job has gone on from there by what was told already. */
const isLate = (job: Standing, known: Standing): boolean =>
  isTerminal(known.status) ||
  (!isTerminal(job.status) &&
    (job.attempt < known.attempt ||
      (job.attempt === known.attempt && job.status === 'queued' && known.status !== 'queued')))

/** Whether it tells of a park that a job has gone on from: whoever goes on with it would tell of the next one itself. */
const isOfBefore = (by: number, { resumedBy }: Standing): boolean => resumedBy !== undefined && resumedBy !== by
