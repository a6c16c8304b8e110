import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from '@sinclair/typebox'
import type { FastifyRequest } from 'fastify'
import {
  CreateProfileRequest,
  GetProfileResponse,
  ListProfilesResponse,
  ProfileInfo,
  ProfileParams,
  UpdateProfileRequest,
} from '../schemas/profiles.js'
import { NoQuery } from '../schemas/sessions.js'
import type { Gateway } from '../src/gateway.js'
import { ownPlace } from './own-place.js'

/** Profiles over REST; managing them needs a store. */
export const profileRoutes: FastifyPluginAsyncTypebox<{ gateway: Gateway }> = async (scope, { gateway }) => {
  const { profiles } = gateway
  const isAbsent = !profiles.isManageable
  // before the body, one that is not asked for included
  const mayChange = async ({ params, principal }: FastifyRequest) =>
    void profiles.authorizeChange(principal, (params as Static<typeof ProfileParams>).name)

  scope.get(
    '/profiles',
    { schema: { querystring: NoQuery, response: { 200: ListProfilesResponse } } },
    async ({ principal }) => {
      const refreshed = profiles.refreshed()
      if (refreshed) await refreshed
      return profiles.list(principal)
    },
  )

  scope.get(
    '/profiles/:name',
    { config: { owner: 'any' }, schema: { params: ProfileParams, response: { 200: GetProfileResponse } } },
    async ({ params, principal }) => {
      const refreshed = profiles.refreshed()
      if (refreshed) await refreshed
      return profiles.describe(params.name, principal)
    },
  )

  scope.post(
    '/profiles',
    {
      config: { idempotent: true, isAbsent },
      // Before the body: who may not manage learns nothing of what would have been valid.
      onRequest: async ({ principal }) => void profiles.authorize(principal),
      schema: { body: CreateProfileRequest, response: { 201: ProfileInfo } },
    },
    async (request, reply) => {
      const { body, principal, takenKey } = request
      const profile = await profiles.create(body, principal, takenKey)
      return reply
        .code(201)
        .header('location', `${ownPlace(scope.prefix, request)}/profiles/${profile.name}`)
        .send(profile)
    },
  )

  scope.patch(
    '/profiles/:name',
    {
      config: { owner: 'any', isAbsent },
      onRequest: mayChange,
      schema: { params: ProfileParams, body: UpdateProfileRequest, response: { 200: ProfileInfo } },
    },
    async ({ params, body, principal }) => profiles.update(params.name, body, principal),
  )

  scope.delete(
    '/profiles/:name',
    {
      config: { owner: 'any', isAbsent },
      onRequest: mayChange,
      schema: { params: ProfileParams, response: { 204: Type.Null() } },
    },
    async ({ params, principal }, reply) => {
      await profiles.remove(params.name, principal)
      return reply.code(204).send(null)
    },
  )
}
