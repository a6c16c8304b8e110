import { setMaxListeners } from 'node:events'
import type { PromptResponse } from '@agentclientprotocol/sdk'
import type { TurnSubtype } from '../../../../schemas/events.js'
import type { TokenUsage } from '../../../../schemas/sessions.js'
import type { Clock, Timer } from '../../../lib/clock.js'
import { ended } from '../../../lib/sentence.js'
import type { RunnerEvent } from '../../runner.js'
import type { AgentRow } from '../agent-table.js'
import { INTERRUPT_GRACE_MS } from '../control.js'
import { type AcpConnection, isAuthRequired, reasonOf } from './connection.js'
import { turnUsage } from './usage.js'

/** How long an agent may say nothing, while the next word is its own, before that is told; doubled each time. */
export const FIRST_SILENCE_MS = 15_000

/** A timer that is late by more: the gateway was stopped, and its agents with it; or what they said meanwhile is unread yet. */
const STOOD_STILL_MS = 1_000

/** How a turn ended. */
export interface TurnEnd {
  subtype: TurnSubtype
  isError: boolean
  errors?: string[]
  usage?: TokenUsage
}

const INTERRUPTED: TurnEnd = { subtype: 'interrupted', isError: false }

export interface TurnParts {
  readonly clock: Clock
  readonly connection: AcpConnection
  readonly sessionId: string
  readonly row: AgentRow
  /** Whether what it waits for is not its model. */
  isBusy(): boolean
  tell(event: RunnerEvent): void
  /** Ends its process, which does not listen; resolves when it is gone. */
  giveUp(): Promise<void>
}

/** One turn of an agent, and what is done when nothing comes of it. */
export class Turn {
  readonly #parts: TurnParts
  readonly #interruption = new AbortController()
  readonly #over = new AbortController()
  /** As `clock.steady` counts: an agent is not silent because the clock was set. */
  #heardAt: number
  #toldSilenceMs = 0
  #silence: Timer | undefined
  #grace: Timer | undefined
  #givingUp: Promise<void> | undefined
  /** How the turn ends when it is ended from here. */
  #ending = INTERRUPTED

  constructor(parts: TurnParts) {
    this.#parts = parts
    this.#heardAt = parts.clock.steady()
    // each of its questions waits for it
    setMaxListeners(0, this.signal, this.over)
  }

  /** Aborted by an interrupt. */
  get signal(): AbortSignal {
    return this.#interruption.signal
  }

  /** Aborted when the agent has ended the turn: what it asked in it, it waits for no more. */
  get over(): AbortSignal {
    return this.#over.signal
  }

  /**
   * Gives the agent a prompt and waits for the end of its turn.
   * @param refusal why its model gave no answer, when it may not have; asked for once the turn is over, with whether that told its tokens
   * @returns undefined when the agent itself is gone
   */
  async take(text: string, refusal: (toldTokens: boolean) => string | undefined): Promise<TurnEnd | undefined> {
    this.#watch(FIRST_SILENCE_MS)
    const end = await this.#ask(text, refusal)
    this.#silence?.cancel()
    this.#grace?.cancel()
    await this.#givingUp
    if (end) this.#over.abort()
    return this.#givingUp || (end?.subtype === 'interrupted' && this.signal.aborted) ? this.#ending : end
  }

  /** The agent has said something. */
  heard(): void {
    this.#heardAt = this.#parts.clock.steady()
    this.#toldSilenceMs = 0
  }

  /** Asks the agent to end the turn; one that does not is ended itself. */
  async interrupt(ending = INTERRUPTED): Promise<void> {
    if (this.signal.aborted) return
    const { clock, connection, sessionId, giveUp } = this.#parts
    this.#ending = ending
    this.#interruption.abort()
    this.#grace = clock.after(INTERRUPT_GRACE_MS, () => {
      this.#givingUp = giveUp()
    })
    // an agent that cannot take it any more has ended, which tells itself
    await connection.agent.notify('session/cancel', { sessionId }).catch(() => {})
  }

  /** Ends it with the agent's process. @param detail why, for a person */
  giveUp(detail: string): void {
    this.#ending = { subtype: 'error_during_execution', isError: true, errors: [detail] }
    this.#interruption.abort()
    this.#givingUp ??= this.#parts.giveUp()
  }

  /** Nobody waits for its end any more. */
  drop(): void {
    this.#silence?.cancel()
    this.#grace?.cancel()
    this.#interruption.abort()
  }

  async #ask(text: string, refusal: (toldTokens: boolean) => string | undefined): Promise<TurnEnd | undefined> {
    const { connection, sessionId, row } = this.#parts
    try {
      const answer = await connection.agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
      return endOf(answer, refusal, this.signal.aborted)
    } catch (error) {
      if (connection.signal.aborted) return undefined
      return this.signal.aborted
        ? INTERRUPTED
        : { subtype: 'error_during_execution', isError: true, errors: [failureOf(error, row)] }
    }
  }

  #watch(delayMs: number): void {
    const { clock } = this.#parts
    const since = clock.steady()
    this.#silence = clock.after(delayMs, () => {
      const passedMs = clock.steady() - since
      // no silence of the agent: what it is given to speak in begins anew
      if (passedMs > delayMs + STOOD_STILL_MS) this.#heardAt = Math.min(this.#heardAt + passedMs, clock.steady())
      this.#onQuiet()
    })
  }

  #onQuiet(): void {
    const { clock, row, tell, isBusy } = this.#parts
    const patienceMs = row.acp?.patienceMs ?? Number.POSITIVE_INFINITY
    if (this.signal.aborted) return
    if (isBusy()) this.heard()
    const silentMs = Math.round(clock.steady() - this.#heardAt)
    if (silentMs >= patienceMs) {
      const detail = `The agent said nothing for ${Math.round(silentMs / 1000)} s: its model does not answer.`
      void this.interrupt({ subtype: 'error_during_execution', isError: true, errors: [detail] })
      return
    }
    const due = this.#toldSilenceMs * 2 || FIRST_SILENCE_MS
    if (silentMs >= due) {
      this.#toldSilenceMs = silentMs
      tell({
        type: 'engine_event',
        payload: { type: 'agent_silent', silentMs, message: 'The agent says nothing: its model may not answer.' },
      })
    }
    const nextMs = Math.min(this.#toldSilenceMs * 2 || FIRST_SILENCE_MS, patienceMs)
    this.#watch(Math.max(nextMs - silentMs, 1))
  }
}

/** Why a prompt was answered with an error. An agent that has no login any more says so and no more. */
function failureOf(error: unknown, { credentials: { apiKeyEnv } }: AgentRow): string {
  const reason = reasonOf(error)
  if (!isAuthRequired(error)) return reason
  const key = apiKeyEnv.length > 0 ? `Check ${apiKeyEnv.join(' or ')}, or log in` : 'Log in'
  return `What the agent is logged in with was not taken: ${ended(reason)} ${key} with the agent itself.`
}

const NO_REASON = 'The agent ended the turn without saying how: its answer to the prompt has no stopReason.'
/** Of one whose model was not called, either. */
const NOTHING_SAID = 'The agent ended the turn without a word: its model may not have answered.'

/** Of what an agent calls an end that the protocol does not know. */
const MAX_REASON = 200

function endOf(
  answer: Partial<PromptResponse> | null | undefined,
  refusalOf: (toldTokens: boolean) => string | undefined,
  isInterrupted: boolean,
): TurnEnd {
  const usage = turnUsage(answer)
  const refusal = refusalOf(usage !== undefined)
  const ended = { ...(usage && { usage }) }
  const reason: unknown = answer?.stopReason
  if (typeof reason !== 'string')
    return { subtype: 'error_during_execution', isError: true, errors: [NO_REASON], ...ended }
  const subtype = SUBTYPES.get(reason) ?? 'error_during_execution'
  // one that is interrupted while it tries its model again may call that a good end, too
  if (subtype === 'success' && refusal !== undefined && !(usage && usage.inputTokens + usage.outputTokens > 0))
    return isInterrupted
      ? INTERRUPTED
      : { subtype: 'error_during_execution', isError: true, errors: [refusal || NOTHING_SAID], ...ended }
  const isError = subtype !== 'success' && subtype !== 'interrupted'
  return {
    subtype,
    isError,
    ...ended,
    ...(isError && { errors: [`The turn ended with ${reason.slice(0, MAX_REASON)}.`] }),
  }
}

const SUBTYPES: ReadonlyMap<string, TurnSubtype> = new Map([
  ['end_turn', 'success'],
  ['cancelled', 'interrupted'],
  ['max_turn_requests', 'error_max_turns'],
])
