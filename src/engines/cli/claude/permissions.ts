import { whenAborted } from '../../../lib/aborted.js'
import { wellFormedJson } from '../../../lib/well-formed.js'
import { NOT_ALLOWED, type RunnerHost } from '../../runner.js'
import { changesNothing, PLAN_REFUSAL } from './plan-mode.js'
import type { SdkCanUseTool, SdkHookInput, SdkHookOutput, SdkPermissionResult } from './sdk.js'

/** Hands a question of the agent to a person, and the answer back. */
export async function askPerson(
  host: RunnerHost,
  ...[toolName, input, { signal, toolUseID, title, description, decisionReason, agentID }]: Parameters<SdkCanUseTool>
): Promise<SdkPermissionResult> {
  const ask = {
    toolName,
    toolUseId: toolUseID,
    input,
    ...(title && { title }),
    ...(description && { description }),
    ...(decisionReason && { decisionReason }),
    ...(agentID && { agentId: agentID }),
  }
  // the agent hears no answer to what it has taken back
  const asked = signal.aborted ? undefined : host.requestPermission(ask, signal)
  const answer = await Promise.race([asked, whenAborted(signal)])
  const decision = wellFormedJson(answer ?? { behavior: 'deny' as const, message: 'Interrupted.' })
  if (decision.behavior === 'allow')
    return { behavior: 'allow', updatedInput: (decision.updatedInput ?? input) as Record<string, unknown> }
  return {
    behavior: 'deny',
    message: decision.message ?? NOT_ALLOWED,
    ...(decision.interrupt && { interrupt: true }),
  }
}

/** Before every call in plan mode, whatever rule allows it. */
export function guardPlan({ tool_name, tool_input }: SdkHookInput, plans: string | undefined): SdkHookOutput {
  if (changesNothing(tool_name, tool_input, plans)) return {}
  return {
    hookSpecificOutput: {
      hookEventName: 'PreToolUse',
      permissionDecision: 'deny',
      permissionDecisionReason: PLAN_REFUSAL,
    },
  }
}
