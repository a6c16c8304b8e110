import type { TSchema } from '@sinclair/typebox'
import { SessionCommands } from '../../schemas/commands.js'
import { ServerFrame } from '../../schemas/frames.js'
import { QueueFrame } from '../../schemas/jobs.js'
import { NotificationsFrame } from '../../schemas/notifications.js'
import { Components, type JsonSchema, sorted } from './components.js'
import { commands, notificationFrames, queueFrames, serverFrames } from './examples.js'
import { TITLE, VERSION } from './openapi.js'
import type { Feature } from './operations.js'

interface Frame {
  name: string
  schema: TSchema
  example: unknown
}

const framesOf = (union: { anyOf: TSchema[] }, examples: Record<string, unknown>): Frame[] =>
  union.anyOf.map((schema) => {
    const name = String((schema.properties as Record<string, TSchema>).type!.const)
    return { name, schema, example: examples[name] }
  })

const SERVER_FRAMES = framesOf(ServerFrame, serverFrames)
const QUEUE_FRAMES = framesOf(QueueFrame, queueFrames)
const NOTIFICATION_FRAMES = framesOf(NotificationsFrame, notificationFrames)
const COMMANDS: Frame[] = Object.entries(SessionCommands).map(([name, schema]) => ({
  name,
  schema,
  example: commands[name as keyof typeof commands],
}))

const SECURITY = {
  bearer: { type: 'http', scheme: 'bearer', description: 'A token, as the operator issued it.' },
  subprotocol: {
    type: 'httpApiKey',
    in: 'header',
    name: 'Sec-WebSocket-Protocol',
    description: 'For browsers: offer `session-gateway` and `session-gateway.bearer.<token>` as subprotocols.',
  },
  cookie: { type: 'httpApiKey', in: 'cookie', name: 'session', description: "A cookie of the host's own sign-in." },
}

/** The sockets as AsyncAPI 3: both directions of a session's, the stream of notifications, and the queue's when there is a queue. */
export function asyncApi(prefix: string, features: ReadonlySet<Feature>): JsonSchema {
  const components = new Components('asyncapi')
  // the unions first: they name their variants
  for (const union of [ServerFrame, QueueFrame, NotificationsFrame]) components.publish(union)
  const messages: Record<string, JsonSchema> = {}
  const hasQueue = features.has('queue')
  const channel = (frames: Frame[]) =>
    Object.fromEntries(
      frames.map((frame) => {
        messages[frame.name] ??= message(frame, components)
        return [frame.name, { $ref: `#/components/messages/${frame.name}` }]
      }),
    )
  const session = channel([...SERVER_FRAMES, ...COMMANDS])
  const queue = hasQueue && channel(QUEUE_FRAMES)
  const notifications = channel(NOTIFICATION_FRAMES)
  return {
    asyncapi: '3.0.0',
    info: {
      title: TITLE,
      version: VERSION,
      description: 'The WebSockets of session-gateway: one JSON object per text message, told apart by its `type`.',
      license: { name: 'MIT' },
    },
    defaultContentType: 'application/json',
    channels: {
      session: {
        address: `${prefix}/sessions/{id}/ws`,
        description:
          'A session: `attached`, the events after `afterSeq`, `synced`, then live events; commands in return.',
        parameters: { id: { description: 'The session.' } },
        bindings: query({
          afterSeq: { type: 'integer', minimum: 0, description: 'The last `seq` that was seen.' },
          epoch: { type: 'string', description: 'Of the log that `afterSeq` belongs to.' },
        }),
        messages: session,
      },
      notifications: {
        address: `${prefix}/notifications/ws`,
        description:
          'All notifications, one way: `notifications_attached`, those after `after`, `notifications_synced`, then what happens, and `inbox_changed`.',
        bindings: query({
          after: { type: 'string', description: 'The id of the last one that is known; left out: from now on.' },
          types: { type: 'string', description: 'Some of the types, with commas between them.' },
          profile: { type: 'string', description: 'Of sessions of this profile alone.' },
        }),
        messages: notifications,
      },
      ...(queue && {
        queue: {
          address: `${prefix}/queue/ws`,
          description: 'The queue, one way: `queue_attached`, then what happens. Nothing is replayed.',
          messages: queue,
        },
      }),
    },
    operations: {
      receiveFrames: operation('send', 'session', SERVER_FRAMES, 'What the gateway tells of a session.'),
      sendCommands: operation('receive', 'session', COMMANDS, 'What a client asks of a session.'),
      receiveNotificationFrames: operation(
        'send',
        'notifications',
        NOTIFICATION_FRAMES,
        'What sessions need people for.',
      ),
      ...(hasQueue && {
        receiveQueueFrames: operation('send', 'queue', QUEUE_FRAMES, 'What the gateway tells of its queue.'),
      }),
    },
    components: { securitySchemes: SECURITY, messages, schemas: sorted(components.schemas) },
  }
}

/** What the request for a socket may say. */
const query = (properties: JsonSchema): JsonSchema => ({
  ws: { method: 'GET', query: { type: 'object', properties } },
})

const operation = (action: 'send' | 'receive', channel: string, frames: Frame[], summary: string): JsonSchema => ({
  action,
  channel: { $ref: `#/channels/${channel}` },
  summary,
  security: Object.keys(SECURITY).map((name) => ({ $ref: `#/components/securitySchemes/${name}` })),
  messages: frames.map(({ name }) => ({ $ref: `#/channels/${channel}/messages/${name}` })),
})

const message = ({ name, schema, example }: Frame, components: Components): JsonSchema => ({
  name,
  contentType: 'application/json',
  payload: components.publish(schema),
  examples: [{ payload: example }],
})
