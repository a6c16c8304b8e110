import { Type } from '@sinclair/typebox';
import { Count, Duration, described, Flag, Moment, Text } from './common.js';
import { SessionEvent } from './events.js';
import { PendingExecution } from './executions.js';
import { PermissionRequest } from './permissions.js';
import { SessionInfo } from './sessions.js';
/** Version of the socket protocol, sent in the first frame of every stream. */
export const PROTOCOL_VERSION = 1;
export const protocolVersion = described(Type.Literal(PROTOCOL_VERSION), 'Of what is said over streams and sockets.');
export const ExecutionLimits = Type.Object({
    timeoutMs: Type.Optional(Duration('How long it may take')),
    memoryLimitBytes: Type.Optional(Count('How much memory it may take.')),
}, { description: 'What a tool call may take up.' });
export const AttachedFrame = Type.Object({
    type: Type.Literal('attached'),
    protocolVersion,
    session: SessionInfo,
    epoch: Text("This log's identity; a `seq` of another one says nothing here."),
    replayingFrom: Type.Integer({ description: 'The `seq` after which events follow.' }),
    oldestSeq: Type.Integer({ description: '`seq` of the oldest event that is still kept.' }),
    truncated: Flag('Events after `afterSeq` are missing: what is said here is then the truth.'),
    pendingPermissions: Type.Array(PermissionRequest, { description: 'Approvals and questions that wait.' }),
    pendingExecutions: Type.Array(PendingExecution, { description: 'Deferred executions that wait.' }),
}, { description: 'The first frame: the session as it is, and where the events that follow begin.' });
export const Frame = (type, description, properties) => Type.Object({ type: Type.Literal(type), ...properties }, { description });
export const ServerFrame = Type.Union([
    AttachedFrame,
    Frame('event', 'Something happened.', { event: SessionEvent }),
    Frame('synced', 'Everything that there was at the attach has been sent; comes once.', {
        seq: Type.Integer({ description: 'Of the last event at the attach.' }),
    }),
    Frame('ack', 'A command was carried out.', { id: Text('Of the command.') }),
    Frame('command_error', 'A command, or what was to be one, was not carried out.', {
        id: Type.Optional(Text('Of the command, when it had one.')),
        code: Text('As in `Problem`.'),
        message: Text('One sentence for a person.'),
    }),
    Frame('tool_call_request', 'Asks this client to carry out a tool call.', {
        executionId: Text('What `tool_call_result` and `tool_call_error` name.'),
        toolName: Type.String(),
        input: Type.Unknown({ description: 'What the tool is to run with.' }),
        limits: Type.Optional(ExecutionLimits),
        expiresAt: Type.Optional(Moment('When nobody waits for it any more')),
    }),
    Frame('tool_call_canceled', 'Nobody waits for the result of a tool call any more.', {
        executionId: Type.String(),
        reason: Text('A word for programs.'),
    }),
    Frame('pong', 'Answers `ping`.', {}),
], { description: 'What the gateway tells of a session.' });
//# sourceMappingURL=frames.js.map