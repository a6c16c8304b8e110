import { existsSync } from 'node:fs'
import type { ProfileInfo } from '../../../schemas/profiles.js'
import { startError } from '../../errors.js'
import { type Clock, systemClock } from '../../lib/clock.js'
import type { Logger } from '../../lib/logger.js'
import type { PathRoots } from '../../lib/paths-within-roots.js'
import { type HostedContext, refuseLookalikes } from '../hosted-tools.js'
import type { DeferredTool, EngineRunnerContext, Runner, SessionRunnerConfig } from '../runner.js'
import { AcpRunner } from './acp/runner.js'
import type { AcpState } from './acp/setup.js'
import { type AgentDeclaration, type AgentRow, agentTable, DEFAULT_AGENT } from './agent-table.js'
import type { CarriedFiles } from './carry/carried-files.js'
import { CarriedRunner, type WritingRunner } from './carry/carried-runner.js'
import { Carrier } from './carry/carrier.js'
import { claudeExecutable, NO_CLAUDE } from './claude/executable.js'
import { ClaudeRunner } from './claude/runner.js'
import { CLAUDE_SDK, loadClaudeSdk } from './claude/sdk.js'
import type { ClaudeState } from './claude/setup.js'
import type { ProfileAsRun } from './credentials.js'
import { configDirOf, type Environment, findExecutable, sessionEnvironment } from './environment.js'
import { canBypass, refuseMode, refuseWhatIsLacking } from './lacking.js'
import type { AgentSetup } from './launch.js'
import { SpawnSlots } from './spawn-slots.js'
import { isTrusted, untrustedRow, workspaceEnv } from './workspace/trust.js'

export { type AgentDeclaration, type AgentRow, agentTable, BUILT_IN_AGENTS, DEFAULT_AGENT } from './agent-table.js'
export { CLAUDE_SDK } from './claude/sdk.js'
export {
  type CredentialCheck,
  type CredentialProbe,
  type CredentialVerdict,
  checkCredentials,
  type ProfileAsRun,
} from './credentials.js'
export { leash } from './leash.js'
export { endOrphans } from './markers.js'
export {
  deleteSdkSession,
  listSdkSessions,
  type SdkSession,
  type SdkSessionDeletion,
  type SdkSessionsPage,
} from './sdk-sessions.js'
export { cannotDistrust } from './workspace/trust.js'

export interface CliEngineOptions {
  /** The operator's agents; one with a built-in's name overrides it field by field. */
  agents?: readonly AgentDeclaration[]
  /** Where sessions may work, checked once more when the agent starts; default anywhere. */
  roots?: PathRoots
  /** The environment that agents get their share of; default the process's. */
  env?: Environment
  /** Names of variables that hold the gateway's own secrets; no agent gets them. */
  secretEnv?: readonly string[]
  /** Default the system's. */
  clock?: Clock
  /** How many agents may start at the same time; default one per core, and at least two. */
  maxConcurrentStarts?: number
  /** The Claude Agent SDK: a package name or the URL of its entry; default its own name. */
  claudeSdk?: string
  /** Hears of every agent that starts and ends. */
  logger?: Logger
  /** Where sessions of agents that can go on elsewhere are kept for other nodes. Default: nowhere. */
  carried?: CarriedFiles | undefined
}

/** Builds the runners of `cli` sessions: real agents, each in a process of its own. */
export function cliEngine(options: CliEngineOptions = {}): (context: HostedContext) => Promise<Runner> {
  const agents = agentTable(options.agents)
  const slots = new SpawnSlots(options.maxConcurrentStarts)
  return async (context) => {
    const { profile, config } = context
    const subject = subjectOf(agents, options, profile, config.env)
    const trusted = isTrusted(subject.row, profile, context.hostedTools !== undefined)
    refuseWhatIsLacking(config, subject, trusted)
    const setup: AgentSetup = {
      sessionId: context.sessionId,
      row: trusted ? subject.row : untrustedRow(subject.row),
      config,
      env: {
        ...subject.env,
        ...subject.row.settings?.(subject.env, trusted),
        ...(await workspaceEnv(subject.row, trusted, { env: subject.env, cwd: config.cwd })),
      },
      trusted,
      slots,
      roots: options.roots,
      logger: options.logger,
      clock: options.clock ?? systemClock,
    }
    const runner =
      subject.row.driver === 'claude'
        ? await claudeRunner(setup, context, options.claudeSdk ?? CLAUDE_SDK)
        : acpRunner(setup, context)
    return carried(runner, setup, options.carried, context.restore !== undefined)
  }
}

/** The same runner, or one whose agent goes on elsewhere. */
function carried(
  runner: WritingRunner,
  { row, env, sessionId, logger }: AgentSetup,
  store: CarriedFiles | undefined,
  isRestored: boolean,
): Runner {
  const configDir = configDirOf(row, env)
  if (!store || !row.carry || configDir === undefined) return runner
  const carrier = new Carrier({ store, sessionId, configDir, patterns: row.carry })
  return new CarriedRunner({ runner, carrier, isRestored, sessionId, logger })
}

/**
 * A profile with its agent and the environment that its sessions would run in: what credentials are checked with and sessions listed.
 * @param sessionEnv what the profile's pin adds
 * @throws GatewayError when there is no such agent
 */
export const cliSubject = (options: CliEngineOptions, profile: ProfileInfo, sessionEnv?: Environment): ProfileAsRun =>
  subjectOf(agentTable(options.agents), options, profile, sessionEnv)

/**
 * Refuses what the agent of a profile would refuse when it is started, as far as that is known before.
 * @param tools that the gateway hosts
 * @throws GatewayError 400, naming the field
 */
export function assertSuits(
  options: CliEngineOptions,
  profile: ProfileInfo,
  config: SessionRunnerConfig,
  tools: readonly DeferredTool[],
): void {
  const subject = cliSubject(options, profile)
  refuseWhatIsLacking(config, subject, isTrusted(subject.row, profile, tools.length > 0))
  refuseMode(config, subject)
  refuseLookalikes(config, tools)
}

/**
 * Whether the agent of a profile is there to be started.
 * @throws GatewayError what the first session would be refused with
 */
export async function assertInstalled(options: CliEngineOptions, profile: ProfileInfo): Promise<void> {
  const { row, env } = cliSubject(options, profile)
  if (row.driver === 'claude') {
    const { claudeSdk = CLAUDE_SDK } = options
    if (row.command !== undefined) requireExecutable(row.command, row, env)
    await loadClaudeSdk(claudeSdk)
    if (row.command === undefined && claudeExecutable(claudeSdk) === undefined) throw startError(NO_CLAUDE)
  } else requireExecutable(row.command ?? row.name, row, env)
}

function subjectOf(
  agents: ReadonlyMap<string, AgentRow>,
  { env: gatewayEnv = process.env, secretEnv: secrets = [] }: CliEngineOptions,
  profile: ProfileInfo,
  sessionEnv: Environment | undefined,
): ProfileAsRun {
  const name = profile.agent ?? DEFAULT_AGENT
  const row = agents.get(name)
  if (!row) throw startError(`There is no agent named ${name}.`)
  return { profile, row, env: sessionEnvironment({ row, gatewayEnv, sessionEnv, secrets }) }
}

/** Whether the sessions of a profile's agent can go on at nodes that have no config directory in common. */
export const canCarry = (
  agents: readonly AgentDeclaration[] | undefined,
  { agent = DEFAULT_AGENT }: ProfileInfo,
): boolean => agentTable(agents).get(agent)?.carry !== undefined

async function claudeRunner(
  setup: AgentSetup,
  { restore, hostedTools }: HostedContext,
  sdkSpecifier: string,
): Promise<WritingRunner> {
  const { row, env } = setup
  if (row.command !== undefined) requireExecutable(row.command, row, env)
  const sdk = await loadClaudeSdk(sdkSpecifier)
  return new ClaudeRunner(
    { ...setup, sdk, sdkSpecifier, canBypass: canBypass(setup), hostedTools },
    stateOf<ClaudeState>(restore, row),
  )
}

function acpRunner(setup: AgentSetup, { restore, hostedTools }: HostedContext): WritingRunner {
  const { row, env } = setup
  return new AcpRunner(
    { ...setup, command: requireExecutable(row.command ?? row.name, row, env), hostedTools },
    stateOf<AcpState>(restore, row),
  )
}

function requireExecutable(command: string, row: AgentRow, env: Environment): string {
  const found = findExecutable(command, env)
  if (found) return found
  if (command.includes('/') && existsSync(command))
    throw startError(`The agent ${row.name} cannot be started: its command ${command} is no file that may be executed.`)
  const isPath = command.includes('/')
  // what npm installs is found in the PATH, not at a place of the operator's
  const install = row.package && !isPath ? ` Run: npm i -g ${row.package}` : ''
  const where = isPath ? 'which does not exist' : 'which is not in the PATH of its sessions'
  throw startError(`The agent ${row.name} is not installed: it needs the command ${command}, ${where}.${install}`)
}

function stateOf<State extends { agent: string }>(
  restore: EngineRunnerContext['restore'],
  row: AgentRow,
): State | undefined {
  if (!restore) return undefined
  const state = restore.state as State
  if (restore.engine !== 'cli' || state.agent !== row.name)
    throw startError(`The session was another agent's, not ${row.name}'s.`)
  return state
}
