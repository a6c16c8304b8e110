import type { UsageReport } from '../../../client/index.js'

/** What was used, as the gateway sums it, made ready to be shown. Pure. */

export type UsageRow = UsageReport['rows'][number]

const DAY_MS = 86_400_000

/** The last so many days, as they are offered. */
export const DAYS = [7, 30, 90, 365] as const

/** A moment's day, UTC: `2026-03-01`. */
export const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

/** The last `days` days, today included. */
export const lastDays = (days: number, now: number): { from: string; to: string } => ({
  from: dayOf(now - (days - 1) * DAY_MS),
  to: dayOf(now),
})

/** Every day from the first to the last, both included; none when there is no such range. */
export function daysBetween(from: string, to: string): string[] {
  const days: string[] = []
  const end = Date.parse(to)
  for (let at = Date.parse(from); at <= end && days.length <= 400; at += DAY_MS) days.push(dayOf(at))
  return days
}

const NONE: UsageRow = {
  turns: 0,
  turnsSucceeded: 0,
  turnsFailed: 0,
  turnsInterrupted: 0,
  inputTokens: 0,
  outputTokens: 0,
  cacheCreationTokens: 0,
  cacheReadTokens: 0,
  approvalsAsked: 0,
  approvalsAnswered: 0,
  approvalsExpired: 0,
  approvalWaits: 0,
  approvalWaitMs: 0,
  approvalWaitMaxMs: 0,
  jobs: 0,
}

/** One row a day: a day on which nothing was counted has none of its own. */
export function filled(rows: readonly UsageRow[], from: string, to: string): UsageRow[] {
  const byDay = new Map(rows.map((row) => [row.day, row]))
  return daysBetween(from, to).map((day) => byDay.get(day) ?? { ...NONE, day })
}

export const tokensOf = (row: UsageRow): number =>
  row.inputTokens + row.outputTokens + row.cacheCreationTokens + row.cacheReadTokens

/** Everything together. The cost is absent when no turn told one. */
export function totalOf(rows: readonly UsageRow[]): UsageRow {
  const total: UsageRow = { ...NONE }
  for (const row of rows) {
    for (const name of Object.keys(NONE) as (keyof typeof NONE)[])
      if (name !== 'approvalWaitMaxMs') (total[name] as number) += row[name] as number
    total.approvalWaitMaxMs = Math.max(total.approvalWaitMaxMs, row.approvalWaitMaxMs)
    if (row.costUsd !== undefined) total.costUsd = (total.costUsd ?? 0) + row.costUsd
  }
  return total
}

/** Absent: none of which it is known. */
export const averageWaitMs = ({ approvalWaitMs, approvalWaits }: UsageRow): number | undefined =>
  approvalWaits > 0 ? approvalWaitMs / approvalWaits : undefined
