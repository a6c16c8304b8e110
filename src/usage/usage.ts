import type { UsageGroup, UsageQuery, UsageReport } from '../../schemas/usage.js'
import type { MomentEvent } from '../engines/event-types.js'
import { invalidField } from '../errors.js'
import type { Clock } from '../lib/clock.js'
import { type Persistence, patiently, persistently } from '../lib/patience.js'
import { DAY_MS, dayNumber, utcDay } from '../lib/utc-day.js'
import type { PlannedNotification } from '../notifications/planned.js'
import type { KeptTelling } from '../notifications/store.js'
import { type Principal, visibleProfiles } from '../principal.js'
import { type CountedSession, countOf } from './count.js'
import type { UsageCount, UsageStore } from './store.js'

const DEFAULT_DAYS = 30
const MAX_DAYS = 400
/** Of one answer. */
const MAX_ROWS = 10_000

export interface UsageParts extends Persistence {
  clock: Clock
  store: UsageStore
  /** Whether counts are kept in the write of the event that they are of. */
  ridesAlong: boolean
}

/** What was used, as daily sums: counted with the events that tell of it, never by reading logs. */
export class Usage {
  readonly #parts: UsageParts

  constructor(parts: UsageParts) {
    this.#parts = parts
  }

  /** What an event counts for, to be kept with it; undefined: nothing. */
  readonly count = (body: MomentEvent, ts: number, session: CountedSession): PlannedNotification | undefined => {
    const count = countOf(body, ts, session)
    return count && new PlannedCount(this.#parts, count)
  }

  /**
   * The sums of a caller's profiles.
   * @throws SG_ERR_VALIDATION naming the field · SG_ERR_STORE_UNAVAILABLE
   */
  async report(query: UsageQuery, principal: Principal): Promise<UsageReport> {
    const { clock, store } = this.#parts
    const { from, to } = this.#rangeOf(query)
    const by = [...new Set((query.by ?? 'day').split(','))] as UsageGroup[]
    const profiles = visibleProfiles(principal)
    const range = { from, to, ...(profiles && { profiles }) }
    const sums = await patiently(clock, () => store.read(range, by, MAX_ROWS + 1))
    if (sums.length > MAX_ROWS)
      throw invalidField('by', `that is more than ${MAX_ROWS} rows: sum by less, or ask for fewer days.`)
    const rows = sums.map(({ costUsd, ...row }) => ({ ...row, ...(costUsd > 0 && { costUsd }) }))
    return { from, to, by, rows }
  }

  #rangeOf(query: UsageQuery): { from: string; to: string } {
    const to = momentOf('to', query.to) ?? dayNumber(this.#parts.clock.now()) * DAY_MS
    const from = momentOf('from', query.from) ?? to - (DEFAULT_DAYS - 1) * DAY_MS
    if (from > to) throw invalidField('from', 'must not be after to.')
    if (to - from >= MAX_DAYS * DAY_MS) throw invalidField('from', `must be at most ${MAX_DAYS} days before to.`)
    return { from: utcDay(from), to: utcDay(to) }
  }
}

/** A count that whoever writes its event down keeps in the same write. */
class PlannedCount implements PlannedNotification {
  readonly #parts: UsageParts
  readonly #counts: readonly UsageCount[]
  #isKept = false

  constructor(parts: UsageParts, count: UsageCount) {
    this.#parts = parts
    this.#counts = [count]
  }

  get isKept(): boolean {
    return this.#isKept
  }

  write(): KeptTelling {
    return this.#parts.ridesAlong ? { deliveries: [], usage: this.#counts } : { deliveries: [] }
  }

  written(): void {
    this.#isKept = true
    if (!this.#parts.ridesAlong) this.#add()
  }

  unwritten(): void {}

  keep(): void {
    this.#isKept = true
    this.#add()
  }

  #add(): void {
    const { store } = this.#parts
    void persistently(() => store.add(this.#counts), this.#parts)
  }

  send(): void {}
}

/** @throws SG_ERR_VALIDATION for a day that there is not */
function momentOf(name: string, day: string | undefined): number | undefined {
  if (day === undefined) return undefined
  const moment = Date.parse(`${day}T00:00:00Z`)
  if (Number.isNaN(moment) || utcDay(moment) !== day) throw invalidField(name, 'must be a day, as in 2026-01-31.')
  return moment
}
