import type { WebhookDelivery } from '../../schemas/jobs.js'
import type { SessionNotification } from '../../schemas/notifications.js'
import type { OverNodes } from '../cluster/over-nodes.js'
import type { OwnNode } from '../cluster/own-node.js'
import type { Standing } from '../cluster/standing.js'
import type { SignIns } from '../console/sign-ins.js'
import type { CreateEngineRunner } from '../engines/runner.js'
import type { Executions } from '../executions/executions.js'
import type { IdempotencyStore } from '../idempotency/store.js'
import type { JobQueue } from '../jobs/queue.js'
import type { Clock } from '../lib/clock.js'
import type { AnswerLinks } from '../notifications/answers/answer-links.js'
import type { WebPush } from '../notifications/channels/push.js'
import type { NotificationFeed } from '../notifications/feed.js'
import type { Inbox } from '../notifications/inbox.js'
import type { ResolvedOptions } from '../options.js'
import type { CallerNamed } from '../principal.js'
import type { ProfileCatalog } from '../profiles/catalog.js'
import type { CliProfiles } from '../profiles/cli-profiles.js'
import type { SessionRegistry } from '../sessions/registry.js'
import type { Usage } from '../usage/usage.js'
import type { WebhookDeliverer } from '../webhooks/deliverer.js'
import type { WebhookTarget } from '../webhooks/target.js'

/** What comes from outside; tests pass their own. */
export interface Surroundings {
  clock?: Clock
  /** The engine of `cli` profiles. */
  createCliRunner?: CreateEngineRunner
  env?: NodeJS.ProcessEnv
  /** Names of variables that hold secrets of the gateway; agents do not get them. */
  secretEnv?: readonly string[]
  /** What stands before `basePath` in every path. */
  prefix?: string
  /** Who is let in under a name by now; undefined: nobody. Absent: whoever lets callers in keeps no list of them. */
  callerNamed?: CallerNamed
  /** The node was declared dead, or is ahead of its database: the gateway is to be closed, and built anew. Absent: an operator is asked to. */
  onLost?: (why: string) => void
  /** Characters of an id that the router takes in a path. */
  maxIdLength?: number
}

/** The domain, wired: everything a route or a host needs, without any transport. */
export interface Gateway {
  readonly options: ResolvedOptions
  readonly clock: Clock
  readonly registry: SessionRegistry
  readonly profiles: ProfileCatalog
  readonly executions: Executions
  readonly cliProfiles: CliProfiles
  /** Present when `queue` options were given. */
  readonly queue: JobQueue | undefined
  readonly notifications: {
    readonly feed: NotificationFeed
    readonly inbox: Inbox
    /**
     * Hears of what notifications tell, whether or not `notifications` was given; a listener that fails is logged and breaks nothing.
     * @returns a function that ends it
     */
    on(listener: (notification: SessionNotification) => unknown): () => void
    /** Present when answer links are on. */
    readonly links: AnswerLinks | undefined
    /** Present when a channel is for browsers. */
    readonly push: WebPush | undefined
    /** Of all nodes; absent: this process is alone. */
    readonly nodes: OverNodes | undefined
    /** The last attempts to deliver the notification of an event, its reminders included, newest first. */
    deliveries(sessionId: string, seq: number): Promise<WebhookDelivery[]>
  }
  /** Whether this node may go on; absent: it is the only one. */
  readonly standing: Standing | undefined
  /** What is sent to webhooks, and how it went. */
  readonly deliverer: WebhookDeliverer
  /** Where the operator's own deliveries go. */
  webhooks(): WebhookTarget[]
  readonly idempotency: IdempotencyStore
  /** What was used, as daily sums. */
  readonly usage: Usage
  /** Browsers that are signed in to the console; present when there is one, and somebody decides who is let in. */
  readonly signIns: SignIns | undefined
  /** This process as one node of several; absent: it is alone. */
  readonly cluster: OwnNode | undefined
  /** False before `start`, from the beginning of `close`, and while the storage takes nothing. */
  readonly ready: boolean
  /** Whether what has to be kept is taken. */
  readonly writable: boolean
  /** When it was ready to serve, epoch milliseconds; 0 before. */
  readonly startedAt: number
  /** True from the beginning of `close`. */
  readonly draining: boolean
  /** Reads the stores. */
  start(): Promise<void>
  /**
   * Tells every client to come back later and ends every session; settles within `shutdownTimeoutMs`.
   * @param answered resolves when what was asked by then is answered: a moment is waited for it, as long as there is something to answer from
   */
  close(answered?: () => Promise<void>): Promise<void>
}
