import type { SessionEvent } from '../../schemas/events.js'
import type { JobUsage } from '../../schemas/jobs.js'
import type { SessionInfo, TokenUsage } from '../../schemas/sessions.js'
import { NO_USAGE } from '../engines/token-usage.js'
import type { SessionEventTold } from '../sessions/registry-options.js'
import type { AttemptNotes, StoredJob } from './job.js'
import { patched } from './patch.js'

/** What an attempt has used so far. */
export class AttemptMeter {
  /** The sum of the model calls that were told. */
  #calls: TokenUsage
  /** What the turn said at its end; it is then the whole truth, unless calls of an earlier leg are missing in it. */
  #turn: TokenUsage = NO_USAGE
  #cost = 0
  #numTurns = 0

  constructor(notes?: AttemptNotes) {
    this.#calls = notes?.usage ?? NO_USAGE
  }

  /** Every event once, with the session as it left it. */
  onEvent(event: SessionEvent, session: SessionInfo): void {
    this.#calls = sum(this.#calls, usedBy(event))
    if (event.type === 'turn_completed') this.#turn = sum(this.#turn, event.usage)
    this.readTotals(session)
  }

  /** Cost and turns are running totals of the session. */
  readTotals({ cost, numTurns }: SessionInfo): void {
    this.#cost = cost
    this.#numTurns = numTurns
  }

  /** Takes over what a session says of itself that nobody followed to its end. */
  readSession(session: SessionInfo): void {
    this.#turn = sum(NO_USAGE, session.usage)
    this.readTotals(session)
  }

  get usage(): TokenUsage {
    return tokensOf(this.#calls) > tokensOf(this.#turn) ? this.#calls : this.#turn
  }

  /** Input, output, cache creation and cache read. */
  get tokens(): number {
    return tokensOf(this.usage)
  }

  /** What it will show once `onEvent` was told these, too. */
  after(told: readonly SessionEventTold[]): AttemptMeter {
    const meter = new AttemptMeter()
    meter.#calls = this.#calls
    meter.#turn = this.#turn
    meter.#cost = this.#cost
    meter.#numTurns = this.#numTurns
    for (const { event, session } of told) meter.onEvent(event, session)
    return meter
  }

  /** The usage of a job whose earlier attempts came to `before`. */
  addedTo(before: JobUsage): JobUsage {
    return {
      tokens: before.tokens + this.tokens,
      ...sum(before, this.usage),
      cost: before.cost + this.#cost,
      numTurns: before.numTurns + this.#numTurns,
    }
  }
}

/** A job that is read and measured elsewhere, with what its attempt had used when it was parked, or went on, last. */
export function withAttempt(job: StoredJob): StoredJob {
  const attempt = job.notes?.attempt
  return attempt ? patched(job, { usage: new AttemptMeter(attempt).addedTo(job.usage) }) : job
}

/** By one model call that was told. */
const usedBy = (event: SessionEvent): Partial<TokenUsage> | undefined =>
  event.type === 'assistant_message' && !event.replay ? event.message.usage : undefined

const tokensOf = ({ inputTokens, outputTokens, cacheCreationTokens, cacheReadTokens }: TokenUsage): number =>
  inputTokens + outputTokens + cacheCreationTokens + cacheReadTokens

/** What an engine tells is added up, not trusted: a count that is none is none. */
function sum(a: TokenUsage, b: Partial<TokenUsage> | undefined): TokenUsage {
  return {
    inputTokens: a.inputTokens + count(b?.inputTokens),
    outputTokens: a.outputTokens + count(b?.outputTokens),
    cacheCreationTokens: a.cacheCreationTokens + count(b?.cacheCreationTokens),
    cacheReadTokens: a.cacheReadTokens + count(b?.cacheReadTokens),
  }
}

const count = (value: number | undefined): number => (Number.isFinite(value) && value! > 0 ? value! : 0)
