import type { JobStatus } from '../../../../schemas/jobs.js'
import { type ClaimTerms, claimPatch, type JobPatch, type JobPlace } from '../../../jobs/adapter.js'
import { LEGAL_TRANSITIONS, type StoredJob } from '../../../jobs/job.js'
import { patched } from '../../../jobs/patch.js'
import { type DeliveryValues, type JobPageFilter, type JobRow, jobTimes, type KeptKeyRow } from '../../sql/rows.js'
import type { Database } from '../driver.js'
import { Refusal } from '../failures.js'
import { keyKeeper } from './idempotency.js'
import { deliveryKeeper } from './outbox.js'

const MAX_PAGE_CHARS = 1024 * 1024
const STATUSES = Object.keys(LEGAL_TRANSITIONS) as JobStatus[]

/** Jobs and the counters of their tokens. */
export function jobOperations(db: Database) {
  const insert = db.prepare(
    `INSERT INTO jobs (id, status, profile, priority, created_at, next_run_at, ready, finished_at, info, request)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
  )
  const find = db.prepare('SELECT n, status, info, request FROM jobs WHERE id = ?')
  const at = db.prepare('SELECT n, info, request FROM jobs WHERE n = ?')
  const save = db.prepare(
    'UPDATE jobs SET status = ?, next_run_at = ?, ready = ?, finished_at = ?, info = ? WHERE n = ?',
  )
  const takeDue = db.prepare('UPDATE jobs SET ready = 1 WHERE ready = 0 AND next_run_at <= ?')
  const next = db.prepare('SELECT n, info, request FROM jobs WHERE ready = 1 ORDER BY priority DESC, n LIMIT ?')
  const positionOf = db.prepare('SELECT n FROM jobs WHERE id = ?')
  const positionAt = db.prepare('SELECT n FROM jobs WHERE created_at <= ? ORDER BY created_at DESC, n DESC LIMIT 1')
  const newest = db.prepare('SELECT n FROM jobs WHERE n < ? ORDER BY n DESC LIMIT ?')
  const newestOf = db.prepare('SELECT n FROM jobs WHERE status = ? AND n < ? ORDER BY n DESC LIMIT ?')
  const newestUnder = db.prepare(
    'SELECT n FROM jobs WHERE profile = ? AND status = ? AND n < ? ORDER BY n DESC LIMIT ?',
  )
  const ended = db.prepare('SELECT info FROM jobs WHERE finished_at <= ? ORDER BY finished_at, n LIMIT ?')
  const prune = db.prepare(
    'DELETE FROM jobs WHERE n IN (SELECT n FROM jobs WHERE finished_at <= ? ORDER BY finished_at LIMIT ?)',
  )
  const charge = db.prepare(
    `INSERT INTO daily_tokens (day, tokens) VALUES (?, ?)
     ON CONFLICT (day) DO UPDATE SET tokens = tokens + excluded.tokens RETURNING tokens`,
  )
  const remove = db.prepare('DELETE FROM jobs WHERE id = ?')
  const keepKey = keyKeeper(db)
  const keepDelivery = deliveryKeeper(db)
  const tokensOf = db.prepare('SELECT tokens FROM daily_tokens WHERE day = ?')

  const change = ({ n, info, request }: JobRow, patch: JobPatch, parsed: StoredJob = JSON.parse(info)): JobRow => {
    const job = patched(parsed, patch)
    const text = JSON.stringify(job)
    save.run(job.status, ...jobTimes(job), text, n)
    return { n, info: text, request }
  }

  const update = (
    id: string,
    patch: JobPatch,
    expected?: JobStatus,
    deliveries: readonly DeliveryValues[] = [],
  ): JobRow | null => {
    const row: (JobRow & { status: JobStatus }) | undefined = find.get(id)
    if (!row || (expected !== undefined && row.status !== expected)) return null
    for (const delivery of deliveries) keepDelivery(delivery)
    return change(row, patch)
  }

  /** The number below which a list goes on behind a job. */
  const behind = ({ id, createdAt, position }: JobPlace): number => {
    const here: number | undefined = position ?? positionOf.get(id)?.n
    return here ?? (positionAt.get(createdAt)?.n ?? 0) + 1
  }

  const numbers = ({ status, profiles, before, after, limit }: JobPageFilter): number[] => {
    const below = Math.min(before ?? Number.MAX_SAFE_INTEGER, after ? behind(after) : Number.MAX_SAFE_INTEGER)
    if (!status && !profiles) return newest.all(below, limit).map(({ n }) => n)
    const statuses = status ?? STATUSES
    const lists = profiles
      ? profiles.flatMap((profile) => statuses.map((one) => newestUnder.all(profile, one, below, limit)))
      : statuses.map((one) => newestOf.all(one, below, limit))
    const found = new Set<number>(lists.flat().map(({ n }) => n))
    return [...found].sort((a, b) => b - a).slice(0, limit)
  }

  return {
    'jobs.add'(info: string, request: string, priority: number, key?: KeptKeyRow): void {
      const job = JSON.parse(info) as StoredJob
      const { id, status, profile, createdAt } = job
      const { changes } = insert.run(id, status, profile, priority, createdAt, ...jobTimes(job), info, request)
      if (changes === 0) throw new Refusal(`There is a job ${id} already.`)
      if (key) keepKey(key)
    },
    'jobs.claim'(now: number, limit: number, { tokens, begin }: ClaimTerms = {}): { rows: JobRow[]; paused: boolean } {
      if (tokens && (tokensOf.get(tokens.day)?.tokens ?? 0) >= tokens.limit) return { rows: [], paused: true }
      takeDue.run(now)
      const ready: JobRow[] = next.all(limit)
      const rows = ready.map((row, index) => {
        const info: StoredJob = JSON.parse(row.info)
        return change(row, claimPatch(info, begin, index), info)
      })
      return { rows, paused: false }
    },
    'jobs.get'(id: string): JobRow | undefined {
      return find.get(id)
    },
    /** Ends at about 1 MiB too, which whoever asks takes in one turn. */
    'jobs.page'(filter: JobPageFilter): { rows: JobRow[]; isLast: boolean } {
      const found = numbers(filter)
      const rows: JobRow[] = []
      for (let chars = 0; rows.length < found.length && chars < MAX_PAGE_CHARS; ) {
        const row: JobRow = at.get(found[rows.length]!)
        rows.push(row)
        chars += row.info.length + row.request.length
      }
      return { rows, isLast: rows.length === found.length && found.length < filter.limit }
    },
    'jobs.update': update,
    'jobs.remove'(id: string): void {
      remove.run(id)
    },
    'jobs.ended'(finishedBy: number, limit: number): string[] {
      return ended.all(finishedBy, limit).map(({ info }) => info)
    },
    /** Removes some of the jobs that ended by then. @returns how many */
    'jobs.prune'(finishedBy: number, limit: number): number {
      return Number(prune.run(finishedBy, limit).changes)
    },
    'jobs.charge'(day: string, tokens: number): number {
      return charge.get(day, tokens).tokens
    },
    'jobs.tokens'(day: string): number {
      return tokensOf.get(day)?.tokens ?? 0
    },
    'jobs.settle'(
      id: string,
      patch: JobPatch,
      day: string,
      tokens: number,
      expected?: JobStatus,
      deliveries?: readonly DeliveryValues[],
    ) {
      return { row: update(id, patch, expected, deliveries), dailyTokens: charge.get(day, tokens).tokens as number }
    },
  }
}
