import type { Client } from '../../client/index.js'
import { CommandFailure, EXIT } from './exit.js'

const FULL_ID = 36

/** Everything begins with nothing: a variable that is not set must not mean the only one that there is. */
export function assertNamed(kind: string, prefix: string): void {
  if (prefix === '')
    throw new CommandFailure(`The id of the ${kind} is empty: write at least its beginning.`, EXIT.usage)
}

/** The whole id of what a prefix of it names. */
export async function wholeId(kind: string, prefix: string, all: () => AsyncIterable<{ id: string }>): Promise<string> {
  assertNamed(kind, prefix)
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
