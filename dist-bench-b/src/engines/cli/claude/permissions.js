import { whenAborted } from '../control.js';
import { changesNothing, PLAN_REFUSAL } from './plan-mode.js';
/** Hands a question of the agent to a person, and the answer back. */
export async function askPerson(host, ...[toolName, input, { signal, toolUseID, title, description, decisionReason, agentID }]) {
    const asked = host.requestPermission({
        toolName,
        toolUseId: toolUseID,
        input,
        ...(title && { title }),
        ...(description && { description }),
        ...(decisionReason && { decisionReason }),
        ...(agentID && { agentId: agentID }),
    });
    // Taken back, because the turn was interrupted: the gateway settles the request by itself.
    const decision = (await Promise.race([asked, whenAborted(signal)])) ?? { behavior: 'deny', message: 'Interrupted.' };
    if (decision.behavior === 'allow')
        return { behavior: 'allow', updatedInput: (decision.updatedInput ?? input) };
    return {
        behavior: 'deny',
        message: decision.message ?? 'The user does not allow this.',
        ...(decision.interrupt && { interrupt: true }),
    };
}
/** Before every call in plan mode, whatever rule allows it. */
export function guardPlan({ tool_name, tool_input }, plans) {
    if (changesNothing(tool_name, tool_input, plans))
        return {};
    return {
        hookSpecificOutput: {
            hookEventName: 'PreToolUse',
            permissionDecision: 'deny',
            permissionDecisionReason: PLAN_REFUSAL,
        },
    };
}
//# sourceMappingURL=permissions.js.map