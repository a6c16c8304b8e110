import type { SessionEventOf } from '../../../schemas/events.js'

type Resolved = SessionEventOf<'permission_resolved'>

export const DONE = { allow: 'allowed', deny: 'denied' } as const

const WAYS: Record<string, string> = {
  socket: 'in an application',
  rest: 'over the API',
  inbox: 'in the inbox',
  link: 'by a link',
}

/** In a sentence. */
export function whoWasFirst(resolved: Pick<Resolved, 'behavior' | 'resolvedBy' | 'by'> | undefined): string {
  if (!resolved) return 'Somebody has answered this, and nothing waits for an answer any more.'
  const { behavior, resolvedBy, by } = resolved
  if (resolvedBy === 'timeout') return 'Nobody answered in time, so it was denied.'
  if (resolvedBy === 'policy') return `Nobody is waited for any more: it was ${DONE[behavior]} by the gateway.`
  const who = by?.principal ?? 'somebody'
  const way = by && WAYS[by.channel]
  return `It was ${DONE[behavior]} by ${way ? `${who}, ${way}` : who}, who was first.`
}
