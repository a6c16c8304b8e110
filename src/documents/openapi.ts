import { STATUS_CODES } from 'node:http'
import type { TObject, TSchema } from '@sinclair/typebox'
import { Problem } from '../../schemas/errors.js'
import { ServerFrame } from '../../schemas/frames.js'
import { QueueFrame } from '../../schemas/jobs.js'
import { NotificationsFrame } from '../../schemas/notifications.js'
import { type ErrorCode, GatewayError } from '../errors.js'
import { Components, type JsonSchema, sorted } from './components.js'
import { problem } from './examples.js'
import { variantName } from './names.js'
import { type Feature, OPERATIONS, type Operation, PARTS, TAGS } from './operations.js'

/** A route as it is served: what it checks with. */
export interface Route {
  method: string
  /** With `:name` for parameters, without the prefix. */
  path: string
  params?: TSchema
  querystring?: TSchema
  body?: TSchema
  /** By status. */
  response?: Record<string, TSchema>
  /** Takes an Idempotency-Key. */
  idempotent?: boolean
  /** What it creates has a path of its own. */
  isCollection?: boolean
}

export const TITLE = 'session-gateway'
export const VERSION = '1'

/** What every route can say. */
const EVERYWHERE: ErrorCode[] = [
  'SG_ERR_BAD_REQUEST',
  'SG_ERR_UNAUTHENTICATED',
  'SG_ERR_FORBIDDEN',
  'SG_ERR_HOST_REFUSED',
  'SG_ERR_ORIGIN_REFUSED',
  'SG_ERR_REQUEST_TIMEOUT',
  'SG_ERR_HEADERS_TOO_LARGE',
  'SG_ERR_TOO_MANY',
  'SG_ERR_INTERNAL',
  'SG_ERR_AUTHENTICATE_FAILED',
  'SG_ERR_UNAVAILABLE',
  'SG_ERR_SHUTTING_DOWN',
  'SG_ERR_STORE_UNAVAILABLE',
]

const STREAMS: Record<NonNullable<Operation['stream']>['frames'], TSchema> = {
  ServerFrame,
  QueueFrame,
  NotificationsFrame,
}

/** How callers may show who they are; which of them is understood, the host decides. */
const SECURITY_SCHEMES = {
  bearer: { type: 'http', scheme: 'bearer', description: 'A token, as the operator issued it.' },
  cookie: { type: 'apiKey', in: 'cookie', name: 'session', description: "A cookie of the host's own sign-in." },
}

/**
 * The REST routes as OpenAPI 3.1.
 * @param routes those that are served; one without words in `OPERATIONS` is left out
 * @param prefix what stands before every path · @param outside the same without the base path, before the few beside it
 */
export function openApi(
  routes: readonly Route[],
  { prefix, outside }: { prefix: string; outside: string },
  features: ReadonlySet<Feature>,
): JsonSchema {
  const components = new Components('openapi')
  const paths: Record<string, Record<string, JsonSchema>> = {}
  for (const [key, words] of Object.entries(OPERATIONS)) {
    const [, part = ''] = key.split('/')
    const operation = { ...PARTS[part]!, ...words }
    const { needs, isOutside, shapes } = operation
    const served = isOutside ? routeOf(key) : routes.find(({ method, path }) => `${method} ${path}` === key)
    if (!served || (needs && !features.has(needs))) continue
    const isCollection = routes.some(({ method, path }) => method === 'GET' && path.startsWith(`${served.path}/:`))
    const route = { ...served, ...shapes, isCollection }
    const path = `${isOutside ? outside : prefix}${route.path.replace(/:(\w+)/g, '{$1}')}`
    paths[path] ??= {}
    paths[path][route.method.toLowerCase()] = describe(route, operation, components)
  }
  const used = new Set(Object.values(paths).flatMap((methods) => Object.values(methods).flatMap(({ tags }) => tags)))
  return {
    openapi: '3.1.0',
    info: {
      title: TITLE,
      version: VERSION,
      description: 'Runs AI agent sessions and exposes them over HTTP and WebSocket. The sockets are in asyncapi.json.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'This server.' }],
    security: Object.keys(SECURITY_SCHEMES).map((name) => ({ [name]: [] })),
    tags: Object.entries(TAGS)
      .filter(([name]) => used.has(name))
      .map(([name, description]) => ({ name, description })),
    paths,
    components: {
      securitySchemes: SECURITY_SCHEMES,
      responses: sorted(components.responses),
      schemas: sorted(components.schemas),
    },
  }
}

/** Of one that checks nothing. */
function routeOf(key: string): Route {
  const [method = '', path = ''] = key.split(' ')
  return { method, path }
}

function describe(route: Route, operation: Operation & { tag: string }, components: Components): JsonSchema {
  const { id, tag, summary, description, codes, body, isOpen } = operation
  const parameters = [
    ...parametersOf(route.params, 'path', components),
    ...parametersOf(route.querystring, 'query', components),
    ...(route.idempotent ? [IDEMPOTENCY_KEY] : []),
    ...(operation.stream && operation.stream.frames !== 'QueueFrame' ? [lastEventId(operation.stream.frames)] : []),
  ]
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    ...(isOpen && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(route.body && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: components.publish(route.body), example: body } },
      },
    }),
    responses: {
      ...refusals(isOpen ? codes : [...EVERYWHERE, ...codes], components),
      ...ownAnswers(route, operation, components),
    },
  }
}

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'The same key with the same body within 24 hours is answered with the first answer, and nothing is done again.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}
const lastEventId = (frames: 'ServerFrame' | 'NotificationsFrame') => ({
  name: 'Last-Event-ID',
  in: 'header',
  description: `${frames === 'ServerFrame' ? '`<epoch>:<seq>`' : 'The `id`'} of the last event that was received; stronger than the query.`,
  schema: { type: 'string' },
})

function parametersOf(schema: TSchema | undefined, where: 'path' | 'query', components: Components): JsonSchema[] {
  const { properties = {}, required = [] } = (schema ?? {}) as Partial<TObject>
  return Object.entries(properties as Record<string, TSchema>).map(([name, member]) => {
    const { description, ...rest } = components.publish(member)
    return {
      name,
      in: where,
      ...(description !== undefined && { description }),
      required: where === 'path' || required.includes(name),
      schema: rest,
    }
  })
}

function ownAnswers(route: Route, operation: Operation, components: Components): JsonSchema {
  const { answer, answers, stream, download, csv, text: example } = operation
  const found: Record<string, JsonSchema> = {}
  for (const [status, schema] of Object.entries(route.response ?? {})) {
    const isEmpty = status === '204'
    found[status] = {
      description: isEmpty ? 'Done; there is nothing to say.' : (STATUS_CODES[status] ?? 'Done'),
      ...(!isEmpty && {
        content: { 'application/json': { schema: components.publish(schema), example: answers?.[status] ?? answer } },
      }),
      ...headersOf(route, status),
    }
  }
  if (stream) {
    found['200'] ??= { description: 'A stream of frames.' }
    const schema = {
      type: 'string',
      description: 'Server-sent events; the `data` of each is one frame.',
      contentMediaType: 'application/json',
      contentSchema: components.publish(STREAMS[stream.frames]),
    }
    found['200'].content = {
      ...(found['200'].content as object),
      'text/event-stream': { schema, example: stream.example },
    }
  }
  if (csv !== undefined)
    found['200'] = {
      ...found['200'],
      headers: { 'Content-Disposition': text('Of the table: `attachment`, with a name for the file.') },
      content: {
        ...(found['200']!.content as object),
        'text/csv': { schema: { type: 'string', description: 'A header and the rows (RFC 4180).' }, example: csv },
      },
    }
  if (download)
    found['200'] = {
      description: 'The bytes of the file.',
      headers: { 'Content-Disposition': text('`attachment`, with the name of the file (RFC 8187).') },
      content: { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } },
    }
  if (example !== undefined)
    found['200'] = { description: 'Text.', content: { 'text/plain': { schema: { type: 'string' }, example } } }
  return found
}

/** Of what passes by itself. */
const AGAIN = 'Seconds after which it may be tried again.'

const text = (description: string) => ({ description, schema: { type: 'string' } })

function headersOf({ querystring, idempotent, isCollection }: Route, status: string): { headers?: JsonSchema } {
  const { cursor, after, limit } = (querystring as Partial<TObject> | undefined)?.properties ?? {}
  const isPaged = limit !== undefined && (cursor ?? after) !== undefined
  const headers = {
    ...(status === '201' && isCollection && { Location: text('Path of what was created.') }),
    ...(status === '503' && { 'Retry-After': text(AGAIN) }),
    ...(isPaged && { Link: text('`rel="next"`: the next page, when there is one.') }),
    ...(idempotent && { 'Idempotent-Replayed': text('`true` on an answer that was given before.') }),
  }
  return Object.keys(headers).length > 0 ? { headers } : {}
}

function refusals(own: readonly ErrorCode[], components: Components): Record<string, JsonSchema> {
  const byStatus = new Map<number, Set<ErrorCode>>()
  for (const code of own) {
    const { statusCode } = new GatewayError(code)
    byStatus.set(statusCode, (byStatus.get(statusCode) ?? new Set()).add(code))
  }
  return Object.fromEntries(
    [...byStatus]
      .sort(([a], [b]) => a - b)
      .map(([status, codes]) => [String(status), shared(status, [...codes], components)]),
  )
}

/** What passes by itself, whatever its status. */
const PASSING: ReadonlySet<ErrorCode> = new Set(['SG_ERR_IDEMPOTENCY_IN_FLIGHT'])

/** So many codes are a name that can be read; a longer list stands where it is. */
const MAX_NAMED = 3

function shared(status: number, codes: ErrorCode[], components: Components): JsonSchema {
  if (codes.length > MAX_NAMED) return refusal(status, codes, components)
  const name = codes.map((code) => variantName(code.replace('SG_ERR_', '').toLowerCase(), '')).join('Or')
  components.responses[name] ??= refusal(status, codes, components)
  return { $ref: `#/components/responses/${name}` }
}

function refusal(status: number, codes: ErrorCode[], components: Components): JsonSchema {
  const [first] = codes
  const { message } = new GatewayError(first!)
  const title = STATUS_CODES[status] ?? 'Error'
  const headers = {
    ...(status === 401 && { 'WWW-Authenticate': text('`Bearer`') }),
    ...((status === 429 || status === 503 || codes.some((code) => PASSING.has(code))) && {
      'Retry-After': text(AGAIN),
    }),
    ...(status === 415 && { 'Accept-Encoding': text('`identity`') }),
  }
  return {
    description: codes.map((code) => `\`${code}\`: ${new GatewayError(code).message}`).join('\n\n'),
    ...(Object.keys(headers).length > 0 && { headers }),
    content: {
      'application/problem+json': {
        schema: {
          allOf: [
            components.publish(Problem),
            {
              type: 'object',
              properties: { status: { type: 'integer', const: status }, code: { type: 'string', enum: codes } },
              required: ['status', 'code'],
            },
          ],
        },
        example: { ...problem, title, status, code: first, detail: message, error: message },
      },
    },
  }
}
