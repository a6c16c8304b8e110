import { Type } from '@sinclair/typebox';
import { described, Flag, Moment, StringEnum, strict, Text } from './common.js';
export const ExecutionOutput = Type.Union([
    Type.Object({ type: Type.Literal('json'), value: Type.Unknown() }, { ...strict, description: 'Any JSON value.' }),
    Type.Object({ type: Type.Literal('text'), value: Type.String() }, { ...strict, description: 'Plain text.' }),
], { description: 'What an execution gave.' });
export const executionLogs = {
    logs: Type.Optional(Type.Array(Type.String(), { description: 'Lines that it wrote meanwhile.' })),
};
export const executionFailure = {
    reason: Text('A word for programs, as in `timeout`.'),
    error: Text('What went wrong.'),
};
export const SubmitExecutionResultRequest = Type.Union([
    Type.Object({ status: Type.Literal('ok'), output: ExecutionOutput, ...executionLogs }, { ...strict, description: 'It succeeded.' }),
    Type.Object({ status: Type.Literal('failed'), ...executionFailure, ...executionLogs }, { ...strict, description: 'It failed; the agent is told so and goes on.' }),
], { description: 'What became of a deferred execution.' });
export const SubmitExecutionResultResponse = Type.Object({
    applied: Flag('True for the first result, once it is stored; false when another one, or the deadline, came before.'),
    sessionId: Text('The session that waited for it.'),
}, { description: 'Whether this result was the one.' });
export const ExecutionParams = Type.Object({ executionId: Text('Of the execution.') });
export const ExecutionBackend = described(StringEnum('server', 'client', 'remote'), "Where an execution runs: in the gateway's host, on an attached client, or elsewhere (a deferred execution).");
export const PendingExecution = Type.Object({
    executionId: Text('What its result is delivered to.'),
    toolName: Type.String(),
    expiresAt: Type.Optional(Moment('When it fails with the reason `timeout`; absent: never')),
}, { description: 'A deferred execution whose result is waited for.' });
//# sourceMappingURL=executions.js.map