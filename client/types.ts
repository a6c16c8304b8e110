/** The shapes on the wire, under one roof. They are derived from the gateway's own schemas. */
export type { SessionCommand, WhenBusy } from '../schemas/commands.js'
export type { ListDirectoriesQuery, ListDirectoriesResponse } from '../schemas/directories.js'
export type { Problem } from '../schemas/errors.js'
export type { Message, MessageBlock, PlanEntry, SessionEvent, TurnSubtype } from '../schemas/events.js'
export type {
  ExecutionOutput,
  PendingExecution,
  SubmitExecutionResultRequest,
  SubmitExecutionResultResponse,
} from '../schemas/executions.js'
export type { AttachedFrame, ServerFrame } from '../schemas/frames.js'
export type {
  CreateJobRequest,
  JobEvent,
  JobInfo,
  JobStatus,
  ListJobsQuery,
  NextJobsQuery,
  QueueFrame,
  QueueStats,
  WebhookDelivery,
} from '../schemas/jobs.js'
export type {
  AnswerInboxResponse,
  CreateSubscriptionRequest,
  InboxAnswerResult,
  InboxCount,
  InboxItem,
  ListInboxQuery,
  ListNotificationsQuery,
  NotificationsFrame,
  PushMessage,
  PushSubscriptionInfo,
  SessionNotification,
  VapidKeyResponse,
} from '../schemas/notifications.js'
export type { PermissionMode, PermissionRequest, ResolvePermissionRequest } from '../schemas/permissions.js'
export type {
  CreateProfileRequest,
  GetProfileResponse,
  ListProfilesResponse,
  ProfileInfo,
  UpdateProfileRequest,
} from '../schemas/profiles.js'
export type { DeleteSdkSessionQuery, ListSdkSessionsQuery, SdkSession } from '../schemas/sdk-sessions.js'
export type {
  CreateSessionRequest,
  ListSessionsQuery,
  SessionFileInfo,
  SessionInfo,
  SessionStatus,
  TokenUsage,
} from '../schemas/sessions.js'
export type { UsageGroup, UsageQuery, UsageReport, UsageRow } from '../schemas/usage.js'
