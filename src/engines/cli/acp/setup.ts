import type { PermissionMode } from '../../../../schemas/permissions.js'
import type { HostedTools } from '../../hosted-tools.js'
import type { AgentSetup } from '../launch.js'
import type { CostState } from './cost.js'

export interface AcpSetup extends AgentSetup {
  /** The executable. */
  readonly command: string
  readonly hostedTools: HostedTools | undefined
}

/** What a successor needs to go on. */
export interface AcpState extends CostState {
  agent: string
  sdkSessionId: string
  permissionMode: PermissionMode
  model?: string
  /** The one that the agent chose by itself; absent in what earlier versions kept. */
  defaultModel?: string
  /** No turn went well, so the agent may have kept nothing. */
  isFresh: boolean
  /** The agent's own files of the session were seen, so that they can be missed. */
  hasTranscript?: true
  numTurns: number
  /** What the agent calls the session. */
  title?: string
}
