import type { Following } from './attachment.js'
import type { Http } from './http.js'
import { Stream } from './stream.js'
import type { Wire } from './transport.js'
import type { InboxCount, ListNotificationsQuery, NotificationsFrame, SessionNotification } from './types.js'

/** `gap`: some that came after the last one are not kept any more. `inbox`: how much waits by now, at first and at every change. */
export type NotificationItem =
  | { type: 'notification'; notification: SessionNotification }
  | { type: 'gap' }
  | { type: 'inbox'; inbox: InboxCount }

export interface WatchNotifications extends Pick<ListNotificationsQuery, 'after' | 'types' | 'profile'> {
  signal?: AbortSignal | undefined
}

/** Follows the feed. */
export function watchNotifications(
  http: Http,
  { after, signal, ...filter }: WatchNotifications = {},
): Following<NotificationItem> {
  let last = after
  let told = ''
  const onInbox = (inbox: InboxCount) => {
    told = JSON.stringify(inbox)
    stream.push({ type: 'inbox', inbox })
  }
  const stream: Stream<NotificationItem> = new Stream(
    http,
    {
      path: '/notifications',
      query: () => ({ ...filter, after: last }),
      onFrame(frame: NotificationsFrame, wire: Wire) {
        switch (frame.type) {
          case 'notifications_attached':
            stream.live(wire.name, false)
            last = frame.after
            if (frame.truncated) stream.push({ type: 'gap' })
            onInbox(frame.inbox)
            return
          case 'notification':
            last = frame.notification.id
            stream.push(frame)
            return
          case 'notifications_synced':
            last = frame.after
            stream.live(wire.name, true)
            return
          case 'inbox_changed':
            onInbox(frame.inbox)
        }
      },
      // the socket is one-way: that it is still there shows in knowing the same as the gateway
      probe: (_wire, signal) =>
        http.json<InboxCount>('GET', '/inbox/count', { signal }).then((count) => JSON.stringify(count) === told),
      onDown: () => false,
    },
    signal,
  )
  return stream
}
