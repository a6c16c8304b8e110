import { type Static, Type } from '@sinclair/typebox'
import { StringEnum, strict } from './common.js'

export const ExecutionOutput = Type.Union([
  Type.Object({ type: Type.Literal('json'), value: Type.Unknown() }, strict),
  Type.Object({ type: Type.Literal('text'), value: Type.String() }, strict),
])
export type ExecutionOutput = Static<typeof ExecutionOutput>

export const executionLogs = { logs: Type.Optional(Type.Array(Type.String())) }

export const SubmitExecutionResultRequest = Type.Union([
  Type.Object({ status: Type.Literal('ok'), output: ExecutionOutput, ...executionLogs }, strict),
  Type.Object(
    { status: Type.Literal('failed'), reason: Type.String(), error: Type.String(), ...executionLogs },
    strict,
  ),
])
export type SubmitExecutionResultRequest = Static<typeof SubmitExecutionResultRequest>

export const SubmitExecutionResultResponse = Type.Object({ applied: Type.Boolean(), sessionId: Type.String() })
export type SubmitExecutionResultResponse = Static<typeof SubmitExecutionResultResponse>

export const ExecutionParams = Type.Object({ executionId: Type.String() })

/** Where an execution runs: in the gateway's host, on an attached client, or elsewhere (a deferred execution). */
export const ExecutionBackend = StringEnum('server', 'client', 'remote')

export const PendingExecution = Type.Object({
  executionId: Type.String(),
  toolName: Type.String(),
  expiresAt: Type.Optional(Type.Number()),
})
export type PendingExecution = Static<typeof PendingExecution>
