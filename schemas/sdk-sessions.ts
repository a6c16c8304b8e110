import { type Static, Type } from '@sinclair/typebox'
import { strict } from './common.js'

/** An agent's own session on disk; `sessionId` is what `resume` of a create takes. */
export const SdkSession = Type.Object({
  sessionId: Type.String(),
  summary: Type.String(),
  lastModified: Type.Number(),
  createdAt: Type.Optional(Type.Number()),
  firstPrompt: Type.Optional(Type.String()),
  gitBranch: Type.Optional(Type.String()),
  cwd: Type.Optional(Type.String()),
  profile: Type.Optional(Type.String()),
  agent: Type.Optional(Type.String()),
})
export type SdkSession = Static<typeof SdkSession>

/** `limit` defaults to 50. */
export const ListSdkSessionsQuery = Type.Object(
  {
    dir: Type.Optional(Type.String()),
    profile: Type.Optional(Type.String()),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200 })),
    offset: Type.Optional(Type.Integer({ minimum: 0, maximum: 1_000_000 })),
  },
  strict,
)
export type ListSdkSessionsQuery = Static<typeof ListSdkSessionsQuery>

export const SdkSessionParams = Type.Object({ sessionId: Type.String({ minLength: 1 }) })

/** Whose session it is, and where it worked: as they were listed. */
export const DeleteSdkSessionQuery = Type.Object(
  { dir: Type.Optional(Type.String()), profile: Type.Optional(Type.String()) },
  strict,
)
export type DeleteSdkSessionQuery = Static<typeof DeleteSdkSessionQuery>
