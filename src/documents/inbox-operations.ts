import { AnswerInboxRequest } from '../../schemas/notifications.js'
import { BODY, IDEMPOTENT, STORES } from './codes.js'
import * as examples from './examples.js'
import type { Operation } from './operations.js'

/** What waits for people, and how they follow what happens. */
export const INBOX_OPERATIONS: Record<string, Operation> = {
  'GET /inbox': {
    id: 'listInbox',
    summary: 'List what waits for a person',
    description:
      'Permission requests and questions of all sessions that the caller may see, parked ones too, oldest first. The next page is in `Link`.',
    codes: ['SG_ERR_VALIDATION'],
    answer: [examples.inboxItem],
  },
  'GET /inbox/count': {
    id: 'countInbox',
    summary: 'Count what waits for a person',
    description: 'Of what the caller may see.',
    codes: ['SG_ERR_VALIDATION'],
    answer: examples.inboxCount,
  },
  'POST /inbox/answers': {
    id: 'answerInbox',
    summary: 'Answer several requests',
    description:
      'Each as the route of that request would: what becomes of one is told in its result, with the code that the route would have given, and hurts no other.',
    codes: [...BODY, ...IDEMPOTENT, ...STORES],
    shapes: { body: AnswerInboxRequest },
    body: examples.inboxAnswers,
    answer: examples.inboxResults,
  },
  'GET /notifications/events': {
    id: 'followNotifications',
    summary: 'Follow notifications',
    description:
      'A stream that begins with `notifications_attached`, goes on with the notifications after `after` (left out: from now on), then with what happens, and tells with `inbox_changed` when something comes into the inbox or leaves it. Its ids are those of the notifications, and `Last-Event-ID` continues it.',
    codes: ['SG_ERR_VALIDATION', 'SG_ERR_TOO_MANY_CONNECTIONS', ...STORES],
    stream: { frames: 'NotificationsFrame', example: examples.notificationStream },
  },
}
