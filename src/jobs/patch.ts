import type { JobInfo } from '../../schemas/jobs.js'
import { JOB_FIELDS, type JobPatch, type StoredJob } from './job.js'

const STORED = (Object.keys(JOB_FIELDS) as (keyof StoredJob)[]).filter((field) => JOB_FIELDS[field] !== 'shown')

/** A job with what a patch sets and without what it clears. */
export function patched(info: Readonly<StoredJob>, patch: JobPatch): StoredJob {
  return copied(info, patch)
}

/**
 * V8 makes a hash table of an object that more than twelve members are added to by computed keys, that several spreads fill, or that
 * something was deleted from, and a job is copied at every step of its life.
 */
function copied(info: Readonly<StoredJob>, patch: JobPatch, without?: 'notes'): StoredJob {
  const { id, profile, cwd, prompt, createdAt, maxAttempts } = info
  const { status = info.status, attempt = info.attempt, usage = info.usage } = patch
  const job: StoredJob = { id, status, profile, cwd, prompt, createdAt, attempt, maxAttempts, usage }
  for (const field of STORED) {
    if (field in job || field === without) continue
    const value = field in patch ? patch[field as keyof JobPatch] : info[field]
    if (value !== undefined) (job as Record<string, unknown>)[field] = value
  }
  return job
}

const NO_PATCH: JobPatch = {}

/**
 * A job as everybody else sees it; one that ended at its first attempt has no notes any more.
 * @param patch what changes with it
 */
export const shown = (job: StoredJob, patch?: JobPatch): JobInfo =>
  job.notes === undefined && !patch ? job : copied(job, patch ?? NO_PATCH, 'notes')

const LISTED_PROMPT = 1_000

/** The same where many are shown, or often: with the beginning of a long prompt. */
export function listed(job: StoredJob, patch?: JobPatch): JobInfo {
  const info = shown(job, patch)
  if (info.prompt.length <= LISTED_PROMPT) return info
  // not half of a character
  const prompt = info.prompt.slice(0, LISTED_PROMPT).replace(/[\uD800-\uDBFF]$/, '')
  return { ...info, prompt, promptTruncated: true }
}
