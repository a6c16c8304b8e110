import { type TSchema, Type } from '@sinclair/typebox'
import { SessionCommand } from '../../schemas/commands.js'
import { Alive, NotReady, Ready } from '../../schemas/health.js'
import { CreateSessionRequest } from '../../schemas/sessions.js'
import type { ErrorCode } from '../errors.js'
import {
  ADMISSION,
  BODY,
  ELSEWHERE,
  IDEMPOTENT,
  JOB,
  KNOWN_PROFILE,
  MANAGE,
  PROFILE_RULES,
  READMISSION,
  SESSION,
  STATE,
  STORES,
  UNSERVED,
} from './codes.js'
import * as examples from './examples.js'
import { INBOX_OPERATIONS } from './inbox-operations.js'
import { USAGE_OPERATIONS } from './usage-operations.js'

/** What a route needs that not every gateway has. */
export type Feature = 'queue' | 'profileStore' | 'health' | 'metrics' | 'webPush'

/** The words for one route; its shapes are those that it checks with. */
export interface Operation {
  id: string
  /** Default: that of what the path begins with. */
  tag?: keyof typeof TAGS
  summary: string
  description: string
  /** Absent from gateways without it. Default: what all that the path begins with needs. */
  needs?: Feature
  /** What it can refuse, beyond what every route can. */
  codes: readonly ErrorCode[]
  /** Examples of the body, and of the answer. */
  body?: unknown
  answer?: unknown
  /** Of a route with several answers, by status. */
  answers?: Record<string, unknown>
  /** The stream that it answers to `Accept: text/event-stream`, and the frames in it. */
  stream?: { frames: 'ServerFrame' | 'QueueFrame' | 'NotificationsFrame'; example: string }
  /** Shapes of the route that it does not check with itself. */
  shapes?: { path?: string; params?: TSchema; body?: TSchema; response?: Record<string, TSchema> }
  /** Answers the bytes of a file. */
  download?: true
  /** Answers a table, as here, to `Accept: text/csv`. */
  csv?: string
  /** Answers text, as here. */
  text?: string
  /** Lies beside `basePath`. */
  isOutside?: true
  /** Asks nobody who they are, and holds none of the rules of `basePath`. */
  isOpen?: true
}

export const TAGS = {
  sessions: 'Agent sessions: create, watch, steer, answer, end.',
  files: 'What a session delivered.',
  executions: 'Results of work that was done elsewhere.',
  profiles: 'The identities that sessions run as.',
  jobs: 'Unattended runs, and the queue that they wait in.',
  notifications: 'What sessions need people for.',
  usage: 'What was used, as daily sums.',
  operations: 'For who operates the gateway: probes and counters.',
} as const

/** By the first part of a path: whereof it is, and what all of it needs. */
export const PARTS: Readonly<Record<string, { tag: keyof typeof TAGS; needs?: Feature }>> = {
  sessions: { tag: 'sessions' },
  'sdk-sessions': { tag: 'sessions' },
  directories: { tag: 'sessions' },
  executions: { tag: 'executions' },
  profiles: { tag: 'profiles' },
  jobs: { tag: 'jobs', needs: 'queue' },
  queue: { tag: 'jobs', needs: 'queue' },
  inbox: { tag: 'notifications' },
  notifications: { tag: 'notifications' },
  usage: { tag: 'usage' },
  healthz: { tag: 'operations', needs: 'health' },
  readyz: { tag: 'operations', needs: 'health' },
  metrics: { tag: 'operations', needs: 'metrics' },
}

/** Every documented route, by method and path. */
export const OPERATIONS: Record<string, Operation> = {
  ...INBOX_OPERATIONS,
  ...USAGE_OPERATIONS,
  'GET /sessions': {
    id: 'listSessions',
    summary: 'List sessions',
    description:
      'Sessions that the caller may see, newest first, ended ones included until they are removed. The next page is in `Link`.',
    codes: ['SG_ERR_VALIDATION', 'SG_ERR_PROFILE_UNKNOWN', ...STORES],
    answer: [examples.session],
  },
  'POST /sessions': {
    id: 'createSession',
    summary: 'Create a session',
    description: 'Starts an agent in `cwd`, as `profile`, with `prompt` as its first message when there is one.',
    codes: [
      ...BODY,
      ...ADMISSION,
      ...IDEMPOTENT,
      ...STORES,
      'SG_ERR_TOO_MANY',
      'SG_ERR_ENGINE_START',
      'SG_ERR_SESSION_ENDED',
    ],
    shapes: { body: CreateSessionRequest },
    body: examples.sessionRequest,
    answer: examples.session,
  },
  'GET /sessions/:id': {
    id: 'getSession',
    summary: 'Get a session',
    description: 'How the session is now. A parked one answers from what was stored.',
    codes: [...SESSION, ...STORES],
    answer: examples.session,
  },
  'PATCH /sessions/:id': {
    id: 'renameSession',
    summary: 'Rename a session',
    description: 'Sets the title; `null` restores the one that is derived.',
    codes: [...BODY, ...SESSION, ...STORES],
    body: { title: 'The report' },
    answer: { ...examples.session, title: 'The report' },
  },
  'DELETE /sessions/:id': {
    id: 'deleteSession',
    summary: 'End and remove a session',
    description: 'Closes the session, also a parked one, and takes it off the list. Answers what it was in the end.',
    codes: [...BODY, ...SESSION, ...STORES],
    answer: { ...examples.session, status: 'closed', pendingPermissions: 0 },
  },
  'GET /sessions/:id/events': {
    id: 'listSessionEvents',
    summary: 'Read or follow the log of a session',
    description:
      'With `Accept: text/event-stream` a stream that begins with an `attached` frame, replays what comes after `afterSeq` and goes on live; its ids are `<epoch>:<seq>` and `Last-Event-ID` continues it. Otherwise a page of events. 204: the session has ended and everything was told.',
    codes: [...SESSION, 'SG_ERR_VALIDATION', 'SG_ERR_TOO_MANY', 'SG_ERR_TOO_MANY_CONNECTIONS', ...STORES],
    answer: examples.eventsPage,
    stream: { frames: 'ServerFrame', example: examples.eventStream },
  },
  'POST /sessions/:id/commands': {
    id: 'sendCommand',
    summary: 'Send a command to a session',
    description: 'One command as over the socket. A command with an `id` that was carried out before is not run twice.',
    codes: [
      ...BODY,
      ...SESSION,
      ...STATE,
      ...READMISSION,
      ...STORES,
      'SG_ERR_UNKNOWN_COMMAND',
      'SG_ERR_PERMISSION_NOT_FOUND',
      'SG_ERR_EXECUTION_NOT_FOUND',
      'SG_ERR_TOO_MANY',
    ],
    shapes: { body: SessionCommand },
    body: examples.commands.user_message,
    answer: { ok: true },
  },
  'POST /sessions/:id/permissions/:requestId': {
    id: 'resolvePermission',
    summary: 'Answer a permission request',
    description: 'Allows or denies what the agent asked for. The first answer wins; every other one is a 404.',
    codes: [
      ...BODY,
      ...SESSION,
      ...IDEMPOTENT,
      ...STORES,
      ...STATE,
      'SG_ERR_PERMISSION_NOT_FOUND',
      'SG_ERR_UNSUPPORTED',
    ],
    body: examples.permissionAnswer,
    answer: { resolved: true },
  },
  'GET /sessions/:id/files': {
    id: 'listSessionFiles',
    tag: 'files',
    summary: 'List the files of a session',
    description: 'The scratch filesystem of a provider session; other sessions have none.',
    codes: [...SESSION, ...STORES, 'SG_ERR_VALIDATION', 'SG_ERR_FILES_NOT_FOUND', 'SG_ERR_ENGINE_FAILED'],
    answer: examples.files,
  },
  'GET /sessions/:id/files/*': {
    id: 'downloadSessionFile',
    tag: 'files',
    summary: 'Download a file of a session',
    description: 'The bytes, as an attachment. Slashes in the path may stand as they are.',
    codes: [...SESSION, ...STORES, 'SG_ERR_FILES_NOT_FOUND', 'SG_ERR_FILE_NOT_FOUND', 'SG_ERR_ENGINE_FAILED'],
    download: true,
    shapes: { path: '/sessions/:id/files/:path', params: Type.Object({ id: Type.String(), path: Type.String() }) },
  },
  'GET /profiles': {
    id: 'listProfiles',
    summary: 'List profiles',
    description: 'Profiles that the caller may use, and whether it may create further ones.',
    codes: ['SG_ERR_VALIDATION'],
    answer: { profiles: [examples.profile], canManage: false },
  },
  'GET /profiles/:name': {
    id: 'getProfile',
    summary: 'Get a profile',
    description: 'The profile and what lies in its config directory now, by name and never by value.',
    codes: ['SG_ERR_PROFILE_NOT_FOUND', 'SG_ERR_PROFILE_FORBIDDEN', 'SG_ERR_NOT_FOUND'],
    answer: examples.profileDetail,
  },
  'POST /profiles': {
    id: 'createProfile',
    summary: 'Create a managed profile',
    description: 'Checked like a profile that the operator declares. Needs `canManageProfiles`.',
    needs: 'profileStore',
    codes: [...BODY, ...MANAGE, ...PROFILE_RULES, ...IDEMPOTENT, ...STORES, 'SG_ERR_PROFILE_EXISTS'],
    body: examples.profileRequest,
    answer: { ...examples.profile, managed: true },
  },
  'PATCH /profiles/:name': {
    id: 'updateProfile',
    summary: 'Change a managed profile',
    description: '`null` clears a field, an object replaces that object, what is left out stays.',
    needs: 'profileStore',
    codes: [...BODY, ...MANAGE, ...PROFILE_RULES, ...STORES, ...KNOWN_PROFILE],
    body: { description: null, defaults: { permissionMode: 'dontAsk' } },
    answer: { ...examples.profile, managed: true },
  },
  'DELETE /profiles/:name': {
    id: 'deleteProfile',
    summary: 'Delete a managed profile',
    description: 'Sessions and jobs that were to run as it fail with that reason.',
    needs: 'profileStore',
    codes: [...BODY, ...MANAGE, ...STORES, ...KNOWN_PROFILE],
  },
  'POST /executions/:executionId/result': {
    id: 'submitExecutionResult',
    summary: 'Deliver the result of a deferred execution',
    description: 'Wakes the session that waits for it. `applied: false`: another result, or the deadline, came first.',
    codes: [...BODY, ...STORES, ...ELSEWHERE, 'SG_ERR_EXECUTION_NOT_FOUND', 'SG_ERR_NOT_FOUND'],
    body: examples.executionResult,
    answer: { applied: true, sessionId: examples.session.id },
  },
  'GET /sdk-sessions': {
    id: 'listSdkSessions',
    summary: 'List sessions that agents keep on disk',
    description: 'Newest first; `sessionId` is what `resume` of a new session takes.',
    codes: [
      'SG_ERR_VALIDATION',
      'SG_ERR_CWD_FORBIDDEN',
      'SG_ERR_CWD_INVALID',
      'SG_ERR_PROFILE_FORBIDDEN',
      'SG_ERR_PROFILE_UNKNOWN',
    ],
    answer: [examples.sdkSession],
  },
  'DELETE /sdk-sessions/:sessionId': {
    id: 'deleteSdkSession',
    summary: 'Delete a session that an agent keeps on disk',
    description:
      "Deletes the agent's own record of it, with all that was said; `profile` (needed where there are several) and `dir` as it is listed. Only agents that can: claude, and those that advertise `session/delete`. Deleting a session of the gateway never does this.",
    codes: [
      ...BODY,
      'SG_ERR_CWD_FORBIDDEN',
      'SG_ERR_CWD_INVALID',
      'SG_ERR_PROFILE_REQUIRED',
      'SG_ERR_PROFILE_FORBIDDEN',
      'SG_ERR_PROFILE_UNKNOWN',
      'SG_ERR_UNSUPPORTED',
      'SG_ERR_SDK_SESSION_NOT_FOUND',
      'SG_ERR_SDK_SESSION_IN_USE',
      'SG_ERR_ENGINE_REFUSED',
      'SG_ERR_ENGINE_START',
    ],
  },
  'GET /jobs': {
    id: 'listJobs',
    summary: 'List jobs',
    description: 'Jobs that the caller may see, newest first. The next page is in `Link`.',
    codes: ['SG_ERR_VALIDATION', ...STORES],
    answer: [examples.job],
  },
  'POST /jobs': {
    id: 'submitJob',
    summary: 'Submit a job',
    description: 'A session that runs unattended when its turn comes, with retries, limits and a webhook.',
    codes: [...BODY, ...ADMISSION, ...IDEMPOTENT, ...STORES, 'SG_ERR_TOO_MANY'],
    body: examples.jobRequest,
    answer: { ...examples.job, status: 'queued' },
  },
  'GET /jobs/:id': {
    id: 'getJob',
    summary: 'Get a job',
    description: 'How the job is now.',
    codes: [...JOB, ...STORES],
    answer: examples.job,
  },
  'DELETE /jobs/:id': {
    id: 'cancelJob',
    summary: 'Cancel a job',
    description: 'Ends the job wherever it is. One that is over is answered as it is.',
    codes: [...BODY, ...JOB, ...STORES],
    answer: { ...examples.job, status: 'canceled' },
  },
  'GET /jobs/:id/deliveries': {
    id: 'listJobDeliveries',
    summary: "List the deliveries to a job's webhook",
    description: 'The latest attempts, newest first.',
    codes: ['SG_ERR_VALIDATION', ...JOB, ...STORES],
    answer: [examples.delivery],
  },
  'GET /queue': {
    id: 'getQueue',
    summary: 'Get the state of the queue',
    description: 'Limits and counts; the counts are of jobs that the caller may see.',
    codes: [...STORES],
    answer: examples.queueStats,
  },
  'GET /queue/next': {
    id: 'listNextJobs',
    summary: 'List what runs next',
    description:
      'The first of the queued jobs that the caller may see, in the order in which they begin; those that wait for their time come last. At most about 1 MiB of them.',
    codes: ['SG_ERR_VALIDATION', ...STORES],
    answer: [{ ...examples.job, status: 'queued' }],
  },
  'GET /queue/events': {
    id: 'followQueue',
    summary: 'Follow the queue',
    description:
      'A stream that begins with `queue_attached` and goes on with what happens to jobs that the caller may see. Nothing is replayed: list the jobs after each connect.',
    codes: ['SG_ERR_TOO_MANY_CONNECTIONS', ...STORES],
    stream: { frames: 'QueueFrame', example: examples.queueStream },
  },
  'GET /notifications': {
    id: 'listNotifications',
    summary: 'List notifications',
    description:
      'What sessions that the caller may see were in need of, or came to: oldest first after the notification `after`, without it the newest page. After an id that is not known any more, or of another gateway, comes everything that is kept. More of it is in `Link`.',
    codes: ['SG_ERR_VALIDATION', ...STORES],
    answer: [examples.notification],
  },
  'GET /notifications/:id/deliveries': {
    id: 'listNotificationDeliveries',
    summary: 'List the deliveries of a notification',
    description:
      'The latest attempts to deliver it, its reminders and how it was settled, newest first, each with its channel.',
    codes: ['SG_ERR_VALIDATION', 'SG_ERR_NOTIFICATION_NOT_FOUND', 'SG_ERR_NOT_FOUND', ...STORES],
    answer: [examples.notificationDelivery],
  },
  'GET /notifications/vapid-key': {
    id: 'getVapidKey',
    summary: 'Get the key for web push',
    description: 'What a page hands to `pushManager.subscribe` as `applicationServerKey`.',
    needs: 'webPush',
    codes: ['SG_ERR_VALIDATION'],
    answer: { publicKey: examples.vapidKey },
  },
  'POST /notifications/subscriptions': {
    id: 'subscribe',
    summary: 'Subscribe a browser',
    description:
      "Takes what `PushSubscription.toJSON()` gives. Subscribed again, it is renewed, and is the caller's from then on.",
    needs: 'webPush',
    codes: [...BODY, ...STORES, 'SG_ERR_SUBSCRIPTION_EXISTS', 'SG_ERR_TOO_MANY'],
    body: examples.subscriptionRequest,
    answer: examples.subscription,
  },
  'DELETE /notifications/subscriptions': {
    id: 'unsubscribe',
    summary: 'Forget a browser',
    description: 'By the endpoint that it was subscribed with; only who subscribed it can.',
    needs: 'webPush',
    codes: [...BODY, ...STORES, 'SG_ERR_SUBSCRIPTION_NOT_FOUND', 'SG_ERR_NOT_FOUND'],
    body: { endpoint: examples.subscriptionRequest.endpoint },
    answer: { deleted: true },
  },
  'GET /healthz': {
    id: 'getHealth',
    summary: 'Ask whether the process is alive',
    description: 'For a liveness probe. Beside the base path; of the daemon, and of hosts that turn it on.',
    ...{ isOutside: true, isOpen: true },
    codes: UNSERVED,
    shapes: { response: { 200: Alive } },
    answer: { status: 'ok' },
  },
  'GET /readyz': {
    id: 'getReadiness',
    summary: 'Ask whether it takes work',
    description:
      'For a readiness probe: 200 while it listens, its storage takes writes and it is not about to stop; otherwise 503, with the reason. Beside the base path; of the daemon, and of hosts that turn it on.',
    ...{ isOutside: true, isOpen: true },
    codes: UNSERVED,
    shapes: { response: { 200: Ready, 503: NotReady } },
    answers: { 200: { status: 'ready' }, 503: { status: 'draining' } },
  },
  'GET /metrics': {
    id: 'getMetrics',
    summary: 'Read the counters',
    description:
      'In the text format of Prometheus, for callers without limits. Beside the base path; of the daemon, and of hosts that turn it on.',
    isOutside: true,
    codes: ['SG_ERR_METRICS_FORBIDDEN'],
    text: '# HELP session_gateway_streams Open WebSockets and event streams.\n# TYPE session_gateway_streams gauge\nsession_gateway_streams 2\n',
  },
}
