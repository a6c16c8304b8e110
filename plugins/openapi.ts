import swagger from '@fastify/swagger'
import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { SessionCommands } from '../schemas/commands.js'
import { ServerFrame } from '../schemas/frames.js'
import { QueueFrame } from '../schemas/jobs.js'
import type { Gateway } from '../src/gateway.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the document says of a route where its own schema, or its path, cannot. */
    documented?: { path?: string; body?: object; params?: object }
  }
}

const TITLE = 'session-gateway'
const VERSION = '1'

/** The documents that describe this API, generated from the schemas that the routes check with. */
export const apiDocuments: FastifyPluginAsync<{ gateway: Gateway }> = fp(
  async (scope: FastifyInstance, { gateway }: { gateway: Gateway }) => {
    await scope.register(swagger, {
      openapi: {
        openapi: '3.1.0',
        info: {
          title: TITLE,
          version: VERSION,
          description: 'Runs AI agent sessions and exposes them over HTTP and WebSocket.',
        },
      },
      hideUntagged: false,
      transform: ({ schema, url, route }) => {
        const { documented } = route.config ?? {}
        const { path = url, ...parts } = documented ?? {}
        return {
          schema: { ...schema, ...parts, ...(route.config?.socket && { hide: true }) },
          url: path === url ? url : `${scope.prefix}${path}`,
        }
      },
    })
    scope.get('/openapi.json', { schema: { hide: true } }, async () => scope.swagger())
    scope.get('/asyncapi.json', { schema: { hide: true } }, async () =>
      asyncApi(scope.prefix, gateway.queue !== undefined),
    )
  },
)

/** Both directions of the session socket, and the queue's stream when there is one, as AsyncAPI 3. */
const asyncApi = (prefix: string, hasQueue: boolean) => ({
  asyncapi: '3.0.0',
  info: { title: TITLE, version: VERSION },
  channels: {
    session: {
      address: `${prefix}/sessions/{id}/ws`,
      parameters: { id: { description: 'The session.' } },
      bindings: {
        ws: {
          query: {
            type: 'object',
            properties: { afterSeq: { type: 'integer', minimum: 0 }, epoch: { type: 'string' } },
          },
        },
      },
      messages: Object.fromEntries([
        ...ServerFrame.anyOf.map((frame) => message(frame.properties.type.const, frame)),
        ...Object.entries(SessionCommands).map(([name, schema]) => message(name, schema)),
      ]),
    },
    ...(hasQueue && {
      queue: {
        address: `${prefix}/queue/ws`,
        messages: Object.fromEntries(QueueFrame.anyOf.map((frame) => message(frame.properties.type.const, frame))),
      },
    }),
  },
  operations: {
    receiveFrames: {
      action: 'send',
      channel: { $ref: '#/channels/session' },
      messages: ServerFrame.anyOf.map((frame) => ref(frame.properties.type.const)),
    },
    sendCommands: {
      action: 'receive',
      channel: { $ref: '#/channels/session' },
      messages: Object.keys(SessionCommands).map(ref),
    },
    ...(hasQueue && {
      receiveQueueFrames: {
        action: 'send',
        channel: { $ref: '#/channels/queue' },
        messages: QueueFrame.anyOf.map((frame) => ({
          $ref: `#/channels/queue/messages/${frame.properties.type.const}`,
        })),
      },
    }),
  },
})

const message = (name: string, payload: unknown) => [name, { name, contentType: 'application/json', payload }] as const
const ref = (name: string) => ({ $ref: `#/channels/session/messages/${name}` })
