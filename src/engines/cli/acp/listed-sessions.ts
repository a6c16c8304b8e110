import { tmpdir } from 'node:os'
import { toError } from '../../../errors.js'
import { KeyedLock } from '../../../lib/keyed-lock.js'
import type { SdkSessionInfo } from '../claude/sdk-worker.js'
import { whenAborted } from '../control.js'
import type { CredentialSubject } from '../credentials.js'
import { findExecutable } from '../environment.js'
import { startError } from '../launch.js'
import { markerEnv } from '../markers.js'
import { AgentProcess } from '../process.js'
import { connectAcp } from './connection.js'
import { CANCELLED } from './permissions.js'

const LIMIT_MS = 60_000
/** An agent is started for each answer: one at a time. */
const starts = new KeyedLock()

/**
 * The sessions that an agent keeps, newest first, asked of the agent itself, which is started for that in a directory of nobody's.
 * @param dir sessions of this working directory; absent: whichever the agent lists
 * @param count how many are wanted
 * @throws GatewayError when it is not installed, does not answer or lists none
 */
export function askForSessions(
  subject: CredentialSubject,
  dir: string | undefined,
  count: number,
): Promise<SdkSessionInfo[]> {
  return starts.run(subject.row.name, () => ask(subject, dir, count))
}

async function ask({ row, env }: CredentialSubject, dir: string | undefined, count: number): Promise<SdkSessionInfo[]> {
  const command = findExecutable(row.command ?? row.name, env)
  if (!command) throw startError(`The agent ${row.name} is not installed.`)
  const running = new AgentProcess({
    ...{ command, args: row.args, cwd: tmpdir() },
    env: { ...env, ...(await markerEnv('')) },
  })
  const signal = AbortSignal.timeout(LIMIT_MS)
  try {
    const { agent } = connectAcp(running, { onUpdate: () => {}, onPermission: async () => CANCELLED })
    const listing = (async () => {
      const found: SdkSessionInfo[] = []
      const hello = await agent.request('initialize', { protocolVersion: 1, clientCapabilities: {} })
      if (!hello.agentCapabilities?.sessionCapabilities?.list) return found
      let cursor: string | null | undefined
      do {
        const page = await agent.request('session/list', { ...(dir && { cwd: dir }), ...(cursor && { cursor }) })
        for (const { sessionId, cwd, title, updatedAt } of page.sessions)
          if (dir === undefined || cwd === dir)
            found.push({ sessionId, summary: title ?? '', lastModified: Date.parse(updatedAt ?? '') || 0, cwd })
        cursor = page.nextCursor
      } while (cursor && found.length < count)
      return found.sort((first, second) => second.lastModified - first.lastModified)
    })()
    return await Promise.race([
      listing,
      whenAborted(signal).then(() => Promise.reject(startError(`The agent ${row.name} did not list its sessions.`))),
    ])
  } catch (error) {
    throw startError(`The agent ${row.name} could not list its sessions: ${toError(error).message}`, error)
  } finally {
    await running.stop()
  }
}
