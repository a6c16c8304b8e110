import type { ProfileOptions } from '../../schemas/profiles.js'
import { agentTable } from '../engines/cli/agent-table.js'
import { GatewayError, toError } from '../errors.js'
import { resolveRoots } from '../lib/paths-within-roots.js'
import { listenHostProblem } from '../lib/web-names.js'
import { configDirProblem } from '../profiles/config-dir.js'
import { assertBypassAllowed, validateProfile } from '../profiles/validate.js'
import { type ConfigProblem, memberPath } from './config-problem.js'
import type { Hooks } from './hooks.js'
import type { EffectiveConfig } from './load-config.js'

/**
 * What this machine does not have, or the profiles do not allow. `createWorkerServer` refuses the same, but stops at the first one;
 * here every one is found, with its place in the file.
 * @param hooks undefined: what they decide is not known
 */
export function hostProblems(config: EffectiveConfig, hooks?: Hooks): ConfigProblem[] {
  return [
    ...rootProblems('allowedCwdRoots', config.allowedCwdRoots),
    ...rootProblems('allowedConfigDirRoots', config.allowedConfigDirRoots),
    ...profileProblems(config, hooks),
    ...clusterProblems(config),
    ...listenHostProblems(config),
  ]
}

function listenHostProblems({ listen, cluster }: EffectiveConfig): ConfigProblem[] {
  const places: [path: string, host: string | undefined][] = [
    ['listen.host', listen.host],
    ['cluster.listen.host', cluster?.listen.host],
  ]
  return places.flatMap(([path, host]) => {
    const problem = host !== undefined && listenHostProblem(host)
    return problem ? [{ path, message: problem }] : []
  })
}

function clusterProblems({ cluster, storage, listen }: EffectiveConfig): ConfigProblem[] {
  if (!cluster) return []
  const problems: ConfigProblem[] = []
  if (storage === 'memory' || !('postgres' in storage))
    problems.push({ path: 'cluster', message: 'nodes share a PostgreSQL database: give storage.postgres' })
  if (cluster.listen.port !== 0 && cluster.listen.port === listen.port && cluster.listen.host === listen.host)
    problems.push({ path: 'cluster.listen', message: 'clients come there: choose another port for the other nodes' })
  return problems
}

const rootProblems = (option: string, roots: readonly string[] = []): ConfigProblem[] =>
  roots.flatMap((root, index) => problemsOf(memberPath(option, index), () => resolveRoots([root])))

function profileProblems(config: EffectiveConfig, hooks: Hooks | undefined): ConfigProblem[] {
  const { profiles = [], agents, disableBypassPermissions } = config
  const isHostsEngine = !hooks || hooks.createEngineRunner !== undefined
  const rules = { agents: agentTable(agents), hasEngineRunner: true, isHostsEngine }
  return profiles.flatMap((profile, index) => {
    const path = memberPath('profiles', index)
    const problems = problemsOf(path, () =>
      assertBypassAllowed(validateProfile(profile, rules), disableBypassPermissions === true),
    )
    if (profiles.findIndex(({ name }) => name === profile.name) < index)
      problems.push({ path: `${path}.name`, message: 'another profile has this name already' })
    return [...problems, ...directoryProblems(profile, path)]
  })
}

function directoryProblems({ configDir }: ProfileOptions, path: string): ConfigProblem[] {
  const problem = configDir === undefined ? undefined : configDirProblem(configDir)
  return problem ? [{ path: `${path}.configDir`, message: problem }] : []
}

/** Runs a check of the gateway's own and puts what it refused in its place. */
function problemsOf(path: string, run: () => unknown): ConfigProblem[] {
  try {
    run()
    return []
  } catch (error) {
    const fields = error instanceof GatewayError ? error.errors : undefined
    return (
      fields?.map((field) => ({ path: `${path}.${field.path}`, message: field.message })) ?? [
        { path, message: toError(error).message },
      ]
    )
  }
}
