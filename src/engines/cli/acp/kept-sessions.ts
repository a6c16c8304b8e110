import type { ClientContext, SessionCapabilities } from '@agentclientprotocol/sdk'
import { GatewayError, invalidField, startError } from '../../../errors.js'
import { untilAborted } from '../../../lib/aborted.js'
import { KeyedLock } from '../../../lib/keyed-lock.js'
import type { SdkSessionInfo } from '../claude/sdk-worker.js'
import { control } from '../control.js'
import type { ProfileAsRun } from '../credentials.js'
import { findExecutable, placeOf } from '../environment.js'
import { firstStart } from '../first-starts.js'
import { SLOT_MS, START_TIMEOUT_MS } from '../launch.js'
import { markerEnv } from '../markers.js'
import { AgentProcess } from '../process.js'
import { SpawnSlots } from '../spawn-slots.js'
import { privateFolder } from '../workspace/private-files.js'
import { isTrusted, workspaceEnv } from '../workspace/trust.js'
import { type AcpConnection, connectAcp, reasonOf } from './connection.js'
import { introduce } from './introduction.js'
import { pageOf } from './listed.js'
import { CANCELLED } from './permissions.js'

/** An agent is started for each answer: one at a time where the same sessions are kept, so that one that hangs holds up no others. */
const places = new KeyedLock()
const slots = new SpawnSlots()

/**
 * The sessions that an agent keeps, newest first, asked of the agent itself, which is started for that in a directory of its own.
 * @param dir sessions of this working directory; absent: whichever the agent lists
 * @param count how many are wanted
 * @throws GatewayError when it is not installed or does not answer
 */
export const askForSessions = (
  subject: ProfileAsRun,
  dir: string | undefined,
  count: number,
): Promise<SdkSessionInfo[]> =>
  withAgent(subject, dir, async (agent, { list }) => {
    const found: SdkSessionInfo[] = []
    if (!list) return found
    for await (const page of listed(agent, dir)) {
      found.push(...page)
      if (found.length >= count) break
    }
    return found.sort((first, second) => second.lastModified - first.lastModified)
  })

/**
 * Has an agent delete a session that it keeps.
 * @param dir where the session must have worked; absent: anywhere
 * @param assertUnused rejects when it may not be deleted now
 * @throws SG_ERR_UNSUPPORTED · SG_ERR_SDK_SESSION_NOT_FOUND · SG_ERR_ENGINE_REFUSED · SG_ERR_ENGINE_START
 */
export const askToDelete = (
  subject: ProfileAsRun,
  { sessionId, dir, assertUnused }: { sessionId: string; dir: string | undefined; assertUnused: () => Promise<void> },
): Promise<void> =>
  withAgent(subject, dir, async (agent, { list, delete: deletes }) => {
    // the protocol has deleting of what is listed alone
    if (!list || !deletes)
      throw invalidField('profile', `the agent ${subject.row.name} deletes no sessions.`, 'SG_ERR_UNSUPPORTED')
    for await (const page of listed(agent, dir))
      if (page.some((session) => session.sessionId === sessionId)) {
        await assertUnused()
        await control(async () => void (await agent.request('session/delete', { sessionId })), reasonOf)
        return
      }
    throw new GatewayError('SG_ERR_SDK_SESSION_NOT_FOUND')
  })

/** @throws GatewayError when the agent lists no such session of this working directory */
export async function assertBegunIn(agent: ClientContext, dir: string, sessionId: string): Promise<void> {
  for await (const page of listed(agent, dir)) if (page.some((session) => session.sessionId === sessionId)) return
  throw startError(
    `The agent goes on with a session only in the directory where it was begun, and lists no ${sessionId} of this one: name its own as cwd, which GET /sdk-sessions tells.`,
  )
}

/** Far more than any agent has; one whose list has no end would be asked until its time is over. */
const MAX_PAGES = 1_000

/** Page by page. @throws GatewayError after too many of them */
async function* listed(agent: ClientContext, dir: string | undefined): AsyncGenerator<SdkSessionInfo[]> {
  let cursor: string | undefined
  for (let left = MAX_PAGES; left > 0; left--) {
    const page = await pageOf(agent, dir, cursor)
    yield page.sessions
      .filter(({ cwd }) => dir === undefined || cwd === dir)
      .map(({ sessionId, cwd, title, updatedAt }) => ({
        ...{ sessionId, summary: title ?? '', lastModified: Date.parse(updatedAt ?? '') || 0 },
        ...(cwd !== undefined && { cwd }),
      }))
    cursor = page.nextCursor
    if (!cursor) return
  }
  throw startError(`The agent lists its sessions in more than ${MAX_PAGES} pages, and is not asked further.`)
}

/**
 * Starts the agent of a profile for one question, and ends it. What it finds in the directory that it is asked about it takes for no more
 * than its sessions would.
 */
function withAgent<Answer>(
  subject: ProfileAsRun,
  dir: string | undefined,
  ask: (agent: ClientContext, can: SessionCapabilities) => Promise<Answer>,
): Promise<Answer> {
  const { row, env } = subject
  // from here on, so that nobody waits for longer than for the agent that hangs
  const late = AbortSignal.timeout(START_TIMEOUT_MS)
  const place = placeOf(row, env)
  return places.run(place, async () => {
    const command = findExecutable(row.command ?? row.name, env)
    if (!command) throw startError(`The agent ${row.name} is not installed.`)
    let free = () => {}
    let cameAbout: ((cameAbout: boolean) => void) | undefined
    let running: AgentProcess | undefined
    let connection: AcpConnection | undefined
    const letOthers = () => {
      free()
      cameAbout?.(running !== undefined && !late.aborted)
    }
    try {
      if (row.acp?.firstStartAlone) cameAbout = await firstStart(place, late)
      free = await slots.take(late)
      setTimeout(letOthers, SLOT_MS).unref()
      running = await startIn(subject, command, dir)
      connection = connectAcp(running, { onUpdate: () => {}, onPermission: async () => CANCELLED })
      const { agent } = connection
      const answer = async () => {
        const hello = await introduce(agent)
        return ask(agent, hello.agentCapabilities?.sessionCapabilities ?? {})
      }
      return await untilAborted(answer(), late)
    } catch (error) {
      // how it ended tells more than how its connection broke
      const end = connection?.signal.aborted ? await running?.lastWords() : undefined
      if (end === undefined && error instanceof GatewayError) throw error
      if (late.aborted) throw startError(`The agent ${row.name} did not answer in time.`)
      throw startError(`The agent ${row.name} could not be asked for its sessions: ${end ?? reasonOf(error)}`, error)
    } finally {
      await running?.stop()
      letOthers()
    }
  })
}

async function startIn({ profile, row, env }: ProfileAsRun, command: string, dir: string | undefined) {
  const folder = await privateFolder()
  const trusted = isTrusted(row, profile, false)
  const workspace = await workspaceEnv(row, trusted, { env, cwd: dir ?? folder })
  return new AgentProcess({
    ...{ command, args: row.args, cwd: folder },
    env: { ...env, ...row.settings?.(env, trusted), ...workspace, ...(await markerEnv('')) },
  })
}
