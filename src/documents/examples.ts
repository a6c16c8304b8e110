import type { SessionCommand } from '../../schemas/commands.js'
import type { SessionEvent } from '../../schemas/events.js'
import type { ServerFrame } from '../../schemas/frames.js'
import type { CreateJobRequest, JobInfo, QueueFrame, QueueStats, WebhookDelivery } from '../../schemas/jobs.js'
import type {
  CreateSubscriptionRequest,
  InboxItem,
  NotificationsFrame,
  PushSubscriptionInfo,
  SessionNotification,
} from '../../schemas/notifications.js'
import type { GetProfileResponse, ProfileInfo } from '../../schemas/profiles.js'
import type { SdkSession } from '../../schemas/sdk-sessions.js'
import type { CreateSessionRequest, SessionInfo } from '../../schemas/sessions.js'
import type { UsageReport } from '../../schemas/usage.js'
import { usageCsv } from '../usage/csv.js'

/*
 * What the documents show. Each is valid by its schema, which a test checks.
 */

const AT = 1_767_225_600_000
const SESSION_ID = '6f1c2d3e-4b5a-4c6d-8e7f-9a0b1c2d3e4f'
const JOB_ID = '0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d'
const REQUEST_ID = '3c2b1a09-8f7e-4d6c-9b5a-4f3e2d1c0b9a'
const EXECUTION_ID = '9e8d7c6b-5a49-4837-a625-1403f2e1d0c9'

const usage = { inputTokens: 1_200, outputTokens: 340, cacheCreationTokens: 0, cacheReadTokens: 800 }

export const sessionRequest: CreateSessionRequest = {
  cwd: '/srv/projects/site',
  profile: 'assistant',
  prompt: 'Please write a report.',
  permissionMode: 'default',
  meta: { ticket: 7 },
}

export const session: SessionInfo = {
  id: SESSION_ID,
  status: 'awaiting_approval',
  profile: 'assistant',
  engine: 'provider',
  title: 'Please write a report.',
  cwd: '/srv/projects/site',
  model: 'llama3',
  permissionMode: 'default',
  createdAt: AT,
  lastActivityAt: AT + 2_000,
  lastSeq: 12,
  pendingPermissions: 1,
  attachedClients: 1,
  numTurns: 0,
  cost: 0,
  usage,
  meta: { ticket: 7 },
}

const event: SessionEvent = {
  seq: 12,
  ts: AT + 2_000,
  type: 'permission_requested',
  request: {
    id: REQUEST_ID,
    toolName: 'fs_write',
    toolUseId: 'call_1',
    input: { path: 'report.md', content: '# Report' },
    expiresAt: AT + 302_000,
  },
}

export const notification: SessionNotification = {
  id: 'b64e1f2a-5c3d-4e6f-8a7b-0c9d8e7f6a5b:000000000042',
  type: 'permission_requested',
  sessionId: SESSION_ID,
  seq: 12,
  ts: AT + 2_000,
  preview: 'fs_write asks to run',
  session,
  request: { id: REQUEST_ID, toolName: 'fs_write', toolUseId: 'call_1', input: { path: 'report.md' } },
}

export const inboxCount = { permissions: 1, questions: 0 }

export const usageReport: UsageReport = {
  from: '2026-01-01',
  to: '2026-01-30',
  by: ['day', 'profile'],
  rows: [
    {
      ...{ day: '2026-01-01', profile: 'assistant', costUsd: 1.24 },
      ...{ turns: 12, turnsSucceeded: 10, turnsFailed: 1, turnsInterrupted: 1, ...usage },
      ...{ approvalsAsked: 5, approvalsAnswered: 4, approvalsExpired: 1 },
      ...{ approvalWaits: 5, approvalWaitMs: 420_000, approvalWaitMaxMs: 300_000, jobs: 2 },
    },
  ],
}
export const usageTable = usageCsv(usageReport)

export const inboxItem: InboxItem = {
  kind: 'permission',
  request: { id: REQUEST_ID, toolName: 'fs_write', toolUseId: 'call_1', input: { path: 'report.md' } },
  session: { id: SESSION_ID, title: 'Please write a report.', profile: 'assistant', cwd: '/srv/projects/site' },
  since: AT + 2_000,
  seq: 12,
}

export const inboxAnswers = { answers: [{ sessionId: SESSION_ID, requestId: REQUEST_ID, behavior: 'allow' }] }

export const inboxResults = {
  results: [
    { sessionId: SESSION_ID, requestId: REQUEST_ID, resolved: true },
    {
      sessionId: SESSION_ID,
      requestId: EXECUTION_ID,
      resolved: false,
      code: 'SG_ERR_PERMISSION_NOT_FOUND',
      detail: 'There is no such pending permission request.',
    },
  ],
}

export const notificationFrames: { [T in NotificationsFrame['type']]: Extract<NotificationsFrame, { type: T }> } = {
  notifications_attached: {
    type: 'notifications_attached',
    protocolVersion: 1,
    after: 'b64e1f2a-5c3d-4e6f-8a7b-0c9d8e7f6a5b:000000000041',
    truncated: false,
    inbox: inboxCount,
  },
  notification: { type: 'notification', notification },
  notifications_synced: {
    type: 'notifications_synced',
    after: 'b64e1f2a-5c3d-4e6f-8a7b-0c9d8e7f6a5b:000000000042',
  },
  inbox_changed: { type: 'inbox_changed', inbox: inboxCount },
}

export const eventsPage = { events: [event], nextAfterSeq: 12, lastSeq: 12, epoch: 'b64e', truncated: false }

export const serverFrames: { [T in ServerFrame['type']]: Extract<ServerFrame, { type: T }> } = {
  attached: {
    type: 'attached',
    protocolVersion: 1,
    session,
    epoch: 'b64e',
    replayingFrom: 0,
    oldestSeq: 1,
    truncated: false,
    pendingPermissions: [],
    pendingExecutions: [],
  },
  event: { type: 'event', event },
  synced: { type: 'synced', seq: 12 },
  ack: { type: 'ack', id: 'c1' },
  command_error: { type: 'command_error', id: 'c1', code: 'SG_ERR_SESSION_PARKED', message: 'The session is parked.' },
  tool_call_request: { type: 'tool_call_request', executionId: EXECUTION_ID, toolName: 'look_up', input: { id: 7 } },
  tool_call_canceled: { type: 'tool_call_canceled', executionId: EXECUTION_ID, reason: 'interrupted' },
  pong: { type: 'pong' },
}

export const commands: { [T in SessionCommand['type']]: Extract<SessionCommand, { type: T }> } = {
  user_message: { type: 'user_message', id: 'c1', text: 'And a summary, please.' },
  permission_decision: { type: 'permission_decision', requestId: REQUEST_ID, behavior: 'allow' },
  interrupt: { type: 'interrupt' },
  set_permission_mode: { type: 'set_permission_mode', mode: 'dontAsk' },
  set_model: { type: 'set_model', model: 'llama3' },
  tool_call_result: { type: 'tool_call_result', executionId: EXECUTION_ID, output: { type: 'text', value: 'found' } },
  tool_call_error: { type: 'tool_call_error', executionId: EXECUTION_ID, reason: 'failed', error: 'no such row' },
  close: { type: 'close' },
  ping: { type: 'ping' },
}

export const permissionAnswer = { behavior: 'allow' }

export const files = { files: [{ path: 'report.md', bytes: 2_048, modifiedAt: AT + 9_000 }] }

export const profile: ProfileInfo = {
  name: 'assistant',
  engine: 'provider',
  provider: { id: 'openai-compatible', model: 'llama3', baseUrl: 'http://127.0.0.1:11434/v1' },
  description: 'A local model.',
}

export const profileRequest = { ...profile, session: { capabilities: ['deliver_file'] } }

export const profileDetail: GetProfileResponse = {
  profile,
  config: { hasUserMemory: false, skills: [], agents: [], commands: [] },
}

export const executionResult = { status: 'ok', output: { type: 'json', value: { approved: true } } }

export const sdkSession: SdkSession = {
  sessionId: '2b7c1f6e-0d9a-4e8b-b3c5-7a6d5e4f3c2b',
  summary: 'Fix the build',
  lastModified: AT,
  cwd: '/srv/projects/site',
  profile: 'work',
  agent: 'claude',
}

export const jobRequest: CreateJobRequest = {
  session: { cwd: '/srv/projects/site', profile: 'assistant', prompt: 'Please write a report.' },
  attempts: 3,
  webhook: { url: 'https://hooks.example.org/jobs', progress: 'completion' },
}

export const job: JobInfo = {
  id: JOB_ID,
  status: 'running',
  profile: 'assistant',
  cwd: '/srv/projects/site',
  prompt: 'Please write a report.',
  sessionId: SESSION_ID,
  createdAt: AT,
  startedAt: AT + 100,
  attempt: 1,
  maxAttempts: 3,
  usage: { tokens: 2_340, ...usage, cost: 0, numTurns: 0 },
  webhook: { url: 'https://hooks.example.org/jobs', progress: 'completion' },
}

export const queueStats: QueueStats = {
  maxConcurrency: 2,
  queued: 3,
  running: 1,
  parked: 0,
  paused: false,
  dailyTokensUsed: 2_340,
}

export const queueFrames: { [T in QueueFrame['type']]: Extract<QueueFrame, { type: T }> } = {
  queue_attached: { type: 'queue_attached', protocolVersion: 1, stats: queueStats },
  job_event: { type: 'job_event', event: { id: `${JOB_ID}:2`, type: 'job_started', job, ts: AT + 100 } },
  queue_stats: { type: 'queue_stats', stats: queueStats },
}

export const delivery: WebhookDelivery = {
  id: `${JOB_ID}:2`,
  type: 'job_started',
  attempt: 1,
  at: AT + 120,
  status: 204,
  durationMs: 35,
}

export const problem = {
  type: 'about:blank',
  title: 'Not Found',
  status: 404,
  detail: 'There is no such session.',
  instance: '7c0f1d52-3f0e-4c7b-9a53-6f2b8d1e4a90',
  code: 'SG_ERR_SESSION_NOT_FOUND',
  error: 'There is no such session.',
}

const line = (frame: unknown, id?: string) =>
  `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(frame)}\n\n`
export const eventStream = `${line(serverFrames.attached)}${line(serverFrames.event, 'b64e:12')}${line(serverFrames.synced)}`
export const queueStream = `${line(queueFrames.queue_attached)}${line(queueFrames.job_event)}`
export const notificationStream = `${line(notificationFrames.notifications_attached)}${line(notificationFrames.notification, notification.id)}${line(notificationFrames.inbox_changed)}`

export const notificationDelivery: WebhookDelivery = {
  id: `${SESSION_ID}:12`,
  type: 'permission_requested',
  channel: 'ntfy',
  attempt: 1,
  at: AT + 2_010,
  status: 200,
  durationMs: 48,
}

export const vapidKey = 'BB4YUy_UdUwC8wQdnHXOszuD_9gax85P6ILMscmLxYlupGwxHE4v9A3ZajZT5uRURdMt_khuztdcepDGoYiBwKM'

export const subscriptionRequest: CreateSubscriptionRequest = {
  endpoint: 'https://push.example.com/send/8f0c1d2e',
  keys: {
    p256dh: 'BHE1-k_ZOgnc6Yu_aBtL_PUOfA1jVOYq-wv_KjQpYXhl7UwfAt25Aj7lalV-UV1qncZsEfIglg3llDNN9Yh3ZyQ',
    auth: 'AAECAwQFBgcICQoLDA0ODw',
  },
}

export const subscription: PushSubscriptionInfo = {
  id: 'd3a5b7c9-1e2f-4a6b-8c0d-2e4f6a8b0c1d',
  createdAt: AT,
  expiresAt: AT + 60 * 24 * 60 * 60 * 1000,
}
