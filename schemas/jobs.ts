import { type Static, Type } from '@sinclair/typebox'
import {
  Count,
  Dictionary,
  Duration,
  described,
  Flag,
  JsonObject,
  Milliseconds,
  Moment,
  StringEnum,
  strict,
  Text,
} from './common.js'
import { TurnSubtype } from './events.js'
import { Frame, protocolVersion } from './frames.js'
import { PermissionRequest } from './permissions.js'
import { JobSessionRequest, pageQuery, TokenUsage } from './sessions.js'

export const JobStatus = described(
  StringEnum('queued', 'running', 'parked', 'succeeded', 'failed', 'canceled'),
  '`queued`: waits for its turn, or its time · `running`: its session is at work · `parked`: waits for a result or an answer, and holds no place · `succeeded`, `failed`, `canceled`: over.',
)
export type JobStatus = Static<typeof JobStatus>

export const WebhookProgress = described(
  StringEnum('messages', 'completion'),
  'What a webhook is told. `messages` (default): everything · `completion`: all but `job_progress`.',
)
export type WebhookProgress = Static<typeof WebhookProgress>

const PositiveCount = (description: string) =>
  Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description })

const MAX_URL_LENGTH = 4096

export const JobWebhook = Type.Object(
  {
    url: Type.String({
      minLength: 1,
      maxLength: MAX_URL_LENGTH,
      description: 'http or https; gets one POST per event.',
    }),
    headers: Type.Optional(described(Dictionary(Type.String()), 'Sent with every delivery; never told again.')),
    progress: Type.Optional(WebhookProgress),
  },
  { ...strict, description: 'Where the events of a job are delivered to.' },
)
export type JobWebhook = Static<typeof JobWebhook>

export const MAX_ATTEMPTS = 100

export const CreateJobRequest = Type.Object(
  {
    session: JobSessionRequest,
    webhook: Type.Optional(JobWebhook),
    attempts: Type.Optional(
      Type.Integer({ minimum: 1, maximum: MAX_ATTEMPTS, description: 'How often it is tried in all. Default 1.' }),
    ),
    retryDelayMs: Type.Optional(
      Milliseconds(0, 'Milliseconds until the second attempt; doubled for each further one. Default 5000.'),
    ),
    maxTokens: Type.Optional(
      PositiveCount(
        'Tokens of all four kinds per attempt, beyond which it fails. The stricter of this and the queue holds.',
      ),
    ),
    maxDurationMs: Type.Optional(
      Milliseconds(1, 'Milliseconds per attempt, without parked time. The stricter of this and the queue holds.'),
    ),
    runAt: Type.Optional(Milliseconds(0, 'Earliest start, epoch milliseconds. Default: at once.')),
    priority: Type.Optional(
      Type.Integer({
        minimum: Number.MIN_SAFE_INTEGER,
        maximum: Number.MAX_SAFE_INTEGER,
        description: 'Higher ones run first. Default 0.',
      }),
    ),
    meta: Type.Optional(described(JsonObject, "The caller's own; `JobInfo` has it again.")),
  },
  { ...strict, description: 'What is to be run unattended, and how far it may go.' },
)
export type CreateJobRequest = Static<typeof CreateJobRequest>

export const JobUsage = Type.Object(
  {
    tokens: Count('The sum of the four counts.'),
    ...TokenUsage.properties,
    cost: Count('US dollars; 0 until it is known.'),
    numTurns: Count('How many turns.'),
  },
  { description: 'What all attempts of a job took together.' },
)
export type JobUsage = Static<typeof JobUsage>

export const JobResult = Type.Object(
  {
    subtype: TurnSubtype,
    isError: Flag('Whether the run failed.'),
    text: Type.Optional(Text('What the agent said last.')),
    errors: Type.Optional(Type.Array(Type.String(), { description: 'Why it failed.' })),
    durationMs: Duration('How long the run took'),
  },
  { description: "How the latest run ended, in the engine's words." },
)
export type JobResult = Static<typeof JobResult>

export const JobInfo = Type.Object(
  {
    id: Type.String(),
    status: JobStatus,
    profile: Text('Who it runs as; empty where the gateway has no profiles.'),
    cwd: Text('The directory that it works in.'),
    prompt: Text('Its prompt; only the beginning where `promptTruncated` says so.'),
    sessionId: Type.Optional(Text('The session of the latest attempt; absent while, and where, there is none.')),
    sdkSessionId: Type.Optional(Text("The engine's own id of that session.")),
    createdAt: Moment('When it was submitted'),
    startedAt: Type.Optional(Moment('When the latest attempt began')),
    finishedAt: Type.Optional(Moment('When it was over')),
    attempt: Type.Integer({ description: 'From 1; counts up when a further one is queued.' }),
    maxAttempts: Type.Integer({ description: 'How often it is tried in all.' }),
    nextRunAt: Type.Optional(Moment('Earliest start of the next attempt')),
    parkedAt: Type.Optional(Moment('When it was parked, while it is')),
    parkedExecutionId: Type.Optional(Text('The execution that it waits for, while it is parked.')),
    usage: JobUsage,
    result: Type.Optional(JobResult),
    error: Type.Optional(Text('Why the job, or its latest attempt, failed.')),
    webhook: Type.Optional(
      Type.Object({ url: Type.String(), progress: WebhookProgress }, { description: 'Never with its headers.' }),
    ),
    promptTruncated: Type.Optional(
      described(
        Type.Literal(true),
        '`prompt` is its first 1,000 characters, as in lists, events and streams; `GET /jobs/{id}` has it whole.',
      ),
    ),
    resultTruncated: Type.Optional(
      described(
        Type.Literal(true),
        '`error` and the texts of `result` are their first 10,000 characters, as in lists; `GET /jobs/{id}` has them whole.',
      ),
    ),
    meta: Type.Optional(described(JsonObject, 'What the submit had as `meta`.')),
  },
  { description: 'A job as it is now.' },
)
export type JobInfo = Static<typeof JobInfo>

export const NextJobsQuery = Type.Object(
  {
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: 'At most so many. Default 50.' })),
  },
  strict,
)
export type NextJobsQuery = Static<typeof NextJobsQuery>

export const QueueStats = Type.Object(
  {
    maxConcurrency: Type.Integer({ description: 'How many run at the same time.' }),
    queued: Type.Integer({ description: 'Jobs that wait for their turn.' }),
    running: Type.Integer({ description: 'Jobs at work.' }),
    parked: Type.Integer({ description: 'Jobs that wait for a result or an answer.' }),
    paused: Flag('Whether the tokens of this day are used up.'),
    sessionTokenLimit: Type.Optional(Count('Tokens that one run may take; absent: no limit.')),
    dailyTokenLimit: Type.Optional(Count('Tokens that all jobs may take per UTC day; absent: no limit.')),
    dailyTokensUsed: Count('Tokens of all jobs since UTC midnight, whoever asks.'),
    resumesAt: Type.Optional(Moment('The next UTC midnight, while it is paused')),
  },
  { description: 'The queue: its limits, and how many jobs that the caller may see are where.' },
)
export type QueueStats = Static<typeof QueueStats>

export const JobProgress = Type.Object(
  {
    kind: StringEnum('assistant_text', 'tool_use', 'permission_requested', 'permission_resolved'),
    preview: Text('One line of at most 140 characters.'),
    request: Type.Optional(described(PermissionRequest, 'With `permission_requested`: what is asked.')),
  },
  { description: 'What a running job is doing.' },
)
export type JobProgress = Static<typeof JobProgress>

export const JobEventType = described(
  StringEnum(
    'job_submitted',
    'job_started',
    'job_progress',
    'job_parked',
    'job_resumed',
    'job_retrying',
    'job_completed',
  ),
  'What happened to a job. `job_submitted` is not told to webhooks; `job_completed` comes once, and last.',
)
export type JobEventType = Static<typeof JobEventType>

export const JobEvent = Type.Object(
  {
    id: Text('Unique per event, and the same in every attempt to deliver it.'),
    type: JobEventType,
    job: described(JobInfo, 'As the event left it.'),
    ts: Moment('When it happened'),
    progress: Type.Optional(described(JobProgress, 'With `job_progress`.')),
    executionId: Type.Optional(Text('With `job_parked` and `job_resumed`, when an execution is waited for.')),
  },
  { description: 'Something that happened to a job; the body of a delivery to its webhook.' },
)
export type JobEvent = Static<typeof JobEvent>

export const QueueFrame = Type.Union(
  [
    Frame('queue_attached', 'The first frame. Nothing is replayed: list the jobs now.', {
      protocolVersion,
      stats: QueueStats,
    }),
    Frame('job_event', 'Something happened to a job.', { event: JobEvent }),
    Frame('queue_stats', 'The counts have changed.', { stats: QueueStats }),
  ],
  { description: 'What the gateway tells of its queue.' },
)
export type QueueFrame = Static<typeof QueueFrame>

export const WebhookDelivery = Type.Object(
  {
    id: Text('Of the event.'),
    type: Text('Of the event.'),
    channel: Type.Optional(Text('Of a notification: the channel that it went to.')),
    attempt: Type.Integer({ description: 'From 1; 0 when it was given up before it was tried.' }),
    at: Moment('When it was tried'),
    status: Type.Optional(Type.Integer({ description: 'HTTP status of the answer, when there was one.' })),
    error: Type.Optional(
      Text(
        '`blocked`, `dns`, `connect`, `timeout`, `status`, `unwritten`; `stopped` and `dropped` at shutdown, `dropped` also to make room.',
      ),
    ),
    durationMs: Duration('How long it took'),
  },
  { description: 'One attempt to deliver an event to a webhook.' },
)
export type WebhookDelivery = Static<typeof WebhookDelivery>

export const JobParams = Type.Object({ id: Text('Of the job.') })

export const ListJobsQuery = Type.Object(
  {
    ...pageQuery,
    status: Type.Optional(described(JobStatus, 'Only jobs with this status.')),
    profile: Type.Optional(Text('Only jobs of this profile.')),
  },
  strict,
)
export type ListJobsQuery = Static<typeof ListJobsQuery>
