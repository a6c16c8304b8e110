import type { PermissionMode } from '../../../../schemas/permissions.js'
import type { HostedTools } from '../../hosted-tools.js'
import type { AgentSetup } from '../launch.js'
import type { ParkedTurn } from './parked-turn.js'
import type { ClaudeSdk } from './sdk.js'
import type { TranslatorState } from './translate.js'

export interface ClaudeSetup extends AgentSetup {
  readonly sdk: ClaudeSdk
  /** Where the SDK is loaded from, for the thread that reads transcripts. */
  readonly sdkSpecifier: string
  /** Whether the agent would run in `bypassPermissions` here. */
  readonly canBypass: boolean
  readonly hostedTools: HostedTools | undefined
}

/** What a successor needs to go on. */
export interface ClaudeState extends TranslatorState {
  agent: string
  sdkSessionId: string
  permissionMode: PermissionMode
  model?: string
  /** No turn went well, so there may be no transcript to resume. */
  isFresh: boolean
  /** It was parked in the middle of a turn. */
  parked?: ParkedTurn
}
