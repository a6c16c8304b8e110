import type { JobInfo } from '../../schemas/jobs.js'
import { cutAt } from '../lib/cut-at.js'
import { copyOf } from '../lib/json-value.js'
import type { JobPatch, StoredJob } from './job.js'

/** A job with what a patch sets and without what it clears. */
export function patched(info: Readonly<StoredJob>, patch: JobPatch): StoredJob {
  return copied(info, patch)
}

/**
 * Field by field: V8 makes a hash table of an object that more than twelve members are added to by computed keys, that several spreads fill,
 * or that something was deleted from, and a job is copied at every step of its life.
 */
function copied(info: Readonly<StoredJob>, patch: JobPatch, without?: 'notes'): StoredJob {
  const { id, profile, cwd, prompt, createdAt, maxAttempts, webhook, meta } = info
  const { status = info.status, attempt = info.attempt, usage = info.usage } = patch
  const job: StoredJob = { id, status, profile, cwd, prompt, createdAt, attempt, maxAttempts, usage }
  const notes = 'notes' in patch ? patch.notes : info.notes
  const nextRunAt = 'nextRunAt' in patch ? patch.nextRunAt : info.nextRunAt
  const startedAt = 'startedAt' in patch ? patch.startedAt : info.startedAt
  const sessionId = 'sessionId' in patch ? patch.sessionId : info.sessionId
  const sdkSessionId = 'sdkSessionId' in patch ? patch.sdkSessionId : info.sdkSessionId
  const parkedAt = 'parkedAt' in patch ? patch.parkedAt : info.parkedAt
  const parkedExecutionId = 'parkedExecutionId' in patch ? patch.parkedExecutionId : info.parkedExecutionId
  const finishedAt = 'finishedAt' in patch ? patch.finishedAt : info.finishedAt
  const result = 'result' in patch ? patch.result : info.result
  const error = 'error' in patch ? patch.error : info.error
  if (notes !== undefined && without !== 'notes') job.notes = notes
  if (webhook !== undefined) job.webhook = webhook
  if (meta !== undefined) job.meta = meta
  if (nextRunAt !== undefined) job.nextRunAt = nextRunAt
  if (startedAt !== undefined) job.startedAt = startedAt
  if (sessionId !== undefined) job.sessionId = sessionId
  if (sdkSessionId !== undefined) job.sdkSessionId = sdkSessionId
  if (parkedAt !== undefined) job.parkedAt = parkedAt
  if (parkedExecutionId !== undefined) job.parkedExecutionId = parkedExecutionId
  if (finishedAt !== undefined) job.finishedAt = finishedAt
  if (result !== undefined) job.result = result
  if (error !== undefined) job.error = error
  return job
}

const NO_PATCH: JobPatch = {}

/**
 * A job as everybody else sees it; one that ended at its first attempt has no notes any more.
 * @param patch what changes with it
 */
export const shown = (job: StoredJob, patch?: JobPatch): JobInfo =>
  job.notes === undefined && !patch ? job : copied(job, patch ?? NO_PATCH, 'notes')

/** For a host, which may write into what it is given. */
export const handedOut = (job: StoredJob): JobInfo => copyOf(shown(job))

const LISTED_PROMPT = 1_000

/** A job where many are shown, or often: with the beginning of a long prompt. */
export function listed(job: StoredJob, patch?: JobPatch): JobInfo {
  const info = shown(job, patch)
  if (info.prompt.length <= LISTED_PROMPT) return info
  return { ...info, prompt: cutAt(info.prompt, LISTED_PROMPT), promptTruncated: true }
}

const LISTED_WORDS = 10_000

/** A job in a page, which has many: also with the beginning of what an agent said at length. */
export function inPage(job: StoredJob): JobInfo {
  const info = listed(job)
  const { error, result } = info
  const said = [error, result?.text, result?.errors?.join('')]
  if (said.every((words = '') => words.length <= LISTED_WORDS)) return info
  const short: JobInfo = { ...info, resultTruncated: true }
  if (error !== undefined) short.error = cutAt(error, LISTED_WORDS)
  if (result) short.result = { ...result }
  if (result?.text !== undefined) short.result!.text = cutAt(result.text, LISTED_WORDS)
  if (result?.errors) short.result!.errors = cutAll(result.errors, LISTED_WORDS)
  return short
}

/** As many of the texts, from the first on, as make `max` UTF-16 units together. */
function cutAll(texts: readonly string[], max: number): string[] {
  const kept: string[] = []
  let room = max
  for (const text of texts) {
    if (room === 0) break
    kept.push(cutAt(text, room))
    room -= Math.min(text.length, room)
  }
  return kept
}
