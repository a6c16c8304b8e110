import type { CreateJobRequest, JobStatus } from '../../schemas/jobs.js'
import type { KeptKey } from '../idempotency/store.js'
import { isUnreadable } from '../storage/storage.js'
import type { KeptDelivery } from '../webhooks/outbox.js'
import type { JobPatch, StoredJob } from './job.js'

export type { JobPatch }

/** A job and what was asked for. Records are values: nobody changes one that was handed over, on either side. */
export interface JobRecord {
  readonly info: Readonly<StoredJob>
  readonly request: Readonly<CreateJobRequest>
  /** From `list` of an adapter that numbers jobs as they are submitted: rises, and is never given again. */
  readonly position?: number
  /** Rises with every change of the job, where the adapter counts them: with it, an attempt is told from another one. */
  readonly rev?: number
}

/** What a job has to be like to be changed: its status and, where it was given with the record, its `rev`. */
export type Expected = JobStatus | { status: JobStatus; rev: number }

/** What a record says is expected of the job. */
export const expectedOf = ({ info: { status }, rev }: JobRecord): Expected =>
  rev === undefined ? status : { status, rev }

/** @param rev of an adapter that counts changes */
export function isAsExpected(expected: Expected | undefined, status: JobStatus, rev?: number): boolean {
  if (expected === undefined) return true
  if (typeof expected === 'string') return status === expected
  return status === expected.status && (rev === undefined || rev === expected.rev)
}

/** How many jobs of a profile have a status that is not terminal. */
export interface JobCount {
  profile: string
  status: JobStatus
  count: number
}

/** Which jobs, those submitted last first. */
export interface JobFilter {
  status?: readonly JobStatus[]
  /** Resolved profile names. */
  profiles?: readonly string[]
  /**
   * Only jobs submitted before this one. When it is gone, its `position` says which; an adapter that gives none goes by those created no
   * later.
   */
  after?: JobPlace
  /** At most that many. Absent: all. */
  limit?: number
}

/** Where a job stands in a list: what was listed of it. */
export interface JobPlace {
  id: string
  createdAt: number
  position?: number
}

export const placeOf = ({ info: { id, createdAt }, position }: JobRecord): JobPlace => ({
  id,
  createdAt,
  ...(position !== undefined && { position }),
})

/** Tokens that the end of an attempt adds to a day's counter. */
export interface DailyCharge {
  /** `YYYY-MM-DD`, UTC. */
  day: string
  tokens: number
}

/** On what terms jobs are claimed. */
export interface ClaimTerms {
  /** Nothing is claimed once the tokens of that day (`YYYY-MM-DD`, UTC) have reached the limit. Absent: whatever they are. */
  tokens?: { day: string; limit: number }
  /**
   * Begins what is claimed in the same write: the first job claimed gets the first id as its `sessionId`, and so on, and each `at` as its
   * `startedAt`. Not a job that has begun before: its id stays unused. An adapter may leave it out.
   */
  begin?: { at: number; sessionIds: readonly string[] }
  /** Only jobs whose `notes.home` is that, or that have none. Absent: whatever it is. Only where several nodes share the adapter. */
  home?: string
}

/**
 * What a claim changes about a job. It is begun with it where taking that back needs to know nothing of an attempt before.
 * @param index of the job among those that are claimed
 */
export function claimPatch(job: Readonly<StoredJob>, begin: ClaimTerms['begin'], index: number): JobPatch {
  const sessionId = begin?.sessionIds[index]
  const begins = sessionId !== undefined && job.startedAt === undefined
  return { status: 'running', nextRunAt: undefined, ...(begins && { startedAt: begin!.at, sessionId }) }
}

/**
 * Where jobs are kept. `queueAdapterConformance` says what each method does; an adapter that passes it fits.
 * Whatever resolved is durable to the degree that the adapter is.
 */
export interface QueueAdapter {
  /** @param key of the request that submits it; a part of a `GatewayStorage` keeps it in the same write */
  add(record: JobRecord, key?: KeptKey): Promise<void>
  /**
   * Takes the next queued job whose `nextRunAt` is absent or past: highest priority first, then the one submitted first. Its status
   * becomes `running` and `nextRunAt` is cleared. Atomic: no two claims, of any process, return the same job.
   */
  claimNext(): Promise<JobRecord | null>
  /**
   * As `claimNext`, at most so many, in one write: in the order in which `claimNext` would have given them. None, and `paused`, when the
   * day's tokens are used up; what was asked for earlier in the same turn of the event loop counts. Absent: jobs are claimed one by one.
   */
  claim?(limit: number, terms?: ClaimTerms): Promise<{ jobs: JobRecord[]; paused: boolean }>
  get(id: string): Promise<JobRecord | null>
  /**
   * In the order of submission, the last one first, whatever `createdAt` says: the clock may have gone back.
   * @param onUnreadable told of each job that is there and cannot be read; it is left in place, and out of the list
   */
  list(filter?: JobFilter, onUnreadable?: (error: Error) => void): Promise<JobRecord[]>
  /**
   * @param expected changes the job only while it is like that
   * @param deliveries what is to be delivered about the change; a part of a `GatewayStorage` keeps them in the same write, and none when
   * the job is not changed. No other adapter is given any
   * @returns the changed record; null when there is none, or it is not as expected
   */
  update(
    id: string,
    patch: JobPatch,
    expected?: Expected,
    deliveries?: readonly KeptDelivery[],
  ): Promise<JobRecord | null>
  /** How many jobs there are that are not over. Needed where several gateways share the adapter. */
  counts?(): Promise<JobCount[]>
  /**
   * Queued jobs whose `nextRunAt` is after a time, at most so many, the one that falls due first before the others. Comes with `counts`:
   * without both every queued job is read at the start.
   */
  delayed?(after: number, limit: number): Promise<{ id: string; nextRunAt: number }[]>
  /**
   * Ids of queued jobs in the order in which `claimNext` would give them, at most so many; those whose `nextRunAt` is yet to come are behind
   * the others, by it. Absent: all queued jobs are listed for it.
   */
  next?(limit: number, profiles?: readonly string[]): Promise<string[]>
  /** Jobs that wait to be claimed and cannot be read: they are passed over. Absent, or more than looked at: nobody says so. */
  unreadable?(): Promise<Error[]>
  /** Jobs that are running or parked and are this process's, in pages. Absent: all active jobs are read at the start. */
  owned?(onUnreadable?: (error: Error) => void): AsyncIterable<JobRecord[]>
  /** Removes a job, whatever its status, as if it had never been; does nothing when it is not there. Absent: it is canceled instead. */
  remove?(id: string): Promise<void>
  /**
   * Jobs that have been terminal for `olderThanMs` or longer, at most so many, the one that ended first before the others; the queue
   * takes them away by `remove`, which comes with it. Absent: every terminal job is listed at the start and held in memory until `prune`.
   */
  ended?(olderThanMs: number, limit: number): Promise<Readonly<StoredJob>[]>
  /** Removes jobs that have been terminal for `olderThanMs` or longer; returns how many. */
  prune(olderThanMs: number): Promise<number>
  /** @returns the new total of the day (`YYYY-MM-DD`, UTC) */
  addDailyTokens(day: string, tokens: number): Promise<number>
  dailyTokens(day: string): Promise<number>
  /**
   * `update` and `addDailyTokens` as one write, which happens as a whole or not at all; the tokens count also when the job is not
   * changed. Without this method the queue does one after the other.
   * @param deliveries as `update` is given them
   */
  settle?(
    id: string,
    patch: JobPatch,
    charge: DailyCharge,
    expected?: Expected,
    deliveries?: readonly KeptDelivery[],
  ): Promise<{ record: JobRecord | null; dailyTokens: number }>
  /** Tells that there may be jobs to claim which this process did not add itself. Returns unsubscribe, at once or later. */
  onWork?(listener: () => void): (() => void) | Promise<() => void>
}

/**
 * What a filter selects, of records in any order; for adapters that have nothing better. By `position` when they have one, else by
 * `createdAt`; records of the same millisecond keep their order.
 */
export function selectJobs(records: readonly JobRecord[], filter: JobFilter = {}): JobRecord[] {
  const { after, limit = records.length } = filter
  const newestFirst = [...records].sort((a, b) => timeOf(b) - timeOf(a))
  const cursor = after ? newestFirst.findIndex(({ info }) => info.id === after.id) : -1
  return newestFirst
    .slice(cursor + 1)
    .filter((record) => isAskedFor(record, filter) && (!after || cursor >= 0 || isBehind(record, after)))
    .slice(0, limit)
}

/** What says in an error that a job is there and cannot be read, which says nothing about the others. */
export const damageIn = (error: unknown): Error | undefined =>
  [error, (error as Error | undefined)?.cause].find(isUnreadable) as Error | undefined

/** Null too: it is there and cannot be read. */
export async function getJob(adapter: QueueAdapter, id: string): Promise<JobRecord | null> {
  try {
    return await adapter.get(id)
  } catch (error) {
    if (damageIn(error)) return null
    throw error
  }
}

/** What an adapter lists, in its order; one that does not select is put right. */
export async function listJobs(
  adapter: QueueAdapter,
  filter: JobFilter,
  onUnreadable?: (error: Error) => void,
): Promise<JobRecord[]> {
  const records = await adapter.list(filter, onUnreadable)
  const { after, limit = records.length } = filter
  const isSelected =
    records.length <= limit && records.every((record) => isAskedFor(record, filter) && record.info.id !== after?.id)
  return isSelected ? records : selectJobs(records, filter)
}

/** What `QueueAdapter.next` gives, also of an adapter that does not offer it. */
export async function nextJobs(
  adapter: QueueAdapter,
  { limit, profiles, now }: { limit: number; profiles: readonly string[] | undefined; now: number },
): Promise<string[]> {
  if (adapter.next) return adapter.next(limit, profiles)
  const queued = await listJobs(adapter, { status: ['queued'], ...(profiles && { profiles }) })
  const dueOf = ({ info: { nextRunAt = 0 } }: JobRecord) => (nextRunAt > now ? nextRunAt : 0)
  const priorityOf = ({ request }: JobRecord) => request.priority ?? 0
  return queued
    .reverse()
    .sort((a, b) => dueOf(a) - dueOf(b) || priorityOf(b) - priorityOf(a))
    .slice(0, limit)
    .map(({ info }) => info.id)
}

const isAskedFor = ({ info }: JobRecord, { status, profiles }: JobFilter): boolean =>
  (status === undefined || status.includes(info.status)) && (profiles === undefined || profiles.includes(info.profile))

const timeOf = ({ info, position }: JobRecord): number => position ?? info.createdAt

const isBehind = ({ info, position }: JobRecord, after: JobPlace): boolean =>
  position !== undefined && after.position !== undefined ? position < after.position : info.createdAt <= after.createdAt
