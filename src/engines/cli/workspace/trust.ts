import type { ProfileInfo } from '../../../../schemas/profiles.js'
import type { AgentRow } from '../agent-table.js'
import { configDirOf, type Environment } from '../environment.js'

/** How an agent is kept from what files of the working directory would have it run: hooks, MCP servers, plugins, discovery commands. */
export interface UntrustedWorkspace {
  /** Set over whatever else is said of these variables. */
  readonly env?: Readonly<Record<string, string>>
  /** For an agent that is told by files. @returns more of `env` */
  readonly prepare?: (place: AgentPlace) => Promise<Record<string, string>>
  /** What must be set where the working directory is trusted, or the agent would not trust it. */
  readonly trustedEnv?: Readonly<Record<string, string>>
  /** It then starts no MCP servers at all, ours included. */
  readonly withoutMcp?: true
  /** Modes that it refuses there, and what stands in for them. */
  readonly modes?: AgentRow['modes']
}

/** Where an agent is to work, and as whom. */
export interface AgentPlace {
  readonly env: Environment
  /** The working directory, as its real path. */
  readonly cwd: string
  readonly command: string | undefined
  readonly configDir: string | undefined
}

/**
 * Whether an agent cannot be kept from what the working directory says.
 * @param servesTools whether the gateway hosts tools of its own, which every session is to have
 */
export const cannotDistrust = (
  { untrusted }: AgentRow,
  { trustWorkspace }: ProfileInfo,
  servesTools: boolean,
): boolean => untrusted === undefined || (untrusted.withoutMcp === true && servesTools && trustWorkspace === undefined)

/** Whether files of the working directory that can run commands are honoured in sessions of a profile. */
export const isTrusted = (row: AgentRow, profile: ProfileInfo, servesTools: boolean): boolean =>
  profile.trustWorkspace === true || cannotDistrust(row, profile, servesTools)

/** What is to stand in an agent's environment, whoever else says something about it. */
export async function workspaceEnv(
  row: AgentRow,
  trusted: boolean,
  { env, cwd }: Pick<AgentPlace, 'env' | 'cwd'>,
): Promise<Record<string, string>> {
  const { untrusted = {}, command } = row
  if (trusted) return { ...untrusted.trustedEnv }
  const configDir = configDirOf(row, env)
  return { ...untrusted.env, ...(await untrusted.prepare?.({ env, cwd, command, configDir })) }
}

/** The row of an agent at work where nothing is trusted. */
export const untrustedRow = (row: AgentRow): AgentRow =>
  row.untrusted?.modes ? { ...row, modes: { ...row.modes, ...row.untrusted.modes } } : row
