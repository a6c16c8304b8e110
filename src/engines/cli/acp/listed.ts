import type { ClientContext } from '@agentclientprotocol/sdk'
import { type Static, Type } from '@sinclair/typebox'
import { startError } from '../../../errors.js'
import { readAs } from '../read-as.js'

const Maybe = Type.Optional(Type.String())
const Session = Type.Object({ sessionId: Type.String(), cwd: Maybe, title: Maybe, updatedAt: Maybe })
const Page = Type.Object({ sessions: Type.Array(Type.Unknown()), nextCursor: Maybe })

/**
 * A page of the sessions that an agent keeps; what is none in it is passed over.
 * @throws when the agent refuses, and GatewayError when its answer is no list
 */
export async function pageOf(agent: ClientContext, cwd: string | undefined, cursor: string | undefined) {
  const answer = await agent.request('session/list', { ...(cwd && { cwd }), ...(cursor && { cursor }) })
  const page = readAs(Page, answer) as Static<typeof Page> | undefined
  if (!page) throw startError('What the agent lists its sessions with is not of the Agent Client Protocol.')
  const sessions = page.sessions.flatMap((one) => (readAs(Session, one) ?? []) as Static<typeof Session>[])
  return { sessions, isWhole: sessions.length === page.sessions.length, nextCursor: page.nextCursor }
}
