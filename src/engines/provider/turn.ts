import type { MessageBlock, TurnSubtype } from '../../../schemas/events.js'
import { toError } from '../../errors.js'
import type { Hold } from '../../lib/hold.js'
import { newId } from '../../lib/new-id.js'
import type { RunnerEvent } from '../runner.js'
import { addUsage } from '../token-usage.js'
import type { CallDesk } from './calls.js'
import { callIdAsShown, forAnotherModel } from './kept-answer.js'
import { callModel, type ModelAnswer, type ModelRequest } from './model-call.js'
import { ALL_TOO_LONG, takeBack } from './refused-input.js'
import type { ProviderSession } from './runner.js'
import type { TurnState } from './state.js'
import { partialMessage, toolCallIds, toolMessage } from './transcript-messages.js'
import { costOf } from './usage.js'

export interface TurnContext extends Pick<ProviderSession, 'config' | 'source' | 'state' | 'prices'> {
  readonly calls: CallDesk
  readonly request: Pick<ModelRequest, 'system' | 'tools' | 'claimId' | 'maxOutputTokens' | 'onWarning' | 'drained'>
  /** No tool and no model call begins while it holds. */
  readonly hold: Hold
  emit(event: RunnerEvent): void
}

export interface TurnOutcome {
  subtype: TurnSubtype
  /** The model's last words, of a turn that came to its end. */
  result?: string
  errors?: string[]
}

/**
 * Goes on with a turn wherever it stands: works off the calls of the last answer, asks the model, and so on until the model calls for
 * nothing more. The transcript is valid whenever this returns; it never rejects.
 */
export async function runTurn(context: TurnContext, turn: TurnState, signal: AbortSignal): Promise<TurnOutcome> {
  try {
    for (;;) {
      await finishWork(context, turn, signal)
      if (context.hold.over) await context.hold.passed(signal)
      signal.throwIfAborted()
      const outcome = limitReached(context, turn) ?? (await takeStep(context, turn, signal))
      if (outcome) return outcome
    }
  } catch (thrown) {
    const reason = signal.aborted ? 'The turn was interrupted.' : context.source.redact(toError(thrown).message)
    context.calls.abandon(turn.work?.calls ?? [], reason)
    closeWork(context, turn)
    return signal.aborted ? { subtype: 'interrupted' } : { subtype: 'error_during_execution', errors: [reason] }
  }
}

async function finishWork(context: TurnContext, turn: TurnState, signal: AbortSignal): Promise<void> {
  if (!turn.work) return
  await context.calls.workOff(turn.work.calls, signal)
  closeWork(context, turn)
}

function closeWork({ state, source }: TurnContext, turn: TurnState): void {
  if (!turn.work) return
  const { answer, calls } = turn.work
  const shown = toolCallIds([answer])
  const results = calls.map(({ id, name, result }) => ({
    ...{ name, result: result! },
    id: shown.has(id) ? id : callIdAsShown(id),
  }))
  state.messages.push(answer, toolMessage(results, source.takesImages))
  turn.work = null
}

function limitReached({ state, config }: TurnContext, turn: TurnState): TurnOutcome | undefined {
  const { maxTurns, maxBudgetUsd } = config
  if (maxTurns !== undefined && turn.steps >= maxTurns) {
    return { subtype: 'error_max_turns', errors: [`The turn reached its limit of ${maxTurns} model calls.`] }
  }
  if (maxBudgetUsd !== undefined && state.totals.costUsd >= maxBudgetUsd) {
    return { subtype: 'error_max_budget_usd', errors: [`The session reached its budget of ${maxBudgetUsd} USD.`] }
  }
  return undefined
}

/** One call of the model. Returns the turn's outcome when the turn ends with it. */
async function takeStep(context: TurnContext, turn: TurnState, signal: AbortSignal): Promise<TurnOutcome | undefined> {
  const { state, emit } = context
  const modelId = state.model
  const uuid = newId()
  const answer = await callModel({
    ...context.request,
    model: context.source.open(modelId),
    modelId,
    messages: state.messages,
    redact: context.source.redact,
    signal,
    onDelta: (blockIndex, delta) => {
      if (context.config.includePartialMessages !== false)
        emit({ type: 'stream_delta', uuid, blockIndex, delta, parentToolUseId: null })
    },
  })
  const told = { role: 'assistant', content: answer.blocks }
  const isComplete = 'toolCalls' in answer
  if (isComplete || answer.blocks.length > 0) {
    turn.steps += 1
    state.totals.numTurns += 1
  }
  const usage = answer.spent?.usage
  if (usage) {
    turn.usage = addUsage(turn.usage, usage)
    state.totals.costUsd += answer.spent?.reportedCostUsd ?? costOf(usage, context.prices, modelId)
  }
  if (!isComplete) {
    const kept = partialMessage(answer.blocks)
    if (kept) state.messages.push(kept)
    if (answer.blocks.length > 0) {
      const message = { ...told, model: modelId, ...(usage && { usage }) }
      emit({ type: 'assistant_message', message, uuid, parentToolUseId: null })
    }
    signal.throwIfAborted()
    const { error = 'The model call was aborted.', isInputRefused } = answer
    const taken = isInputRefused && answer.blocks.length === 0 ? takeBack(state.messages, error) : []
    return { subtype: 'error_during_execution', errors: [error, ...taken] }
  }

  const { model, stopReason, spent } = answer
  // another model may have been chosen meanwhile
  const isRefused = isTurnRefused(answer)
  const message =
    answer.message && modelId !== state.model ? forAnotherModel(answer.message, state.model) : answer.message
  if (message && answer.toolCalls.length > 0) {
    turn.work = { answer: message, calls: answer.toolCalls.map((call) => ({ ...call, phase: 'open' })) }
  } else if (message && !isRefused) {
    state.messages.push(message)
  }
  if (answer.blocks.length > 0) {
    const shown = { ...told, model, stopReason, usage: spent.usage }
    emit({ type: 'assistant_message', message: shown, uuid, parentToolUseId: null })
  }
  if (isRefused) {
    context.calls.abandon(turn.work?.calls ?? [], REFUSED)
    turn.work = null
    const errors = [REFUSED, ...takeBack(state.messages, REFUSED), REFUSED_AGAIN]
    return { subtype: 'error_during_execution', errors }
  }
  if (!turn.work) {
    const unfinished = UNFINISHED[stopReason] ?? wordless(answer, turn)
    return unfinished
      ? { subtype: 'error_during_execution', errors: [unfinished] }
      : { subtype: 'success', result: spoken(answer.blocks) }
  }
  if (!answer.isCutOff) return undefined
  const reason = `The answer of the model was cut off (${stopReason}) while it called a tool.`
  context.calls.abandon(turn.work.calls, reason)
  closeWork(context, turn)
  return { subtype: 'error_during_execution', errors: [reason] }
}

const REFUSED = 'The model, or a filter of its vendor, refused to answer (refusal).'
const REFUSED_AGAIN = 'If it refuses what you say next, too, choose another model or begin a new session.'

/**
 * Whether the model would refuse what comes after it, too, as long as it is shown what it refused: Anthropic says so of its `refusal`, and
 * what nothing was said to was refused as it stands.
 */
const isTurnRefused = ({ stopReason, vendorReason, blocks }: ModelAnswer): boolean =>
  stopReason === 'refusal' && (vendorReason === 'refusal' || spoken(blocks).trim() === '')

/** Ends of an answer that is not what the model was asked for, though the call went well. */
const UNFINISHED: Readonly<Record<string, string>> = {
  max_tokens: 'The answer of the model was cut off (max_tokens): it may take no more tokens.',
  model_context_window_exceeded: `The answer of the model was cut off: nothing more fits into its context. ${ALL_TOO_LONG}`,
  refusal: REFUSED,
  // some endpoints lose a call that they could not read
  tool_use: 'The model ended its answer to call a tool (tool_use), and no call came with it.',
}

/** Why a turn that nothing came of is no success. A model may well have nothing to say, but not for a reason that nobody knows. */
function wordless({ blocks, stopReason, vendorReason, untold }: ModelAnswer, turn: TurnState): string | undefined {
  const isOver = stopReason === 'end_turn'
  if (spoken(blocks).trim() !== '' || (isOver && (untold.length === 0 || turn.steps > 1))) return undefined
  if (untold.length > 0)
    return `The model answered with what a session cannot tell (${[...new Set(untold)].join(', ')}), and without a word: ask it for text.`
  return `The model ended its answer without a word (${vendorReason ?? stopReason}).`
}

const spoken = (blocks: MessageBlock[]): string =>
  blocks.map((block) => ('text' in block && block.type === 'text' ? block.text : '')).join('')
