import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { ClientContext, InitializeResponse } from '@agentclientprotocol/sdk'
import { configDirGone, configDirOf } from '../environment.js'
import type { AgentSetup } from '../launch.js'
import { pageOf } from './listed.js'

/** The protocol's code for what is not there. */
const NOT_FOUND = -32002
/** An agent that lists more than that is not asked further. */
const MAX_PAGES = 100

/**
 * Whether an agent that refused to load a session of its own has nothing of it any more: it lists its sessions without this one, or
 * says so itself. A refusal for any other reason may be over soon.
 */
export async function isForgotten(
  agent: ClientContext,
  { agentCapabilities }: InitializeResponse,
  { cwd, sessionId, refusal }: { cwd: string; sessionId: string; refusal: unknown },
): Promise<boolean> {
  const { code } = refusal as { code?: unknown }
  // errors of the protocol have numbers, those of a pipe have names
  if (typeof code !== 'number') return false
  if (!agentCapabilities?.sessionCapabilities?.list) return code === NOT_FOUND
  let cursor: string | undefined
  for (let page = 0; page < MAX_PAGES; page++) {
    const listed = await pageOf(agent, cwd, cursor).catch(() => undefined)
    if (!listed?.isWhole || listed.sessions.some((session) => session.sessionId === sessionId)) return false
    cursor = listed.nextCursor
    if (!cursor) return true
  }
  return false
}

/**
 * Whether the agent has written something of a session down; undefined where that is not known of this agent.
 * @throws SG_ERR_ENGINE_START when the directory in which all of it lies is not there, as on a mount that is gone
 */
export async function hasTranscript(
  { row, env }: Pick<AgentSetup, 'row' | 'env'>,
  sessionId: string,
): Promise<boolean | undefined> {
  const traits = row.acp?.transcripts
  const directory = configDirOf(row, env)
  if (!traits || !directory) return undefined
  const found = await readdir(join(directory, traits.folder), { recursive: true }).catch(() => [])
  if (found.some((path) => path.endsWith(traits.suffix(sessionId)))) return true
  if (!(await stat(directory).catch(() => undefined))) throw configDirGone(row)
  return false
}
