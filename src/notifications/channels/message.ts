import { createHash } from 'node:crypto'
import type { SessionNotification } from '../../../schemas/notifications.js'
import type { PermissionRequest } from '../../../schemas/permissions.js'
import type { SessionInfo } from '../../../schemas/sessions.js'
import { oneLine } from '../../lib/one-line.js'

/** A notification as a channel tells it; `reminder` counts from 1 when it is told again because nobody answered. */
export type ToldNotification = SessionNotification & { reminder?: number }

/** A permission request that was told before is settled: for formats that can replace what they showed. */
export interface RequestSettled {
  type: 'permission_resolved'
  sessionId: string
  seq: number
  ts: number
  preview: string
  session: SessionInfo
  requestId: string
}

/** What stands in the outbox for a channel; it survives JSON and holds no credential. */
export type ChannelMessage = ToldNotification | RequestSettled

/** What a format needs beyond the message, at the time of an attempt. */
export interface RenderContext {
  /** Of the delivery, the same in every attempt. */
  id: string
  /** Epoch milliseconds. */
  now: number
  /** Where a person may answer the request, when answer links are on. */
  answerUrl: string | undefined
}

/** One attempt, as it is sent. Names of headers in lower case. */
export interface RenderedMessage {
  headers: Record<string, string>
  body: Buffer
}

export const requestIdOf = (message: ChannelMessage): string | undefined =>
  message.type === 'permission_resolved' ? message.requestId : message.request?.id

/** Of its session, its own or another's. */
export const requestOf = (message: ChannelMessage): PermissionRequest | undefined =>
  message.type === 'permission_resolved' ? undefined : message.request

/** Messages with the same tag replace each other: a request, its reminders and how it was settled; else each its own. */
export function tagOf(message: ChannelMessage): string {
  const about = requestIdOf(message) ?? `${message.seq}`
  return createHash('sha256')
    .update(JSON.stringify([message.sessionId, about]))
    .digest('base64url')
    .slice(0, 32)
}

const HEADLINES: Record<ChannelMessage['type'], string> = {
  permission_requested: 'Needs an answer',
  permission_resolved: 'Answered',
  turn_completed: 'Turn finished',
  session_error: 'Failed',
  session_closed: 'Ended',
}

/** One line that says which session it is about, and what happened. */
export function headlineOf(message: ChannelMessage): string {
  const isReminder = message.type !== 'permission_resolved' && message.reminder !== undefined
  return oneLine(`${isReminder ? 'Still waiting' : HEADLINES[message.type]}: ${message.session.title}`)
}

/** Cuts at a whole character, so that the UTF-8 of what stays takes at most `maxBytes`. */
export function cutToBytes(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text)
  if (bytes.length <= maxBytes) return text
  // of a character that was cut into, the decoder leaves the mark of replacement
  return `${bytes
    .subarray(0, maxBytes - 3)
    .toString()
    .replace(/\uFFFD+$/, '')}…`
}
