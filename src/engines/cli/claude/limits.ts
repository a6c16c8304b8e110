import type { SessionRunnerConfig } from '../../runner.js'
import type { SdkResult } from './sdk.js'

export type Limits = Pick<SessionRunnerConfig, 'maxTurns' | 'maxBudgetUsd'>

/** The agent takes no budget of nothing: with this one it ends after one call of its model. */
const SMALLEST_USD = 1e-6

/** The agent counts from its own start what it spends: a successor has what is left of the session's budget. */
export const budgetLeft = ({ maxBudgetUsd }: Limits, spentUsd: number): number | undefined =>
  maxBudgetUsd === undefined ? undefined : Math.max(maxBudgetUsd - spentUsd, SMALLEST_USD)

/**
 * The agent would call its model once more to find out, and begins to count anew with a conversation that was cleared.
 * @returns the end of every turn, when nothing is left for the first call of one
 */
export const spentBefore = ({ maxBudgetUsd }: Limits, spentUsd: number): SdkResult | undefined =>
  maxBudgetUsd !== undefined && spentUsd >= maxBudgetUsd
    ? { type: 'result', subtype: 'error_max_budget_usd', is_error: true }
    : undefined

/** The end of a turn that reached a limit, whatever the agent makes of it. */
export function limitReached({ result: _said, ...end }: SdkResult, { maxTurns, maxBudgetUsd }: Limits): SdkResult {
  const reached =
    end.subtype === 'error_max_turns'
      ? `The turn reached its limit of ${maxTurns} model calls.`
      : `The session reached its budget of ${maxBudgetUsd} USD.`
  return { ...end, is_error: true, errors: [reached] }
}
