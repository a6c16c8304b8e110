import type { Gateway } from './gateway.js'
import type { Principal } from './principal.js'

declare module 'fastify' {
  interface FastifyInstance {
    /** The gateway of this instance; undefined when several are registered. */
    readonly gateway: Gateway
    /** Every gateway of this instance, by `basePath`. */
    readonly gateways: Record<string, Gateway>
  }
  interface FastifyRequest {
    /** Who is asking; set on every route of a gateway. */
    principal: Principal
  }
}

export { type GatewayPluginOptions, gatewayPlugin, gatewayPlugin as default } from '../plugins/gateway.js'
export type * from '../schemas/index.js'
export type { SignInOptions } from './console/sign-ins.js'
export type { KeptSignIn, SignInStore } from './console/store.js'
export { type SignInStoreCase, signInStoreConformance } from './console/store-conformance.js'
export type { AgentDeclaration } from './engines/cli/agent-table.js'
export type { CarriedFiles } from './engines/cli/carry/carried-files.js'
export type { CredentialProbe } from './engines/cli/credentials.js'
export {
  createProviderRunner,
  type HostMcpServer,
  type ModelPrice,
  type ProviderEngineOptions,
  providerEngine,
  type ScratchLimits,
  type WebSearch,
  type WebSearchResult,
} from './engines/provider/index.js'
export type {
  BridgedCall,
  ClientBridge,
  CreateEngineRunner,
  CutOffTurn,
  DeferredExecution,
  DeferredTool,
  EngineRunnerContext,
  ExecutionResult,
  PermissionAsk,
  PermissionDecision,
  Runner,
  RunnerCapabilities,
  RunnerEvent,
  RunnerHost,
  RunnerSnapshot,
  SessionFiles,
  SessionRunnerConfig,
} from './engines/runner.js'
export { ERROR_CODES, type ErrorCode, type FieldError, GatewayError } from './errors.js'
export type { ExecutionDispatch } from './executions/dispatch.js'
export type { Executions } from './executions/executions.js'
export { createGateway, type Gateway } from './gateway.js'
export type {
  IdempotencyStore,
  KeptKey,
  KeyState,
  Made,
  StoredAnswer,
} from './idempotency/store.js'
export { type IdempotencyStoreCase, idempotencyStoreConformance } from './idempotency/store-conformance.js'
export {
  type ClaimTerms,
  type DailyCharge,
  type Expected,
  type JobCount,
  type JobFilter,
  type JobPatch,
  type JobPlace,
  type JobRecord,
  type QueueAdapter,
  selectJobs,
} from './jobs/adapter.js'
export { type QueueAdapterCase, queueAdapterConformance } from './jobs/adapter-conformance.js'
export type { AttemptNotes, JobNotes, StoredJob } from './jobs/job.js'
export type { QueueEvents } from './jobs/job-events.js'
export type { QueueServerOptions } from './jobs/options.js'
export type { JobQueue } from './jobs/queue.js'
export type { Clock, Timer } from './lib/clock.js'
export type { Logger } from './lib/logger.js'
export type { AnswerLinkLimits } from './notifications/answers/answer-links.js'
export type { ChannelOptions } from './notifications/channels/channels.js'
export type { ChannelStore, KeptSubscription } from './notifications/channels/store.js'
export { type ChannelStoreCase, channelStoreConformance } from './notifications/channels/store-conformance.js'
export type { NotificationRetention } from './notifications/feed.js'
export type { ReminderOptions } from './notifications/reminders.js'
export type {
  KeptNotification,
  KeptTelling,
  NotificationPage,
  NotificationRange,
  NotificationStore,
} from './notifications/store.js'
export { type NotificationStoreCase, notificationStoreConformance } from './notifications/store-conformance.js'
export type {
  Authenticate,
  DeferredToolOptions,
  ExecutionOptions,
  NotificationOptions,
  PrincipalClaims,
  WorkerServerOptions,
} from './options.js'
export type { Principal } from './principal.js'
export type { ListSdkSessions } from './profiles/cli-profiles.js'
export type { ManagedProfileGrants } from './profiles/provider-grants.js'
export type { ProfileStore } from './profiles/store.js'
export { type ProfileStoreCase, profileStoreConformance } from './profiles/store-conformance.js'
export { createWorkerServer, type WorkerServer } from './server.js'
export type { BuildRunnerConfig } from './sessions/admission.js'
export type {
  Asleep,
  AtRestQuery,
  CarriedDecision,
  CarriedResult,
  DueSleeper,
  EndedStatus,
  Fence,
  HeldLog,
  JournaledEvent,
  JournaledOrigin,
  JournaledSession,
  JournaledState,
  JournaledWhole,
  JournalWrite,
  KeptSnapshot,
  ListedQuery,
  ListedSession,
  MidTurn,
  QueuedMessage,
  ReadEvent,
  ReadEvents,
  RestStatus,
  SessionJournal,
  SessionsAtRest,
} from './sessions/kept/journal.js'
export { type SessionJournalCase, sessionJournalConformance } from './sessions/kept/journal-conformance.js'
export type { OnParkingError, ParkingOptions, ParkingPhase } from './sessions/kept/keeping.js'
export type { News } from './sessions/kept/news.js'
export type { ParkedSessionRecord, SessionStore } from './sessions/kept/store.js'
export { type SessionStoreCase, sessionStoreConformance } from './sessions/kept/store-conformance.js'
export type { EventLogLimits } from './sessions/log/event-log.js'
export type { SessionRegistry } from './sessions/registry.js'
export type { CreateOptions, RegistryEvents } from './sessions/registry-options.js'
export type {
  ClusterEvents,
  ClusterNode,
  ClusterStorage,
  NodeAnnouncement,
  Place,
  Taken,
} from './storage/cluster.js'
export {
  type ClusterCase,
  type ClusterWorld,
  clusterConformance,
  type TestNode,
} from './storage/cluster-conformance.js'
export { createFileProfileStore, type FileProfileStore } from './storage/file/profile-store.js'
export { createFileSessionStore } from './storage/file/session-store.js'
export { createMemoryProfileStore } from './storage/memory/profile-store.js'
export { createMemoryQueueAdapter } from './storage/memory/queue-adapter.js'
export { MemorySessionStore } from './storage/memory/session-store.js'
export { createMemoryStorage } from './storage/memory/storage.js'
export {
  createPostgresStorage,
  type PostgresStorage,
  type PostgresStorageOptions,
} from './storage/postgres/storage.js'
export type { SqliteReport } from './storage/sqlite/maintenance.js'
export { createSqliteStorage, type SqliteStorage, type SqliteStorageOptions } from './storage/sqlite/storage.js'
export { type GatewayStorage, StorageError } from './storage/storage.js'
export { type GatewayStorageCase, gatewayStorageConformance } from './storage/storage-conformance.js'
export type { UsageCount, UsageRange, UsageStore, UsageSum } from './usage/store.js'
export { type UsageStoreCase, usageStoreConformance } from './usage/store-conformance.js'
export type { DeliveryOutbox, KeptDelivery } from './webhooks/outbox.js'
export { type DeliveryOutboxCase, deliveryOutboxConformance } from './webhooks/outbox-conformance.js'
export type { ConnectionLimits } from './webhooks/slots.js'
