import { GatewayError } from '../../errors.js'
import { present } from '../../lib/present.js'
import { askForSessions, askToDelete } from './acp/kept-sessions.js'
import { filesWithSdk, type SdkSessionInfo } from './claude/sdk-worker.js'
import { control } from './control.js'
import type { ProfileAsRun } from './credentials.js'
import { placeOf } from './environment.js'

export interface SdkSessionsPage {
  /** Sessions of this working directory; absent: of all. */
  dir?: string | undefined
  limit: number
  offset: number
}

/** An agent's own session on disk, which `resume` of a create takes. */
export interface SdkSession extends SdkSessionInfo {
  profile?: string
  agent?: string
}

/**
 * Lists the sessions that the agents themselves keep, newest first. Among several profiles only agents whose files can be read without
 * starting them take part: that is claude. Of a single one the agent is asked. Profiles that share a directory are listed once.
 * @throws GatewayError when the agent's SDK is not installed
 */
export async function listSdkSessions(
  sources: readonly ProfileAsRun[],
  { dir, limit, offset }: SdkSessionsPage,
  claudeSdk: string,
): Promise<SdkSession[]> {
  const readable = distinct(sources.filter(({ row }) => row.driver === 'claude'))
  const asked = sources.length === 1 ? sources.filter(({ row }) => row.acp?.lists) : []
  const lists = await Promise.all(
    [...readable, ...asked].map(async (source) => {
      const { profile, row, env } = source
      const page = { ...(dir && { dir }), limit: offset + limit }
      const found = row.acp
        ? await askForSessions(source, dir, offset + limit)
        : await filesWithSdk(claudeSdk, env, 'listSessions', [page])
      return found.map((session) => ({
        ...named(session),
        ...(profile.name && { profile: profile.name }),
        agent: row.name,
      }))
    }),
  )
  return lists
    .flat()
    .sort((first, second) => second.lastModified - first.lastModified)
    .slice(offset, offset + limit)
}

export interface SdkSessionDeletion {
  sessionId: string
  /** Where it must have worked; absent: anywhere. */
  dir?: string | undefined
  /** Called when it is there and about to be deleted; rejects when it may not be. */
  assertUnused(): Promise<void>
}

/**
 * Deletes a session that an agent itself keeps, for an agent that can: with it goes all that was said in it.
 * @throws SG_ERR_SDK_SESSION_NOT_FOUND · SG_ERR_UNSUPPORTED · SG_ERR_ENGINE_REFUSED · SG_ERR_ENGINE_START
 */
export async function deleteSdkSession(
  source: ProfileAsRun,
  deletion: SdkSessionDeletion,
  claudeSdk: string,
): Promise<void> {
  if (source.row.driver !== 'claude') return askToDelete(source, { dir: undefined, ...deletion })
  const { sessionId, dir, assertUnused } = deletion
  const place = dir === undefined ? {} : { dir }
  if (!(await filesWithSdk(claudeSdk, source.env, 'getSessionInfo', [sessionId, place])))
    throw new GatewayError('SG_ERR_SDK_SESSION_NOT_FOUND')
  await assertUnused()
  await control(() => filesWithSdk(claudeSdk, source.env, 'deleteSession', [sessionId, place]))
}

function distinct(sources: readonly ProfileAsRun[]): ProfileAsRun[] {
  const byPlace = new Map<string, ProfileAsRun>()
  for (const source of sources) {
    const place = placeOf(source.row, source.env)
    if (!byPlace.has(place)) byPlace.set(place, source)
  }
  return [...byPlace.values()]
}

const named = ({
  sessionId,
  summary,
  lastModified,
  createdAt,
  firstPrompt,
  gitBranch,
  cwd,
}: SdkSessionInfo): SdkSession => ({
  ...{ sessionId, summary, lastModified },
  ...present({ createdAt, firstPrompt, gitBranch, cwd }),
})
