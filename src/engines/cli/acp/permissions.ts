import { isDeepStrictEqual } from 'node:util'
import type { RequestPermissionRequest, RequestPermissionResponse } from '@agentclientprotocol/sdk'
import type { PermissionMode } from '../../../../schemas/permissions.js'
import { invalidField } from '../../../errors.js'
import type { PermissionDecision } from '../../runner.js'
import type { AgentMode, AgentRow } from '../agent-table.js'

export const CANCELLED: RequestPermissionResponse = { outcome: { outcome: 'cancelled' } }

/** Kinds of calls that change files. */
const EDITS = new Set<unknown>(['edit', 'delete', 'move'])

/** What the mode itself answers; undefined when a person is to be asked. */
export function answerOfMode(
  mode: PermissionMode,
  { asks }: AgentMode,
  { toolCall }: RequestPermissionRequest,
): PermissionDecision | undefined {
  if (asks === 'allow' || (asks === 'edits' && EDITS.has(toolCall.kind))) return { behavior: 'allow' }
  if (asks !== 'deny') return undefined
  // The plan is made: whether it is to be carried out is for a person to say.
  return mode === 'plan' && toolCall.kind === 'switch_mode' ? undefined : { behavior: 'deny' }
}

/** Whether the agent offers a way to allow it: what is told as allowed is to run. */
export const canAllow = ({ options }: RequestPermissionRequest): boolean =>
  options.some(({ kind }) => kind === 'allow_once' || kind === 'allow_always')

/**
 * The protocol's answer: one of the options that the agent offers. It has no word for an input that was changed; nothing then runs,
 * rather than what nobody allowed.
 * @param allowsOnce the agent's name of the option that allows one call and nothing else, where several of them say that they do
 */
export function answerTo(
  { options }: RequestPermissionRequest,
  decision: PermissionDecision,
  shown: object,
  allowsOnce?: string,
): RequestPermissionResponse {
  const isAllowed =
    decision.behavior === 'allow' &&
    (decision.updatedInput === undefined || isDeepStrictEqual(decision.updatedInput, shown))
  const kinds = isAllowed ? ['allow_once', 'allow_always'] : ['reject_once', 'reject_always']
  const found = kinds.flatMap((kind) => options.filter((one) => one.kind === kind))
  const option = found.find(({ kind, optionId }) => kind === 'allow_once' && optionId === allowsOnce) ?? found[0]
  return option ? { outcome: { outcome: 'selected', optionId: option.optionId } } : CANCELLED
}

/** @throws GatewayError when the agent has no such mode */
export function agentModeOf({ modes }: AgentRow, mode: PermissionMode): AgentMode {
  const found = modes[mode]
  if (!found) throw invalidField('permissionMode', `the agent has no mode ${mode}.`, 'SG_ERR_PERMISSION_MODE')
  return found
}

/**
 * The mode of ours that an agent has gone to by itself. Of several that are one of its own, the one we asked for stays. Never the one
 * in which nobody is asked: that is the gateway's to allow, not the agent's. Undefined: it is none that it may go to.
 */
export function modeOfAgent(
  { modes, permissionModes }: AgentRow,
  id: string,
  current: PermissionMode,
): PermissionMode | undefined {
  if (modes[current]?.id === id) return current
  return permissionModes.find((mode) => mode !== 'bypassPermissions' && modes[mode]?.id === id)
}
