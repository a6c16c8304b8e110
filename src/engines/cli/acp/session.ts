import type {
  ClientContext,
  InitializeResponse,
  McpCapabilities,
  McpServer,
  SessionCapabilities,
} from '@agentclientprotocol/sdk'
import { GatewayError, invalidField, startError } from '../../../errors.js'
import { ended } from '../../../lib/sentence.js'
import type { SessionRunnerConfig } from '../../runner.js'
import { isAuthRequired, reasonOf } from './connection.js'
import { isForgotten } from './forgotten.js'
import { assertBegunIn } from './kept-sessions.js'
import { acpMcpServers, unreachable } from './mcp.js'
import type { SessionAnswer } from './session-config.js'
import type { AcpSetup } from './setup.js'

/** A session that is open at the agent. */
export interface OpenedSession {
  sessionId: string
  answer: SessionAnswer
  agentVersion: string | undefined
  /** Whether it is an earlier one. */
  isResumed: boolean
  /** Whether a later process of the agent can go on with it. */
  canResume: boolean
  /** The MCP servers that it was given. */
  servers: string[]
}

/** The session to go on with. */
export interface EarlierSession {
  sessionId: string
  /** The agent may know nothing of it, and a new one serves as well then. */
  orNew: boolean
  /** An earlier process of the agent had it for us. */
  isOurs: boolean
  /** A copy of it is gone on with. */
  fork: boolean
  /** Whether the agent has told anything that was said before. */
  hasHistory(): boolean
}

/**
 * Opens the session.
 * @param hello what the agent answered to the introduction
 * @param earlier absent: a new one
 * @throws GatewayError that says what the agent wants or cannot do
 */
export async function openSession(
  agent: ClientContext,
  setup: AcpSetup,
  hello: InitializeResponse,
  earlier: EarlierSession | undefined,
): Promise<OpenedSession> {
  const open = () => opened(agent, setup, earlier, hello)
  try {
    return await open()
  } catch (error) {
    if (!isAuthRequired(error)) throw sessionError(error)
    const login = setup.row.acp?.apiKeyLogin
    const { apiKeyEnv } = setup.row.credentials
    const hasKey = apiKeyEnv.length === 0 || apiKeyEnv.some((name) => setup.env[name])
    const offered = (hello.authMethods ?? []).map(({ id }) => id)
    if (!login || !hasKey || !offered.includes(login))
      throw startError(
        `The agent is not logged in: ${ended(reasonOf(error))} ${remedy(login, hasKey, apiKeyEnv, offered)}`,
        error,
      )
    try {
      await agent.request('authenticate', { methodId: login })
      return await open()
    } catch (refusal) {
      throw startError(`The agent is not logged in: ${reasonOf(refusal)}`, refusal)
    }
  }
}

async function opened(
  agent: ClientContext,
  { config, row, hostedTools }: AcpSetup,
  earlier: EarlierSession | undefined,
  hello: InitializeResponse,
): Promise<OpenedSession> {
  const { agentCapabilities, agentInfo } = hello
  const servers = reachableServers(config, agentCapabilities?.mcpCapabilities, hostedTools?.server)
  const place = { cwd: config.cwd, mcpServers: acpMcpServers(servers) }
  // Some advertise to resume, and then cannot: to load is the older word.
  const method = agentCapabilities?.loadSession
    ? 'session/load'
    : agentCapabilities?.sessionCapabilities?.resume && 'session/resume'
  const common = {
    agentVersion: agentInfo?.version,
    canResume: Boolean(method && row.acp?.resume),
    servers: Object.keys(servers ?? {}),
  }
  if (earlier) {
    const { orNew, isOurs, hasHistory } = earlier
    try {
      if (!method) throw startError('The agent cannot resume a session.')
      if (earlier.fork && !canFork(agentCapabilities?.sessionCapabilities))
        throw invalidField('forkSession', `the agent ${row.name} cannot fork a session.`, 'SG_ERR_UNSUPPORTED')
      if (row.acp?.staysInPlace && !isOurs && agentCapabilities?.sessionCapabilities?.list)
        await assertBegunIn(agent, config.cwd, earlier.sessionId)
      const sessionId = earlier.fork ? await forked(agent, earlier.sessionId, place) : earlier.sessionId
      const answer = await agent.request<SessionAnswer | null>(method, { ...place, sessionId })
      if (row.acp?.loadsAnything && !orNew && !hasHistory()) throw isOurs ? stateGone() : unknownSession(sessionId)
      return { sessionId, answer: answer ?? {}, isResumed: true, ...common }
    } catch (error) {
      if (isAuthRequired(error)) throw error
      if (!orNew)
        throw isOurs && (await isForgotten(agent, hello, { ...place, sessionId: earlier.sessionId, refusal: error }))
          ? stateGone(error)
          : error
    }
  }
  const answer = await agent.request<SessionAnswer | null>('session/new', place)
  return { sessionId: idOf(answer), answer: answer ?? {}, isResumed: false, ...common }
}

/**
 * The servers that an agent is given. The gateway's own is for every session, whether or not it makes use of it: the others go on without it.
 * @throws GatewayError when the agent has no way to another
 */
function reachableServers(
  { mcpServers }: SessionRunnerConfig,
  can: McpCapabilities | null | undefined,
  own: string | undefined,
): SessionRunnerConfig['mcpServers'] {
  const lacking = unreachable(mcpServers, can)
  const asked = lacking.filter(({ name }) => name !== own)
  if (asked.length > 0)
    throw startError(
      `The agent takes no MCP servers over ${asked[0]!.transport}, and ${asked.map(({ name }) => name).join(', ')} is one: it has no ` +
        `mcpCapabilities.${asked[0]!.transport}. Name a command that it starts instead, or leave the server out.`,
    )
  if (lacking.length === 0) return mcpServers
  return Object.fromEntries(Object.entries(mcpServers ?? {}).filter(([name]) => name !== own))
}

/** @throws GatewayError when the session has none */
function idOf(answer: { sessionId?: unknown } | null): string {
  const id = answer?.sessionId
  if (typeof id !== 'string' || id === '') throw startError('The agent opened a session and gave it no sessionId.')
  return id
}

function remedy(
  login: string | undefined,
  hasKey: boolean,
  apiKeyEnv: readonly string[],
  offered: readonly string[],
): string {
  if (login && !hasKey) return `Set ${apiKeyEnv.join(' or ')}, or log in with the agent itself.`
  const methods = offered.length > 0 ? offered.join(', ') : 'none'
  return login
    ? `It offers ${methods}, not ${login}.`
    : `Log in with the agent itself, or name one of its methods in agents[].auth: it offers ${methods}.`
}

/** Not in the protocol's stable part yet. */
const canFork = (can: SessionCapabilities | null | undefined): boolean =>
  Boolean((can as { fork?: unknown } | null | undefined)?.fork)

/** @returns the id of the copy */
async function forked(
  agent: ClientContext,
  sessionId: string,
  place: { cwd: string; mcpServers: McpServer[] },
): Promise<string> {
  return idOf(await agent.request<{ sessionId?: unknown } | null>('session/fork', { ...place, sessionId }))
}

/** The session cannot go on, whatever is tried. */
export const stateGone = (cause?: unknown): GatewayError => new GatewayError('SG_ERR_AGENT_STATE_GONE', { cause })

const unknownSession = (sessionId: string): GatewayError =>
  startError(`The agent knows no session ${sessionId} of this working directory.`)

const sessionError = (error: unknown) =>
  error instanceof GatewayError ? error : startError(`The agent could not open the session: ${reasonOf(error)}`, error)
