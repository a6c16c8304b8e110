import type { SessionEvent } from '../../schemas/events.js'
import { GatewayError, hasCode, toError } from '../errors.js'
import type { Logger } from '../lib/logger.js'
import type { SessionEventTold } from '../sessions/registry-options.js'
import { getJob, type JobRecord, listJobs, type QueueAdapter } from './adapter.js'
import type { Attempts } from './attempts.js'
import { ACTIVE_STATUSES, BEGUN_STATUSES, type StoredJob } from './job.js'
import type { JobStore } from './job-store.js'
import { type JobSessions, unlessGone } from './sessions.js'

export interface RecoveryOptions {
  adapter: QueueAdapter
  store: JobStore
  attempts: Attempts
  sessions: JobSessions
  logger: Logger
  /** Milliseconds that a limit on parked time leaves a job. */
  graceMs: number
  /** Several nodes share the adapter: those that are under way here are read alone. @param isTaken whether to take it up; default: all */
  shared?: { isTaken?: (id: string) => boolean } | undefined
}

/** The end of a session is among its last. */
const LAST_EVENTS = 20

const ofSessions = new WeakSet<object>()
/** Whether an error is of what keeps the sessions, and not of the adapter. */
export const isOfSessions = (error: object): boolean => ofSessions.has(error)

/**
 * Takes up what an earlier process left: waiting jobs wait on, runs whose session waits go on, every other run has failed. Sessions of
 * jobs that are over, or at another attempt, are ended before anything wakes them.
 */
export async function recover({
  adapter,
  store,
  attempts,
  sessions,
  logger,
  graceMs,
  shared,
}: RecoveryOptions): Promise<void> {
  const onUnreadable = (err: Error) => logger.error({ err }, 'a job cannot go on')
  for (const err of (await adapter.unreadable?.()) ?? []) logger.error({ err }, 'a job cannot begin')
  const records = await (shared
    ? underWay(adapter, attempts, onUnreadable, shared.isTaken)
    : listJobs(adapter, { status: (await store.adoptQueued()) ? BEGUN_STATUSES : ACTIVE_STATUSES }, onUnreadable))
  // one whose end was written and that of its job was not
  const begun = records.filter(({ info }) => info.status !== 'queued' && info.sessionId !== undefined)
  const found = await Promise.all(begun.map(({ info }) => sessions.get(info.sessionId!))).catch((error: object) => {
    ofSessions.add(error)
    throw error
  })
  const written = new Map(begun.map(({ info }, index) => [info.id, found[index]]))
  // what sessions have told by now has then reached the attempts
  await new Promise(setImmediate)
  if (attempts.draining) throw new GatewayError('SG_ERR_SHUTTING_DOWN')
  const unseen = new Map<string, SessionEventTold[]>()
  const canceled = new Set<string>()
  for (const { info } of begun) {
    unseen.set(info.id, await goneOn(info, sessions, logger))
    if (await wasClosed(info, sessions, logger)) canceled.add(info.id)
  }
  if (attempts.draining) throw new GatewayError('SG_ERR_SHUTTING_DOWN')
  for (const record of records) store.adopt(record)
  for (const record of records)
    if (record.info.status !== 'queued') {
      const { id } = record.info
      const left = { unseen: unseen.get(id), isCanceled: canceled.has(id), written: written.get(id) }
      attempts.takeUp(record, graceMs, left)
    }
  for (const session of sessions.unended()) {
    if (session.jobId === undefined || attempts.follows(session.id)) continue
    const job = await getJob(adapter, session.jobId)
    // one that the adapter does not know may have been forgotten by it: its session goes on like any other
    if (!job) continue
    // it was another node's that ran no jobs, and its job is taken up next
    if (shared && job.info.status === 'parked' && job.info.sessionId === session.id) continue
    // one that nothing could wake stays to be looked at; that of an attempt that has just failed is being ended by then
    const ending = session.status === 'parked' ? sessions.close(session.id) : sessions.end(session.id)
    await ending
      .catch(unlessGone)
      .catch((error) => logger.error({ err: toError(error), sessionId: session.id }, 'a session could not be ended'))
  }
  attempts.tookUpAll()
}

/** What the session of a parked job told while a process without a queue had it. */
async function goneOn(job: StoredJob, sessions: JobSessions, logger: Logger): Promise<SessionEventTold[]> {
  const sessionId = job.sessionId!
  const session = sessions.here(sessionId)
  const waitsFor = session?.status === 'parked' && session.parked?.executions[0]?.executionId
  if (job.status !== 'parked' || !session || waitsFor === job.parkedExecutionId) return []
  const events = await logOf(job, job.notes?.attempt?.lastSeq ?? 0, sessions, logger)
  let { status } = session
  return events.map((event) => {
    if (event.type === 'status_changed') ({ status } = event)
    return { sessionId, event, session: { ...session, status } }
  })
}

/** Whether somebody has closed the session of a job that ran, and the process died before that was written of the job. */
async function wasClosed(job: StoredJob, sessions: JobSessions, logger: Logger): Promise<boolean> {
  const session = sessions.here(job.sessionId!)
  if (job.status !== 'running' || session?.status !== 'closed') return false
  const last = (await logOf(job, Math.max(0, session.lastSeq - LAST_EVENTS), sessions, logger)).at(-1)
  return last?.type === 'session_closed' && last.reason === 'client'
}

async function logOf(job: StoredJob, afterSeq: number, sessions: JobSessions, logger: Logger): Promise<SessionEvent[]> {
  try {
    return await sessions.eventsAfter(job.sessionId!, afterSeq)
  } catch (error) {
    if (hasCode(error, 'SG_ERR_STORE_UNAVAILABLE')) {
      ofSessions.add(error)
      throw error
    }
    logger.error({ err: toError(error), jobId: job.id }, 'what the session of a job went on to cannot be read')
    return []
  }
}

/** Jobs that are this node's and that nobody goes on with yet. */
async function underWay(
  adapter: QueueAdapter,
  attempts: Attempts,
  onUnreadable: (error: Error) => void,
  isTaken = (_id: string) => true,
): Promise<JobRecord[]> {
  const records: JobRecord[] = []
  for await (const page of adapter.owned!(onUnreadable))
    records.push(...page.filter(({ info: { id } }) => isTaken(id) && !attempts.has(id)))
  return records
}
