import type { JobEvent, JobInfo } from '../../schemas/jobs.js'
import type { Clock, Timer } from '../lib/clock.js'
import { isTerminal } from './job.js'

/** So long is waited for what another node is still to tell: the line to it is some milliseconds behind, and longer only when it is lost. */
const PATIENCE_MS = 500
/** Jobs of which it is known what was told last; those that were told of longest ago go first. */
const MAX_KNOWN = 10_000

type Standing = Pick<JobInfo, 'status' | 'attempt'>

interface Held {
  events: JobEvent[]
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

  constructor(clock: Clock, tell: (event: JobEvent) => void) {
    this.#clock = clock
    this.#tell = tell
  }

  take(event: JobEvent): void {
    const { id } = event.job
    const held = this.#held.get(id)
    if (held) {
      held.events.push(event)
      this.#passHeld(id, held)
    } else if (follows(event, this.#known.get(id))) this.#pass(event)
    else {
      const timer = this.#clock.after(PATIENCE_MS, () => this.#giveUp(id))
      this.#held.set(id, { events: [event], timer })
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
      if (!follows(events[0]!, this.#known.get(id))) {
        const at = events.findIndex((event) => isAwaited(event, events[0]!))
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
    for (const event of events) this.#pass(event)
  }

  #pass(event: JobEvent): void {
    const { id, status, attempt } = event.job
    const known = this.#known.get(id)
    if (known && isLate(event.job, known)) return
    this.#known.delete(id)
    this.#known.set(id, { status, attempt })
    if (this.#known.size > MAX_KNOWN) this.#known.delete(this.#known.keys().next().value!)
    this.#tell(event)
  }
}

/** Whether nothing has to be told before it. */
function follows({ type, job, ts }: JobEvent, known: Standing | undefined): boolean {
  if (type === 'job_submitted' || (known && isTerminal(known.status))) return true
  if (type === 'job_resumed') return known?.status !== 'running'
  // what was taken in so long ago was told before anybody listened here, or is given up
  if (!known && ts - job.createdAt >= PATIENCE_MS) return true
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
