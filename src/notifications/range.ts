import type { KeptNotification, NotificationPage, NotificationRange } from './store.js'

/** Whether a notification is one of those that are asked for. */
export const isIn = (
  { after, until, since, types, profiles }: NotificationRange,
  { number, ts, type, profile }: KeptNotification,
): boolean =>
  number > after &&
  number <= until &&
  ts >= since &&
  (types?.includes(type) ?? true) &&
  (profiles?.includes(profile) ?? true)

/** The first of them, or the last, as many as fit. */
export function pageOf(
  found: readonly KeptNotification[],
  { limit, maxBytes, newest }: NotificationPage,
): KeptNotification[] {
  const page: KeptNotification[] = []
  let bytes = 0
  for (const notification of newest ? found.toReversed() : found) {
    bytes += Buffer.byteLength(notification.json)
    if (page.length === limit || (page.length > 0 && bytes > maxBytes)) break
    page.push(notification)
  }
  return newest ? page.reverse() : page
}
