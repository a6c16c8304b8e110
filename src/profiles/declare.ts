import { homedir } from 'node:os'
import { resolve } from 'node:path'
import type { ProfileInfo, ProfileOptions } from '../../schemas/profiles.js'
import { DEFAULT_AGENT } from '../engines/cli/agent-table.js'
import { optionError, toError } from '../errors.js'
import type { Logger } from '../lib/logger.js'
import { type PathRoots, rootsOption } from '../lib/paths-within-roots.js'
import { configDirProblem, isWritableByOthers, overlaps } from './config-dir.js'
import { operatorConfigDir } from './pin.js'
import { assertBypassAllowed, type ProfileRules, validateProfile } from './validate.js'

export interface DeclareOptions extends ProfileRules {
  declared: readonly ProfileOptions[] | undefined
  disableBypassPermissions: boolean
  /** Where sessions may start; undefined: anywhere. */
  cwdRoots?: PathRoots | undefined
  allowConfigDirOverlap: boolean
  env: NodeJS.ProcessEnv
  logger: Logger
}

/**
 * The profiles that exist from startup on: the declared ones, or without a declaration the operator's own as `default`.
 * @throws SG_ERR_OPTION for the first one that cannot be
 */
export function declareProfiles(options: DeclareOptions): ProfileInfo[] {
  const { declared, logger, cwdRoots } = options
  if (declared === undefined) return detectDefault(options)
  if (!Array.isArray(declared)) throw optionError('profiles', 'must be a list of profiles.')
  const profiles = declared.map((input, index) => declare(input, index, options))
  const names = new Set<string>()
  for (const { name, configDir } of profiles) {
    if (names.has(name)) throw optionError('profiles', `two profiles are named ${name}.`)
    names.add(name)
    if (configDir === undefined) continue
    if (cwdRoots && overlaps(configDir, cwdRoots))
      refuseOverlap(`profile ${name}: configDir ${JSON.stringify(configDir)}`, 'profiles', options)
    warnIfWritable(name, configDir, logger)
  }
  return profiles
}

function declare(input: ProfileOptions, index: number, options: DeclareOptions): ProfileInfo {
  const named: unknown = input?.name
  const who = typeof named === 'string' ? `profile ${JSON.stringify(named)}` : `profile number ${index + 1}`
  let profile: ProfileInfo
  try {
    profile = validateProfile(input, options)
    assertBypassAllowed(profile, options.disableBypassPermissions)
  } catch (thrown) {
    throw optionError('profiles', `${who}: ${toError(thrown).message}`)
  }
  const problem = profile.configDir === undefined ? undefined : configDirProblem(profile.configDir)
  if (problem) throw optionError('profiles', `${who}: configDir: ${problem}`)
  return profile
}

/** It warns where a declaration is refused: with one identity there is no other one to gain, and a home directory is a usual root. */
function detectDefault({ agents, env, logger, cwdRoots }: DeclareOptions): ProfileInfo[] {
  const agentRow = agents.get(DEFAULT_AGENT)
  const found = agentRow && operatorConfigDir({ agentRow, env, home: homedir() })
  if (!found) return []
  const configDir = resolve(found)
  if (configDirProblem(configDir)) return []
  if (cwdRoots && overlaps(configDir, cwdRoots))
    logger.warn({ configDir }, 'allowedCwdRoots lets sessions start in the config directory of profile default')
  warnIfWritable('default', configDir, logger)
  return [{ name: 'default', engine: 'cli', configDir }]
}

/**
 * Resolves `allowedConfigDirRoots`.
 * @returns undefined when managed `cli` profiles are off
 * @throws SG_ERR_OPTION for a root that is none, or that sessions may start in or above
 */
export function configDirRoots(
  roots: readonly string[] | undefined,
  options: Pick<DeclareOptions, 'cwdRoots' | 'allowConfigDirOverlap'>,
): PathRoots | undefined {
  const resolved = rootsOption('allowedConfigDirRoots', roots)
  const { cwdRoots } = options
  if (!resolved || !cwdRoots) return resolved
  for (const root of roots!)
    if (overlaps(root, cwdRoots)) refuseOverlap(JSON.stringify(root), 'allowedConfigDirRoots', options)
  return resolved
}

function refuseOverlap(
  what: string,
  option: string,
  { allowConfigDirOverlap }: { allowConfigDirOverlap: boolean },
): void {
  if (allowConfigDirOverlap) return
  const why = 'an agent at work there could write settings that other sessions then run with'
  throw optionError(option, `${what} overlaps allowedCwdRoots: ${why}. allowConfigDirOverlap: true accepts that.`)
}

function warnIfWritable(profile: string, configDir: string, logger: Logger): void {
  if (isWritableByOthers(configDir))
    logger.warn(
      { profile, configDir },
      'other accounts of this machine can write into the config directory of a profile',
    )
}
