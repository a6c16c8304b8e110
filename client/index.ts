/** A gateway's client, for browsers and Node: nothing but the platform underneath. */
export type { AttachItem, Attachment, AttachOptions, Following, Gap, ToolCall } from './attachment.js'
export {
  type BrowserSubscription,
  type CallOptions,
  type Client,
  type ClientOptions,
  type CreateOptions,
  createClient,
  type SubscribeOptions,
} from './client.js'
export type { CommandOptions } from './commands.js'
export { GatewayError, refusalOf, UNREACHABLE } from './errors.js'
export type { List, Pages } from './list.js'
export type { NotificationItem, WatchNotifications } from './notifications.js'
export type { WaitForJob } from './queue.js'
export type { Answer, Session } from './session.js'
export type { ConnectionState } from './stream.js'
export * from './transcript.js'
export type * from './types.js'
