import { randomUUID } from 'node:crypto';
import { ONE_AT_A_TIME } from './gate.js';
/** How long an agent has to write down at which call it was put off, and to end by itself then. */
export const PUT_OFF_GRACE_MS = 4_000;
/** How soon an agent comes back to the call that it was put off at, its tools' servers included; then it is asked. */
export const RETURN_MS = 15_000;
/** What the agent was told of the calls that it was to make again, for those who read the log. */
export const refusals = (toolUseIds) => toolUseIds.map((tool_use_id) => ({
    type: 'user_message',
    message: { role: 'user', content: [{ type: 'tool_result', tool_use_id, content: ONE_AT_A_TIME, is_error: true }] },
    uuid: randomUUID(),
    parentToolUseId: null,
    synthetic: true,
}));
/** Answered at once by an agent that has nothing to do. */
export const goesOn = (uuid) => ({
    type: 'user',
    uuid,
    message: { role: 'user', content: [] },
    parent_tool_use_id: null,
    shouldQuery: false,
});
//# sourceMappingURL=parked-turn.js.map