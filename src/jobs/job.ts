import type { CreateJobRequest, JobInfo, JobResult, JobStatus, JobUsage } from '../../schemas/jobs.js'
import type { TokenUsage } from '../../schemas/sessions.js'
import { delayAfter } from '../lib/backoff.js'

/**
 * The states of a job and the only ways between them.
 *
 *   (new) ─▶ queued ── claim ──▶ running ◀── parks / result ──▶ parked
 *              ▲ │                  │                             │
 *              │ │                  ├─ first turn completed ──────┼─▶ succeeded
 *              │ └─ DELETE ─────────┼─ DELETE, session ended ─────┼─▶ canceled
 *              └─ attempts left ────┴─ failed attempt ────────────┴─▶ failed
 *
 * The last three are terminal: nothing follows them.
 */
export const LEGAL_TRANSITIONS: Readonly<Record<JobStatus, readonly JobStatus[]>> = {
  queued: ['running', 'canceled'],
  running: ['parked', 'queued', 'succeeded', 'failed', 'canceled'],
  parked: ['running', 'queued', 'failed', 'canceled'],
  succeeded: [],
  failed: [],
  canceled: [],
}

export const JOB_STATUSES = Object.keys(LEGAL_TRANSITIONS) as JobStatus[]

export const ACTIVE_STATUSES = ['queued', 'running', 'parked'] as const satisfies readonly JobStatus[]

export const BEGUN_STATUSES = ['running', 'parked'] as const satisfies readonly JobStatus[]

export const TERMINAL_STATUSES = ['succeeded', 'failed', 'canceled'] as const satisfies readonly JobStatus[]

export const isTerminal = (status: JobStatus): boolean => LEGAL_TRANSITIONS[status].length === 0

/** What the queue notes about a job for itself; on no wire. */
export interface JobNotes {
  /** Who the profile was when the job was submitted; see `generationOf`. Absent: whoever has the name now. */
  generation?: string
  /** Name of who submitted the job. */
  submittedBy?: string
  /** The only node, by its name, that may begin it: its agent works with what is there. Absent: any. */
  home?: string
  /** Where the accounting of a parked attempt stands, so that it goes on there. */
  attempt?: AttemptNotes
  /** The sessions of earlier attempts, which go when the job does. */
  sessions?: string[]
  /** How often a process ended between a claim and the session that was to begin with it. */
  unborn?: number
  /** Its session, which somebody removed where there was no queue: that canceled it. */
  removed?: string
}

export interface AttemptNotes {
  usage: TokenUsage
  /** Milliseconds spent running, and parked, so far. */
  activeMs: number
  parkedMs: number
  /** The last event of the session that was taken into account. */
  lastSeq: number
}

/** A job as it is stored. */
export type StoredJob = JobInfo & { notes?: JobNotes }

/**
 * One row per field of a job. `given`: stays as it was submitted · `patched`: set and cleared as the job goes on · `shown`: not stored,
 * made for who is shown the job.
 */
export const JOB_FIELDS = {
  id: 'given',
  status: 'patched',
  profile: 'given',
  cwd: 'given',
  prompt: 'given',
  createdAt: 'given',
  attempt: 'patched',
  maxAttempts: 'given',
  usage: 'patched',
  notes: 'patched',
  webhook: 'given',
  meta: 'given',
  nextRunAt: 'patched',
  startedAt: 'patched',
  sessionId: 'patched',
  sdkSessionId: 'patched',
  parkedAt: 'patched',
  parkedExecutionId: 'patched',
  finishedAt: 'patched',
  result: 'patched',
  error: 'patched',
  promptTruncated: 'shown',
  resultTruncated: 'shown',
} as const satisfies Record<keyof StoredJob, 'given' | 'patched' | 'shown'>

type Patched = { [F in keyof StoredJob]-?: (typeof JOB_FIELDS)[F] extends 'patched' ? F : never }[keyof StoredJob]

/** Fields of the job to set; a key that is `undefined` is cleared. */
export type JobPatch = { [F in Patched]?: StoredJob[F] | undefined }

/** What is still noted about a job that is over. */
export const lastNotes = ({ notes }: StoredJob): JobNotes | undefined => notes?.sessions && { sessions: notes.sessions }

const NO_JOB_USAGE: JobUsage = {
  tokens: 0,
  inputTokens: 0,
  outputTokens: 0,
  cacheCreationTokens: 0,
  cacheReadTokens: 0,
  cost: 0,
  numTurns: 0,
}

/** A job that was just submitted. */
export function newJob(
  request: CreateJobRequest,
  given: {
    id: string
    now: number
    profile: string
    generation: string
    cwd: string
    submittedBy?: string | undefined
    home?: string | undefined
  },
): StoredJob {
  const { session, webhook, runAt, meta } = request
  const notes: JobNotes = { generation: given.generation }
  if (given.submittedBy !== undefined) notes.submittedBy = given.submittedBy
  if (given.home !== undefined) notes.home = given.home
  const job: StoredJob = {
    id: given.id,
    status: 'queued',
    profile: given.profile,
    cwd: given.cwd,
    prompt: session.prompt,
    createdAt: given.now,
    attempt: 1,
    maxAttempts: request.attempts ?? 1,
    usage: NO_JOB_USAGE,
    notes,
  }
  if (webhook) job.webhook = { url: webhook.url, progress: webhook.progress ?? 'messages' }
  if (meta) job.meta = meta
  if (runAt !== undefined && runAt > given.now) job.nextRunAt = runAt
  return job
}

/** How an attempt ended. */
export interface AttemptOutcome {
  status: 'succeeded' | 'failed' | 'canceled'
  error?: string
  result?: JobResult
  /** No further attempt, whatever is left. */
  final?: boolean
  /** It did not begin, for a reason that passes: it does not count, and the job waits on. */
  unbegun?: boolean
}

const DEFAULT_RETRY_DELAY_MS = 5_000
/** Retries that are further away than that are as good as never; it keeps a doubled delay a date. */
const MAX_RETRY_DELAY_MS = 365 * 24 * 60 * 60 * 1000

/** Milliseconds from the end of the given attempt (from 1) to the next one: doubled every time, a year at most. */
export const retryDelay = ({ retryDelayMs = DEFAULT_RETRY_DELAY_MS }: CreateJobRequest, attempt: number): number =>
  delayAfter(attempt, { firstMs: retryDelayMs, longestMs: Math.max(retryDelayMs, MAX_RETRY_DELAY_MS) })
