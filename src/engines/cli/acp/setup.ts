import type { PermissionMode } from '../../../../schemas/permissions.js'
import type { AgentSetup } from '../launch.js'

export interface AcpSetup extends AgentSetup {
  /** The executable. */
  readonly command: string
}

/** What a successor needs to go on. */
export interface AcpState {
  agent: string
  sdkSessionId: string
  permissionMode: PermissionMode
  model?: string
  /** No turn went well, so the agent may have kept nothing. */
  isFresh: boolean
  /** The agent's own files of the session were seen, so that they can be missed. */
  hasTranscript?: true
  numTurns: number
  costUsd: number
}
