import { invalidField } from '../../errors.js'
import type { SessionRunnerConfig } from '../runner.js'
import type { AgentRow } from './agent-table.js'
import { assertSayable } from './claude/arguments.js'
import type { Environment } from './environment.js'

/** An agent, and what its sessions run in. */
interface Subject {
  readonly row: AgentRow
  readonly env: Environment
}

/**
 * Refuses what an agent does not have. To leave it out in silence would be to promise it.
 * @param trusted whether files of the working directory may run commands
 * @throws GatewayError 400, naming the field
 */
export function refuseWhatIsLacking(config: SessionRunnerConfig, subject: Subject, trusted: boolean): void {
  const { row } = subject
  if (!trusted) refuseUntrusted(config, row)
  if (row.driver === 'claude') refuseUnsayable(config, subject)
  else refuseUnsupported(config, row)
}

/** Run as root `claude` ends at once when bypassing is as much as possible. What a wrapper makes of it is the operator's affair. */
export const canBypass = ({ row, env }: Subject): boolean =>
  row.driver !== 'claude' || process.getuid?.() !== 0 || Boolean(env.IS_SANDBOX) || row.command !== undefined

/** @throws SG_ERR_PERMISSION_MODE for a mode that the agent's runner will say it does not have */
export function refuseMode({ permissionMode }: SessionRunnerConfig, subject: Subject): void {
  const { name, permissionModes } = subject.row
  const modes = permissionModes.filter((mode) => mode !== 'bypassPermissions' || canBypass(subject))
  if (permissionMode !== undefined && !modes.includes(permissionMode))
    throw invalidField(
      'permissionMode',
      `the agent ${name} has ${modes.join(', ')}, not ${permissionMode}.`,
      'SG_ERR_PERMISSION_MODE',
    )
}

function refuseUnsayable(config: SessionRunnerConfig, subject: Subject): void {
  assertSayable(config, subject.row.command)
  if (config.allowDangerouslySkipPermissions && !canBypass(subject))
    throw invalidField(
      'allowDangerouslySkipPermissions',
      'the claude agent refuses it to root: run the gateway as another user.',
      'SG_ERR_UNSUPPORTED',
    )
}

/** What only works in a working directory whose files may run commands. */
function refuseUntrusted({ settingSources, mcpServers = {} }: SessionRunnerConfig, row: AgentRow): void {
  const remedy = 'set trustWorkspace on the profile if its files may run commands.'
  const source = settingSources?.find((one) => one !== 'user')
  if (row.driver === 'claude' && source)
    throw invalidField(
      'settingSources',
      `${source} settings are the working directory's: ${remedy}`,
      'SG_ERR_UNSUPPORTED',
    )
  if (row.untrusted?.withoutMcp && Object.keys(mcpServers).length > 0)
    throw invalidField(
      'mcpServers',
      `the agent ${row.name} starts none where it does not trust the working directory: ${remedy}`,
      'SG_ERR_UNSUPPORTED',
    )
}

/** Options that the protocol has no word for. */
const CLAUDE_ONLY = ['allowedTools', 'disallowedTools', 'maxTurns', 'maxBudgetUsd', 'settingSources'] as const

function refuseUnsupported(config: SessionRunnerConfig, row: AgentRow): void {
  const field = CLAUDE_ONLY.find((name) => config[name] !== undefined)
  if (field) throw invalidField(field, `the agent ${row.name} has no such setting.`, 'SG_ERR_UNSUPPORTED')
}
