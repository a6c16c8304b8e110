import { type Expected, isAsExpected, type JobCount, type JobPatch } from '../../../jobs/adapter.js'
import { JOB_STATUSES, type StoredJob } from '../../../jobs/job.js'
import { patched } from '../../../jobs/patch.js'
import { isSound, keptObject, objectOf } from '../../sql/json-columns.js'
import { type JobPageFilter, type JobRow, jobTimes, MAX_PAGE_CHARS } from '../../sql/rows.js'
import type { Row, Statement } from '../pipeline.js'
import { asks, does, type Plans, pageOf, rowsOf, statement } from '../plan.js'
import { isKept, textArray } from '../values.js'
import type { JobChange } from './job-changes.js'
import { ridingStatements } from './riding.js'

const COLUMNS = 'n, id, rev, claimed, info, request'
const ADD = `INSERT INTO @jobs (id, status, profile, priority, created_at, next_run_at, ready, finished_at, begins, home, info, request)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`
/** Others may be at it. */
const TAKE_DUE = `UPDATE @jobs SET ready = true WHERE n = ANY (ARRAY(
  SELECT n FROM @jobs WHERE NOT ready AND next_run_at <= $1 ORDER BY n FOR UPDATE SKIP LOCKED))`
const IS_SPENT = `SELECT coalesce((SELECT tokens FROM @daily_tokens WHERE day = $1), 0) >= $2::double precision AS spent`
/** Profiles that other nodes have, who claim, and this one has not: a node without one would fail its jobs. */
const FOREIGN = `foreign_ones AS MATERIALIZED (SELECT ARRAY(
    SELECT unnest(profiles) FROM @members JOIN @leases USING (n) WHERE term >= 0 AND slots > 0 AND until >= clock_timestamp()
    EXCEPT SELECT unnest(profiles) FROM @members WHERE n = $6
  ) AS profiles)`
const NOT_FOREIGN = 'profile <> ALL ((SELECT profiles FROM foreign_ones)::text[])'
/** One with damaged text stays as it is, and takes the place of no other. */
const IS_SOUND = `${isKept('info')} AND ${isKept('request')}`
/**
 * The first that are ready. Of a CASE the planner takes it that it leaves many: where all jobs have one profile it would otherwise expect
 * none, and read and sort all that are ready.
 * @param of which of them
 * @param when such a one is claimed
 */
const first = (of: string, when: string): string => `SELECT n, priority FROM @jobs
    WHERE ready ${of} AND CASE WHEN ${when} THEN ${IS_SOUND} ELSE false END
      AND NOT ($1::text IS NOT NULL AND coalesce((SELECT tokens FROM @daily_tokens WHERE day = $1), 0) >= $2::double precision)
    ORDER BY priority DESC, n LIMIT $3 FOR UPDATE SKIP LOCKED`
/** What begins with the claim is decided here: no job is read before, so that many may claim at once. */
const claim = (free: string): string => `WITH ${FOREIGN}, ${free},
  places AS (SELECT ARRAY(SELECT n FROM free ORDER BY priority DESC, n) AS n)
  UPDATE @jobs AS j SET rev = rev + 1, status = 'running', ready = NULL, next_run_at = NULL, begins = false, owner = $6, claim = $4,
    claimed = CASE WHEN begins THEN coalesce(($5::text[])[array_position((SELECT n FROM places), j.n)], '{}') ELSE '{}' END
  WHERE j.n = ANY ((SELECT n FROM places)::bigint[]) RETURNING j.n, j.id, j.rev, j.priority, claimed, info, request`
const CLAIM = claim(`free AS MATERIALIZED (${first('', NOT_FOREIGN)})`)
/**
 * An index gives those of a home, and those without one, however many others there are. Nobody else claims those at home: without their
 * profile they fail.
 */
const CLAIM_AT_HOME = claim(`anywhere AS MATERIALIZED (${first('AND home IS NULL', NOT_FOREIGN)}),
  here AS MATERIALIZED (${first('AND home = $7', 'true')}),
  free AS (SELECT * FROM (SELECT * FROM anywhere UNION ALL SELECT * FROM here) AS j ORDER BY priority DESC, n LIMIT $3)`)
const CLAIMED = `SELECT ${COLUMNS}, priority FROM @jobs WHERE claim = $1 AND status = 'running'`
/**
 * The newest of each status, and of each profile: an index that begins with these gives them, however many others there are. Rows are
 * compared and ordered as a whole, as by equality the planner would take the key instead, and read all others on the way.
 * @param kind what that index has before the number, and where what that has to be is
 */
const page = (by: string, kind: { column: string; value: string }[]): string => {
  const columns = [...kind.map(({ column }) => `j.${column}`), 'j.n']
  const range = (n: string) => `(${[...kind.map(({ value }) => value), n]})`
  return `WITH below AS (SELECT least($3::bigint, coalesce(
      $4::bigint,
      (SELECT n FROM @jobs WHERE id = $5),
      (SELECT n FROM @jobs WHERE created_at <= $6::double precision ORDER BY created_at DESC, n DESC LIMIT 1) + 1,
      CASE WHEN $5::text IS NOT NULL THEN 1 END,
      $3::bigint)) AS n),
  found AS (
    SELECT x.n FROM ${by} CROSS JOIN LATERAL (
      SELECT j.n FROM @jobs AS j WHERE (${columns}) < ${range('(SELECT n FROM below)')} AND (${columns}) >= ${range('0')}
      ORDER BY ${columns.map((column) => `${column} DESC`)} LIMIT $7
    ) AS x ORDER BY x.n DESC LIMIT $7
  ), measured AS (
    SELECT ${COLUMNS}, count(*) OVER () AS found,
      sum(octet_length(info) + octet_length(request)) OVER (ORDER BY n DESC) - octet_length(info) - octet_length(request) AS before
    FROM @jobs WHERE n = ANY (ARRAY(SELECT n FROM found))
  ) SELECT * FROM measured WHERE before < ${MAX_PAGE_CHARS} ORDER BY n DESC`
}
const STATUS = { column: 'status', value: 's.status' }
const PAGE = page('(SELECT $1::text[], $2::text[]) AS _', [])
const PAGE_BY_STATUS = page('(SELECT unnest($1::text[]) AS status, $2::text[]) AS s', [STATUS])
const PAGE_BY_PROFILE = page(
  '(SELECT unnest($1::text[]) AS status) AS s CROSS JOIN (SELECT unnest($2::text[]) AS profile) AS p',
  [{ column: 'profile', value: 'p.profile' }, STATUS],
)
const CHARGE = `INSERT INTO @daily_tokens AS d (day, tokens) VALUES ($1, $2)
  ON CONFLICT (day) DO UPDATE SET tokens = d.tokens + excluded.tokens RETURNING tokens`
const TOKENS = 'SELECT coalesce((SELECT tokens FROM @daily_tokens WHERE day = $1), 0) AS tokens'
const COUNTS = `SELECT profile, status, count(*) AS count FROM @jobs
  WHERE status IN ('queued', 'running', 'parked') GROUP BY profile, status`
const DELAYED = `SELECT id, next_run_at AS "nextRunAt" FROM @jobs
  WHERE NOT ready AND next_run_at > $1 ORDER BY next_run_at, n LIMIT $2`
const IS_ASKED = '($1::text[] IS NULL OR profile = ANY ($1::text[]))'
const NEXT = `SELECT id FROM (
    (SELECT id, n, priority, 0 AS due FROM @jobs WHERE ready AND ${IS_ASKED} ORDER BY priority DESC, n LIMIT $3)
    UNION ALL SELECT id, n, priority, 0 FROM @jobs WHERE NOT ready AND next_run_at <= $2 AND ${IS_ASKED}
    UNION ALL (SELECT id, n, 0, next_run_at FROM @jobs WHERE NOT ready AND next_run_at > $2 AND ${IS_ASKED} ORDER BY next_run_at, n LIMIT $3)
  ) AS j ORDER BY due, priority DESC, n LIMIT $3`
const OWNED = `SELECT ${COLUMNS} FROM @jobs WHERE owner = $1 AND n > $2 ORDER BY n LIMIT $3`
const ENDED = `SELECT info FROM @jobs WHERE finished_at <= $1 AND ${isKept('info')} ORDER BY finished_at, n LIMIT $2`
const UNREADABLE = `SELECT id FROM (SELECT id, info, request FROM @jobs WHERE ready ORDER BY priority DESC, n LIMIT $1) AS j
  WHERE NOT (${IS_SOUND})`
const PRUNE = `DELETE FROM @jobs WHERE n = ANY (ARRAY(SELECT n FROM @jobs WHERE finished_at <= $1 ORDER BY finished_at LIMIT $2)) RETURNING n`

/** A job as it was last read, or as the batch leaves it. */
interface KnownJob {
  rev: number
  row: JobRow
}

/** Jobs that a batch changes, by id; undefined: there is none. */
export type KnownJobs = Map<string, KnownJob | undefined>

/** Asks for the jobs that a batch is going to change. */
export const jobsAsked = (ids: readonly string[]): Statement =>
  statement(`SELECT ${COLUMNS} FROM @jobs WHERE id = ANY ($1::text[])`, textArray(ids))

export function knownJobs(ids: readonly string[], rows: readonly Row[]): KnownJobs {
  const known: KnownJobs = new Map(ids.map((id) => [id, undefined]))
  for (const row of rows) known.set(row.id as string, { rev: row.rev as number, row: jobRow(row) })
  return known
}

/** What a claim has changed is said beside the job, until the next change. Damaged text is given as it is: whoever reads it says so. */
function jobRow({ n, id, rev, claimed, info, request }: Row): JobRow {
  const row = { n, id, rev, info, request } as JobRow
  if (claimed === null) return row
  const change = objectOf<JobPatch>(claimed as string)
  if (!change) return { ...row, info: claimed as string }
  const job = keptObject<StoredJob>(row.info, 'jobs')
  if (!job) return row
  return { ...row, info: JSON.stringify(patched(job, { status: 'running', nextRunAt: undefined, ...change })) }
}

const lastTokens = (rows: readonly Row[][]): number => rows.at(-1)![0]!.tokens as number
const begins = ({ startedAt, webhook }: StoredJob): boolean => startedAt === undefined && webhook === undefined

/**
 * What a change of a job does, and the job after it; null: it is not as expected, and nothing is done. Nor is it without a change: the text
 * of the row is damaged.
 */
function changed(
  jobs: KnownJobs,
  id: string,
  patch: JobPatch,
  expected: Expected | undefined,
): { row: JobRow; change?: JobChange } | null {
  const known = jobs.get(id)
  if (!known) return null
  if (!isSound('jobs', { ...known.row })) return { row: known.row }
  const before: StoredJob = JSON.parse(known.row.info)
  if (!isAsExpected(expected, before.status, known.rev)) return null
  const job = patched(before, patch)
  const [next, ready, end] = jobTimes(job)
  const rev = known.rev + 1
  const row = { ...known.row, rev, info: JSON.stringify(job) }
  jobs.set(id, { rev, row })
  const columns = { nextRunAt: next, ready: ready === null ? null : ready === 1, finishedAt: end, begins: begins(job) }
  return { row, change: { id, rev: known.rev, status: job.status, ...columns, info: row.info } }
}

/**
 * Jobs and the counters of their tokens.
 * @param newClaim names each claim, so that its jobs are found again
 * @param me the member that asks, which has what it claims
 */
export const jobPlans = (jobs: KnownJobs, newClaim: () => string, me: number) =>
  ({
    'jobs.add'(info, request, priority, key) {
      const job = JSON.parse(info) as StoredJob
      const [next, ready, end] = jobTimes(job)
      const { id, status, profile, createdAt } = job
      const found = [next, ready === null ? null : ready === 1, end, begins(job), job.notes?.home ?? null]
      const values = [id, status, profile, priority, createdAt, ...found, info, request]
      jobs.set(id, { rev: 0, row: { n: 0, id, rev: 0, info, request } })
      return does(statement(ADD, ...values), ...ridingStatements({ keys: key && [key] }, me, null))
    },
    'jobs.claim'(now, limit, { tokens, begin, home } = {}) {
      const name = newClaim()
      const firsts = (begin?.sessionIds ?? []).map((sessionId) => JSON.stringify({ startedAt: begin!.at, sessionId }))
      const terms = [tokens?.day ?? null, tokens?.limit ?? null]
      const values = [...terms, limit, name, textArray(firsts), me, ...(home === undefined ? [] : [home])]
      const spent = statement(IS_SPENT, ...terms)
      return {
        statements: [statement(TAKE_DUE, now), spent, statement(home === undefined ? CLAIM : CLAIM_AT_HOME, ...values)],
        again: [spent, statement(CLAIMED, name)],
        result(rows) {
          const found = rows.at(-1)!
          const claimed = found.sort((a, b) => Number(b.priority) - Number(a.priority) || Number(a.n) - Number(b.n))
          return { rows: claimed.map(jobRow), paused: found.length === 0 && rows.at(-2)![0]!.spent === true }
        },
      }
    },
    'jobs.get': (id) =>
      asks(statement(`SELECT ${COLUMNS} FROM @jobs WHERE id = $1`, id), ([row]) => (row ? jobRow(row) : undefined)),
    'jobs.page'({ status, profiles, before = Number.MAX_SAFE_INTEGER, after, limit }: JobPageFilter) {
      const byStatus = status ? PAGE_BY_STATUS : PAGE
      const values = [
        status || profiles ? textArray(status ?? JOB_STATUSES) : null,
        profiles ? textArray(profiles) : null,
        ...[before, after?.position ?? null, after?.id ?? null, after?.createdAt ?? null, limit],
      ]
      return asks(statement(profiles ? PAGE_BY_PROFILE : byStatus, ...values), (found) => {
        const { rows, isLast } = pageOf<Row>(found, limit)
        return { rows: rows.map(jobRow), isLast }
      })
    },
    'jobs.update'(id, patch, expected, deliveries) {
      const done = changed(jobs, id, patch, expected)
      const { row, change } = done ?? { row: null }
      if (!change) return { statements: [], onlyReads: true, result: () => row }
      const statements = ridingStatements({ deliveries }, me, null)
      return { change, statements, again: [], result: () => row }
    },
    'jobs.remove'(id) {
      jobs.set(id, undefined)
      return does(statement('DELETE FROM @jobs WHERE id = $1', id))
    },
    'jobs.counts': () => rowsOf<JobCount>(COUNTS),
    'jobs.delayed': (after, limit) => rowsOf<{ id: string; nextRunAt: number }>(DELAYED, after, limit),
    'jobs.next': (now, limit, profiles) =>
      asks(statement(NEXT, profiles ? textArray(profiles) : null, now, limit), (rows) =>
        rows.map(({ id }) => id as string),
      ),
    'jobs.owned': (after, limit) => asks(statement(OWNED, me, after, limit), (rows) => rows.map(jobRow)),
    'jobs.unreadable': (limit) => asks(statement(UNREADABLE, limit), (rows) => rows.map(({ id }) => id as string)),
    'jobs.ended': (finishedBy, limit) =>
      asks(statement(ENDED, finishedBy, limit), (rows) => rows.map(({ info }) => info as string)),
    'jobs.prune': (finishedBy, limit) => ({
      statements: [statement(PRUNE, finishedBy, limit)],
      result: ([rows]) => rows!.length,
    }),
    'jobs.charge': (day, tokens) => ({
      statements: [statement(CHARGE, day, tokens)],
      again: [statement(TOKENS, day)],
      result: lastTokens,
    }),
    'jobs.tokens': (day) => asks(statement(TOKENS, day), ([row]) => row!.tokens as number),
    'jobs.settle'(id, patch, day, tokens, expected, deliveries) {
      const done = changed(jobs, id, patch, expected)
      if (done && !done.change)
        return { statements: [], onlyReads: true, result: () => ({ row: done.row, dailyTokens: 0 }) }
      const told = done ? ridingStatements({ deliveries }, me, null) : []
      return {
        ...(done?.change && { change: done.change }),
        statements: [...told, statement(CHARGE, day, tokens)],
        again: [statement(TOKENS, day)],
        result: (rows) => ({ row: done?.row ?? null, dailyTokens: lastTokens(rows) }),
      }
    },
  }) satisfies Partial<Plans>
