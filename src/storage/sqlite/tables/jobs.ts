import type { JobStatus } from '../../../../schemas/jobs.js'
import { claimPatch, isAsExpected, type JobPatch, type JobPlace } from '../../../jobs/adapter.js'
import { JOB_STATUSES, type StoredJob } from '../../../jobs/job.js'
import { patched } from '../../../jobs/patch.js'
import { isSound, keptObject, unreadable } from '../../sql/json-columns.js'
import type { Operations, OperationsOf } from '../../sql/operations.js'
import { type JobPageFilter, type JobRow, jobTimes, MAX_PAGE_CHARS } from '../../sql/rows.js'
import { type Database, rowsOf } from '../driver.js'
import { Refusal } from '../failures.js'
import { ridingKeeper } from './riding.js'

/** So many queued jobs of somebody's are found soon among those of all. */
const MANY = 1_000

/** Jobs and the counters of their tokens. */
export function jobOperations(db: Database): OperationsOf<'jobs'> {
  const insert = db.prepare(
    `INSERT INTO jobs (id, status, profile, priority, created_at, next_run_at, ready, finished_at, info, request)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
  )
  const find = db.prepare('SELECT n, id, rev, status, info, request FROM jobs WHERE id = ?')
  const at = db.prepare('SELECT n, id, rev, info, request FROM jobs WHERE n = ?')
  const save = db.prepare(
    'UPDATE jobs SET rev = ?, status = ?, next_run_at = ?, ready = ?, finished_at = ?, info = ? WHERE n = ?',
  )
  const takeDue = db.prepare('UPDATE jobs SET ready = 1 WHERE ready = 0 AND next_run_at <= ?')
  const next = db.prepare('SELECT n, id, rev, info, request FROM jobs WHERE ready = 1 ORDER BY priority DESC, n')
  const positionOf = db.prepare('SELECT n FROM jobs WHERE id = ?')
  const positionAt = db.prepare('SELECT n FROM jobs WHERE created_at <= ? ORDER BY created_at DESC, n DESC LIMIT 1')
  const newest = db.prepare('SELECT n FROM jobs WHERE n < ? ORDER BY n DESC LIMIT ?')
  const newestOf = db.prepare('SELECT n FROM jobs WHERE status = ? AND n < ? ORDER BY n DESC LIMIT ?')
  const newestUnder = db.prepare(
    'SELECT n FROM jobs WHERE profile = ? AND status = ? AND n < ? ORDER BY n DESC LIMIT ?',
  )
  const counts = db.prepare(
    `SELECT profile, status, count(*) AS count FROM jobs WHERE status IN ('queued', 'running', 'parked') GROUP BY profile, status`,
  )
  const delayed = db.prepare(
    'SELECT id, next_run_at AS nextRunAt FROM jobs WHERE ready = 0 AND next_run_at > ? ORDER BY next_run_at, n LIMIT ?',
  )
  const theirs = 'profile IN (SELECT value FROM json_each(?1))'
  const upcomingOf = (are: string, ready: string) =>
    db.prepare(
      `SELECT id FROM (
         SELECT * FROM (SELECT id, n, priority, 0 AS due FROM jobs WHERE ${ready} = 1 AND ${are} ORDER BY priority DESC, n LIMIT ?3)
         UNION ALL SELECT id, n, priority, 0 FROM jobs WHERE ${ready} = 0 AND next_run_at <= ?2 AND ${are}
         UNION ALL SELECT * FROM (
           SELECT id, n, 0, next_run_at FROM jobs WHERE ${ready} = 0 AND next_run_at > ?2 AND ${are} ORDER BY next_run_at, n LIMIT ?3)
       ) ORDER BY due, priority DESC, n LIMIT ?3`,
    )
  const upcoming = upcomingOf(`(?1 IS NULL OR ${theirs})`, 'ready')
  /** By their profile: all that are queued would be read for a few of them. */
  const upcomingOfFew = upcomingOf(`status = 'queued' AND ${theirs}`, '+ready')
  const some = db.prepare(
    `SELECT count(*) AS count FROM (SELECT 1 FROM jobs WHERE status = 'queued' AND ${theirs} LIMIT ?2)`,
  )
  const underWay = db.prepare(
    `SELECT n, id, rev, info, request FROM jobs WHERE status IN ('running', 'parked') AND n > ? ORDER BY n LIMIT ?`,
  )
  const ended = db.prepare('SELECT info FROM jobs WHERE finished_at <= ? ORDER BY finished_at, n')
  const prune = db.prepare(
    'DELETE FROM jobs WHERE n IN (SELECT n FROM jobs WHERE finished_at <= ? ORDER BY finished_at LIMIT ?)',
  )
  const charge = db.prepare(
    `INSERT INTO daily_tokens (day, tokens) VALUES (?, ?)
     ON CONFLICT (day) DO UPDATE SET tokens = tokens + excluded.tokens RETURNING tokens`,
  )
  const remove = db.prepare('DELETE FROM jobs WHERE id = ?')
  const keepAlong = ridingKeeper(db)
  const tokensOf = db.prepare('SELECT tokens FROM daily_tokens WHERE day = ?')

  /** @param before what the row says */
  const change = ({ n, id, rev, request }: JobRow, before: StoredJob, patch: JobPatch): JobRow => {
    const job = patched(before, patch)
    const text = JSON.stringify(job)
    save.run(rev + 1, job.status, ...jobTimes(job), text, n)
    return { n, id, rev: rev + 1, info: text, request }
  }

  const update: Operations['jobs.update'] = (id, patch, expected, deliveries) => {
    const row: (JobRow & { status: JobStatus }) | undefined = find.get(id)
    if (!row || !isAsExpected(expected, row.status, row.rev)) return null
    const job = soundJob(row)
    if (!job) throw new Refusal(unreadable('The job', id, 'jobs'), 'STORAGE_UNREADABLE')
    keepAlong({ deliveries })
    return change(row, job, patch)
  }

  const charged: Operations['jobs.charge'] = (day, tokens) => charge.get(day, tokens).tokens

  /** The number below which a list goes on behind a job. */
  const behind = ({ id, createdAt, position }: JobPlace): number => {
    const here: number | undefined = position ?? positionOf.get(id)?.n
    return here ?? (positionAt.get(createdAt)?.n ?? 0) + 1
  }

  const numbers = ({ status, profiles, before, after, limit }: JobPageFilter): number[] => {
    const below = Math.min(before ?? Number.MAX_SAFE_INTEGER, after ? behind(after) : Number.MAX_SAFE_INTEGER)
    if (!status && !profiles) return newest.all(below, limit).map(({ n }) => n)
    const statuses = status ?? JOB_STATUSES
    const lists = profiles
      ? profiles.flatMap((profile) => statuses.map((one) => newestUnder.all(profile, one, below, limit)))
      : statuses.map((one) => newestOf.all(one, below, limit))
    const found = new Set<number>(lists.flat().map(({ n }) => n))
    return [...found].sort((a, b) => b - a).slice(0, limit)
  }

  return {
    'jobs.add'(info, request, priority, key) {
      const job = JSON.parse(info) as StoredJob
      const { id, status, profile, createdAt } = job
      const { changes } = insert.run(id, status, profile, priority, createdAt, ...jobTimes(job), info, request)
      if (changes === 0) throw new Refusal(`There is a job ${id} already.`)
      keepAlong({ keys: key && [key] })
    },
    'jobs.claim'(now, limit, { tokens, begin } = {}) {
      if (tokens && (tokensOf.get(tokens.day)?.tokens ?? 0) >= tokens.limit) return { rows: [], paused: true }
      takeDue.run(now)
      // one whose text is damaged stays as it is, and takes the place of no other
      const ready = firstOf(rowsOf(next), limit, (row: JobRow) => {
        const job = soundJob(row)
        return job && { row, job }
      })
      const rows = ready.map(({ row, job }, index) => change(row, job, claimPatch(job, begin, index)))
      return { rows, paused: false }
    },
    'jobs.get': (id) => find.get(id),
    'jobs.page'(filter) {
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
    'jobs.remove': (id) => void remove.run(id),
    'jobs.counts': () => counts.all(),
    'jobs.delayed': (after, limit) => delayed.all(after, limit),
    'jobs.next'(now, limit, profiles) {
      const asked = profiles ? JSON.stringify(profiles) : null
      const areFew = asked !== null && some.get(asked, MANY).count < MANY
      return (areFew ? upcomingOfFew : upcoming).all(asked, now, limit).map(({ id }) => id)
    },
    'jobs.owned': (after, limit) => underWay.all(after, limit),
    'jobs.unreadable'(limit) {
      const ids: string[] = []
      // their texts may be long: one is held at a time
      let left = limit
      for (const row of rowsOf(next)) {
        if (!isSound('jobs', row)) ids.push(row.id)
        if (--left <= 0) break
      }
      return ids
    },
    'jobs.ended': (finishedBy, limit) =>
      firstOf(rowsOf(ended, finishedBy), limit, (row) => (isSound('jobs', row) ? (row.info as string) : undefined)),
    'jobs.prune': (finishedBy, limit) => Number(prune.run(finishedBy, limit).changes),
    'jobs.charge': charged,
    'jobs.tokens': (day) => tokensOf.get(day)?.tokens ?? 0,
    'jobs.settle': (id, patch, day, tokens, expected, deliveries) => ({
      row: update(id, patch, expected, deliveries),
      dailyTokens: charged(day, tokens),
    }),
  }
}

/** What a row says of its job; undefined: one of its texts is damaged. */
function soundJob({ info, request }: JobRow): StoredJob | undefined {
  const job = keptObject<StoredJob>(info, 'jobs')
  return job && keptObject(request, 'jobs') ? job : undefined
}

/** At most so many of what the rows give; no more are read. */
function firstOf<Row, Found>(rows: Iterable<Row>, limit: number, of: (row: Row) => Found | undefined): Found[] {
  const found: Found[] = []
  if (limit <= 0) return found
  for (const row of rows) {
    const one = of(row)
    if (one === undefined) continue
    found.push(one)
    if (found.length >= limit) break
  }
  return found
}
