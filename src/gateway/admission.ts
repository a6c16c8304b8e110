import { homedir } from 'node:os'
import type { ProfileInfo } from '../../schemas/profiles.js'
import { assertSuits, cliEngine } from '../engines/cli/index.js'
import { withHostedTools } from '../engines/hosted-tools.js'
import { isBundledEngine } from '../engines/provider/index.js'
import type { CreateEngineRunner, SessionRunnerConfig } from '../engines/runner.js'
import { ToolEndpoint } from '../engines/tool-endpoint.js'
import { ProfileCatalog } from '../profiles/catalog.js'
import { CliProfiles } from '../profiles/cli-profiles.js'
import { Admission } from '../sessions/admission.js'
import type { SessionRegistry } from '../sessions/registry.js'
import { refusing } from '../storage/availability.js'
import type { EgressPolicy } from '../webhooks/egress.js'
import type { Ground } from './ground.js'

/** @throws GatewayError of a declared profile that cannot be one */
export function buildProfiles(ground: Ground, egress: EgressPolicy): ProfileCatalog {
  const { options, env, logger, clock, retryAfter, storage } = ground
  const { createEngineRunner } = options
  const store =
    options.storage && options.profileStore === options.storage.profiles ? storage?.profiles : options.profileStore
  return new ProfileCatalog({
    ...{ env, logger, clock, retryAfter, egress },
    declared: options.profiles,
    ...(store && { store: refusing(store) }),
    shared: ground.isOneOfSeveral,
    ...(options.allowedConfigDirRoots && { allowedConfigDirRoots: options.allowedConfigDirRoots }),
    cwdRoots: options.cwdRoots,
    agents: options.agents,
    managedProfiles: options.managedProfiles,
    allowConfigDirOverlap: options.allowConfigDirOverlap ?? false,
    hasEngineRunner: createEngineRunner !== undefined,
    isHostsEngine: createEngineRunner !== undefined && !isBundledEngine(createEngineRunner),
    disableBypassPermissions: options.disableBypassPermissions,
    servesTools: (options.executions?.tools ?? []).length > 0,
    notices: options.notices,
    keepKey: ground.keepKeyFor(store, storage?.profiles),
  })
}

/** What a session may be, and the engines that it is built with. */
export function buildAdmission(
  ground: Ground,
  profiles: ProfileCatalog,
): { admission: Admission; toolEndpoint: ToolEndpoint } {
  const { options, surroundings, clock, logger, standstill } = ground
  const toolEndpoint = new ToolEndpoint(logger)
  const admission = new Admission({
    ...{ clock, profiles, standstill },
    roots: options.cwdRoots,
    disableBypassPermissions: options.disableBypassPermissions,
    buildRunnerConfig: options.buildRunnerConfig,
    deferredTools: options.executions?.tools.map(({ dispatch: _told, ...tool }) => tool) ?? [],
    engines: {
      cli: withHostedTools(surroundings.createCliRunner ?? bundledCli(ground), toolEndpoint, clock),
      provider: options.createEngineRunner,
    },
    assertSuitsAgent: surroundings.createCliRunner ? undefined : suitsAgent(ground),
  })
  return { admission, toolEndpoint }
}

/** What command-line agents know by themselves: who they are signed in as, and what they worked on without the gateway. */
export function buildCliProfiles(ground: Ground, profiles: ProfileCatalog, registry: SessionRegistry): CliProfiles {
  const { options, env, secretEnv, logger } = ground
  return new CliProfiles({
    ...{ profiles, env, secretEnv, logger, notices: options.notices, buildRunnerConfig: options.buildRunnerConfig },
    agents: options.agents,
    roots: options.cwdRoots,
    checkIn: options.allowedCwdRoots?.[0] ?? homedir(),
    checkCredentials: options.checkCredentials,
    listSdkSessions: options.listSdkSessions,
    isContinued: (sdkSessionId) => registry.isContinued(sdkSessionId),
  })
}

const bundledCli = ({ options, env, secretEnv, logger, storage }: Ground): CreateEngineRunner => {
  const { agents, cwdRoots: roots, cluster } = options
  const carried = cluster?.agentState === 'copied' ? refusing(storage!.cluster!.carried) : undefined
  return cliEngine({ ...(agents && { agents }), ...(roots && { roots }), env, secretEnv, logger, carried })
}

const suitsAgent =
  ({ options: { agents, executions }, env, secretEnv }: Ground) =>
  (profile: ProfileInfo, request: SessionRunnerConfig): void =>
    assertSuits({ ...(agents && { agents }), env, secretEnv }, profile, request, executions?.tools ?? [])
