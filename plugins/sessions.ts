import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import { create as contentDisposition } from 'content-disposition'
import { CommandResponse } from '../schemas/commands.js'
import { Text } from '../schemas/common.js'
import { ResolvePermissionRequest, ResolvePermissionResponse } from '../schemas/permissions.js'
import {
  type CreateSessionRequest,
  ListSessionFilesResponse,
  ListSessionsQuery,
  NoQuery,
  SessionInfo,
  SessionParams,
  UpdateSessionRequest,
} from '../schemas/sessions.js'
import { GatewayError } from '../src/errors.js'
import type { Gateway } from '../src/gateway.js'
import { Patience } from '../src/lib/patience.js'
import { parseCommand } from '../src/sessions/clients/parse-command.js'
import { ownPlace } from './own-place.js'
import { linkNext } from './paging.js'

const FILE_HEADERS = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "sandbox; default-src 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
}

/** Sessions over REST. */
export const sessionRoutes: FastifyPluginAsyncTypebox<{ gateway: Gateway }> = async (scope, { gateway }) => {
  const { registry } = gateway

  scope.get(
    '/sessions',
    { schema: { querystring: ListSessionsQuery, response: { 200: Type.Array(SessionInfo) } } },
    async (request, reply) => linkNext(request, reply, await registry.page(request.query, request.principal)),
  )

  scope.post(
    '/sessions',
    {
      schema: { response: { 201: SessionInfo } },
      // checked at the one door that sessions from everywhere come through
      config: { idempotent: true },
    },
    async (request, reply) => {
      const { body, principal, takenKey } = request
      const session = await registry.create(
        body as CreateSessionRequest,
        takenKey ? { principal, takenKey } : { principal },
      )
      return reply
        .code(201)
        .header('location', `${ownPlace(scope.prefix, request)}/sessions/${session.id}`)
        .send(session)
    },
  )

  scope.get(
    '/sessions/:id',
    { config: { owner: 'session' }, schema: { params: SessionParams, response: { 200: SessionInfo } } },
    async ({ params, principal }) => registry.visibleInfo(params.id, principal),
  )

  scope.patch(
    '/sessions/:id',
    {
      config: { owner: 'session' },
      schema: { params: SessionParams, body: UpdateSessionRequest, response: { 200: SessionInfo } },
    },
    async ({ params, principal, body }) => {
      return registry.rename(params.id, body.title, principal)
    },
  )

  scope.delete(
    '/sessions/:id',
    { config: { owner: 'session' }, schema: { params: SessionParams, response: { 200: SessionInfo } } },
    ({ params, principal }) => registry.close(params.id, 'client', principal),
  )

  scope.post(
    '/sessions/:id/commands',
    {
      config: { owner: 'session' },
      schema: { params: SessionParams, response: { 200: CommandResponse } },
      // the body is checked by the row that its type selects, so that a refusal names what is wrong with that command
    },
    async ({ params, principal, body }) => {
      const patience = new Patience(gateway.clock)
      const session = await registry.open(params.id, principal, patience)
      await session.handle(parseCommand(body), undefined, principal, patience)
      return { ok: true as const }
    },
  )

  scope.post(
    '/sessions/:id/permissions/:requestId',
    {
      config: { owner: 'session', idempotent: true },
      schema: {
        params: Type.Object({ ...SessionParams.properties, requestId: Text('Of the permission request.') }),
        body: ResolvePermissionRequest,
        response: { 200: ResolvePermissionResponse },
      },
    },
    async ({ params, principal, body, takenKey }) => {
      const { id, requestId } = params
      await registry.resolvePermission(id, requestId, body, principal, { takenKey })
      return { resolved: true as const }
    },
  )

  scope.get(
    '/sessions/:id/files',
    {
      config: { owner: 'session' },
      schema: { params: SessionParams, querystring: NoQuery, response: { 200: ListSessionFilesResponse } },
    },
    async ({ params, principal }) => {
      const { files } = await registry.open(params.id, principal)
      if (!files) throw new GatewayError('SG_ERR_FILES_NOT_FOUND')
      return { files: files.list() }
    },
  )

  scope.get(
    '/sessions/:id/files/*',
    {
      config: { owner: 'session' },
      schema: { params: Type.Object({ ...SessionParams.properties, '*': Type.String() }) },
    },
    async ({ params, principal }, reply) => {
      const { files } = await registry.open(params.id, principal)
      if (!files) throw new GatewayError('SG_ERR_FILES_NOT_FOUND')
      const content = files.read(params['*'])
      if (!content) throw new GatewayError('SG_ERR_FILE_NOT_FOUND')
      return reply
        .headers(FILE_HEADERS)
        .header('content-disposition', attachmentName(params['*']))
        .type('application/octet-stream')
        .send(Buffer.from(content.buffer, content.byteOffset, content.byteLength))
    },
  )
}

/** The file's own name, without what a header cannot carry and without marks that turn its reading direction around. */
const attachmentName = (path: string): string =>
  contentDisposition(path.slice(path.lastIndexOf('/') + 1).replace(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, '_'))
