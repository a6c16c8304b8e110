import { deferred } from '../lib/deferred.js'
import type { PlannedOnce } from '../notifications/planned.js'
import type { SessionEventTold } from '../sessions/registry-options.js'
import type { JobRecord } from './adapter.js'
import type { StoredJob } from './job.js'
import type { Announcement } from './job-events.js'
import type { JobRun } from './run.js'

/** A run of this process, and what is being written about it. */
export interface Tracked {
  run: JobRun
  /** The job as it was claimed, for a run that this process began. */
  claimed: JobRecord | undefined
  /** What the webhook is told of its begin. */
  start?: PlannedOnce | undefined
  /** Parked, as everybody can see: it takes no slot. */
  parked: boolean
  /** What is written about the run, one after the other; told after it was written. */
  writing: Promise<void>
  /** Resolves when the end of the attempt is written. */
  settled: Promise<void>
  settle(): void
  /** Of a run that ended before the end of its turn is durable: what everybody may see, until that is. */
  ahead?: { shown: StoredJob; durable: Promise<void> }
  /** Resolves when the end of the attempt is stored, which its session may not be yet. */
  stored?: Promise<unknown>
  /** How its cancel was written, before the run was stopped. */
  canceled?: Ending
}

/** @param written null: somebody else ended it */
export interface Ending {
  written: JobRecord | null
  told: Announcement
}

export function tracked(run: JobRun, claimed: JobRecord | undefined): Tracked {
  const { promise: settled, resolve: settle } = deferred()
  return { run, claimed, parked: false, writing: Promise.resolve(), settled, settle }
}

/** What sessions of jobs tell before their jobs are taken up, from the start on and whenever those of another process are expected. */
export class MissedEvents {
  readonly #bySession = new Map<string, SessionEventTold[]>()
  #expecting = 1

  /** Whether jobs are still to be taken up; nothing is missed any more after that. */
  get expected(): boolean {
    return this.#expecting > 0
  }

  note(told: SessionEventTold): void {
    if (!this.expected) return
    const missed = this.#bySession.get(told.sessionId)
    if (missed) missed.push(told)
    else this.#bySession.set(told.sessionId, [told])
  }

  of(sessionId: string): readonly SessionEventTold[] {
    return this.#bySession.get(sessionId) ?? []
  }

  expect(): void {
    this.#expecting++
  }

  tookUp(): void {
    this.#expecting = Math.max(0, this.#expecting - 1)
    if (!this.expected) this.#bySession.clear()
  }
}
