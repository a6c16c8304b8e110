import type { Client, SessionInfo } from '../../client/index.js'
import { CommandFailure, EXIT } from './exit.js'

const FULL_ID = 36

/** The whole id of what a prefix of it names. */
export async function wholeId(kind: string, prefix: string, all: () => AsyncIterable<{ id: string }>): Promise<string> {
  if (prefix.length >= FULL_ID) return prefix
  const found: string[] = []
  for await (const { id } of all()) {
    if (id === prefix) return id
    if (id.startsWith(prefix)) found.push(id)
  }
  if (found.length === 1) return found[0]!
  throw new CommandFailure(
    found.length === 0
      ? `There is no ${kind} whose id begins with ${prefix}. See session-gateway ${kind}s ls.`
      : `${found.length} ${kind}s begin with ${prefix}: write more of the id.`,
    found.length === 0 ? EXIT.failed : EXIT.usage,
  )
}

export const sessionId = (gateway: Client, prefix: string): Promise<string> =>
  wholeId('session', prefix, () => gateway.sessions.list())
export const jobId = (gateway: Client, prefix: string): Promise<string> =>
  wholeId('job', prefix, () => gateway.jobs.list())

/** Everything that somebody is asked, in all sessions. */
export async function pendingRequests(gateway: Client) {
  const waiting: SessionInfo[] = []
  for (const status of ['awaiting_approval', 'parked'] as const)
    for await (const session of gateway.sessions.list({ status })) waiting.push(session)
  const found = await Promise.all(
    waiting.map(async (session) => {
      const requests = session.parked ? (session.parked.permissions ?? []) : await requestsOf(gateway, session)
      return requests.map((request) => ({ session, request }))
    }),
  )
  return found.flat()
}

/** What a session that is awake asks stands in its snapshot alone. */
async function requestsOf(gateway: Client, { id, lastSeq }: SessionInfo) {
  const attachment = gateway.session(id).attach({ afterSeq: lastSeq })
  try {
    await new Promise<void>((resolve) =>
      attachment.onConnection(({ state }) => {
        if (state === 'live' || state === 'ended') resolve()
      }),
    )
    return attachment.snapshot?.pendingPermissions ?? []
  } finally {
    attachment.close()
  }
}
