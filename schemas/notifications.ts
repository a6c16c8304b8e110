import { type Static, Type } from '@sinclair/typebox'
import { Count, Duration, described, Flag, Moment, Several, StringEnum, strict, Text } from './common.js'
import { Frame, protocolVersion } from './frames.js'
import { PermissionRequest, permissionDecisionFields } from './permissions.js'
import { pageQuery, SessionInfo } from './sessions.js'

export const NotificationType = described(
  StringEnum('permission_requested', 'turn_completed', 'session_error', 'session_closed'),
  'Which moment of a session it is.',
)
export type NotificationType = Static<typeof NotificationType>

export const SessionNotification = Type.Object(
  {
    id: Text('Its place among all notifications: opaque, rising as text; what `after` takes.'),
    type: NotificationType,
    sessionId: Type.String(),
    seq: Type.Integer({ description: 'Attaching with `afterSeq` = `seq - 1` lands on the event behind it.' }),
    ts: Moment('When it happened'),
    preview: Text('One line, fit for the body of a notification.'),
    session: described(SessionInfo, 'As the event left it.'),
    request: Type.Optional(described(PermissionRequest, 'With `permission_requested`.')),
    result: Type.Optional(
      Type.Object(
        {
          isError: Flag('Whether the turn failed.'),
          durationMs: Duration('How long the turn took'),
          numTurns: Count("The session's turns so far."),
          totalCostUsd: Count('Of all turns so far, US dollars.'),
        },
        { description: 'With `turn_completed`.' },
      ),
    ),
    reason: Type.Optional(Text('With `session_closed`: who ended it.')),
    answerUrl: Type.Optional(
      Text(
        'To a channel, with `permission_requested`: where whoever holds the link may answer, when answer links are on.',
      ),
    ),
    reminder: Type.Optional(Count('To a channel: told again, for the first, second … time, as nobody has answered.')),
  },
  { description: 'One of four moments of a session, as webhooks and the feed tell it.' },
)
export type SessionNotification = Static<typeof SessionNotification>

const types = NotificationType.anyOf.map(({ const: name }) => name)

/** Which notifications a reader wants. */
const filter = {
  types: Type.Optional(Several(types, 'Some of the types, with commas between them. Default: all.')),
  profile: Type.Optional(Text('Only of sessions of this profile.')),
}

export const ListNotificationsQuery = Type.Object(
  {
    after: Type.Optional(Text('The `id` of the last one that is known. Default: the newest page.')),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 200, description: 'At most so many on this page. Default 200.' }),
    ),
    ...filter,
  },
  strict,
)
export type ListNotificationsQuery = Static<typeof ListNotificationsQuery>
export const NotificationParams = Type.Object({ id: Text('Of a notification.') })

export const PushMessage = Type.Object(
  {
    id: Text('Of the delivery, the same in every attempt.'),
    type: Type.Union([...NotificationType.anyOf, Type.Literal('permission_resolved')]),
    sessionId: Type.String(),
    seq: Type.Integer(),
    ts: Moment('When it happened'),
    title: Text('The session, and what happened, on one line.'),
    body: Text('One line, fit for the body of a notification.'),
    tag: Text('One with the same tag takes the place of what was shown.'),
    profile: Text('Of the session.'),
    requestId: Type.Optional(Text('Of the permission request that it is about.')),
    url: Type.Optional(Text('Where the request may be answered, when answer links are on.')),
  },
  { description: 'What a service worker gets of a notification.' },
)
export type PushMessage = Static<typeof PushMessage>

const Endpoint = Type.String({
  minLength: 1,
  maxLength: 2_000,
  description: 'Where the push service of the browser takes messages for it.',
})

export const CreateSubscriptionRequest = Type.Object(
  {
    endpoint: Endpoint,
    keys: Type.Object(
      {
        p256dh: Type.String({ minLength: 1, maxLength: 200, description: 'The public key of the browser, base64url.' }),
        auth: Type.String({ minLength: 1, maxLength: 100, description: 'A secret of the browser, base64url.' }),
      },
      { ...strict, description: 'By which the browser reads what is sent.' },
    ),
    expirationTime: Type.Optional(
      Type.Union([Type.Number(), Type.Null()], { description: 'When the browser lets it end, epoch milliseconds.' }),
    ),
    events: Type.Optional(
      Type.Array(NotificationType, { maxItems: 16, description: 'Left out: what the channel tells.' }),
    ),
    profiles: Type.Optional(
      Type.Array(Type.String(), { maxItems: 1_000, description: 'Left out: every profile that the caller may see.' }),
    ),
  },
  { ...strict, description: "A browser's PushSubscription, as `toJSON` gives it, and what it is to be told." },
)
export type CreateSubscriptionRequest = Static<typeof CreateSubscriptionRequest>

export const DeleteSubscriptionRequest = Type.Object(
  { endpoint: Endpoint },
  { ...strict, description: 'The browser that is not to be told any more.' },
)

export const PushSubscriptionInfo = Type.Object(
  {
    id: Text('Of the subscription.'),
    createdAt: Moment('When it was first subscribed'),
    expiresAt: Moment('When it ends unless the browser is subscribed again'),
  },
  { description: 'A browser that is told.' },
)
export type PushSubscriptionInfo = Static<typeof PushSubscriptionInfo>

export const DeleteSubscriptionResponse = Type.Object(
  { deleted: Type.Literal(true) },
  { description: 'The browser is told nothing any more.' },
)

export const VapidKeyResponse = Type.Object(
  { publicKey: Text('For `pushManager.subscribe`, base64url.') },
  { description: 'By whom push services know this gateway.' },
)
export type VapidKeyResponse = Static<typeof VapidKeyResponse>

export const ChannelFormat = described(StringEnum('webhook', 'slack', 'ntfy', 'web_push'), 'How a channel is told.')
export type ChannelFormat = Static<typeof ChannelFormat>

export const WaitingKind = described(
  StringEnum('permission', 'question'),
  'Whether a tool is to be allowed, or a question answered.',
)
export type WaitingKind = Static<typeof WaitingKind>

export const InboxItem = Type.Object(
  {
    kind: WaitingKind,
    request: PermissionRequest,
    session: Type.Pick(SessionInfo, ['id', 'title', 'profile', 'cwd', 'jobId'], { description: 'Who asks.' }),
    since: Moment('When it was asked'),
    expiresAt: Type.Optional(Moment('When it is denied unless somebody answers')),
    seq: Type.Integer({ description: 'Of its `permission_requested` in the log of the session.' }),
  },
  { description: 'Something that waits for a person.' },
)
export type InboxItem = Static<typeof InboxItem>

export const ListInboxQuery = Type.Object(
  {
    ...pageQuery,
    profile: Type.Optional(Text('Only what sessions of this profile ask.')),
    kind: Type.Optional(described(WaitingKind, 'Only permission requests, or only questions.')),
    sessionId: Type.Optional(Text('Only what this session asks.')),
  },
  strict,
)
export type ListInboxQuery = Static<typeof ListInboxQuery>

export const InboxCount = Type.Object(
  {
    permissions: Type.Integer({ description: 'Permission requests that wait.' }),
    questions: Type.Integer({ description: 'Questions that wait.' }),
  },
  { description: 'How much waits that the caller may see.' },
)
export type InboxCount = Static<typeof InboxCount>

const whose = { sessionId: Text('Of the session that asks.'), requestId: Text('Of the request.') }

export const InboxAnswer = Type.Union(
  [
    Type.Object(
      { ...whose, ...permissionDecisionFields.allow },
      { ...strict, description: 'Lets it run; without `updatedInput` with the input that was shown.' },
    ),
    Type.Object({ ...whose, ...permissionDecisionFields.deny }, { ...strict, description: 'Keeps it from running.' }),
  ],
  { description: 'One answer: whose, and what the route of that request takes.' },
)
export type InboxAnswer = Static<typeof InboxAnswer>

export const AnswerInboxRequest = Type.Object(
  { answers: Type.Array(InboxAnswer, { maxItems: 100 }) },
  { ...strict, description: 'Answers, each judged by itself: a bad one hurts no other.' },
)
export type AnswerInboxRequest = Static<typeof AnswerInboxRequest>

/** The same as its route checks it, which leaves the answers themselves to whoever gives them. */
export const UncheckedAnswers = Type.Object(
  { answers: Type.Array(Type.Object(whose, { additionalProperties: true }), { maxItems: 100 }) },
  strict,
)

export const InboxAnswerResult = Type.Union(
  [
    Type.Object({ ...whose, resolved: Type.Literal(true) }, { description: 'It was taken.' }),
    Type.Object(
      {
        ...whose,
        resolved: Type.Literal(false),
        code: Text('As the route of that request would have given it.'),
        detail: Text('One sentence for a person.'),
      },
      { description: 'It was refused.' },
    ),
  ],
  { description: 'What became of one answer.' },
)
export type InboxAnswerResult = Static<typeof InboxAnswerResult>

export const AnswerInboxResponse = Type.Object(
  { results: Type.Array(InboxAnswerResult) },
  { description: 'What became of each answer, in their order.' },
)
export type AnswerInboxResponse = Static<typeof AnswerInboxResponse>

export const FollowNotificationsQuery = Type.Object(
  { after: Type.Optional(Text('The `id` of the last one that is known. Default: from now on.')), ...filter },
  strict,
)
export type FollowNotificationsQuery = Static<typeof FollowNotificationsQuery>

export const NotificationsFrame = Type.Union(
  [
    Frame('notifications_attached', 'The first frame: where it goes on.', {
      protocolVersion,
      after: Text('The place after which everything follows.'),
      truncated: Flag('Whether some of what came after the place that was asked for is not kept any more.'),
      inbox: InboxCount,
    }),
    Frame('notification', 'One of four moments of a session.', { notification: SessionNotification }),
    Frame('notifications_synced', 'All that was there at the first frame was sent; once.', {
      after: Text('The place that was come to.'),
    }),
    Frame('inbox_changed', 'Something came into the inbox or left it.', { inbox: InboxCount }),
  ],
  { description: 'What the gateway tells of all sessions.' },
)
export type NotificationsFrame = Static<typeof NotificationsFrame>
