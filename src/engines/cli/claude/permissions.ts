import { whenAborted } from '../../../lib/aborted.js'
import { wellFormedJson } from '../../../lib/well-formed.js'
import { NOT_ALLOWED, type RunnerHost } from '../../runner.js'
import type { SdkCanUseTool, SdkPermissionResult } from './sdk.js'

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
