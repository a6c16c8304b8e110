import type { JobInfo } from '../../schemas/jobs.js'
import type { JobPatch } from './adapter.js'
import type { JobNotes, StoredJob } from './job.js'

/**
 * A job with what a patch sets and without what it clears. Spelled out: V8 makes a hash table of an object that is filled by computed
 * keys or by several spreads, or that something was deleted from, and a job is copied at every step of its life.
 */
export function patched(info: Readonly<StoredJob>, patch: JobPatch): StoredJob {
  return copied(info, patch, 'notes' in patch ? patch.notes : info.notes)
}

function copied(info: Readonly<StoredJob>, patch: JobPatch, notes: JobNotes | undefined): StoredJob {
  const { id, profile, cwd, prompt, createdAt, maxAttempts } = info
  const { status = info.status, attempt = info.attempt, usage = info.usage } = patch
  const job: StoredJob = { id, status, profile, cwd, prompt, createdAt, attempt, maxAttempts, usage }
  if (notes !== undefined) job.notes = notes
  if (info.webhook !== undefined) job.webhook = info.webhook
  if (info.meta !== undefined) job.meta = info.meta
  const nextRunAt = 'nextRunAt' in patch ? patch.nextRunAt : info.nextRunAt
  if (nextRunAt !== undefined) job.nextRunAt = nextRunAt
  const startedAt = 'startedAt' in patch ? patch.startedAt : info.startedAt
  if (startedAt !== undefined) job.startedAt = startedAt
  const sessionId = 'sessionId' in patch ? patch.sessionId : info.sessionId
  if (sessionId !== undefined) job.sessionId = sessionId
  const sdkSessionId = 'sdkSessionId' in patch ? patch.sdkSessionId : info.sdkSessionId
  if (sdkSessionId !== undefined) job.sdkSessionId = sdkSessionId
  const parkedAt = 'parkedAt' in patch ? patch.parkedAt : info.parkedAt
  if (parkedAt !== undefined) job.parkedAt = parkedAt
  const parkedExecutionId = 'parkedExecutionId' in patch ? patch.parkedExecutionId : info.parkedExecutionId
  if (parkedExecutionId !== undefined) job.parkedExecutionId = parkedExecutionId
  const finishedAt = 'finishedAt' in patch ? patch.finishedAt : info.finishedAt
  if (finishedAt !== undefined) job.finishedAt = finishedAt
  const result = 'result' in patch ? patch.result : info.result
  if (result !== undefined) job.result = result
  const error = 'error' in patch ? patch.error : info.error
  if (error !== undefined) job.error = error
  return job
}

const NO_PATCH: JobPatch = {}

/**
 * A job as everybody else sees it; one that ended at its first attempt has no notes any more.
 * @param patch what changes with it
 */
export const shown = (job: StoredJob, patch?: JobPatch): JobInfo =>
  job.notes === undefined && !patch ? job : copied(job, patch ?? NO_PATCH, undefined)

const LISTED_PROMPT = 1_000

/** The same where many are shown, or often: with the beginning of a long prompt. */
export function listed(job: StoredJob, patch?: JobPatch): JobInfo {
  const info = shown(job, patch)
  if (info.prompt.length <= LISTED_PROMPT) return info
  // not half of a character
  const prompt = info.prompt.slice(0, LISTED_PROMPT).replace(/[\uD800-\uDBFF]$/, '')
  return { ...info, prompt, promptTruncated: true }
}
