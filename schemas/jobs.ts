import { type Static, type TProperties, Type } from '@sinclair/typebox'
import { Dictionary, JsonObject, Milliseconds, StringEnum, strict } from './common.js'
import { TurnSubtype } from './events.js'
import { PROTOCOL_VERSION } from './frames.js'
import { PermissionRequest } from './permissions.js'
import { JobSessionRequest, pageQuery, TokenUsage } from './sessions.js'

/** `parked`: waits for a deferred execution without a process · `succeeded`, `failed`, `canceled`: terminal. */
export const JobStatus = StringEnum('queued', 'running', 'parked', 'succeeded', 'failed', 'canceled')
export type JobStatus = Static<typeof JobStatus>

/** `completion` leaves `job_progress` out of the webhook. */
export const WebhookProgress = StringEnum('messages', 'completion')
export type WebhookProgress = Static<typeof WebhookProgress>

const PositiveCount = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })

const MAX_URL_LENGTH = 4096

export const JobWebhook = Type.Object(
  {
    url: Type.String({ minLength: 1, maxLength: MAX_URL_LENGTH }),
    headers: Type.Optional(Dictionary(Type.String())),
    progress: Type.Optional(WebhookProgress),
  },
  strict,
)
export type JobWebhook = Static<typeof JobWebhook>

export const MAX_ATTEMPTS = 100

export const CreateJobRequest = Type.Object(
  {
    session: JobSessionRequest,
    webhook: Type.Optional(JobWebhook),
    attempts: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_ATTEMPTS })),
    retryDelayMs: Type.Optional(Milliseconds()),
    maxTokens: Type.Optional(PositiveCount),
    maxDurationMs: Type.Optional(Milliseconds(1)),
    /** Earliest start, epoch milliseconds. */
    runAt: Type.Optional(Milliseconds()),
    priority: Type.Optional(Type.Integer({ minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER })),
    meta: Type.Optional(JsonObject),
  },
  strict,
)
export type CreateJobRequest = Static<typeof CreateJobRequest>

/** Cumulative over the attempts of a job; `tokens` is the sum of the four counts. */
export const JobUsage = Type.Object({
  tokens: Type.Number(),
  ...TokenUsage.properties,
  cost: Type.Number(),
  numTurns: Type.Number(),
})
export type JobUsage = Static<typeof JobUsage>

/** How the run ended, in the engine's words. */
export const JobResult = Type.Object({
  subtype: TurnSubtype,
  isError: Type.Boolean(),
  text: Type.Optional(Type.String()),
  errors: Type.Optional(Type.Array(Type.String())),
  durationMs: Type.Number(),
})
export type JobResult = Static<typeof JobResult>

export const JobInfo = Type.Object({
  id: Type.String(),
  status: JobStatus,
  profile: Type.String(),
  cwd: Type.String(),
  prompt: Type.String(),
  /** Of the latest attempt. */
  sessionId: Type.Optional(Type.String()),
  sdkSessionId: Type.Optional(Type.String()),
  createdAt: Type.Number(),
  /** Of the latest attempt. */
  startedAt: Type.Optional(Type.Number()),
  finishedAt: Type.Optional(Type.Number()),
  attempt: Type.Integer(),
  maxAttempts: Type.Integer(),
  nextRunAt: Type.Optional(Type.Number()),
  parkedAt: Type.Optional(Type.Number()),
  parkedExecutionId: Type.Optional(Type.String()),
  usage: JobUsage,
  result: Type.Optional(JobResult),
  /** Why the job, or its latest attempt, failed. */
  error: Type.Optional(Type.String()),
  webhook: Type.Optional(Type.Object({ url: Type.String(), progress: WebhookProgress })),
  /** `prompt` is only its beginning, as in lists, events and streams; `GET /jobs/:id` has it whole. */
  promptTruncated: Type.Optional(Type.Literal(true)),
  meta: Type.Optional(JsonObject),
})
export type JobInfo = Static<typeof JobInfo>

export const QueueStats = Type.Object({
  maxConcurrency: Type.Integer(),
  queued: Type.Integer(),
  running: Type.Integer(),
  parked: Type.Integer(),
  /** True while the daily budget is exhausted. */
  paused: Type.Boolean(),
  sessionTokenLimit: Type.Optional(Type.Number()),
  dailyTokenLimit: Type.Optional(Type.Number()),
  /** Of all jobs since UTC midnight, whoever asks. */
  dailyTokensUsed: Type.Number(),
  /** The next UTC midnight, while paused. */
  resumesAt: Type.Optional(Type.Number()),
})
export type QueueStats = Static<typeof QueueStats>

export const JobProgress = Type.Object({
  kind: StringEnum('assistant_text', 'tool_use', 'permission_requested', 'permission_resolved'),
  /** One line of at most 140 characters. */
  preview: Type.String(),
  request: Type.Optional(PermissionRequest),
})
export type JobProgress = Static<typeof JobProgress>

export const JobEventType = StringEnum(
  'job_submitted',
  'job_started',
  'job_progress',
  'job_parked',
  'job_resumed',
  'job_retrying',
  'job_completed',
)
export type JobEventType = Static<typeof JobEventType>

export const JobEvent = Type.Object({
  /** Unique per event and the same in every attempt to deliver it. */
  id: Type.String(),
  type: JobEventType,
  job: JobInfo,
  ts: Type.Number(),
  progress: Type.Optional(JobProgress),
  /** On `job_parked` and `job_resumed`, when an execution is waited for. */
  executionId: Type.Optional(Type.String()),
})
export type JobEvent = Static<typeof JobEvent>

const Frame = <const T extends string, P extends TProperties>(type: T, properties: P) =>
  Type.Object({ type: Type.Literal(type), ...properties })

export const QueueFrame = Type.Union([
  Frame('queue_attached', { protocolVersion: Type.Literal(PROTOCOL_VERSION), stats: QueueStats }),
  Frame('job_event', { event: JobEvent }),
  Frame('queue_stats', { stats: QueueStats }),
])
export type QueueFrame = Static<typeof QueueFrame>

/** One attempt to deliver an event to a webhook. */
export const WebhookDelivery = Type.Object({
  id: Type.String(),
  type: Type.String(),
  /** Of a notification: the channel that it went to. */
  channel: Type.Optional(Type.String()),
  /** 1 for the first; 0 when it was given up before it was tried. */
  attempt: Type.Integer(),
  at: Type.Number(),
  status: Type.Optional(Type.Integer()),
  /** `blocked`, `dns`, `connect`, `timeout`, `status`, `unwritten`; `stopped` and `dropped` at shutdown, `dropped` also to make room. */
  error: Type.Optional(Type.String()),
  durationMs: Type.Number(),
})
export type WebhookDelivery = Static<typeof WebhookDelivery>

export const JobParams = Type.Object({ id: Type.String() })

export const ListJobsQuery = Type.Object(
  {
    ...pageQuery,
    status: Type.Optional(JobStatus),
    profile: Type.Optional(Type.String()),
  },
  strict,
)
export type ListJobsQuery = Static<typeof ListJobsQuery>
