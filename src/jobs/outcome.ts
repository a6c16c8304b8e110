import type { SessionEventOf } from '../../schemas/events.js'
import type { JobResult } from '../../schemas/jobs.js'
import type { AttemptOutcome } from './job.js'
import { isFinalRefusal } from './refusals.js'

const SUBTYPE_ERRORS: Record<JobResult['subtype'], string> = {
  success: 'The run failed.',
  error_during_execution: 'The run failed.',
  error_max_turns: 'The run reached maxTurns.',
  error_max_budget_usd: 'The run reached maxBudgetUsd.',
  interrupted: 'The run was interrupted.',
}

/**
 * What the end of its turn makes of an attempt.
 * @param killed why it was interrupted, if it was
 * @param exceeded which limit it ended beyond, if it did
 */
export function outcomeOf(
  event: SessionEventOf<'turn_completed'>,
  killed: string | undefined,
  exceeded: string | undefined,
): AttemptOutcome {
  const { subtype, isError, durationMs, result: text, errors } = event
  const result: JobResult = {
    subtype,
    isError,
    durationMs,
    ...(text !== undefined && { text }),
    ...(errors && { errors }),
  }
  const failed = (error: string): AttemptOutcome => ({ status: 'failed', error, result })
  if (killed !== undefined) return failed(killed)
  // by the process before, which is why it was over here
  if (exceeded !== undefined && subtype === 'interrupted') return failed(exceeded)
  if (isError || subtype !== 'success') return failed(errors?.join(' · ') || SUBTYPE_ERRORS[subtype])
  if (exceeded !== undefined) return failed(exceeded)
  return { status: 'succeeded', result }
}

/** How an attempt ends whose session was refused, or has failed. */
export const refused = (error: string, code?: string): AttemptOutcome => ({
  status: 'failed',
  error,
  ...(isFinalRefusal(code) && { final: true }),
})
