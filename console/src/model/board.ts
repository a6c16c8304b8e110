import type { JobInfo, SessionInfo } from '../../../client/index.js'

/** The queue as a board, and one job's attempts. Pure. */

export const COLUMNS = ['queued', 'retrying', 'running', 'parked', 'done'] as const
export type Column = (typeof COLUMNS)[number]
export type Jobs = ReadonlyMap<string, JobInfo>

export const isOver = ({ status }: Pick<JobInfo, 'status'>): boolean =>
  status === 'succeeded' || status === 'failed' || status === 'canceled'

export function columnOf(job: Pick<JobInfo, 'status' | 'attempt'>): Column {
  if (isOver(job)) return 'done'
  if (job.status === 'queued' && job.attempt > 1) return 'retrying'
  return job.status as Exclude<JobInfo['status'], 'succeeded' | 'failed' | 'canceled'>
}

/**
 * What was read from pages, and what events told meanwhile. An event is of its moment, a page may be older: what has ended stays so, and
 * a later attempt stays later.
 */
export function withJobs(jobs: Jobs, fresh: readonly JobInfo[]): Jobs {
  const all = new Map(jobs)
  for (const job of fresh) {
    const known = all.get(job.id)
    if (known && (isOver(known) || known.attempt > job.attempt) && !isOver(job)) continue
    all.set(job.id, job)
  }
  return all
}

/** When a job came to where it is. */
const since = (job: JobInfo): number => job.finishedAt ?? job.parkedAt ?? job.startedAt ?? job.createdAt

/** Where a job stands among those that are known to begin next. */
export type Turns = ReadonlyMap<string, number>

/** Each column in its order: what waits as it is taken, so far as that is known, then oldest first; what runs or ended newest first. */
export function columnsOf(jobs: Jobs, turns: Turns = new Map()): Record<Column, JobInfo[]> {
  const columns: Record<Column, JobInfo[]> = { queued: [], retrying: [], running: [], parked: [], done: [] }
  for (const job of jobs.values()) columns[columnOf(job)].push(job)
  const turnOf = ({ id }: JobInfo): number => turns.get(id) ?? turns.size
  columns.queued.sort((a, b) => turnOf(a) - turnOf(b) || a.createdAt - b.createdAt)
  columns.retrying.sort((a, b) => (a.nextRunAt ?? a.createdAt) - (b.nextRunAt ?? b.createdAt))
  for (const name of ['running', 'parked', 'done'] as const) columns[name].sort((a, b) => since(b) - since(a))
  return columns
}

export interface Attempt {
  /** Absent where it may be one of several. */
  number: number | undefined
  sessionId: string
  status: SessionInfo['status']
  statusDetail: string | undefined
  from: number
  /** Absent while it goes on. */
  to: number | undefined
  cost: number
  tokens: number
}

/** Attempts that began, and of which no session is listed. */
export interface Lost {
  count: number
  /** The number of the first of them, where it is known; the others follow it. */
  first?: number
  /** When the last attempt began and ended, as far as the job says. */
  from?: number | undefined
  to?: number | undefined
}

export interface Attempts {
  kept: Attempt[]
  /** Before the last one; when some of those are kept, nobody can say which are not. */
  lostEarlier: Lost | undefined
  lostLast: Lost | undefined
}

/** How many attempts have begun. */
function begunOf(job: JobInfo, sessions: number): number {
  if (job.sessionId === undefined && job.startedAt === undefined) return job.status === 'running' ? job.attempt : 0
  // what waits to be tried again has counted the attempt that is to come, also when it was canceled then: it has still the last error
  const waited = job.attempt > 1 && (job.status === 'queued' || (job.status === 'canceled' && job.error !== undefined))
  return waited && (job.status === 'queued' || sessions < job.attempt) ? job.attempt - 1 : job.attempt
}

/**
 * The attempts of a job, oldest first: by the sessions that are still listed, and how many there are besides.
 * @param sessions those that have this `jobId`
 */
export function attemptsOf(job: JobInfo, sessions: readonly SessionInfo[]): Attempts {
  const own = sessions.filter(({ jobId }) => jobId === job.id).sort((a, b) => a.createdAt - b.createdAt)
  const begun = begunOf(job, own.length)
  const isLastKept = own.some(({ id }) => id === job.sessionId)
  const earlier = own.length - (isLastKept ? 1 : 0)
  const lost = Math.max(0, begun - 1 - earlier)
  const numberOf = (session: SessionInfo, at: number): number | undefined => {
    if (session.id === job.sessionId) return begun
    return lost === 0 ? Math.max(1, begun - (earlier - at)) : undefined
  }
  // the session of one that has just begun may be yet to come
  const isLastLost = begun > 0 && !isLastKept && (isOver(job) || job.status === 'queued')
  return {
    kept: own.map((session, at) => {
      const isOpen = !['failed', 'closed'].includes(session.status) && session.id === job.sessionId && !isOver(job)
      const { usage } = session
      return {
        number: numberOf(session, at),
        sessionId: session.id,
        status: session.status,
        statusDetail: session.statusDetail,
        from: session.createdAt,
        to: isOpen ? undefined : session.lastActivityAt,
        cost: session.cost,
        tokens: usage.inputTokens + usage.outputTokens + usage.cacheCreationTokens + usage.cacheReadTokens,
      }
    }),
    lostEarlier: lost === 0 ? undefined : { count: lost, ...(earlier === 0 && { first: 1 }) },
    lostLast: isLastLost
      ? { count: 1, first: begun, from: job.startedAt, to: begun === job.attempt ? job.finishedAt : undefined }
      : undefined,
  }
}

/** Where spans lie on a line from the first beginning to the last end, in percent. A span is never too short to be seen. */
export function laidOut<T extends { from: number; to: number | undefined }>(
  spans: readonly T[],
  now: number,
): (T & { left: number; width: number })[] {
  const first = Math.min(...spans.map(({ from }) => from))
  const end = Math.max(...spans.map(({ to }) => to ?? now))
  const whole = Math.max(end - first, 1)
  return spans.map((span) => {
    const width = Math.max((((span.to ?? now) - span.from) / whole) * 100, 1.5)
    return { ...span, width, left: Math.max(0, Math.min(((span.from - first) / whole) * 100, 100 - width)) }
  })
}
