import type { SessionRunnerConfig } from '../../runner.js'
import type { SdkResult } from './sdk.js'
import type { ClaudeState } from './setup.js'

export type Limits = Pick<SessionRunnerConfig, 'maxTurns' | 'maxBudgetUsd'>

/** The agent takes no budget of nothing: with this one it ends after one call of its model. */
const SMALLEST_USD = 1e-6

/** The agent counts from its own start what it spends: a successor has what is left of the session's budget. */
export function budgetLeft({ maxBudgetUsd }: Limits, restored: ClaudeState | undefined): number | undefined {
  if (maxBudgetUsd === undefined || !restored) return maxBudgetUsd
  return Math.max(maxBudgetUsd - restored.costUsd, SMALLEST_USD)
}

/** @returns the end of every turn, when nothing is left for the first call of one */
export const spentBefore = ({ maxBudgetUsd }: Limits, restored: ClaudeState | undefined): SdkResult | undefined =>
  maxBudgetUsd !== undefined && restored && restored.costUsd >= maxBudgetUsd
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
