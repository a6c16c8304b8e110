import type { SessionEventOf } from '../../schemas/events.js'
import type { TokenUsage } from '../../schemas/sessions.js'
import type { MomentEvent } from '../engines/event-types.js'
import { utcDay } from '../lib/utc-day.js'
import type { UsageCount, UsageKey } from './store.js'

/** The session that something is counted of. */
export interface CountedSession {
  profile: string
  agent: string
  /** Who asked for the turn, else who created the session; '': unknown. */
  person: string
  jobId: string | undefined
  /** What the session has cost since this was asked the last time. */
  takeCost(): number
  /** What a turn had used that the session ended in the middle of; undefined: there was none, or it was asked for before. */
  takeLastUsage(): TokenUsage | undefined
  /** Since when the request has waited that is resolved right now. */
  waitedSince(requestId: string): number | undefined
}

/** What a moment adds to the sums of its day; undefined: nothing. */
export function countOf(body: MomentEvent, ts: number, session: CountedSession): UsageCount | undefined {
  const { profile, agent, person } = session
  const key: UsageKey = { day: utcDay(ts), profile, agent, person }
  switch (body.type) {
    case 'turn_completed':
      return turn(body, session, key)
    case 'permission_requested':
      return { ...key, approvalsAsked: 1 }
    case 'permission_resolved':
      return settled(body, ts, session, key)
    case 'session_closed':
      return ended(session, key)
    default:
      return undefined
  }
}

/** Nobody tells the end of a turn that it ended in the middle of; the tokens of that are used up all the same. */
function ended(session: CountedSession, key: UsageKey): UsageCount | undefined {
  const usage = session.takeLastUsage()
  const isRun = session.jobId !== undefined
  if (!usage && !isRun) return undefined
  return { ...key, ...(usage && tokensOf(usage)), ...(isRun && { jobs: 1 }) }
}

/** Written out: V8 makes a hash table of an object that several spreads fill. */
function turn(
  { subtype, isError, usage }: SessionEventOf<'turn_completed'>,
  session: CountedSession,
  { day, profile, agent, person }: UsageKey,
): UsageCount {
  const count: UsageCount = {
    day,
    profile,
    agent,
    person,
    turns: 1,
    inputTokens: amount(usage?.inputTokens),
    outputTokens: amount(usage?.outputTokens),
    cacheCreationTokens: amount(usage?.cacheCreationTokens),
    cacheReadTokens: amount(usage?.cacheReadTokens),
    costUsd: session.takeCost(),
  }
  count[subtype === 'interrupted' ? 'turnsInterrupted' : isError ? 'turnsFailed' : 'turnsSucceeded'] = 1
  return count
}

/** What policy decided nobody was asked, or nobody waited for any more. */
function settled(
  { requestId, resolvedBy }: SessionEventOf<'permission_resolved'>,
  ts: number,
  session: CountedSession,
  key: UsageKey,
): UsageCount | undefined {
  if (resolvedBy === 'policy') return undefined
  const since = session.waitedSince(requestId)
  const waitMs = since === undefined ? undefined : Math.max(0, ts - since)
  return {
    ...key,
    ...(resolvedBy === 'timeout' ? { approvalsExpired: 1 } : { approvalsAnswered: 1 }),
    ...(waitMs !== undefined && { approvalWaits: 1, approvalWaitMs: waitMs, approvalWaitMaxMs: waitMs }),
  }
}

const tokensOf = (usage: TokenUsage) => ({
  inputTokens: amount(usage.inputTokens),
  outputTokens: amount(usage.outputTokens),
  cacheCreationTokens: amount(usage.cacheCreationTokens),
  cacheReadTokens: amount(usage.cacheReadTokens),
})

/** What an engine says may be anything. */
const amount = (value: unknown): number =>
  typeof value === 'number' && value > 0 && value <= Number.MAX_SAFE_INTEGER ? value : 0
