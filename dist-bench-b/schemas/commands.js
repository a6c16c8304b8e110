import { Type } from '@sinclair/typebox';
import { described, StringEnum, strict, Text } from './common.js';
import { ExecutionOutput, executionFailure, executionLogs } from './executions.js';
import { PermissionMode, permissionDecisionFields } from './permissions.js';
import { MAX_MODEL_LENGTH } from './sessions.js';
export const MAX_COMMAND_ID_LENGTH = 200;
const id = Type.Optional(Type.String({
    maxLength: MAX_COMMAND_ID_LENGTH,
    description: "The client's own name for it, which its answer has again. What has the same id is carried out once.",
}));
const Command = (type, description, properties) => Type.Object({ type: Type.Literal(type), id, ...properties }, { ...strict, description });
export const WhenBusy = described(StringEnum('enqueue', 'interrupt', 'reject'), 'What becomes of a message while a turn is in progress. `enqueue` (default): it waits for its turn · `interrupt`: it ends the turn · `reject`: it is refused.');
const requestId = Text('Of the permission request.');
const executionId = Text('Of the tool call that this client was asked to carry out.');
export const UserMessageCommand = Command('user_message', 'Says something to the agent.', {
    text: Type.String({ minLength: 1 }),
    whenBusy: Type.Optional(WhenBusy),
});
export const PermissionDecisionCommand = Type.Union([
    Command('permission_decision', 'Lets it run; without `updatedInput` with the input that was shown.', {
        requestId,
        ...permissionDecisionFields.allow,
    }),
    Command('permission_decision', 'Does not let it run.', { requestId, ...permissionDecisionFields.deny }),
], { description: 'Answers an approval or a question; the first answer wins.' });
/** One schema per command name; a frame is checked against the row that its `type` selects. */
export const SessionCommands = {
    user_message: UserMessageCommand,
    permission_decision: PermissionDecisionCommand,
    interrupt: Command('interrupt', 'Ends the turn that is in progress.', {}),
    set_permission_mode: Command('set_permission_mode', 'Changes what may be done without asking.', {
        mode: PermissionMode,
    }),
    set_model: Command('set_model', 'Changes the model.', {
        model: Type.Optional(Type.String({ minLength: 1, maxLength: MAX_MODEL_LENGTH, description: 'Absent: the default one.' })),
    }),
    tool_call_result: Command('tool_call_result', 'Tells what a tool call gave.', {
        executionId,
        output: ExecutionOutput,
        ...executionLogs,
    }),
    tool_call_error: Command('tool_call_error', 'Tells that a tool call failed.', {
        executionId,
        ...executionFailure,
        ...executionLogs,
    }),
    close: Command('close', 'Ends the session; it stays listed.', {}),
    ping: Command('ping', 'Asks for a `pong`.', {}),
};
export const SessionCommand = Type.Union(Object.values(SessionCommands), {
    description: 'What a client asks of a session.',
});
export const CommandResponse = Type.Object({ ok: Type.Literal(true) }, { description: 'It was carried out.' });
//# sourceMappingURL=commands.js.map