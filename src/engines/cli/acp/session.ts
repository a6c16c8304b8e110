import type { ClientContext, InitializeResponse } from '@agentclientprotocol/sdk'
import { type AgentSetup, startError } from '../launch.js'
import { isAuthRequired, reasonOf } from './connection.js'
import { acpMcpServers } from './mcp.js'
import type { SessionAnswer } from './session-config.js'

/** A session that is open at the agent. */
export interface OpenedSession {
  sessionId: string
  answer: SessionAnswer
  agentVersion: string | undefined
  /** Whether it is an earlier one. */
  isResumed: boolean
  /** Whether a later process of the agent can go on with it. */
  canResume: boolean
}

/** The session to go on with. */
export interface EarlierSession {
  sessionId: string
  /** The agent may know nothing of it, and a new one serves as well then. */
  orNew: boolean
}

/**
 * Introduces us to the agent and opens the session.
 * @param earlier absent: a new one
 * @throws GatewayError that says what the agent wants or cannot do
 */
export async function openSession(
  agent: ClientContext,
  setup: AgentSetup,
  earlier: EarlierSession | undefined,
): Promise<OpenedSession> {
  const hello = await agent
    .request('initialize', {
      protocolVersion: 1,
      clientCapabilities: {},
      clientInfo: { name: 'session-gateway', version: '1' },
    })
    .catch((error) => {
      throw startError(`The agent does not speak the Agent Client Protocol: ${reasonOf(error)}`, error)
    })
  const open = () => opened(agent, setup, earlier, hello)
  try {
    return await open()
  } catch (error) {
    if (!isAuthRequired(error)) throw sessionError(error)
    const login = setup.row.acp?.apiKeyLogin
    const hasKey = setup.row.credentials.apiKeyEnv.some((name) => setup.env[name])
    const isOffered = (hello.authMethods ?? []).some(({ id }) => id === login)
    if (!login || !hasKey || !isOffered) throw startError(`The agent is not logged in: ${reasonOf(error)}`, error)
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
  { config, row }: AgentSetup,
  earlier: EarlierSession | undefined,
  { agentCapabilities, agentInfo }: InitializeResponse,
): Promise<OpenedSession> {
  const place = { cwd: config.cwd, mcpServers: acpMcpServers(config.mcpServers) }
  // Some advertise to resume, and then cannot: to load is the older word.
  const method = agentCapabilities?.loadSession
    ? 'session/load'
    : agentCapabilities?.sessionCapabilities?.resume && 'session/resume'
  const common = { agentVersion: agentInfo?.version, canResume: Boolean(method && row.acp?.resume) }
  if (earlier) {
    const { sessionId, orNew } = earlier
    try {
      if (!method) throw startError('The agent cannot resume a session.')
      const answer = await agent.request<SessionAnswer | null>(method, { ...place, sessionId })
      return { sessionId, answer: answer ?? {}, isResumed: true, ...common }
    } catch (error) {
      if (!orNew || isAuthRequired(error)) throw error
    }
  }
  const answer = await agent.request<SessionAnswer & { sessionId: string }>('session/new', place)
  return { sessionId: answer.sessionId, answer, isResumed: false, ...common }
}

const sessionError = (error: unknown) => startError(`The agent could not open the session: ${reasonOf(error)}`, error)
