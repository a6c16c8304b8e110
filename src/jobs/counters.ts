import type { JobStatus } from '../../schemas/jobs.js'
import { type Principal, visible } from '../principal.js'

export interface ActiveCounts {
  queued: number
  running: number
  parked: number
}

const isActive = (status: JobStatus | undefined): status is keyof ActiveCounts =>
  status === 'queued' || status === 'running' || status === 'parked'

/** How many jobs are in each state that is not terminal, by profile. */
export class JobCounters {
  readonly #byProfile = new Map<string, ActiveCounts>()
  #queued = 0
  #changes = 0

  /** Of all profiles. */
  get queued(): number {
    return this.#queued
  }

  /** How often the number of queued jobs has changed. */
  get changes(): number {
    return this.#changes
  }

  /** Takes queued jobs into account that are stored already. */
  addQueued(profile: string, count: number): void {
    this.#add(profile, 'queued', count)
  }

  /** As many are queued as somebody has counted. */
  setQueued(counted: readonly { profile: string; count: number }[]): void {
    for (const [profile, { queued }] of [...this.#byProfile]) this.#add(profile, 'queued', -queued)
    for (const { profile, count } of counted) this.#add(profile, 'queued', count)
  }

  /** @param from undefined for a new job */
  move(profile: string, from: JobStatus | undefined, to: JobStatus): void {
    if (isActive(from)) this.#add(profile, from, -1)
    if (isActive(to)) this.#add(profile, to, 1)
  }

  #add(profile: string, status: keyof ActiveCounts, count: number): void {
    const counts = this.#byProfile.get(profile) ?? { queued: 0, running: 0, parked: 0 }
    // one that was taken from the queue may never have been counted here: another process has added it
    const change = status === 'queued' ? Math.max(count, -counts.queued) : count
    counts[status] += change
    if (status === 'queued') {
      this.#queued += change
      this.#changes++
    }
    if (counts.queued !== 0 || counts.running !== 0 || counts.parked !== 0) this.#byProfile.set(profile, counts)
    else this.#byProfile.delete(profile)
  }

  /** Of the profiles that a caller may see. */
  visibleTo(principal: Principal): ActiveCounts {
    const total = { queued: 0, running: 0, parked: 0 }
    for (const [profile, counts] of this.#byProfile) {
      if (!visible(principal, profile)) continue
      total.queued += counts.queued
      total.running += counts.running
      total.parked += counts.parked
    }
    return total
  }
}
